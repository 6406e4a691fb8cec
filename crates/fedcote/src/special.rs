//! Special functions: the incomplete beta function, and Gauss–Legendre nodes.

/// The regularised incomplete beta function I_x(a, b) for a, b > 0: the probability that a Beta(a, b)
/// variable is below x.
///
/// The continued fraction of Abramowitz and Stegun 26.5.8, evaluated by the modified Lentz method.
pub(crate) fn beta_probability(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; above it take the other tail.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_probability(b, a, 1.0 - x);
    }
    let front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (front.exp() * fraction / a).clamp(0.0, 1.0)
}

/// The probability that Student's variable with so many degrees of freedom is at most t (Abramowitz and Stegun 26.7.1).
pub(crate) fn student_probability(degrees: f64, t: f64) -> f64 {
    let tail = 0.5 * beta_probability(0.5 * degrees, 0.5, degrees / (degrees + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The x at which [`beta_probability`] is `probability`, by bisection.
pub(crate) fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if beta_probability(a, b, middle) < probability {
            low = middle
        } else {
            high = middle
        }
        if high - low < 1e-14 * high {
            return 0.5 * (low + high);
        }
    }
}

/// Nodes and weights of the Gauss–Legendre rule on [0, 1], exact for polynomials of degree 2n − 1.
///
/// Newton's method on the Legendre polynomial from Tricomi's first guess; the rule is symmetric, so one half
/// is computed.
pub(crate) fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    let mut rule = vec![(0.5, 1.0); n];
    for i in 0..n.div_ceil(2) {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (mut before, mut value) = (0.0, 1.0);
            for k in 0..n {
                let k = k as f64;
                (before, value) = (value, ((2.0 * k + 1.0) * x * value - k * before) / (k + 1.0));
            }
            slope = n as f64 * (x * value - before) / (x * x - 1.0);
            let step = value / slope;
            x -= step;
            if step.abs() < 1e-15 {
                break;
            }
        }
        let weight = 1.0 / ((1.0 - x * x) * slope * slope);
        rule[i] = (0.5 * (1.0 - x), weight);
        rule[n - 1 - i] = (0.5 * (1.0 + x), weight);
    }
    rule
}

/// Nodes a panel of [`unit_rule`].
const PANEL: usize = 16;

/// How many nodes [`unit_rule`] has.
pub(crate) fn unit_rule_len(degree: u64) -> usize {
    let panels = 1 + degree.next_power_of_two().trailing_zeros() as usize;
    (degree / 2 + 1).min((panels * PANEL) as u64) as usize
}

/// A rule for `∫₀¹ f(t) dt` as pairs of `1 − t` and weight, for polynomials of degree below `degree` with
/// non-negative coefficients.
///
/// Gauss–Legendre, exact, when that has fewer nodes; else composite, on panels `1 − t ∈ [0, h], [h, 2h], [2h, 4h], …, [½, 1]`
/// with `h ≤ 1/degree`. Such polynomials are bounded by `f(1)` on the unit disc and by `e f(1)` within `1/degree` of
/// it, so the ellipse of every panel with `ρ ≥ 5.8` lies where `f` is small: the error is of the order
/// `f(1) · 5.8^(−32)`, below rounding.
pub(crate) fn unit_rule(degree: u64) -> Vec<(f64, f64)> {
    let gauss = (degree / 2 + 1) as usize;
    if gauss <= unit_rule_len(degree) {
        return gauss_legendre(gauss);
    }
    let panel = gauss_legendre(PANEL);
    let mut rule = Vec::with_capacity(unit_rule_len(degree));
    let (mut start, mut width) = (0.0, 1.0 / degree.next_power_of_two() as f64);
    while start < 1.0 {
        rule.extend(panel.iter().map(|(x, weight)| (start + width * x, width * weight)));
        start += width;
        width = start;
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beta_probabilities_of_whole_parameters_are_binomial_tails() {
        // I_x(a, b) = P(at least a successes in a + b − 1 trials of probability x).
        for (a, b) in [(1, 1), (2, 4), (7, 3), (20, 15)] {
            for x in [0.01f64, 0.2, 0.5, 0.77, 0.99] {
                let n = a + b - 1;
                let mut term = (1.0 - x).powi(n);
                let mut tail = 0.0;
                for k in 0..=n {
                    if k >= a {
                        tail += term;
                    }
                    term *= f64::from(n - k) / f64::from(k + 1) * x / (1.0 - x);
                }
                let got = beta_probability(a.into(), b.into(), x);
                assert!((got - tail).abs() < 1e-13, "{a} {b} {x}: {got} {tail}");
            }
        }
    }

    /// One degree of freedom is Cauchy's, two have ½ + t/(2√(2 + t²)).
    #[test]
    fn students_distribution_has_closed_forms() {
        for t in [-40.0, -3.0, -0.5, 0.0, 0.1, 2.0, 17.0] {
            let cauchy = 0.5 + f64::atan(t) / std::f64::consts::PI;
            assert!((student_probability(1.0, t) - cauchy).abs() < 1e-12, "{t}");
            let two = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
            assert!((student_probability(2.0, t) - two).abs() < 1e-12, "{t}");
        }
    }

    #[test]
    fn the_arcsine_law() {
        for x in [0.001f64, 0.3, 0.5, 0.9] {
            let exact = 2.0 / std::f64::consts::PI * x.sqrt().asin();
            assert!((beta_probability(0.5, 0.5, x) - exact).abs() < 1e-13);
        }
    }

    #[test]
    fn quantiles_invert() {
        for (a, b) in [(0.5, 3.0), (2.0, 4.0), (500.0, 3.0), (0.02, 40.0)] {
            for probability in [0.025, 0.5, 0.975] {
                let x = beta_quantile(a, b, probability);
                assert!((beta_probability(a, b, x) - probability).abs() < 1e-10, "{a} {b}");
            }
        }
    }

    #[test]
    fn the_composite_rule_integrates_powers_up_to_its_degree() {
        for degree in [1, 2, 9, 255, 300, 1000, 1_000_000, 1_000_000_000] {
            let rule = unit_rule(degree);
            assert_eq!(rule.len(), unit_rule_len(degree));
            for power in [0, 1, 7, degree / 100, degree / 3, degree - 1] {
                if power < degree {
                    let power = power as f64;
                    let sum: f64 =
                        rule.iter().map(|(x, weight)| weight * (power * (-x).ln_1p()).exp()).sum();
                    let exact = 1.0 / (power + 1.0);
                    assert!((sum / exact - 1.0).abs() < 1e-12, "{degree} {power}: {sum}");
                }
            }
        }
    }

    #[test]
    fn gauss_legendre_is_exact_up_to_its_degree() {
        for n in [1, 2, 3, 6, 17, 64, 501] {
            let rule = gauss_legendre(n);
            for degree in [0, 1, 2 * n - 2, 2 * n - 1] {
                let sum: f64 = rule.iter().map(|(t, w)| w * t.powi(degree as i32)).sum();
                let exact = 1.0 / (degree as f64 + 1.0);
                assert!((sum - exact).abs() < 1e-13, "{n} {degree}: {sum}");
            }
        }
    }
}
