//! Independent draws with one upload per client: the effective appearance, exactly.
//!
//! In a real system the draws of one client in a round share one upload, which arrives or fails as a whole and
//! weighs as many draws as it carries. Expand the condition that somebody arrived as the geometric series over the number `m` of
//! rounds of uploads in which nobody did, write `1/T = ∫ t^{T−1} dt` for the number `T` of draws that arrived, and sum
//! over the multinomial counts of the draws by their exponential generating function:
//!
//! ```text
//! F_j(z, t, m) = 1 − ε_j^m + ε_j^{m+1} e^{s_j z} + ε_j^m (1 − ε_j) e^{s_j z t}
//! β̄_i = K! [z^K] Σ_{m≥0} ∫₀¹ ε_i^m (1 − ε_i) s_i z e^{s_i z t} Π_{j≠i} F_j(z, t, m) dt .
//! ```
//!
//! - The integrand is a polynomial in `t` of degree `K − 1`: Gauss–Legendre, or for large `K` its composite form.
//! - The coefficient is Cauchy's integral over the circle `|z| = K`. The trapezoidal rule with `Z` points adds the coefficients of
//!   `z^{K ± Z}, …`; those of the integrand are at most `1/n!`, so `Z = 2⌈√(22 K) + 10⌉ + 1` is enough for rounding. On the
//!   circle the integrand is at most `e^{K max(cos θ, 0)}`, so only about twenty points near the real axis count,
//!   whatever `K`; half of them, by symmetry. Factors are scaled by `e^{−s_j K}`, so none exceeds 1.
//! - The terms of the series are sums of decaying exponentials in `m`: thirty-two one by one, then sixteen for
//!   each octave. `Σ_i β̄_i` telescopes to 1, which tells when the series has ended.
//!
//! With clients of failure probability 1, draws of none but them are repeated: all is divided by `1 − S₁^K`, `S₁` being
//! their selection. Cost: `N` × nodes in `t` × points on the circle × terms of the series.

use super::AppearanceModel;
use super::gram;
use super::series::Mass;
use crate::chunks;
use crate::error::{Error, check_length, check_probabilities, check_selected};
use crate::special;

/// What is lost at most when the series ends.
const REMAINDER: f64 = 1e-13;

/// `K` independent draws, one upload per client.
#[derive(Debug, Clone, Copy)]
pub struct PerClient<'a> {
    /// Failure probabilities, `ε`.
    pub failure: &'a [f64],
    /// Draws per round, `K`.
    pub selected: u64,
}

impl PerClient<'_> {
    /// Checks the fields and the selection, then computes its appearance.
    ///
    /// ```
    /// use fedcote::appearance::PerClient;
    ///
    /// // Two clients, two draws. Lists 11, 12 (twice as likely), 22: β̄_1 = ¼ + ½ · (1 − ½·½) = 0.625 as for
    /// // one upload per draw. With three draws, 112 and 122 differ: β̄_1 = ⅛ + ⅜ (½ + ½·⅔) + ⅜ (½ + ½·⅓).
    /// let model = PerClient { failure: &[0.0, 0.5], selected: 3 };
    /// let appearance = model.checked(&[0.5, 0.5])?;
    /// assert!((appearance[0] - (0.125 + 0.375 * (5.0 / 6.0 + 2.0 / 3.0))).abs() < 1e-14);
    /// # Ok::<(), fedcote::Error>(())
    /// ```
    pub fn checked(&self, selection: &[f64]) -> Result<Vec<f64>, Error> {
        check_selected(self.selected)?;
        super::check_selection(selection)?;
        check_length("failure", selection.len(), self.failure.len())?;
        check_probabilities("failure", self.failure)?;
        let mut out = vec![0.0; selection.len()];
        self.appearance(selection, &mut out)?;
        Ok(out)
    }

    /// The cost of an evaluation, in units of roughly 0.1 µs: clients × nodes × points, more for few draws, whose series
    /// are longer.
    pub fn work(clients: usize, selected: u64) -> f64 {
        let (nodes, points) = (special::unit_rule_len(selected), points(selected).len());
        (clients * nodes * points) as f64 * (1.0 + 30.0 / selected as f64)
    }
}

