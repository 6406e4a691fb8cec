//! FedAvg with known probabilities (Perazzone et al., "Communication-Efficient Device Scheduling for Federated Learning Using Stochastic
//! Optimization", INFOCOM 2022, as a baseline of FedAWE): what arrives is divided by the probability that it does.
//!
//! w̄ ← w̄ + η Σ_i (p_i / q_i) (w_i − w̄) over what arrived, q_i the probability that client i arrives in this round, not normalised. With K draws
//! q_i is the expected number of uploads, K s_i (1 − ε_i), and every upload counts.

use super::mean::step;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `aggregation = "known"`.
    pub struct KnownSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// The largest 1/q that counts; 0 for any.
        cap: f64 = 0.0, in 0.0..;
    }
}

/// The sum of what arrived, each divided by its probability.
pub struct Known {
    settings: KnownSettings,
}

impl Known {
    /// With these parameters.
    pub fn new(settings: &KnownSettings) -> Self {
        Self { settings: settings.clone() }
    }
}

/// The weight of each arrival: copies · p_i / q_i.
pub(super) fn inverse(
    context: &RoundContext,
    probabilities: Probabilities,
    arrivals: &[Arrival],
    cap: f64,
) -> Vec<(u32, f64)> {
    let weight = |arrival: &Arrival| {
        let odds = 1.0 / probabilities.expected(context, arrival.client);
        let odds = if cap > 0.0 { odds.min(cap) } else { odds };
        f64::from(arrival.copies) * probabilities.target[arrival.client as usize] * odds
    };
    arrivals.iter().map(|arrival| (arrival.client, weight(arrival))).collect()
}

impl Aggregation for Known {
    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let probabilities = probabilities.expect("checked with the scheme");
        let weights = inverse(context, probabilities, arrivals, self.settings.cap);
        step(arrivals, &weights, self.settings.server_rate as f32, global);
        Ok(weights)
    }
}

impl State for Known {}
