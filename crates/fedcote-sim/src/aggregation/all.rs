//! FedAvg over all clients (one of the baselines of Wang and Ji, "A Lightweight Method for Tackling Unknown Participation Statistics in
//! Federated Averaging", ICLR 2024): who is absent counts as a client that did not move.
//!
//! w̄ ← w̄ + η Σ_i p_i (w_i − w̄) over the clients that arrived, each once. What it minimises is biased by how often clients come, and its steps
//! are the shorter the fewer come.

use super::mean::{StepSettings, step};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};

/// The sum of what arrived, weighted by p.
pub struct All {
    rate: f32,
}

impl All {
    /// With this step size on the server.
    pub fn new(settings: &StepSettings) -> Self {
        Self { rate: settings.rate() }
    }
}

impl Aggregation for All {
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
        let target = probabilities.map_or(context.federation.weights(), |p| p.target);
        let weights: Vec<(u32, f64)> =
            arrivals.iter().map(|a| (a.client, target[a.client as usize])).collect();
        step(arrivals, &weights, self.rate, global);
        Ok(weights)
    }
}

impl State for All {}
