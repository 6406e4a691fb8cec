//! Gauss quadrature for sums: `Σ f(m)` over `m = L … 2L−1` from sixteen values of `f`, for `L` a power of two.
//!
//! The nodes are the zeros of the sixteenth polynomial orthogonal on the `L` equidistant points (Gram's,
//! or the discrete Chebyshev, polynomials: Gautschi, *Orthogonal Polynomials*, 2004, §1.5.2). The rule is exact
//! for polynomials of degree 31. For `f(m) = e^{−λm}` and any `λ ≥ 0` its error is below 1e-17 of the sum of `f`
//! over all `m ≥ 0`, so a series of such functions can be summed over octaves: sixteen terms an octave
//! reach `m = 2⁶⁰`, however slowly it converges.

use std::sync::OnceLock;

/// Nodes a rule.
pub const NODES: usize = 16;

/// The first octave starts at `2^FIRST`.
pub const FIRST: u32 = 5;

const LAST: u32 = 62;

/// Sixteen places between `L` and `2L − 1` with the weights of `f` there.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub nodes: [f64; NODES],
    pub weights: [f64; NODES],
}

/// The rules for `L = 2^FIRST, 2^(FIRST+1), …`.
pub fn octaves() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| (FIRST..=LAST).map(|exponent| rule(2f64.powi(exponent as i32))).collect())
}

fn rule(length: f64) -> Rule {
    // Orthonormal recurrence t·q_k = b_{k+1} q_{k+1} + b_k q_{k−1} on the points scaled to (−1, 1).
    let coefficient = |k: usize| {
        let k = k as f64;
        ((k * k) * (1.0 - (k / length).powi(2)) / (4.0 * k * k - 1.0)).sqrt()
    };
    let values = |t: f64, degree: usize| {
        let mut q = [0.0; NODES + 1];
        q[0] = 1.0;
        for k in 0..degree {
            let before = if k == 0 { 0.0 } else { coefficient(k) * q[k - 1] };
            // Beyond the measure's own degree the scale is arbitrary; only zeros are wanted there.
            let scale = if k + 1 < NODES { coefficient(k + 1) } else { 1.0 };
            q[k + 1] = (t * q[k] - before) / scale;
        }
        q
    };
    // The zeros of one degree separate those of the next.
    let mut zeros: Vec<f64> = Vec::new();
    for degree in 1..=NODES {
        let mut fences = vec![-1.0];
        fences.append(&mut zeros);
        fences.push(1.0);
        for pair in fences.windows(2) {
            let (mut low, mut high) = (pair[0], pair[1]);
            let rising = values(high, degree)[degree] > 0.0;
            loop {
                let middle = 0.5 * (low + high);
                if middle <= low || middle >= high {
                    break;
                }
                if (values(middle, degree)[degree] > 0.0) == rising {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            zeros.push(high);
        }
    }
    let mut rule = Rule { nodes: [0.0; NODES], weights: [0.0; NODES] };
    for (index, &zero) in zeros.iter().enumerate() {
        let q = values(zero, NODES - 1);
        rule.nodes[index] = length + 0.5 * (length - 1.0) + zero * 0.5 * length;
        rule.weights[index] = length / q[..NODES].iter().map(|q| q * q).sum::<f64>();
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_powers_are_exact() {
        // Σ m and Σ m² over 32 … 63 by the schoolbook formulas.
        let rule = octaves()[0];
        let sum = |power: i32| -> f64 {
            rule.nodes
                .iter()
                .zip(rule.weights)
                .map(|(node, weight)| weight * node.powi(power))
                .sum()
        };
        let direct = |power: i32| -> f64 { (32..64).map(|m| f64::from(m).powi(power)).sum() };
        for power in [0, 1, 2, 7, 31] {
            assert!((sum(power) / direct(power) - 1.0).abs() < 1e-12, "power {power}");
        }
    }

    #[test]
    fn geometric_series_of_any_rate() {
        for exponent in 0..160 {
            let rate = 10f64.powf(-0.1 * f64::from(exponent));
            let mut sum: f64 = (0..1 << FIRST).map(|m| (-rate * f64::from(m)).exp()).sum();
            for rule in octaves() {
                for (node, weight) in rule.nodes.iter().zip(rule.weights) {
                    sum += weight * (-rate * node).exp();
                }
            }
            let exact = -1.0 / (-rate).exp_m1();
            assert!((sum / exact - 1.0).abs() < 2e-14, "rate {rate}: {sum} for {exact}");
        }
    }
}
