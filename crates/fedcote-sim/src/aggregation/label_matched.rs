//! Weights after the fact: once it is known who arrived, the aggregation weights are chosen so that this
//! round's labels match the global mix, with a ridge λ towards the mean of what arrived.
//!
//! Minimises Σ_c (α_{g,c} − Σ_i a_i α_{i,c})² / α_{g,c} + λ Σ_i (a_i − q_i)² / q_i over the simplex, q_i the share
//! of copies of client i: the problem of the `fedcote` library with reference q and κ = 1/λ.

use super::mean::{shares, step};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `aggregation = "label-matched"`.
    pub struct LabelMatchedSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// Ridge λ towards equal weights.
        ridge: f64 = 0.1, in 0.0..;
    }
}

/// Weights that match this round's labels to the global mix.
pub struct LabelMatched {
    /// Step size on the server.
    pub rate: f32,
    /// Ridge λ towards equal weights.
    pub ridge: f64,
}

impl LabelMatched {
    /// With these parameters.
    pub fn new(settings: &LabelMatchedSettings) -> Self {
        Self { rate: settings.server_rate as f32, ridge: settings.ridge }
    }

    fn weights(
        &self,
        arrivals: &[Arrival],
        labels: &[f64],
        goal: &[f64],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let mut shares = shares(arrivals, |arrival| f64::from(arrival.copies));
        let reference: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
        // λ = 0 asks for labels alone; a tiny one says the same and keeps the answer unique.
        let matched = fedcote::matched::weights(labels, goal, &reference, self.ridge.max(1e-9))?;
        for ((_, share), weight) in shares.iter_mut().zip(matched) {
            *share = weight;
        }
        Ok(shares)
    }
}

impl Aggregation for LabelMatched {
    fn needs_labels(&self) -> bool {
        true
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let federation = context.federation;
        let labels: Vec<f64> = arrivals
            .iter()
            .flat_map(|arrival| federation.labels(arrival.client as usize))
            .copied()
            .collect();
        let weights = self.weights(arrivals, &labels, federation.global_labels())?;
        step(arrivals, &weights, self.rate, global);
        Ok(weights)
    }
}

impl State for LabelMatched {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    #[test]
    fn labels_are_matched_as_by_hand() {
        // Two clients of label 0, one of label 1, the goal is half and half. By symmetry a = (x, x, 1 − 2x), and
        // the objective 2 (1/2 − 2x)² + 2 (2x − 1/2)² + λ·3·(2 (x − 1/3)² + (2x − 2/3)²) has its minimum at
        // 16·2 (x − 1/4) + λ·3·12 (x − 1/3) = 0: x = (8 + 12 λ)/(32 + 36 λ).
        let arrivals = [0, 1, 2].map(|client| arrival(client, 1, 1, &[]));
        let labels = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        for ridge in [0.01, 0.1, 1.0] {
            let matched = LabelMatched { rate: 1.0, ridge };
            let weights = matched.weights(&arrivals, &labels, &[0.5, 0.5]).unwrap();
            let expected = (8.0 + 12.0 * ridge) / (32.0 + 36.0 * ridge);
            assert!((weights[0].1 - expected).abs() < 1e-9, "{weights:?} {expected}");
            assert!((weights[1].1 - expected).abs() < 1e-9, "{weights:?} {expected}");
        }
    }
}
