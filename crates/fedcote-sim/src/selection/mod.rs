//! Whom the server asks in a round.

mod buffered;
mod ca_fed;
mod drawing;
mod everyone;
mod f3ast;
mod fedcote_selection;
mod gs;
mod newt;
mod oort;
mod power_of_choice;
mod printed;
mod tf;
mod weights;

pub(crate) use buffered::Flight;
pub use buffered::{Buffered, BufferedSettings, StalenessKind};
pub use ca_fed::{CaFed, CaFedSettings};
pub use everyone::Everyone;
pub use f3ast::{F3ast, F3astSelectionSettings};
pub use fedcote_selection::{AimKind, Fedcote, FedcoteSettings, SolverKind};
pub use gs::Gs;
pub use newt::{DifferenceKind, Newt, NewtSettings};
pub use oort::{Oort, OortSettings};
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
        /// Every client, there or not.
        "everyone" => Everyone,
        /// Of those who are there, the ones asked most rarely for their weight.
        "f3ast" => F3ast(F3astSelectionSettings),
        /// Everyone who is there, apart from clients that do more harm than good (CA-Fed).
        "ca-fed" => CaFed(CaFedSettings),
        /// Of those who are there, clients of high loss that are not slow, and some that were never tried.
        "oort" => Oort(OortSettings),
        /// K clients are always under way, and the server steps when enough have ended (FedBuff).
        "buffered" => Buffered(BufferedSettings),
    }
}

impl SelectionKind {
    /// Whether clients are drawn by probabilities.
    pub fn has_probabilities(&self) -> bool {
        matches!(
            self,
            Self::Weights(_)
                | Self::TfAggregation(_)
                | Self::Fedcote(_)
                | Self::Everyone
                | Self::CaFed(_)
        )
    }
}

/// The selection of a scheme.
pub fn build(scheme: &Scheme, world: &World) -> Box<dyn Selection> {
    let scenario = &world.scenario;
    let remembered = scheme.aggregation.remembers();
    let drawing = |draws| Drawing::new(draws, scenario.observation.uploads, remembered);
    match &scheme.selection {
        SelectionKind::Buffered(settings) => {
            Box::new(Buffered::new(settings, world.draws(), world.task.len()))
        }
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
        SelectionKind::Everyone => Box::new(Everyone::default()),
        SelectionKind::F3ast(settings) => Box::new(F3ast::new(settings)),
        SelectionKind::CaFed(settings) => Box::new(CaFed::new(settings)),
        SelectionKind::Oort(settings) => Box::new(Oort::new(settings)),
    }
}
