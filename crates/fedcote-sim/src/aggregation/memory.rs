//! MIFA (Gu et al., "Fast Federated Learning in the Presence of Arbitrary Device Unavailability", NeurIPS
//! 2021): the server remembers each client's latest update and averages all of them.
//!
//! w̄ ← w̄ + η Σ_i b_i u_i / Σ_i b_i over the clients heard from, u_i the latest w_i − w̄ that arrived. The
//! weights b are the target of the selection: p, or for FedCote what its solver aims at, so that clients it
//! leaves out have no say.

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::slab::Slab;
use crate::vector::add;

/// The mean of everyone's latest update.
pub struct Memory {
    rate: f32,
    updates: Slab,
}

impl Memory {
    /// Nobody heard from yet.
    pub fn new(rate: f32, parameters: usize) -> Self {
        Self { rate, updates: Slab::new(parameters) }
    }

    /// Remembers what arrived, and steps by the mean of what is remembered.
    fn step(
        &mut self,
        weights: &[f64],
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Vec<(u32, f64)> {
        remember(&mut self.updates, arrivals, global);
        let weight = |client: u32| weights[client as usize];
        let total: f64 = self.updates.iter().map(|(client, _)| weight(client)).sum();
        if total <= 0.0 {
            // Only clients without a say arrived.
            return Vec::new();
        }
        let mut shares = Vec::new();
        for (client, update) in self.updates.iter() {
            let share = weight(client) / total;
            if share > 0.0 {
                add(global, self.rate * share as f32, update);
                shares.push((client, share));
            }
        }
        shares
    }
}

/// Puts the updates of what arrived in place of older ones, unless they are there already.
pub(super) fn remember(updates: &mut Slab, arrivals: &[Arrival], global: &[f32]) {
    for arrival in arrivals.iter().filter(|arrival| !arrival.model.is_empty()) {
        put(updates.row(arrival.client), &arrival.model, global);
    }
}

fn put(row: &mut [f32], model: &[f32], global: &[f32]) {
    for ((row, model), global) in row.iter_mut().zip(model).zip(global) {
        *row = model - global;
    }
}

impl Aggregation for Memory {
    fn absorb(&mut self, context: &RoundContext, client: u32, _steps: u32, model: &mut Vec<f32>) {
        put(self.updates.row(client), &std::mem::take(model), context.global);
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let weights = probabilities.map_or(context.federation.weights(), |p| p.target);
        Ok(self.step(weights, arrivals, global))
    }
}

impl State for Memory {
    fn memory(&self) -> usize {
        self.updates.bytes()
    }

    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.updates.save("memory.updates", saved);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.updates.restore("memory.updates", saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    #[test]
    fn the_absent_are_remembered_as_by_hand() {
        let mut memory = Memory::new(1.0, 1);
        let mut global = vec![0.0];
        // Only client 0 is known: its update 2 has the whole say.
        assert_eq!(
            memory.step(&[0.25, 0.75], &[arrival(0, 1, 1, &[2.0])], &mut global),
            [(0, 1.0)]
        );
        assert_eq!(global, [2.0]);
        // Client 1 arrives with 6 (update 4); client 0 is remembered: 2 + 0.25·2 + 0.75·4 = 5.5.
        let shares = memory.step(&[0.25, 0.75], &[arrival(1, 3, 1, &[6.0])], &mut global);
        assert_eq!(shares, [(0, 0.25), (1, 0.75)]);
        assert_eq!(global, [5.5]);
        // Someone the selection excludes has no say.
        assert_eq!(memory.step(&[1.0, 0.0], &[], &mut global), [(0, 1.0)]);
        assert_eq!(global, [7.5]);
    }
}
