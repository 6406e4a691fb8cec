//! Are the clients' label counts samples of one and the same distribution?
//!
//! Algorithm 2 of the paper asks whether all `α_i` equal `α_g`; real counts never do exactly. Pearson's test of
//! homogeneity asks whether they differ by more than chance: the statistic
//! `Σ_i n_i χ²(α_i‖α_g)` has, for equal distributions, about a chi-square distribution with `(N−1)(C−1)` degrees of freedom,
//! whose tail is taken from the cube-root normal approximation (Wilson and Hilferty, 1931).

use crate::chunks;
use crate::divergence::client_divergence;
use crate::federation::Federation;

/// Probability of counts at least as different as these when all clients draw from one distribution.
pub fn p_value(federation: &Federation) -> f64 {
    let labels = federation.global_labels().iter().filter(|&&share| share > 0.0).count();
    let degrees = (federation.len() - 1) as f64 * (labels - 1) as f64;
    if degrees == 0.0 {
        return 1.0;
    }
    let statistic = federation.samples()
        * chunks::sum(federation.len(), |range| {
            range
                .map(|client| federation.weights()[client] * client_divergence(federation, client))
                .sum()
        });
    tail(statistic, degrees)
}

fn tail(statistic: f64, degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    let deviate = ((statistic / degrees).cbrt() - (1.0 - spread)) / spread.sqrt();
    0.5 * libm::erfc(deviate / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_published_tables() {
        // Upper 5 %, 1 % and 50 % points of the chi-square distribution.
        for (statistic, degrees, probability) in [
            (18.307, 10.0, 0.05),
            (23.209, 10.0, 0.01),
            (124.342, 100.0, 0.05),
            (135.807, 100.0, 0.01),
            (99.334, 100.0, 0.5),
        ] {
            assert!((tail(statistic, degrees) / probability - 1.0).abs() < 0.02);
        }
    }
}
