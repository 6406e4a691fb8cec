//! FedYogi (Reddi et al., "Adaptive Federated Optimization", ICLR 2021), as the paper prints it.
//!
//! Δ is the mean update of what arrived; m ← β₁ m + (1 − β₁) Δ,
//! v ← v − (1 − β₂) Δ² sign(v − Δ²), w̄ ← w̄ + η m / (√v + τ). No bias correction.

use super::mean::shares;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;
use crate::vector::mean_change;

parameters! {
    /// Parameters of `aggregation = "yogi"`.
    pub struct YogiSettings {
        /// Step size η on the server.
        server_rate: f64 = 0.01, in 0.0..=1e30;
        /// Decay β₁ of the first moment.
        beta1: f64 = 0.9, in 0.0..=1.0;
        /// Decay β₂ of the second moment.
        beta2: f64 = 0.99, in 0.0..=1.0;
        /// Adaptivity τ.
        adaptivity: f64 = 0.001, in 0.0..=1e30;
    }
}

/// An adaptive step on the mean update.
pub struct Yogi {
    rate: f32,
    beta1: f32,
    beta2: f32,
    adaptivity: f32,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Yogi {
    /// Both moments zero.
    pub fn new(settings: &YogiSettings, parameters: usize) -> Self {
        Self {
            rate: settings.server_rate as f32,
            beta1: settings.beta1 as f32,
            beta2: settings.beta2 as f32,
            adaptivity: settings.adaptivity as f32,
            first: vec![0.0; parameters],
            second: vec![0.0; parameters],
        }
    }

    fn step(&mut self, change: &[f32], global: &mut [f32]) {
        for (at, &change) in change.iter().enumerate() {
            let square = change * change;
            let first = &mut self.first[at];
            let second = &mut self.second[at];
            *first = self.beta1 * *first + (1.0 - self.beta1) * change;
            let gap = *second - square;
            // f32::signum(0) is 1, the rule's sign(0) is 0.
            let sign = if gap == 0.0 { 0.0 } else { gap.signum() };
            *second -= (1.0 - self.beta2) * square * sign;
            global[at] += self.rate * *first / (second.sqrt() + self.adaptivity);
        }
    }
}

impl Aggregation for Yogi {
    fn aggregate(
        &mut self,
        _context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let shares = shares(arrivals, |arrival| f64::from(arrival.copies));
        let terms = arrivals.iter().zip(&shares).map(|(a, s)| (s.1, a.model.as_slice()));
        let change = mean_change(global, terms);
        self.step(&change, global);
        Ok(shares)
    }
}

impl State for Yogi {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put("yogi.first", &self.first);
        saved.put("yogi.second", &self.second);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.first = saved.take("yogi.first", self.first.len())?;
        self.second = saved.take("yogi.second", self.second.len())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_are_as_by_hand() {
        let mut yogi = Yogi::new(&YogiSettings::default(), 1);
        let mut global = vec![0.0];
        // m = 0.1, v = 0.01: 0.01 · 0.1 / (0.1 + 0.001) = 0.00990099
        yogi.step(&[1.0], &mut global);
        assert!((global[0] - 0.009_900_99).abs() < 1e-8, "{global:?}");
        // Δ = 0.05, Δ² = 0.0025 < v: m = 0.095, v = 0.01 − 0.01·0.0025 = 0.009975,
        // step 0.01 · 0.095 / (0.0998749 + 0.001) = 0.00941760
        yogi.step(&[0.05], &mut global);
        assert!((global[0] - (0.009_900_99 + 0.009_417_605)).abs() < 1e-7, "{global:?}");
    }
}
