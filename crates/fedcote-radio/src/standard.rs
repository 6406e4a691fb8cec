//! Network standards: what a link of each kind is made of.

use fedcote::SettingError;
use serde::{Deserialize, Serialize};

use crate::error::{refused, unknown};
use crate::link::LinkBudget;

/// The names of the standards that come with the program.
pub const PRESETS: [&str; 4] = ["wifi24", "wifi5", "4g", "5g"];

/// The deviation of the shadowing over a range of distances, `from_m` excluded and `to_m` included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShadowingRange {
    /// Where the range starts. Default: 0 m.
    pub from_m: f64,
    /// Where it ends. Default: never.
    #[serde(skip_serializing_if = "never")]
    pub to_m: f64,
    /// The deviation. Default: 0 dB, no shadowing.
    pub sigma_db: f64,
}

fn never(distance: &f64) -> bool {
    *distance == f64::INFINITY
}

impl Default for ShadowingRange {
    fn default() -> Self {
        Self { from_m: 0.0, to_m: f64::INFINITY, sigma_db: 0.0 }
    }
}

/// A network standard.
#[derive(Debug, Clone, PartialEq)]
pub struct Standard {
    /// The name that scenarios use.
    pub name: String,
    /// The station that its clients upload to.
    pub station: String,
    /// Bandwidth of a client, W.
    pub bandwidth_hz: f64,
    /// Transmit power, P.
    pub power_dbm: f64,
    /// Carrier frequency, f.
    pub carrier_hz: f64,
    /// Noise density, N₀.
    pub noise_dbm_per_hz: f64,
    /// Reference distance of the path loss, d₀.
    pub reference_m: f64,
    /// Path loss exponent, λ.
    pub exponent: f64,
    /// Loss of a wall between client and station.
    pub wall_loss_db: f64,
    /// Shadowing by distance: ascending, without gaps.
    pub shadowing: Vec<ShadowingRange>,
}

impl Standard {
    /// One of the [`PRESETS`], with the paper's parameters (its Table 2).
    ///
    /// ```
    /// use fedcote_radio::Standard;
    /// let wifi = Standard::preset("wifi24").unwrap();
    /// // Free space over one metre at 2.4 GHz.
    /// assert!((wifi.reference_loss_db() - 40.04).abs() < 0.01);
    /// ```
    pub fn preset(name: &str) -> Option<Self> {
        let (station, bandwidth_mhz, power_dbm, carrier_ghz, wall_loss_db) = match name {
            "wifi24" => ("access_point", 10.0, 23.0, 2.4, 12.0),
            "wifi5" => ("access_point", 10.0, 23.0, 5.0, 18.0),
            "4g" => ("base_station", 1.8, 20.0, 2.6, 10.0),
            "5g" => ("base_station", 2.88, 23.0, 3.5, 15.0),
            _ => return None,
        };
        Some(Self {
            name: name.into(),
            station: station.into(),
            bandwidth_hz: bandwidth_mhz * 1e6,
            power_dbm,
            carrier_hz: carrier_ghz * 1e9,
            noise_dbm_per_hz: -174.0,
            reference_m: 1.0,
            exponent: 3.0,
            wall_loss_db,
            shadowing: vec![
                ShadowingRange { from_m: 0.0, to_m: 100.0, sigma_db: 4.0 },
                ShadowingRange { from_m: 100.0, to_m: f64::INFINITY, sigma_db: 8.0 },
            ],
        })
    }

    /// Free-space loss over the reference distance:
    /// 20 log₁₀(d₀ in km) + 20 log₁₀(f in MHz) + 32.44 dB.
    pub fn reference_loss_db(&self) -> f64 {
        20.0 * (self.reference_m / 1e3).log10() + 20.0 * (self.carrier_hz / 1e6).log10() + 32.44
    }

    /// What a distance loses beyond the reference distance: 10 λ log₁₀(d/d₀). Nearer than that, where
    /// the model says nothing, nothing.
    pub fn distance_loss_db(&self, distance_m: f64) -> f64 {
        10.0 * self.exponent * (distance_m / self.reference_m).max(1.0).log10()
    }

    /// The link over a distance, with what walls and other things take.
    pub fn link(&self, distance_m: f64, extra_loss_db: f64) -> LinkBudget {
        let path_loss_db = self.reference_loss_db() + self.distance_loss_db(distance_m);
        LinkBudget {
            bandwidth_hz: self.bandwidth_hz,
            power_dbm: self.power_dbm,
            noise_dbm_per_hz: self.noise_dbm_per_hz,
            loss_db: path_loss_db + extra_loss_db,
        }
    }

    /// Which of the shadowing ranges holds at a distance.
    pub(crate) fn range(&self, distance_m: f64) -> usize {
        let last = self.shadowing.len() - 1;
        self.shadowing.iter().position(|range| distance_m <= range.to_m).unwrap_or(last)
    }

    /// The deviation of the shadowing at a distance.
    pub fn sigma_db(&self, distance_m: f64) -> f64 {
        self.shadowing[self.range(distance_m)].sigma_db
    }
}

/// A standard as a scenario describes it. What is not given comes from the standard `like`, by default
/// the preset of the same name if there is one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StandardConfig {
    /// The preset that gives what is not given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// The station: `base_station`, `access_point`, or one of the network's own `stations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<String>,
    /// Bandwidth of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_hz: Option<f64>,
    /// Transmit power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_dbm: Option<f64>,
    /// Carrier frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier_hz: Option<f64>,
    /// Noise density. Without a preset: −174 dBm/Hz, thermal noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_dbm_per_hz: Option<f64>,
    /// Reference distance. Without a preset: 1 m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_m: Option<f64>,
    /// Path loss exponent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// Loss of a wall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_loss_db: Option<f64>,
    /// Shadowing by distance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadowing: Option<Vec<ShadowingRange>>,
}

impl StandardConfig {
    /// The standard that is meant, with everything filled in.
    pub(crate) fn resolve(&self, name: &str) -> Result<Standard, SettingError> {
        let base = match &self.like {
            Some(like) => Some(Standard::preset(like).ok_or_else(|| {
                unknown(format!("standards.{name}.like"), "preset", like, &PRESETS)
            })?),
            None => Standard::preset(name),
        };
        let missing = |key: &str| {
            let reason = "is missing: give it, or name a preset with like = \"…\"";
            refused(format!("standards.{name}.{key}"), reason)
        };
        macro_rules! need {
            ($key:ident) => {
                self.$key
                    .clone()
                    .or_else(|| base.as_ref().map(|base| base.$key.clone()))
                    .ok_or_else(|| missing(stringify!($key)))?
            };
        }
        Ok(Standard {
            name: name.into(),
            station: need!(station),
            bandwidth_hz: need!(bandwidth_hz),
            power_dbm: need!(power_dbm),
            carrier_hz: need!(carrier_hz),
            noise_dbm_per_hz: self
                .noise_dbm_per_hz
                .or(base.as_ref().map(|base| base.noise_dbm_per_hz))
                .unwrap_or(-174.0),
            reference_m: self
                .reference_m
                .or(base.as_ref().map(|base| base.reference_m))
                .unwrap_or(1.0),
            exponent: need!(exponent),
            wall_loss_db: need!(wall_loss_db),
            shadowing: need!(shadowing),
        })
    }
}
