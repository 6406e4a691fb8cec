//! What releases with Gaussian noise add up to.

use crate::error::Error;

/// The smallest ε at which μ-Gaussian differential privacy is (ε, δ)-differential privacy:
///
/// ```text
/// δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) ,
/// ```
///
/// solved for ε (B. Balle and Y.-X. Wang, *Improving the Gaussian mechanism for differential privacy*, ICML 2018). One release of something of sensitivity Δ
/// with noise of standard deviation zΔ has μ = 1/z; releases compose by `μ² = Σ μ_t²` (J. Dong, A. Roth and W. Su, *Gaussian differential
/// privacy*, J. R. Stat. Soc. B 84, 2022). 0 for μ = 0. Above
/// μ = 37 the second term is less than can be told and is left out, which states ε too large by next to nothing.
///
/// ```
/// let nine_releases = (9.0 / 4.0_f64).sqrt(); // z = 2
/// let epsilon = fedcote::privacy::gaussian_epsilon(nine_releases, 1e-5)?;
/// assert!((epsilon - 7.05).abs() < 0.01, "{epsilon}");
/// # Ok::<(), fedcote::Error>(())
/// ```
///
/// # Errors
/// When μ is negative or not a number, or δ is not between 0 and 1.
pub fn gaussian_epsilon(mu: f64, delta: f64) -> Result<f64, Error> {
    if mu.is_nan() || mu < 0.0 {
        return Err(Error::Parameter { name: "mu", legal: "a number of 0 or more", value: mu });
    }
    if !(delta > 0.0 && delta < 1.0) {
        return Err(Error::Parameter { name: "delta", legal: "above 0 and below 1", value: delta });
    }
    let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let exceeds = |epsilon: f64| {
        let far = normal(-epsilon / mu - mu / 2.0);
        // Below that Φ has lost digits; without the term ε is stated too large, never too small.
        let second = if far > 1e-300 { (epsilon + far.ln()).exp() } else { 0.0 };
        normal(-epsilon / mu + mu / 2.0) - second > delta
    };
    if mu == 0.0 || !exceeds(0.0) {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while exceeds(high) {
        (low, high) = (high, 2.0 * high);
        if high.is_infinite() {
            return Ok(high);
        }
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if exceeds(middle) { low = middle } else { high = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by the trapezoidal rule: δ is the mass by which one Gaussian exceeds e^ε times the other.
    #[test]
    fn epsilon_is_as_defined() {
        for mu in [0.05, 0.3, 1.0, 4.0, 10.0] {
            for delta in [1e-3, 1e-5, 1e-8] {
                let epsilon = gaussian_epsilon(mu, delta).unwrap();
                let step = 1e-4;
                let excess = |i: i64| {
                    let x = i as f64 * step;
                    let (p, q) = (-(x - mu).powi(2) / 2.0, -x * x / 2.0 + epsilon);
                    (p.exp() - q.exp()).max(0.0) / (2.0 * std::f64::consts::PI).sqrt()
                };
                let found: f64 = (-100_000..=250_000).map(excess).sum::<f64>() * step;
                assert!((found / delta - 1.0).abs() < 1e-3, "{mu} {delta}: {found}");
            }
        }
    }

    #[test]
    fn ends_and_refusals() {
        assert_eq!(gaussian_epsilon(0.0, 1e-5).unwrap(), 0.0);
        // δ(0) = 2Φ(μ/2) − 1 = 0.0080 is below δ already.
        assert_eq!(gaussian_epsilon(0.02, 0.01).unwrap(), 0.0);
        // Φ(−ε/μ + μ/2) = 1e-5 at ε = μ²/2 + 4.264890793922825 μ, whatever the second term takes away: a finite number, so that a
        // summary of rounds does not end with the last ε that was one.
        for mu in [30.0, 36.0, 38.0, 50.0, 1e3, 1e6] {
            let bound = mu * (mu / 2.0 + 4.264890793922825);
            let found = gaussian_epsilon(mu, 1e-5).unwrap();
            assert!(
                found <= bound * (1.0 + 1e-12) && found > 0.98 * bound,
                "{mu}: {found} {bound}"
            );
        }
        assert_eq!(gaussian_epsilon(f64::INFINITY, 1e-5).unwrap(), f64::INFINITY);
        for (mu, delta) in [(-1.0, 0.1), (f64::NAN, 0.1), (1.0, 0.0), (1.0, 1.0), (1.0, f64::NAN)] {
            assert!(gaussian_epsilon(mu, delta).is_err(), "{mu} {delta}");
        }
    }
}
