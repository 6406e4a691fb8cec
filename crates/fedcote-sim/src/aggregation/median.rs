//! Coordinate-wise median (Yin, Chen, Ramchandran and Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal Statistical
//! Rates", ICML 2018).
//!
//! w̄_k ← w̄_k + η (median_i w_{i,k} − w̄_k), separately in every coordinate k, over the clients that arrived, each counting once however
//! often it was drawn; the median of an even number of values is the mean of the two in the middle. It is the trimmed mean with as much
//! left out as possible.
//!
//! **Limits.** While fewer than half of the arrived clients are hostile, every coordinate stays in the range of the honest values (the
//! breakdown point, the highest there is); of what arrived, not of what was drawn. With one or two arrivals it is the mean. It has the
//! bias of the trimmed mean in full: where labels are skewed, the values of the few clients that hold a rare label are
//! never in the middle, and what they learnt is lost.

use super::mean::StepSettings;
use super::trimmed_mean::{most, step};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};

/// The median, coordinate by coordinate.
pub struct Median {
    /// Step size η on the server.
    pub rate: f64,
}

impl Median {
    /// With these parameters.
    pub fn new(settings: &StepSettings) -> Self {
        Self { rate: settings.server_rate }
    }
}

impl Aggregation for Median {
    fn aggregate(
        &mut self,
        _context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        Ok(step(arrivals, most(arrivals.len()), self.rate, global))
    }
}

impl State for Median {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    fn median(values: &[f32]) -> f32 {
        let arrivals: Vec<Arrival> =
            (0..).zip(values).map(|(client, &value)| arrival(client, 1, 1, &[value])).collect();
        let mut global = vec![0.5];
        step(&arrivals, most(values.len()), 1.0, &mut global);
        global[0]
    }

    #[test]
    fn odd_and_even_numbers_are_as_by_hand() {
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[7.0, 2.0]), 4.5);
        assert_eq!(median(&[7.0, 2.0, -900.0]), 2.0);
        assert_eq!(median(&[7.0, 2.0, -900.0, 4.0]), 3.0);
        assert_eq!(median(&[7.0, 2.0, -900.0, 4.0, 900.0]), 4.0);
    }

    /// A client that is drawn more often than all others together still has one vote.
    #[test]
    fn a_client_drawn_often_counts_once() {
        let arrivals =
            [arrival(0, 1, 1, &[1.0]), arrival(1, 9, 1, &[1e6]), arrival(2, 1, 1, &[3.0])];
        let mut global = vec![0.0];
        assert_eq!(step(&arrivals, most(3), 1.0, &mut global), [(0, 0.0), (1, 0.0), (2, 1.0)]);
        assert_eq!(global, [3.0]);
    }
}
