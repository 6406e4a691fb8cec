//! The terms of the series: how often a group was up in the `m` attempts in which nothing arrived.
//!
//! The first terms are summed one by one, with the binomial weights of all `a ≤ m`. The slow rest goes octave by octave: as a function of
//! `m` every term is a sum of `ρ^m`, `ρ` being the chance that nothing of a list of draws arrives, so sixteen values an
//! octave are enough (see `gram`). They are taken at real `m`, where the mean over the number `a` of attempts in which a group was
//! up goes on: of `ε^a` it is `(φ + (1 − φ) ε)^m`, and the binomial series `Σ_b C(m, b) π^b (1 − π)^{m−b}` is that,
//! `π ≤ ½` being the rarer of up and down and `b` how often that was. Where `b = 0` is out of the question the weights are a bell of deviation `σ`,
//! of which every `⌊σ/1.5⌋`-th is enough: with that step the trapezoidal rule errs by `e^{−2π² 1.5²}`. So a term
//! takes some thirty places, however large `m` is.

use super::gram;

/// What is left of a bell beyond its places: `e^−46`.
const EDGE: f64 = -46.0;

/// Some terms of the series, of one group.
pub(super) struct Terms {
    /// How often the group was up, `a`: at each place of any term.
    places: Vec<f64>,
    /// Whether places are 0, 1, 2, ….
    whole: bool,
    /// The first place of each term, and the end of its weights.
    terms: Vec<(usize, usize)>,
    weights: Vec<f64>,
}

impl Terms {
    /// The first terms, `m` from 0 to below `count`, of a group that is down with this probability.
    pub(super) fn first(count: usize, down: f64) -> Self {
        let (mut terms, mut weights) = (Vec::with_capacity(count), Vec::new());
        for m in 0..count {
            if down == 0.0 {
                weights.push(1.0);
                terms.push((m, weights.len()));
                continue;
            }
            let last = weights.len() - m;
            for a in 0..=m {
                let stays = if a < m { down * weights[last + a] } else { 0.0 };
                let rises = if a > 0 { (1.0 - down) * weights[last + a - 1] } else { 0.0 };
                weights.push(if m == 0 { 1.0 } else { stays + rises });
            }
            terms.push((0, weights.len()));
        }
        let places = (0..count).map(|a| a as f64).collect();
        Self { places, whole: true, terms, weights }
    }

    /// The terms of an octave.
    pub(super) fn octave(rule: &gram::Rule, down: f64) -> Self {
        let (mut places, mut terms, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for &m in &rule.nodes {
            let first = places.len();
            for (up, weight) in ups(m, down) {
                places.push(up);
                weights.push(weight);
            }
            terms.push((first, weights.len()));
        }
        Self { places, whole: false, terms, weights }
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The first place of a term, and the weights of that and of those that follow.
    pub(super) fn of(&self, term: usize) -> (usize, &[f64]) {
        let (first, end) = self.terms[term];
        let start = if term == 0 { 0 } else { self.terms[term - 1].1 };
        (first, &self.weights[start..end])
    }

    /// Calls `each` with every place and `base^a` there.
    pub(super) fn powers(&self, base: f64, mut each: impl FnMut(usize, f64)) {
        let mut next = 1.0;
        for (place, &up) in self.places.iter().enumerate() {
            let power = if self.whole { next } else { base.powf(up) };
            each(place, power);
            next = power * base;
        }
    }
}

/// How often a group was up in `m` attempts, with what weight.
fn ups(m: f64, down: f64) -> Vec<(f64, f64)> {
    if down == 0.0 {
        return vec![(m, 1.0)];
    }
    let rare = down.min(1.0 - down);
    let deviation = (m * rare * (1.0 - rare)).sqrt();
    let bell = m * (-rare).ln_1p() < EDGE;
    let step = if bell { (deviation / 1.5).floor().max(1.0) } else { 1.0 };
    let middle = (m * rare).floor();
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut add = |count: f64| {
        let log = log_binomial(m, count, rare);
        let up = if rare < down { count } else { m - count };
        found.push((up, log.exp()));
        log > EDGE
    };
    let mut count = middle;
    while add(count) {
        count += step;
    }
    let mut count = middle - step;
    while count >= 0.0 && add(count) {
        count -= step;
    }
    let total: f64 = found.iter().map(|(_, weight)| weight).sum();
    found.iter_mut().for_each(|(_, weight)| *weight /= total);
    found
}

/// `ln C(m, b) π^b (1 − π)^{m−b}` for real `m` and whole `b`, without the cancellation of gamma functions (C. Loader, "Fast and accurate
/// computation of binomial probabilities", 2000).
fn log_binomial(m: f64, count: f64, rare: f64) -> f64 {
    if count == 0.0 {
        return m * (-rare).ln_1p();
    }
    let rest = m - count;
    let deviances = deviance(count, m * rare) + deviance(rest, m * (1.0 - rare));
    let spread = 0.5 * (std::f64::consts::TAU * count * (rest / m)).ln();
    stirling(m) - stirling(count) - stirling(rest) - deviances - spread
}

/// `x ln(x/mean) + mean − x`.
fn deviance(x: f64, mean: f64) -> f64 {
    let gap = x - mean;
    let ratio = gap / (x + mean);
    if ratio.abs() > 0.1 {
        return x * (x / mean).ln() - gap;
    }
    let square = ratio * ratio;
    let (mut sum, mut power) = (gap * ratio, 2.0 * x * ratio);
    for odd in 1..20 {
        power *= square;
        let added = power / f64::from(2 * odd + 1);
        sum += added;
        if added.abs() <= f64::EPSILON * sum.abs() {
            break;
        }
    }
    sum
}

/// `ln Γ(x + 1) − (x + ½) ln x + x − ½ ln 2π`.
fn stirling(x: f64) -> f64 {
    if x < 16.0 {
        return libm::lgamma(x + 1.0) - (x + 0.5) * x.ln() + x - 0.5 * std::f64::consts::TAU.ln();
    }
    let square = 1.0 / (x * x);
    (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of ε^a is (φ + (1 − φ) ε)^m, for whole and for other m.
    #[test]
    fn means_of_powers_are_the_binomial_theorem() {
        for m in [128.0, 131.7, 1000.3, 65536.0, 3e6 + 0.25, 1e12, 4e18] {
            for down in [1e-12, 1e-4, 0.01, 0.2, 0.5, 0.500001, 0.9, 0.9999, 1.0 - 1e-9, 1.0] {
                let places = ups(m, down);
                assert!(places.len() < 180, "{m} {down}: {}", places.len());
                // Such that ε^m is about e^−rate, and far smaller.
                let slow = [0.0, 0.01, 0.3, 1.0, 4.0, 30.0].map(|rate: f64| (-rate / m).exp());
                for own in slow.into_iter().chain([0.0, 0.1, 0.5, 0.9]) {
                    let found: f64 = places.iter().map(|(up, w)| w * own.powf(*up)).sum();
                    let exact = (m * ((1.0 - down) * (own - 1.0)).ln_1p()).exp();
                    assert!((found - exact).abs() < 1e-13, "{m} {down} {own}: {found} {exact}");
                }
            }
        }
    }
}
