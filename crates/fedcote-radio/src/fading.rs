//! Rayleigh fading on top of log-normal shadowing.
//!
//! With fading the gain has a further factor G, exponential with mean one. Given shadowing X the link
//! fails when G ≤ 10^(−(margin + X)/10), hence
//!
//! outage = ∫ φ(z) (1 − exp(−10^(−(margin + σz)/10))) dz.
//!
//! The integrand is analytic and bounded in the strip |Im z| < π/(2a), a = σ ln 10/10, so the trapezoidal
//! rule converges like exp(−π²/(a h)) (Trefethen and Weideman, *SIAM Review* 56, 2014).

use std::f64::consts::{LN_10, PI};

use crate::link::outage;

/// The outage of links with Rayleigh fading and shadowing of one deviation.
///
/// ```
/// use fedcote_radio::Rayleigh;
/// // Without shadowing: 1 − exp(−10^(−margin/10)).
/// let outage = Rayleigh::new(0.0).outage(10.0);
/// assert!((outage - (1.0 - (-0.1f64).exp())).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rayleigh {
    /// Weight φ(z) h and loss 10^(−σz/10) of every node.
    nodes: Vec<(f64, f64)>,
}

impl Rayleigh {
    /// Beyond this many deviations the normal density is below 1e-22.
    const REACH: f64 = 10.0;

    /// Prepares the quadrature for shadowing of deviation `sigma_db`.
    pub fn new(sigma_db: f64) -> Self {
        let slope = sigma_db * LN_10 / 10.0;
        if slope == 0.0 {
            return Self { nodes: vec![(1.0, 1.0)] };
        }
        let step = (PI * PI / (37.0 * slope)).min(0.25);
        let last = (Self::REACH / step).ceil() as i64;
        let mut nodes: Vec<_> = (-last..=last)
            .map(|index| {
                let z = index as f64 * step;
                ((-0.5 * z * z).exp(), (-slope * z).exp())
            })
            .collect();
        // Their sum is √(2π)/h to rounding: dividing by it makes an outage of one exactly one.
        let total: f64 = nodes.iter().map(|node| node.0).sum();
        nodes.iter_mut().for_each(|node| node.0 /= total);
        Self { nodes }
    }

    /// The outage of a link with this margin.
    pub fn outage(&self, margin_db: f64) -> f64 {
        let loss = 10f64.powf(-margin_db / 10.0);
        let sum: f64 =
            self.nodes.iter().map(|(weight, shadow)| -weight * (-loss * shadow).exp_m1()).sum();
        sum.clamp(0.0, 1.0)
    }
}

/// How a link's gain varies from attempt to attempt.
#[derive(Debug, Clone)]
pub(crate) enum Variation {
    /// Shadowing of this deviation.
    Shadowing(f64),
    /// Shadowing and fading.
    Fading(Rayleigh),
}

impl Variation {
    pub(crate) fn outage(&self, margin_db: f64) -> f64 {
        match self {
            Self::Shadowing(sigma_db) => outage(margin_db, *sigma_db),
            Self::Fading(rayleigh) => rayleigh.outage(margin_db),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simpson's rule the other way round: over the fading, with the shadowing in closed form.
    /// With y = ln G the density of y is exp(y − e^y), and the gain in dB is 10 y/ln 10.
    fn other_way(margin_db: f64, sigma_db: f64) -> f64 {
        let (from, to, steps) = (-45.0, 4.5, 400_000);
        let step = (to - from) / steps as f64;
        let value = |index: usize| {
            let y: f64 = from + index as f64 * step;
            (y - y.exp()).exp() * outage(margin_db + 10.0 * y / LN_10, sigma_db)
        };
        let inner: f64 =
            (1..steps).map(|index| value(index) * if index % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (value(0) + inner + value(steps)) * step / 3.0
    }

    #[test]
    fn agrees_with_integration_over_the_fading() {
        for sigma in [0.5, 2.0, 4.0, 8.0, 12.0, 20.0] {
            let rayleigh = Rayleigh::new(sigma);
            for margin in [-40.0, -10.0, -1.0, 0.0, 3.0, 10.0, 25.0, 40.0, 70.0] {
                let (ours, other) = (rayleigh.outage(margin), other_way(margin, sigma));
                assert!((ours - other).abs() < 1e-11, "{sigma} {margin}: {ours} {other}");
                assert!((ours / other - 1.0).abs() < 1e-8, "{sigma} {margin}: {ours} {other}");
            }
        }
    }

    #[test]
    fn a_hopeless_link_fails_for_certain() {
        assert_eq!(Rayleigh::new(8.0).outage(f64::NEG_INFINITY), 1.0);
        assert_eq!(Rayleigh::new(8.0).outage(f64::INFINITY), 0.0);
    }
}
