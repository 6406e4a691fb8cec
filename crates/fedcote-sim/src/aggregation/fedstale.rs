//! FedStale (Rodio and Neglia, "FedStale: leveraging stale client updates in federated learning", 2024): between FedAvg with known
//! probabilities (β = 0) and FedVARP with probabilities (β = 1).
//!
//! With Δ_i what arrived, h_i the latest update of each client (0 at first) and q_i the probability that it arrives:
//! w̄ ← w̄ + η { Σ_A (p_i/q_i) Δ_i + β [ Σ_j p_j h_j − Σ_A (p_i/q_i) h_i ] }, then h_i ← Δ_i for what arrived. When nobody arrives the model stays.

use super::known::inverse;
use super::memory::remember;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;
use crate::slab::Slab;
use crate::vector::{add, mean_change};

parameters! {
    /// Parameters of `aggregation = "fedstale"`.
    pub struct FedStaleSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// The weight β of stale updates: 0 is FedAvg with known probabilities, 1 is FedVARP with probabilities.
        stale: f64 = 0.5, in 0.0..=1.0;
    }
}

/// Fresh updates, corrected by a share of the stale ones.
pub struct FedStale {
    settings: FedStaleSettings,
    updates: Slab,
}

impl FedStale {
    /// Nobody heard from yet.
    pub fn new(settings: &FedStaleSettings, parameters: usize) -> Self {
        Self { settings: settings.clone(), updates: Slab::new(parameters) }
    }
}

impl Aggregation for FedStale {
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
        if arrivals.is_empty() {
            return Ok(Vec::new());
        }
        let probabilities = probabilities.expect("checked with the scheme");
        let fresh = inverse(context, probabilities, arrivals, 0.0);
        let terms = arrivals.iter().zip(&fresh).map(|(a, f)| (f.1, a.model.as_slice()));
        let mut change = mean_change(global, terms);
        let mut say = fresh.clone();
        for (client, update) in self.updates.iter() {
            let own = fresh.iter().find(|(fresh, _)| *fresh == client).map_or(0.0, |f| f.1);
            let weight = self.settings.stale * (probabilities.target[client as usize] - own);
            add(&mut change, weight as f32, update);
            match say.iter_mut().find(|(fresh, _)| *fresh == client) {
                Some((_, share)) => *share += weight,
                None => say.push((client, weight)),
            }
        }
        remember(&mut self.updates, arrivals, global);
        add(global, self.settings.server_rate as f32, &change);
        Ok(say)
    }
}

impl State for FedStale {
    fn memory(&self) -> usize {
        self.updates.bytes()
    }

    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.updates.save("fedstale.updates", saved);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.updates.restore("fedstale.updates", saved)
    }
}