impl AppearanceModel for PerClient<'_> {
    fn appearance(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error> {
        let Mass { total, live, .. } = Mass::of(selection, self.failure);
        if live <= 0.0 {
            return Err(Error::NobodyArrives);
        }
        // Who is never drawn changes nothing.
        let drawn: Vec<usize> = (0..selection.len()).filter(|&i| selection[i] > 0.0).collect();
        let sum = Sum {
            selected: self.selected as f64,
            selection: drawn.iter().map(|&i| selection[i] / total).collect(),
            failure: drawn.iter().map(|&i| self.failure[i]).collect(),
            rule: special::unit_rule(self.selected),
            points: points(self.selected),
        };
        let somebody = if live < total {
            -(self.selected as f64 * (-live / total).ln_1p()).exp_m1()
        } else {
            1.0
        };
        let mut appearance = vec![0.0; drawn.len()];
        let mut reached = 0.0;
        let direct = [(0, 2), (2, 4), (4, 8), (8, 16), (16, 1 << gram::FIRST)]
            .into_iter()
            .map(|(from, to)| (from..to).map(|m| (f64::from(m), 1.0)).collect());
        let octaves =
            gram::octaves().iter().map(|rule| rule.nodes.into_iter().zip(rule.weights).collect());
        for terms in direct.chain(octaves) {
            let block: Vec<(f64, f64)> = terms;
            let added = sum.terms(&block);
            appearance.iter_mut().zip(&added).for_each(|(sum, added)| *sum += added);
            let change: f64 = added.iter().sum();
            reached += change;
            if change < REMAINDER && somebody - reached < 10.0 * REMAINDER {
                break;
            }
        }
        out.fill(0.0);
        for (&client, value) in drawn.iter().zip(&appearance) {
            out[client] = (value / somebody).max(0.0);
        }
        Ok(())
    }
}

/// What all terms of the series have in common.
struct Sum {
    selected: f64,
    selection: Vec<f64>,
    failure: Vec<f64>,
    /// `(1 − t, weight)`.
    rule: Vec<(f64, f64)>,
    /// `(θ, weight)` on the circle `z = K e^{iθ}`.
    points: Vec<(f64, f64)>,
}

