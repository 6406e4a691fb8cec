//! What becomes of the local models that arrived.

mod all;
mod amplified;
mod amplified_scaffold;
mod control;
mod f3ast;
mod fedau;
mod fedawe;
mod feddyn;
mod fedpbc;
mod fedstale;
mod known;
mod krum;
mod label_matched;
mod mean;
mod median;
mod memory;
mod nova;
mod tf;
mod trimmed_mean;
mod variance_reduced;
mod yogi;

pub use all::All;
pub use amplified::{Amplified, AmplifiedSettings};
pub use amplified_scaffold::AmplifiedScaffold;
pub use control::{
    Control, ControlSettings, CorrectionKind, LabelSettings, MemoryKind, ServerRate,
};
pub(crate) use f3ast::Rates;
pub use f3ast::{F3ast, F3astSettings};
pub use fedau::{FedAu, FedAuSettings};
pub use fedawe::{FedAwe, FedAweSettings};
pub use feddyn::{FedDyn, FedDynSettings};
pub use fedpbc::FedPbc;
pub use fedstale::{FedStale, FedStaleSettings};
pub use known::{Known, KnownSettings};
pub use krum::{Krum, KrumSettings};
pub use label_matched::{LabelMatched, LabelMatchedSettings};
pub use mean::{Mean, StepSettings, WeightedMean};
pub use median::Median;
pub use memory::Memory;
pub use nova::Nova;
pub use tf::{Tf, TfAggregationSettings};
pub use trimmed_mean::{TrimmedMean, TrimmedMeanSettings};
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
        /// The sum of what arrived, weighted by p: the absent count as clients that did not move.
        "all" => All(StepSettings),
        /// The sum of what arrived, each divided by the probability that it does.
        "known" => Known(KnownSettings),
        /// The same, corrected by a share of everyone's latest update (FedStale).
        "fedstale" => Fedstale(FedStaleSettings),
        /// The sum of what arrived, each divided by the rate at which it does (F3AST).
        "f3ast" => F3ast(F3astSettings),
        /// The mean of the clients' own models, with echoes of what they missed (FedAWE).
        "fedawe" => Fedawe(FedAweSettings),
        /// The mean of the clients' own models, which train on when they are not heard (FedPBC).
        "fedpbc" => Fedpbc(StepSettings),
        /// The mean, its progress amplified once a period.
        "amplified" => Amplified(AmplifiedSettings),
        /// The same with control variates of the last period.
        "amplified-scaffold" => AmplifiedScaffold(AmplifiedSettings),
        /// The mean, with a regulariser that moves along (FedDyn).
        "feddyn" => Feddyn(FedDynSettings),
        /// Weights that match this round's labels to the global mix.
        "label-matched" => LabelMatched(LabelMatchedSettings),
        /// The median of what arrived, coordinate by coordinate.
        "median" => Median(StepSettings),
        /// The mean of what arrived without the smallest and largest values, coordinate by coordinate.
        "trimmed-mean" => TrimmedMean(TrimmedMeanSettings),
        /// The model that is nearest to the others, or the mean of several (Multi-Krum).
        "krum" => Krum(KrumSettings),
    }
}

impl AggregationKind {
    /// Whether everyone who was ever heard is in every aggregate, with the weight that the selection aims at.
    pub fn remembers(&self) -> bool {
        matches!(self, Self::Memory(_) | Self::Control(_))
    }

    /// Whether the server keeps everyone's latest update, whatever it does with it.
    pub fn keeps_updates(&self) -> bool {
        self.remembers() || matches!(self, Self::VarianceReduced(_) | Self::Fedstale(_))
    }

    /// The step size η, if a step is η times the sum of the updates with the weights that [`Aggregation::aggregate`] returns, in which no
    /// update has a say.
    pub fn weighted_sum(&self) -> Option<f64> {
        match self {
            Self::Mean(settings)
            | Self::WeightedMean(settings)
            | Self::Nova(settings)
            | Self::Memory(settings)
            | Self::All(settings) => Some(settings.server_rate),
            Self::Known(settings) => Some(settings.server_rate),
            Self::F3ast(settings) => Some(settings.server_rate),
            Self::Fedau(settings) => Some(settings.server_rate),
            Self::LabelMatched(settings) => Some(settings.server_rate),
            _ => None,
        }
    }

    /// Whether it needs a selection by probabilities.
    pub fn needs_probabilities(&self) -> bool {
        matches!(self, Self::TfAggregation(_) | Self::Known(_) | Self::Fedstale(_))
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
        AggregationKind::All(settings) => Box::new(All::new(settings)),
        AggregationKind::Known(settings) => Box::new(Known::new(settings)),
        AggregationKind::Fedstale(settings) => Box::new(FedStale::new(settings, parameters)),
        AggregationKind::F3ast(settings) => Box::new(F3ast::new(settings)),
        AggregationKind::Fedawe(settings) => Box::new(FedAwe::new(settings, parameters)),
        AggregationKind::Fedpbc(settings) => Box::new(FedPbc::new(settings, parameters)),
        AggregationKind::Amplified(settings) => Box::new(Amplified::new(settings, parameters)),
        AggregationKind::AmplifiedScaffold(settings) => {
            Box::new(AmplifiedScaffold::new(settings, parameters))
        }
        AggregationKind::Feddyn(settings) => Box::new(FedDyn::new(settings, parameters)),
        AggregationKind::LabelMatched(settings) => Box::new(LabelMatched::new(settings)),
        AggregationKind::Median(settings) => Box::new(Median::new(settings)),
        AggregationKind::TrimmedMean(settings) => Box::new(TrimmedMean::new(settings)),
        AggregationKind::Krum(settings) => Box::new(Krum::new(settings)),
    }
}

#[cfg(test)]
pub(crate) fn arrival(client: u32, copies: u32, steps: u32, model: &[f32]) -> crate::part::Arrival {
    crate::part::Arrival { client, copies, steps, model: model.to_vec() }
}
