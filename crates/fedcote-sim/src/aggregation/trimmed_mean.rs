//! Coordinate-wise trimmed mean (Yin, Chen, Ramchandran and Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal
//! Statistical Rates", ICML 2018).
//!
//! w̄_k ← w̄_k + η (mean of w_{i,k} without the c smallest and the c largest values − w̄_k), separately in every coordinate k, over the
//! n clients that arrived; c = ⌈β n⌉, but at least one value stays. The paper takes β n for a whole number; it is rounded up, so that
//! few arrivals are trimmed, too.
//!
//! Every client counts once, however often it was drawn: draws with replacement would give one hostile client several votes.
//!
//! **Limits.** No value that c or fewer hostile clients send can take a coordinate out of the range of the honest values; with more, any
//! value is possible: the breakdown point is c/n. n is what arrived, not what was drawn: one or two arrivals are averaged as they are.
//! The mean of extremes is lost with the attacks: where labels are skewed, who alone holds a label has
//! extreme values in the coordinates of that label, and is left out there. So the result is biased even without any hostile
//! client, and what a selection does for the expectation of a mean does not carry over.

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `aggregation = "trimmed-mean"`.
    pub struct TrimmedMeanSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// The share β of clients whose values are left out at either end, in every coordinate.
        trim: f64 = 0.2, in 0.0..=0.5;
    }
}

/// The mean without the smallest and largest values, coordinate by coordinate.
pub struct TrimmedMean {
    /// Step size η on the server.
    pub rate: f64,
    /// The share left out at either end.
    pub trim: f64,
}

impl TrimmedMean {
    /// With these parameters.
    pub fn new(settings: &TrimmedMeanSettings) -> Self {
        Self { rate: settings.server_rate, trim: settings.trim }
    }

    /// How many of n values are left out at either end.
    fn out(&self, count: usize) -> usize {
        // β n that is a whole number must not be rounded up for the last bit of a product.
        ((self.trim * count as f64 - 1e-9).ceil() as usize).min(most(count))
    }
}

/// How many of n values can be left out at either end when one or two are to stay: then the mean is the median.
pub(super) fn most(count: usize) -> usize {
    count.saturating_sub(1) / 2
}

/// Moves every coordinate by the mean of the arrived values without `out` at either end. The weight of a client is its share in the
/// coordinates, equal values sharing what some of them have.
pub(super) fn step(
    arrivals: &[Arrival],
    out: usize,
    rate: f64,
    global: &mut [f32],
) -> Vec<(u32, f64)> {
    let count = arrivals.len();
    let mut shares: Vec<(u32, f64)> =
        arrivals.iter().map(|arrival| (arrival.client, 0.0)).collect();
    let mut column = vec![0.0; count];
    let coordinate = 1.0 / global.len() as f64;
    for (at, value) in global.iter_mut().enumerate() {
        column.iter_mut().zip(arrivals).for_each(|(cell, arrival)| *cell = arrival.model[at]);
        column.sort_unstable_by(f32::total_cmp);
        let kept = &column[out..count - out];
        let mean = kept.iter().map(|&kept| f64::from(kept)).sum::<f64>() / kept.len() as f64;
        let range = kept[0]..=kept[kept.len() - 1];
        let inside = column.iter().filter(|cell| range.contains(cell)).count() as f64;
        for ((_, share), arrival) in shares.iter_mut().zip(arrivals) {
            if range.contains(&arrival.model[at]) {
                *share += coordinate / inside;
            }
        }
        let old = f64::from(*value);
        *value = (old + rate * (mean - old)) as f32;
    }
    shares
}

impl Aggregation for TrimmedMean {
    fn aggregate(
        &mut self,
        _context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        Ok(step(arrivals, self.out(arrivals.len()), self.rate, global))
    }
}

impl State for TrimmedMean {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    fn trimmed(trim: f64, rate: f64, models: &[[f32; 2]]) -> (Vec<f32>, Vec<f64>) {
        let arrivals: Vec<Arrival> = (0..)
            .zip(models)
            .map(|(client, model)| arrival(client, 1 + client, 1, model))
            .collect();
        let mut global = vec![1.0, 0.0];
        let rule = TrimmedMean { rate, trim };
        let shares = step(&arrivals, rule.out(models.len()), rate, &mut global);
        (global, shares.into_iter().map(|(_, share)| share).collect())
    }

    #[test]
    fn the_ends_are_left_out_as_by_hand() {
        // 0.2 · 5 is one at either end: of 1, 2, 3, 4, 900 stay 2, 3, 4; of −7, 0, 6, 7, 8 stay 0, 6, 7.
        let models = [[1.0, 0.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0], [900.0, -7.0]];
        let (global, shares) = trimmed(0.2, 1.0, &models);
        assert_eq!(global, [3.0, (13.0f64 / 3.0) as f32]);
        // Two coordinates, three values in each.
        let sixths = [1.0, 2.0, 2.0, 1.0, 0.0].map(|sixths: f64| sixths / 6.0);
        assert!(shares.iter().zip(sixths).all(|(a, b)| (a - b).abs() < 1e-12), "{shares:?}");
        // Half a step from (1, 0).
        assert_eq!(trimmed(0.2, 0.5, &models).0, [2.0, (13.0f64 / 6.0) as f32]);
        // Nothing left out: the mean, every client once however many copies arrived.
        assert_eq!(trimmed(0.0, 1.0, &[[1.0, 0.0], [5.0, 4.0]]).0, [3.0, 2.0]);
    }

    #[test]
    fn few_arrivals_are_trimmed_too_and_something_always_stays() {
        let out = |trim, count| TrimmedMean { rate: 1.0, trim }.out(count);
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 10, 11].map(|count| out(0.2, count)),
            [0, 0, 1, 1, 1, 2, 2, 3]
        );
        assert_eq!([1, 2, 3, 4, 5, 6].map(|count| out(0.5, count)), [0, 0, 1, 1, 2, 2]);
        // Whole numbers, whatever the last bit of the product.
        for count in 1..=1000 {
            assert_eq!(out(0.1, 10 * count), count, "{count}");
            assert_eq!(out(0.3, 10 * count), 3 * count, "{count}");
        }
    }

    #[test]
    fn equal_values_share_their_weight() {
        // The first coordinate is the same for all, as where an input is always zero.
        let (global, shares) = trimmed(0.2, 1.0, &[[0.0, 1.0], [0.0, 5.0], [0.0, 3.0]]);
        assert_eq!(global, [0.0, 3.0]);
        let sixths = [1.0, 1.0, 4.0].map(|sixths: f64| sixths / 6.0);
        assert!(shares.iter().zip(sixths).all(|(a, b)| (a - b).abs() < 1e-12), "{shares:?}");
    }

    #[test]
    fn values_at_the_ends_of_single_precision_do_not_overflow() {
        assert_eq!(trimmed(0.0, 1.0, &[[f32::MAX, -1.0], [f32::MAX, 1.0]]).0, [f32::MAX, 0.0]);
    }
}
