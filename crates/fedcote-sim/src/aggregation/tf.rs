//! TF-Aggregation (Salehi and Hossain, 2021): weights that make the expectation right.
//!
//! w̄ ← (1/K) Σ copies · p_i / (s_i (1 − ε_i)) · w_i. The weights sum to one in expectation only (and only
//! when everyone can be selected); a round in which nothing arrives gives the zero model. Uploads are not
//! repeated. That it is unstable when failures are frequent is what the paper shows.
//!
//! Where the threshold leaves clients out, the p of the others sum to less than one and the model shrinks from round to round.
//! `renormalised` divides by their sum, `retry` repeats uploads of which none arrived, as the paper's other schemes do.

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `aggregation = "tf-aggregation"`.
    pub struct TfAggregationSettings {
        /// Weights p over the clients that can be selected, so that they sum to one.
        renormalised: bool = false;
        /// Uploads are repeated when nothing arrived.
        retry: bool = false;
    }
}

/// Unbiased, unnormalised weights.
pub struct Tf {
    settings: TfAggregationSettings,
}

impl Tf {
    pub(super) fn new(settings: &TfAggregationSettings) -> Self {
        Self { settings: settings.clone() }
    }
}

impl Aggregation for Tf {
    fn retries(&self) -> bool {
        self.settings.retry
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let selection = probabilities.expect("checked with the scheme").selection;
        let federation = context.federation;
        let mut weights = weights(
            arrivals,
            federation.weights(),
            federation.failure(),
            selection,
            context.world.draws(),
        );
        if self.settings.renormalised {
            let selected = federation.weights().iter().zip(selection).filter(|(_, s)| **s > 0.0);
            let total: f64 = selected.map(|(weight, _)| weight).sum();
            weights.iter_mut().for_each(|(_, weight)| *weight /= total);
        }
        global.fill(0.0);
        for (arrival, &(_, weight)) in arrivals.iter().zip(&weights) {
            crate::vector::add(global, weight as f32, &arrival.model);
        }
        Ok(weights)
    }
}

impl State for Tf {}

fn weights(
    arrivals: &[Arrival],
    weights: &[f64],
    failure: &[f64],
    selection: &[f64],
    draws: u64,
) -> Vec<(u32, f64)> {
    let weight = |arrival: &Arrival| {
        let client = arrival.client as usize;
        let reached = selection[client] * (1.0 - failure[client]) * draws as f64;
        (arrival.client, f64::from(arrival.copies) * weights[client] / reached)
    };
    arrivals.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    /// Over all draws and failures of two clients, K = 2, the mean weight of a client is its p.
    #[test]
    fn weights_average_to_the_unbiased_estimate() {
        let (p, failure, selection) = ([0.3, 0.7], [0.2, 0.6], [0.4, 0.6]);
        let mut mean = [0.0; 2];
        for draws in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            for arrived in 0..4u32 {
                let mut chance = 1.0;
                let mut copies = [0u32; 2];
                for (at, &client) in draws.iter().enumerate() {
                    let arrives = arrived >> at & 1 == 1;
                    chance *= selection[client]
                        * if arrives { 1.0 - failure[client] } else { failure[client] };
                    copies[client] += u32::from(arrives);
                }
                let arrivals: Vec<Arrival> = (0..2)
                    .filter(|&client| copies[client] > 0)
                    .map(|client| arrival(client as u32, copies[client], 1, &[]))
                    .collect();
                for (client, weight) in weights(&arrivals, &p, &failure, &selection, 2) {
                    mean[client as usize] += chance * weight;
                }
            }
        }
        assert!((mean[0] - 0.3).abs() < 1e-12 && (mean[1] - 0.7).abs() < 1e-12, "{mean:?}");
    }

    /// The weights of a round sum to one in expectation only. Their sum has the variance (Σ p²/(s (1 − ε)) − 1)/K,
    /// which grows without bound as a failure probability nears 1; the mean of what arrived, which FedCote uses, has
    /// weights that sum to one in every round.
    #[test]
    fn the_sum_of_weights_swings_where_the_mean_of_arrivals_does_not() {
        let (p, selection) = ([0.3, 0.7], [0.4, 0.6]);
        let mut before = 0.0;
        for last in [0.0, 0.6, 0.9, 0.99] {
            let failure = [0.2, last];
            let (mut mean, mut square) = (0.0, 0.0);
            for draws in [[0, 0], [0, 1], [1, 0], [1, 1]] {
                for arrived in 0..4u32 {
                    let arrives = |at: usize| arrived >> at & 1 == 1;
                    let chance: f64 = (0..2)
                        .map(|at| {
                            let (s, e) = (selection[draws[at]], failure[draws[at]]);
                            s * if arrives(at) { 1.0 - e } else { e }
                        })
                        .product();
                    let arrivals: Vec<Arrival> = (0..2)
                        .map(|who| (0..2).filter(|&at| draws[at] == who && arrives(at)).count())
                        .enumerate()
                        .filter(|(_, copies)| *copies > 0)
                        .map(|(who, copies)| arrival(who as u32, copies as u32, 1, &[]))
                        .collect();
                    let sum: f64 =
                        weights(&arrivals, &p, &failure, &selection, 2).iter().map(|w| w.1).sum();
                    mean += chance * sum;
                    square += chance * sum * sum;
                    if !arrivals.is_empty() {
                        let ours = super::super::mean::shares(&arrivals, |a| f64::from(a.copies));
                        assert!((ours.iter().map(|w| w.1).sum::<f64>() - 1.0).abs() < 1e-15);
                    }
                }
            }
            let terms = (0..2).map(|i| p[i] * p[i] / (selection[i] * (1.0 - failure[i])));
            let expected = (terms.sum::<f64>() - 1.0) / 2.0;
            assert!((mean - 1.0).abs() < 1e-12, "{mean}");
            assert!((square - mean * mean - expected).abs() < 1e-9, "{last}: {square} {expected}");
            assert!(expected > before);
            before = expected;
        }
        assert!(before > 30.0, "{before}");
    }
}
