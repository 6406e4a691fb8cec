//! FedNova (Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated
//! Optimization", NeurIPS 2020).
//!
//! w̄ ← w̄ − τ_eff · mean((w̄ − w_i) / E_i), τ_eff = mean(E_i), both over the uploads that arrived. With
//! equal E_i it is FedAvg.

use super::mean::shares;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State, Traffic};
use crate::vector::{add, mean_change};

/// Updates divided by their number of steps.
pub struct Nova {
    /// Step size on the server.
    pub rate: f32,
}

/// The factor of each arrival's change: τ_eff · share / E_i.
fn factors(arrivals: &[Arrival]) -> Vec<(u32, f64)> {
    let mut factors = shares(arrivals, |arrival| f64::from(arrival.copies));
    let effective: f64 = arrivals.iter().zip(&factors).map(|(a, f)| f64::from(a.steps) * f.1).sum();
    for (arrival, factor) in arrivals.iter().zip(&mut factors) {
        factor.1 *= effective / f64::from(arrival.steps);
    }
    factors
}

impl Aggregation for Nova {
    /// How many steps the client made.
    fn traffic(&self, _context: &RoundContext, _client: u32) -> Traffic {
        Traffic { numbers_up: 1, ..Traffic::default() }
    }

    fn aggregate(
        &mut self,
        _context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let factors = factors(arrivals);
        let terms = arrivals.iter().zip(&factors).map(|(a, f)| (f.1, a.model.as_slice()));
        let change = mean_change(global, terms);
        add(global, self.rate, &change);
        Ok(factors)
    }
}

impl State for Nova {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    #[test]
    fn steps_are_evened_out_as_by_hand() {
        // One copy with 2 steps, one with 6: τ_eff = 4, factors 0.5·4/2 = 1 and 0.5·4/6 = 1/3.
        let factors = factors(&[arrival(0, 1, 2, &[]), arrival(1, 1, 6, &[])]);
        assert_eq!(factors, [(0, 1.0), (1, 0.5 * (4.0 / 6.0))]);
    }
}