impl Sum {
    /// The sum of the terms `(m, weight)`, client by client.
    fn terms(&self, block: &[(f64, f64)]) -> Vec<f64> {
        let power = |failure: f64, m: f64| if m == 0.0 { 1.0 } else { failure.powf(m) };
        let powers: Vec<Vec<f64>> = block
            .iter()
            .map(|&(m, _)| self.failure.iter().map(|&f| power(f, m)).collect())
            .collect();
        let parts = chunks::each(&self.points, |&point| self.at(point, block, &powers));
        let mut sum = vec![0.0; self.selection.len()];
        for part in parts {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        sum
    }

    /// What one point on the circle adds.
    fn at(&self, point: (f64, f64), block: &[(f64, f64)], powers: &[Vec<f64>]) -> Vec<f64> {
        let (angle, point_weight) = point;
        let (selected, clients) = (self.selected, self.selection.len());
        let (sine, half) = (angle.sin(), (0.5 * angle).sin());
        let fall = -2.0 * half * half; // cos θ − 1
        // z e^{−iKθ} / K, and what scaling by e^{−K} leaves of K! K^{−K}.
        let phase =
            Complex::polar(point_weight * selected * scale(selected), (1.0 - selected) * angle);
        // e^{s (z − K)}, e^{s (z t − K)}, e^{−s K}
        let whole: Vec<Complex> = self
            .selection
            .iter()
            .map(|s| Complex::polar((s * selected * fall).exp(), s * selected * sine))
            .collect();
        let constant: Vec<f64> = self.selection.iter().map(|s| (-s * selected).exp()).collect();
        let mut part = vec![Complex::ZERO; clients];
        let mut factors = vec![Complex::ZERO; clients];
        let mut sum = vec![0.0; clients];
        for &(complement, weight) in &self.rule {
            // t e^{iθ} − 1
            let (real, imaginary) = (fall - complement * (1.0 + fall), (1.0 - complement) * sine);
            for (part, s) in part.iter_mut().zip(&self.selection) {
                *part = Complex::polar((s * selected * real).exp(), s * selected * imaginary);
            }
            for ((_, term_weight), powers) in block.iter().zip(powers) {
                let mut product = phase.scaled(weight * term_weight);
                for client in 0..clients {
                    let (power, failure) = (powers[client], self.failure[client]);
                    let factor = whole[client].scaled(power * failure)
                        + part[client].scaled(power * (1.0 - failure));
                    factors[client] =
                        Complex { re: factor.re + (1.0 - power) * constant[client], im: factor.im };
                    product = product * factors[client];
                }
                for client in 0..clients {
                    let factor = factors[client];
                    let square = factor.re * factor.re + factor.im * factor.im;
                    // A factor that small belongs to a product that is nothing.
                    if square > 0.0 {
                        let quotient =
                            product * part[client] * Complex { re: factor.re, im: -factor.im };
                        sum[client] += powers[client] * (quotient.re / square);
                    }
                }
            }
        }
        for (sum, (s, failure)) in sum.iter_mut().zip(self.selection.iter().zip(&self.failure)) {
            *sum *= s * (1.0 - failure);
        }
        sum
    }
}

/// Half of the points on the circle that count, with their weights.
pub(super) fn points(selected: u64) -> Vec<(f64, f64)> {
    let selected = selected as f64;
    let half = ((22.0 * selected).sqrt() + 10.0).ceil();
    let all = 2.0 * half + 1.0;
    let matters = |angle: f64| {
        let exponent = selected * (angle.cos().max(0.0) - 1.0);
        (exponent + (selected * scale(selected)).ln()) > -46.0
    };
    let angle = |k: u32| 2.0 * std::f64::consts::PI * f64::from(k) / all;
    let weight = |k: u32| if k == 0 { 1.0 / all } else { 2.0 / all };
    (0..=half as u32).map(|k| (angle(k), weight(k))).take_while(|point| matters(point.0)).collect()
}

/// `K! e^K / K^K`, about `√(2πK)`.
pub(super) fn scale(selected: f64) -> f64 {
    if selected < 32.0 {
        return (libm::lgamma(selected + 1.0) - selected * selected.ln() + selected).exp();
    }
    let inverse = 1.0 / selected;
    let square = inverse * inverse;
    let stirling =
        inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (2.0 * std::f64::consts::PI * selected).sqrt() * stirling.exp()
}

/// A complex number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Complex {
    pub(super) const ZERO: Self = Self { re: 0.0, im: 0.0 };

    pub(super) fn polar(radius: f64, angle: f64) -> Self {
        let (sine, cosine) = angle.sin_cos();
        Self { re: radius * cosine, im: radius * sine }
    }

    #[inline]
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { re: self.re * factor, im: self.im * factor }
    }
}

impl std::ops::Add for Complex {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl std::ops::Mul for Complex {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crate::{Uploads, draw::Alias};
    use proptest::prelude::*;

