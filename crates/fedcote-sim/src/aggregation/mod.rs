//! What becomes of the local models that arrived.

mod control;
mod fedau;
mod label_matched;
mod mean;
mod memory;
mod nova;
mod tf;
mod variance_reduced;
mod yogi;

pub use control::{
    Control, ControlSettings, CorrectionKind, LabelSettings, MemoryKind, ServerRate,
};
pub use fedau::{FedAu, FedAuSettings};
pub use label_matched::{LabelMatched, LabelMatchedSettings};
pub use mean::{Mean, StepSettings, WeightedMean};
pub use memory::Memory;
pub use nova::Nova;
pub use tf::{Tf, TfAggregationSettings};
pub use variance_reduced::VarianceReduced;
pub use yogi::{Yogi, YogiSettings};

use crate::part::Aggregation;
use crate::scheme::Scheme;
use crate::scheme::settings::choices;

choices! {
    /// What becomes of what arrived.
    pub enum AggregationKind in "aggregation" {
        /// The mean of what arrived, each copy counting once.
        "mean" => Mean(StepSettings),
        /// The mean weighted by copies times p.
        "weighted-mean" => WeightedMean(StepSettings),
        /// Weights that make the expectation right, not normalised.
        "tf-aggregation" => TfAggregation(TfAggregationSettings),
        /// Updates divided by their number of steps.
        "nova" => Nova(StepSettings),
        /// An adaptive step on the mean update.
        "yogi" => Yogi(YogiSettings),
        /// The mean of everyone's latest update (MIFA).
        "memory" => Memory(StepSettings),
        /// The mean of everyone's latest update, with corrections of the drift that the server works out.
        "control" => Control(ControlSettings),
        /// The mean update corrected by everyone's latest one (FedVARP).
        "variance-reduced" => VarianceReduced(StepSettings),
        /// The mean weighted by observed participation (FedAU).
        "fedau" => Fedau(FedAuSettings),
        /// Weights that match this round's labels to the global mix.
        "label-matched" => LabelMatched(LabelMatchedSettings),
    }
}

impl AggregationKind {
    /// Whether everyone who was ever heard is in every aggregate, with the weight that the selection aims at.
    pub fn remembers(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Control(_))
    }

    /// Whether it needs a selection by probabilities.
    pub fn needs_probabilities(&self) -> bool {
        matches!(self, Self::TfAggregation(_))
    }
}

/// The aggregation of a scheme, for a model of this many parameters.
pub fn build(scheme: &Scheme, parameters: usize) -> Box<dyn Aggregation> {
    match &scheme.aggregation {
        AggregationKind::Mean(settings) => Box::new(Mean { rate: settings.rate() }),
        AggregationKind::WeightedMean(settings) => Box::new(WeightedMean { rate: settings.rate() }),
        AggregationKind::TfAggregation(settings) => Box::new(Tf::new(settings)),
        AggregationKind::Nova(settings) => Box::new(Nova { rate: settings.rate() }),
        AggregationKind::Yogi(settings) => Box::new(Yogi::new(settings, parameters)),
        AggregationKind::Memory(settings) => Box::new(Memory::new(settings.rate(), parameters)),
        AggregationKind::Control(settings) => Box::new(Control::new(settings, parameters)),
        AggregationKind::VarianceReduced(settings) => {
            Box::new(VarianceReduced::new(settings.rate(), parameters))
        }
        AggregationKind::Fedau(settings) => Box::new(FedAu::new(settings)),
        AggregationKind::LabelMatched(settings) => Box::new(LabelMatched::new(settings)),
    }
}

#[cfg(test)]
pub(crate) fn arrival(client: u32, copies: u32, steps: u32, model: &[f32]) -> crate::part::Arrival {
    crate::part::Arrival { client, copies, steps, model: model.to_vec() }
}
