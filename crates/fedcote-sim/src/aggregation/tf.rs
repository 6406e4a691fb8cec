//! TF-Aggregation (Salehi and Hossain, 2021): weights that make the expectation right.
//!
//! w̄ ← (1/K) Σ copies · p_i / (s_i (1 − ε_i)) · w_i. The weights sum to one in expectation only (and only
//! when everyone can be selected); a round in which nothing arrives gives the zero model. Uploads are not
//! repeated. That it is unstable when failures are frequent is what the paper shows.

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, Scene};

/// Unbiased, unnormalised weights.
pub struct Tf;

impl Aggregation for Tf {
    fn retries(&self) -> bool {
        false
    }

    fn aggregate(
        &mut self,
        scene: &Scene,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let selection = probabilities.expect("checked with the scheme").selection;
        let federation = scene.federation;
        let weights = weights(
            arrivals,
            federation.weights(),
            federation.failure(),
            selection,
            scene.world.draws(),
        );
        global.fill(0.0);
        for (arrival, &(_, weight)) in arrivals.iter().zip(&weights) {
            crate::vector::add(global, weight as f32, &arrival.model);
        }
        Ok(weights)
    }
}

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
}
