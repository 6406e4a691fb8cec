//! What becomes of the local models that arrived.

mod fedau;
mod label_matched;
mod mean;
mod memory;
mod nova;
mod tf;
mod variance_reduced;
mod yogi;

pub use fedau::FedAu;
pub use label_matched::LabelMatched;
pub use mean::{Mean, WeightedMean};
pub use memory::Memory;
pub use nova::Nova;
pub use tf::Tf;
pub use variance_reduced::VarianceReduced;
pub use yogi::Yogi;

use crate::part::Aggregation;
use crate::scheme::{AggregationKind, Scheme};

/// The aggregation of a scheme, for a model of this many parameters.
pub fn build(scheme: &Scheme, parameters: usize) -> Box<dyn Aggregation> {
    let config = &scheme.config;
    let rate = config.server_rate.unwrap_or(1.0) as f32;
    match scheme.aggregation {
        AggregationKind::Mean => Box::new(Mean { rate }),
        AggregationKind::WeightedMean => Box::new(WeightedMean { rate }),
        AggregationKind::TfAggregation => Box::new(Tf),
        AggregationKind::Nova => Box::new(Nova { rate }),
        AggregationKind::Yogi => Box::new(Yogi::new(config, parameters)),
        AggregationKind::Memory => Box::new(Memory::new(rate, parameters)),
        AggregationKind::VarianceReduced => Box::new(VarianceReduced::new(rate, parameters)),
        AggregationKind::Fedau => Box::new(FedAu::new(rate, config.cutoff)),
        AggregationKind::LabelMatched => {
            Box::new(LabelMatched { rate, ridge: config.ridge.unwrap_or(0.1) })
        }
    }
}

#[cfg(test)]
pub(crate) fn arrival(client: u32, copies: u32, steps: u32, model: &[f32]) -> crate::part::Arrival {
    crate::part::Arrival { client, copies, steps, model: model.to_vec() }
}