    /// The definition, slowly: all multisets of draws with their multinomial probabilities, all outcomes.
    fn by_lists(selection: &[f64], failure: &[f64], selected: u32) -> Vec<f64> {
        fn visit(
            client: usize,
            left: u32,
            probability: f64,
            list: &mut Vec<(u32, u32)>,
            given: (&[f64], &[f64]),
            sums: &mut (Vec<f64>, f64),
        ) {
            if client == given.0.len() {
                if left == 0
                    && let Some(shares) = oracle::shares(list, given.1, Uploads::PerClient)
                {
                    sums.1 += probability;
                    shares.iter().for_each(|&(i, share)| sums.0[i as usize] += probability * share);
                }
                return;
            }
            let mut term = probability;
            for count in 0..=left {
                if count > 0 {
                    term *= given.0[client] * f64::from(left + 1 - count) / f64::from(count);
                    list.push((client as u32, count));
                }
                visit(client + 1, left - count, term, list, given, sums);
                if count > 0 {
                    list.pop();
                }
            }
        }
        let mut sums = (vec![0.0; selection.len()], 0.0);
        visit(0, selected, 1.0, &mut Vec::new(), (selection, failure), &mut sums);
        sums.0.iter().map(|sum| sum / sums.1).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_the_enumeration_of_lists_and_arrivals(
            weights in prop::collection::vec(prop_oneof![Just(0.0), 0.001..1.0f64], 1..6),
            failure in prop::collection::vec(prop_oneof![
                Just(0.0), Just(1.0), 0.0..1.0f64, 0.99..1.0f64, Just(1.0 - 1e-9)
            ], 6),
            selected in 1u32..7,
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let selection: Vec<f64> = weights.iter().map(|w| w / total).collect();
            let failure = &failure[..weights.len()];
            prop_assume!((0..weights.len()).any(|i| failure[i] < 1.0 && selection[i] > 0.0));
            let found = PerClient { failure, selected: selected.into() }.checked(&selection).unwrap();
            let expected = by_lists(&selection, failure, selected);
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-11, "{} {}", found, expected);
            }
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn agrees_with_simulation() {
        for (clients, selected) in [(3, 2), (5, 4), (20, 10), (8, 20), (4, 300)] {
            let (failure, selection) =
                (oracle::failures(clients, 5), oracle::selection(clients, 6));
            let exact = PerClient { failure: &failure, selected }.checked(&selection).unwrap();
            assert!((exact.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let alias = Alias::new(&selection).unwrap();
            oracle::simulate(&exact, &failure, Uploads::PerClient, |rng| {
                alias.draws(selected, rng).unwrap()
            });
        }
    }

    #[test]
    fn no_failures_or_one_draw_leave_the_selection_as_it_is() {
        let selection = oracle::selection(9, 1);
        for (failure, selected) in [(vec![0.0; 9], 500), (oracle::failures(9, 3), 1)] {
            let found = PerClient { failure: &failure, selected }.checked(&selection).unwrap();
            for (found, expected) in found.iter().zip(&selection) {
                assert!((found - expected).abs() < 1e-13, "{found} {expected}");
            }
        }
    }

    #[test]
    fn many_draws_approach_the_limit_of_fixed_counts() {
        // K → ∞: every client holds its share of the draws, so the counts are K·s, which systematic draws give.
        let (failure, selection) = (oracle::failures(6, 8), oracle::selection(6, 9));
        let order = [0, 1, 2, 3, 4, 5];
        let selected = 10_000_000;
        let systematic = super::super::Systematic {
            failure: &failure,
            selected,
            order: &order,
            uploads: Uploads::PerClient,
            groups: None,
        };
        let limit = systematic.checked(&selection).unwrap();
        let found = PerClient { failure: &failure, selected }.checked(&selection).unwrap();
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (found, limit) in found.iter().zip(&limit) {
            assert!((found - limit).abs() < 1e-6, "{found} {limit}");
        }
    }

    #[test]
    fn nobody_to_wait_for_is_an_error() {
        let model = PerClient { failure: &[1.0, 0.5], selected: 3 };
        assert_eq!(model.checked(&[1.0, 0.0]), Err(Error::NobodyArrives));
        assert!(model.checked(&[0.9, 0.0]).is_err());
    }
}
