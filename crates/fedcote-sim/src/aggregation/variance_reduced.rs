//! FedVARP (Jhunjhunwala et al., "FedVARP: Tackling the Variance Due to Partial Client Participation in
//! Federated Learning", UAI 2022).
//!
//! With u_i this round's updates, y_i the remembered ones (zero at first), a the shares of what arrived and b
//! the target of the selection: w̄ ← w̄ + η (Σ_i a_i (u_i − y_i) + Σ_j b_j y_j), then y_i ← u_i for what
//! arrived.

use super::mean::shares;
use super::memory::remember;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::slab::Slab;
use crate::vector::{add, mean_change};

/// The mean update, corrected by everyone's latest one.
pub struct VarianceReduced {
    rate: f32,
    updates: Slab,
}

impl VarianceReduced {
    /// Nobody heard from yet.
    pub fn new(rate: f32, parameters: usize) -> Self {
        Self { rate, updates: Slab::new(parameters) }
    }

    fn step(
        &mut self,
        weights: &[f64],
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Vec<(u32, f64)> {
        let mut shares = shares(arrivals, |arrival| f64::from(arrival.copies));
        let terms = arrivals.iter().zip(&shares).map(|(a, s)| (s.1, a.model.as_slice()));
        let mut change = mean_change(global, terms);
        let mut remembered = Vec::new();
        for (client, update) in self.updates.iter() {
            let weight = weights[client as usize];
            let fresh = shares.iter().find(|(fresh, _)| *fresh == client).map_or(0.0, |s| s.1);
            add(&mut change, (weight - fresh) as f32, update);
            remembered.push((client, weight - fresh));
        }
        remember(&mut self.updates, arrivals, global);
        add(global, self.rate, &change);
        // A client's say is that of its fresh and its remembered update together.
        for (client, weight) in remembered {
            match shares.iter_mut().find(|(fresh, _)| *fresh == client) {
                Some((_, share)) => *share += weight,
                None => shares.push((client, weight)),
            }
        }
        shares
    }
}

impl Aggregation for VarianceReduced {
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

impl State for VarianceReduced {
    fn memory(&self) -> usize {
        self.updates.bytes()
    }

    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.updates.save("variance-reduced.updates", saved);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.updates.restore("variance-reduced.updates", saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    #[test]
    fn the_correction_is_as_by_hand() {
        let mut reduced = VarianceReduced::new(1.0, 1);
        let mut global = vec![0.0];
        // Nothing remembered: plain mean.
        reduced.step(&[0.5, 0.5], &[arrival(0, 1, 1, &[2.0])], &mut global);
        assert_eq!(global, [2.0]);
        // u_1 = 4 with share 1, y_0 = 2 with weight 0.5: 2 + 4 + 0.5·2 = 7.
        reduced.step(&[0.5, 0.5], &[arrival(1, 1, 1, &[6.0])], &mut global);
        assert_eq!(global, [7.0]);
        // u_0 = 1: (1 − 2) + 0.5·2 + 0.5·4 = 2; 7 + 2 = 9.
        reduced.step(&[0.5, 0.5], &[arrival(0, 1, 1, &[8.0])], &mut global);
        assert_eq!(global, [9.0]);
    }
}
