//! The mean of what arrived: w̄ ← w̄ + η Σ_i a_i (w_i − w̄), Σ a_i = 1.
//!
//! FedAvg counts every upload that arrived once: a_i ∝ copies. The weighted mean of schemes that select
//! without replacement has a_i ∝ copies · p_i. With η = 1 (the default) this is the mean of the models.

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::scheme::settings::parameters;
use crate::vector::{add, mean_change};

parameters! {
    /// Parameters of aggregations that only have a step size.
    pub struct StepSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
    }
}

impl StepSettings {
    /// The step size, in the precision of models.
    pub(super) fn rate(&self) -> f32 {
        self.server_rate as f32
    }
}

/// The mean of what arrived, each copy counting once.
pub struct Mean {
    /// Step size η on the server.
    pub rate: f32,
}

/// The mean weighted by copies times p.
pub struct WeightedMean {
    /// Step size η on the server.
    pub rate: f32,
}

/// Shares in proportion to `weight`, one for each arrival.
pub(super) fn shares(arrivals: &[Arrival], weight: impl Fn(&Arrival) -> f64) -> Vec<(u32, f64)> {
    let total: f64 = arrivals.iter().map(&weight).sum();
    arrivals.iter().map(|arrival| (arrival.client, weight(arrival) / total)).collect()
}

/// Moves the global model by the mean change of these shares.
pub(super) fn step(arrivals: &[Arrival], shares: &[(u32, f64)], rate: f32, global: &mut [f32]) {
    let terms = arrivals.iter().zip(shares).map(|(a, &(_, share))| (share, a.model.as_slice()));
    let change = mean_change(global, terms);
    add(global, rate, &change);
}

impl Aggregation for Mean {
    fn aggregate(
        &mut self,
        _context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let shares = shares(arrivals, |arrival| f64::from(arrival.copies));
        step(arrivals, &shares, self.rate, global);
        Ok(shares)
    }
}

impl State for Mean {}

impl Aggregation for WeightedMean {
    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let weights = context.federation.weights();
        let weight = |a: &Arrival| f64::from(a.copies) * weights[a.client as usize];
        let shares = shares(arrivals, weight);
        step(arrivals, &shares, self.rate, global);
        Ok(shares)
    }
}

impl State for WeightedMean {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    #[test]
    fn copies_count_as_by_hand() {
        let arrivals = [arrival(0, 2, 5, &[1.0, 0.0]), arrival(1, 1, 5, &[4.0, 3.0])];
        let shares = shares(&arrivals, |arrival| f64::from(arrival.copies));
        assert_eq!(shares, [(0, 2.0 / 3.0), (1, 1.0 / 3.0)]);
        let mut global = vec![1.0, 0.0];
        step(&arrivals, &shares, 1.0, &mut global);
        assert!((global[0] - 2.0).abs() < 1e-6 && (global[1] - 1.0).abs() < 1e-6, "{global:?}");
        let mut global = vec![1.0, 0.0];
        step(&arrivals, &shares, 0.5, &mut global);
        assert!((global[0] - 1.5).abs() < 1e-6 && (global[1] - 0.5).abs() < 1e-6, "{global:?}");
    }
}
