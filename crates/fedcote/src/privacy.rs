//! Label counts that say little about any one sample, by the two-sided geometric mechanism; and what models that were released with
//! Gaussian noise say about any one client ([`gaussian_epsilon`]).
//!
//! A client adds noise to each of its label counts before it reports them,
//!
//! ```text
//! P(noise = k) = (1 − α)/(1 + α) · α^{|k|} ,      α = e^{−ε/Δ} ,
//! ```
//!
//! and reports 0 for what falls below (A. Ghosh, T. Roughgarden and M. Sundararajan, *Universally utility-maximizing privacy
//! mechanisms*, SIAM J. Comput. 41, 2012). What is reported is ε-differentially private: for two data sets whose counts
//! differ by at most Δ in sum, no report is more than `e^ε` times as likely from one as from the other. Clamping at 0 works on the
//! noisy counts alone, so it costs no privacy.
//!
//! **The sensitivity Δ.** 1 when neighbouring data sets differ by one sample more or less; 2 when one sample is
//! exchanged for another, which moves it from one count to another. The guarantee is for samples, for one report: `n` reports of
//! the same data cost `n ε`; and it does not hide whether a client takes part at all.
//!
//! ```
//! use fedcote::privacy::{Geometric, fill_empty};
//! use fedcote::random::{Key, Purpose};
//!
//! let noise = Geometric::new(0.5, 1)?;
//! let mut stream = Key::new(1, Purpose::Privacy).client(7).stream();
//! let reported = noise.protect(&[3000, 2900, 0], &mut stream);
//! assert!(reported[0].abs_diff(3000) < 100);
//!
//! // A client of whose counts nothing is left counts as one sample with the mix of all the others.
//! let mut counts = [30.0, 10.0, 0.0, 0.0];
//! assert_eq!(fill_empty(&mut counts, 2)?, 1);
//! assert_eq!(counts, [30.0, 10.0, 0.75, 0.25]);
//! # Ok::<(), fedcote::Error>(())
//! ```

mod gaussian;

use rand::{Rng, RngExt};

use crate::error::Error;
pub use gaussian::gaussian_epsilon;

/// Two-sided geometric noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometric {
    /// ε/Δ; α is its negative exponential.
    rate: f64,
}

impl Geometric {
    /// Noise that gives ε-differential privacy for counts of this sensitivity Δ (see the [module](self)).
    ///
    /// # Errors
    /// When ε is not between 1e-9 and 100, or Δ is 0.
    pub fn new(epsilon: f64, sensitivity: u32) -> Result<Self, Error> {
        if !(1e-9..=100.0).contains(&epsilon) {
            return Err(Error::Parameter {
                name: "epsilon",
                legal: "from 1e-9 to 100",
                value: epsilon,
            });
        }
        if sensitivity == 0 {
            return Err(Error::Parameter { name: "sensitivity", legal: "at least 1", value: 0.0 });
        }
        Ok(Self { rate: epsilon / f64::from(sensitivity) })
    }

    /// The probability of this noise.
    pub fn probability(&self, noise: i64) -> f64 {
        // (1 − α)/(1 + α) = tanh(rate/2)
        (0.5 * self.rate).tanh() * (-self.rate * noise.unsigned_abs() as f64).exp()
    }

    /// The probability that a count is reported as this, clamping included.
    pub fn report_probability(&self, count: u64, reported: u64) -> f64 {
        if reported > 0 {
            return self.probability((i128::from(reported) - i128::from(count)) as i64);
        }
        // P(noise ≤ −count) = α^count / (1 + α)
        (-self.rate * count as f64).exp() / (1.0 + (-self.rate).exp())
    }

    /// One number, the difference of two geometric ones.
    pub fn sample(&self, rng: &mut impl Rng) -> i64 {
        self.one_sided(rng) - self.one_sided(rng)
    }

    /// A number with `P(k) = (1 − α) α^k`, k ≥ 0.
    ///
    /// The binary digits of such a number are independent, digit j being 1 with probability `α^{2^j} / (1 + α^{2^j})`: no
    /// logarithm whose rounding would favour some values.
    fn one_sided(&self, rng: &mut impl Rng) -> i64 {
        let mut value = 0;
        for digit in 0..40 {
            // Below 1e-9 · 2^40 every ε has come to an end: e^{−1000} is nothing.
            let power = (-self.rate * f64::from(digit).exp2()).exp();
            if rng.random::<f64>() < power / (1.0 + power) {
                value += 1 << digit;
            }
        }
        value
    }

    /// The counts with noise, none below 0.
    pub fn protect(&self, counts: &[u64], rng: &mut impl Rng) -> Vec<u64> {
        counts.iter().map(|&count| count.saturating_add_signed(self.sample(rng))).collect()
    }
}

