//! Whom the server asks in a round.

mod drawing;
mod fedcote_selection;
mod gs;
mod newt;
mod power_of_choice;
mod printed;
mod tf;
mod weights;

pub use fedcote_selection::{AimKind, Fedcote, FedcoteSettings, SolverKind};
pub use gs::Gs;
pub use newt::{DifferenceKind, Newt, NewtSettings};
pub use power_of_choice::{LossKind, PowerOfChoice, PowerOfChoiceSettings};
pub use printed::PrintedSettings;
pub use tf::{Tf, TfSettings};
pub use weights::{Weights, WeightsSettings};

use drawing::Drawing;

use crate::part::Selection;
use crate::scheme::Scheme;
use crate::scheme::settings::choices;
use crate::world::World;

choices! {
    /// Whom to ask.
    pub enum SelectionKind in "selection" {
        /// Draws in proportion to the weights p (FedAvg).
        "weights" => Weights(WeightsSettings),
        /// The candidates with the highest loss.
        "power-of-choice" => PowerOfChoice(PowerOfChoiceSettings),
        /// The clients whose last model is farthest from the global one.
        "newt" => Newt(NewtSettings),
        /// Groups that together have the global label mix, in turn.
        "gs" => Gs,
        /// Draws that minimise the variance of unbiased aggregation.
        "tf-aggregation" => TfAggregation(TfSettings),
        /// Draws that undo the distortion by failures.
        "fedcote" => Fedcote(FedcoteSettings),
    }
}

impl SelectionKind {
    /// Whether clients are drawn by probabilities.
    pub fn has_probabilities(&self) -> bool {
        matches!(self, Self::Weights(_) | Self::TfAggregation(_) | Self::Fedcote(_))
    }
}

/// The selection of a scheme.
pub fn build(scheme: &Scheme, world: &World) -> Box<dyn Selection> {
    let scenario = &world.scenario;
    let remembered = scheme.aggregation.remembers();
    let drawing = |draws| Drawing::new(draws, scenario.observation.uploads, remembered);
    match &scheme.selection {
        SelectionKind::Weights(settings) => Box::new(Weights::new(drawing(settings.draws))),
        SelectionKind::PowerOfChoice(settings) => {
            Box::new(PowerOfChoice::new(settings, world.task.len()))
        }
        SelectionKind::Newt(settings) => Box::new(Newt::new(settings, world.task.len())),
        SelectionKind::Gs => Box::new(Gs::default()),
        SelectionKind::TfAggregation(settings) => {
            Box::new(Tf::new(settings, drawing(settings.draws)))
        }
        SelectionKind::Fedcote(settings) => {
            Box::new(Fedcote::new(settings, scenario, drawing(settings.draws)))
        }
    }
}
