//! One link: from power and losses to capacity, margin and outage.
//!
//! The capacity of a link with bandwidth W, power P, noise density N₀ and gain |h|² is
//! C = W log₂(1 + P|h|²/(W N₀)); an upload at rate R fails when C ≤ R. In decibels the gain is minus the
//! path loss plus a normal shadowing term of deviation σ, so that C ≤ R exactly when the shadowing is at
//! most minus the margin: the outage is Φ(−margin/σ).
//! See A. Goldsmith, *Wireless Communications* (2005), sections 2.7 to 2.10.

use std::f64::consts::{LN_2, SQRT_2};

/// The probability that shadowing of deviation `sigma_db` uses up the margin: Φ(−margin/σ).
///
/// Without shadowing (σ = 0) a link without margin fails and any other holds.
///
/// ```
/// use fedcote_radio::outage;
/// assert_eq!(outage(0.0, 4.0), 0.5);
/// assert!((outage(4.0, 4.0) - 0.158655253931457).abs() < 1e-14); // Φ(−1)
/// ```
pub fn outage(margin_db: f64, sigma_db: f64) -> f64 {
    if sigma_db == 0.0 {
        return if margin_db <= 0.0 { 1.0 } else { 0.0 };
    }
    0.5 * libm::erfc(margin_db / (sigma_db * SQRT_2))
}

/// What a link gains and loses, shadowing apart.
///
/// ```
/// use fedcote_radio::{LinkBudget, outage};
/// // 4G at 150 m: 20 dBm over 1.8 MHz, 40.74 dB at one metre, exponent 3.
/// let link = LinkBudget {
///     bandwidth_hz: 1.8e6,
///     power_dbm: 20.0,
///     noise_dbm_per_hz: -174.0,
///     loss_db: 40.74 + 30.0 * 150f64.log10(),
/// };
/// let failure = outage(link.margin_db(7_635_200.0), 8.0);
/// assert!(failure > 0.01 && failure < 0.2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkBudget {
    /// Bandwidth W.
    pub bandwidth_hz: f64,
    /// Transmit power P.
    pub power_dbm: f64,
    /// Noise density N₀.
    pub noise_dbm_per_hz: f64,
    /// All losses on the way: distance, walls, excess.
    pub loss_db: f64,
}

impl LinkBudget {
    /// The signal-to-noise ratio without shadowing.
    pub fn snr_db(&self) -> f64 {
        let noise_dbm = self.noise_dbm_per_hz + 10.0 * self.bandwidth_hz.log10();
        self.power_dbm - self.loss_db - noise_dbm
    }

    /// The signal-to-noise ratio at which the capacity is exactly `rate_bps`: 2^(R/W) − 1.
    pub fn required_snr_db(&self, rate_bps: f64) -> f64 {
        10.0 * (rate_bps / self.bandwidth_hz * LN_2).exp_m1().log10()
    }

    /// How much more could be lost before an upload at `rate_bps` fails.
    pub fn margin_db(&self, rate_bps: f64) -> f64 {
        self.snr_db() - self.required_snr_db(rate_bps)
    }

    /// The capacity when shadowing (and fading) add `gain_db`.
    pub fn capacity_bps(&self, gain_db: f64) -> f64 {
        let snr = 10f64.powf((self.snr_db() + gain_db) / 10.0);
        self.bandwidth_hz * snr.ln_1p() / LN_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Φ(−x) from tables: Abramowitz and Stegun, table 26.1, and the usual quantiles.
    #[test]
    fn outage_is_the_normal_tail() {
        for (x, tail) in [
            (0.0, 0.5),
            (0.5, 0.308537538725987),
            (1.0, 0.158655253931457),
            (2.0, 0.022750131948179),
            (3.0, 0.001349898031630),
            (1.644853626951472, 0.05),
            (-1.281551565544601, 0.9),
        ] {
            for sigma in [1.0, 4.0, 8.0] {
                assert!((outage(x * sigma, sigma) - tail).abs() < 1e-14, "{x} {sigma}");
            }
        }
    }

    #[test]
    fn without_shadowing_the_margin_decides() {
        assert_eq!(outage(1e-9, 0.0), 0.0);
        assert_eq!(outage(0.0, 0.0), 1.0);
        assert_eq!(outage(-1.0, 0.0), 1.0);
    }

    #[test]
    fn a_rate_beyond_any_signal_always_fails() {
        let link = LinkBudget {
            bandwidth_hz: 1.0,
            power_dbm: 30.0,
            noise_dbm_per_hz: -174.0,
            loss_db: 0.0,
        };
        assert_eq!(outage(link.margin_db(1e6), 8.0), 1.0);
    }

    #[test]
    fn capacity_at_minus_the_margin_is_the_rate() {
        let link = LinkBudget {
            bandwidth_hz: 2.88e6,
            power_dbm: 23.0,
            noise_dbm_per_hz: -174.0,
            loss_db: 130.0,
        };
        for rate in [1e3, 7_635_200.0, 8_631_104.0, 5e7] {
            let capacity = link.capacity_bps(-link.margin_db(rate));
            assert!((capacity / rate - 1.0).abs() < 1e-10, "{rate}: {capacity}");
        }
    }
}