/// Gives clients without any counts, as noise may leave them, the label mix of all the others, with the weight of
/// one sample (all labels alike if there are no others). Returns how many there were.
///
/// `counts` holds one row of `classes` label counts per client.
///
/// # Errors
/// When there are no classes, or the counts do not fill their last row.
pub fn fill_empty(counts: &mut [f64], classes: usize) -> Result<usize, Error> {
    if classes == 0 {
        return Err(Error::NoClasses);
    }
    let rows = counts.len().div_ceil(classes);
    crate::error::check_length("labels", rows * classes, counts.len())?;
    let mut mix = vec![0.0; classes];
    for row in counts.chunks_exact(classes) {
        mix.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
    }
    let total: f64 = mix.iter().sum();
    let share = |sum: &f64| if total > 0.0 { sum / total } else { 1.0 / classes as f64 };
    let mix: Vec<f64> = mix.iter().map(share).collect();
    let mut empty = 0;
    for row in counts.chunks_exact_mut(classes).filter(|row| row.iter().all(|&x| x == 0.0)) {
        row.copy_from_slice(&mix);
        empty += 1;
    }
    Ok(empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};

    #[test]
    fn probabilities_sum_to_one() {
        for epsilon in [0.05, 0.5, 1.0, 5.0] {
            let noise = Geometric::new(epsilon, 1).unwrap();
            let sum: f64 = (-2000..=2000).map(|k| noise.probability(k)).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
            let reports: f64 = (0..3000).map(|k| noise.report_probability(7, k)).sum();
            assert!((reports - 1.0).abs() < 1e-12, "{reports}");
        }
    }

    #[test]
    fn samples_follow_the_probabilities() {
        // Pearson's test over the values that are expected at least ten times, and both tails.
        for (index, epsilon) in [0.1, 0.7, 2.0].into_iter().enumerate() {
            let noise = Geometric::new(epsilon, 1).unwrap();
            let mut rng = Key::new(8, Purpose::Test).round(index as u32).stream();
            let samples = 200_000;
            let edge = (0..).find(|&k| noise.probability(k) * f64::from(samples) < 10.0).unwrap();
            let mut counts = vec![0.0; 2 * edge as usize + 1];
            for _ in 0..samples {
                let value = noise.sample(&mut rng).clamp(-edge, edge);
                counts[(value + edge) as usize] += 1.0;
            }
            let mut statistic = 0.0;
            for (index, count) in counts.iter().enumerate() {
                let k = index as i64 - edge;
                // P(noise ≥ edge) = α^edge / (1 + α), as the sum of a geometric series.
                let tail = (-epsilon * edge as f64).exp() / (1.0 + (-epsilon).exp());
                let probability = if k.abs() == edge { tail } else { noise.probability(k) };
                let expected = probability * f64::from(samples);
                statistic += (count - expected) * (count - expected) / expected;
            }
            let freedom = counts.len() as f64 - 1.0;
            let score = (statistic - freedom) / (2.0 * freedom).sqrt();
            assert!(score.abs() < 4.0, "ε = {epsilon}: {score}");
        }
    }

    #[test]
    fn no_report_is_more_than_e_to_the_epsilon_times_as_likely() {
        let (epsilon, most): (f64, u64) = (0.8, 25);
        let bound = |noise: &Geometric, a: &[u64], b: &[u64]| {
            let reports = (0..most).flat_map(|x| (0..most).map(move |y| [x, y]));
            let probability = |counts: &[u64], report: &[u64]| -> f64 {
                counts.iter().zip(report).map(|(&c, &r)| noise.report_probability(c, r)).product()
            };
            reports
                .map(|report| probability(a, &report) / probability(b, &report))
                .fold(0.0, f64::max)
        };
        let limit = epsilon.exp() * (1.0 + 1e-12);
        let one = Geometric::new(epsilon, 1).unwrap();
        let two = Geometric::new(epsilon, 2).unwrap();
        for count in 0..10 {
            // One sample more or less …
            assert!(bound(&one, &[count, 4], &[count + 1, 4]) <= limit);
            assert!(bound(&one, &[count + 1, 4], &[count, 4]) <= limit);
            // … or exchanged, for which the noise of sensitivity 1 would not do.
            assert!(bound(&two, &[count, 4], &[count + 1, 3]) <= limit);
            assert!(bound(&one, &[count, 4], &[count + 1, 3]) > limit);
        }
    }

    #[test]
    fn counts_stay_whole_and_not_negative() {
        let noise = Geometric::new(0.01, 1).unwrap();
        let mut rng = Key::new(9, Purpose::Test).stream();
        let reported = noise.protect(&[0; 1000], &mut rng);
        // Half of the noise is below 0 but for the 0 itself.
        let zeros = reported.iter().filter(|&&x| x == 0).count();
        assert!((430..570).contains(&zeros), "{zeros}");
        assert_eq!(noise.protect(&[u64::MAX], &mut rng).len(), 1);
    }

    #[test]
    fn empty_clients_take_the_mix_of_the_others() {
        let mut counts = [2.0, 0.0, 0.0, 0.0, 0.0, 6.0];
        assert_eq!(fill_empty(&mut counts, 2).unwrap(), 1);
        assert_eq!(counts, [2.0, 0.0, 0.25, 0.75, 0.0, 6.0]);
        let mut nothing = [0.0; 4];
        assert_eq!(fill_empty(&mut nothing, 2).unwrap(), 2);
        assert_eq!(nothing, [0.5; 4]);
        assert!(fill_empty(&mut [1.0, 2.0, 3.0], 2).is_err());
        assert!(fill_empty(&mut [], 0).is_err());
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for (epsilon, sensitivity) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (1e3, 1), (1.0, 0)] {
            assert!(Geometric::new(epsilon, sensitivity).is_err());
        }
    }
}
