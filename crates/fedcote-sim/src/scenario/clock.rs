//! The `[clock]` table: how long clients compute, and how fast the downlink is.

use fedcote::SettingError;
use fedcote_radio::{ComputeTime, PerClient};
use serde::{Deserialize, Serialize};

use super::{LocalSteps, Scenario};

/// Operations per parameter and sample of a training step of a dense model: a multiplication and an addition forward,
/// twice that backward.
pub(crate) const OPERATIONS_PER_PARAMETER: f64 = 6.0;

/// Operations per second of a phone that trains: a billion, far below its peak.
pub(crate) const OPERATIONS_PER_SECOND: f64 = 1e9;

/// What a round costs: the `[clock]` table. Uplink times follow from `[network]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockConfig {
    /// The time that a client computes for one sample of a mini-batch, for all clients or for each.
    /// Default: 6 operations per parameter of the model at 10⁹ operations per second; convolutions use a parameter many times, so give a measured time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_per_sample: Option<PerClient>,
    /// How much devices differ from that: the deviation of the logarithm of a client's time per sample, drawn once per
    /// seed.
    pub spread: f64,
    /// Kinds of devices, instead of `seconds_per_sample`: a client has one of them, drawn once per seed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    /// The rate at which clients receive, for all or for each. The downlink does not fail.
    pub downlink_mbit_per_s: PerClient,
}

/// A kind of device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// The share of clients that have it, in proportion to those of the other kinds. Default: 1.
    pub share: f64,
    /// The time that it computes for one sample of a mini-batch. It must be given.
    pub seconds_per_sample: f64,
    /// The rate at which it receives. Default: that of `[clock]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downlink_mbit_per_s: Option<f64>,
}

impl Default for Device {
    fn default() -> Self {
        Self { share: 1.0, seconds_per_sample: f64::NAN, downlink_mbit_per_s: None }
    }
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self {
            seconds_per_sample: None,
            spread: 0.0,
            devices: Vec::new(),
            downlink_mbit_per_s: PerClient::All(50.0),
        }
    }
}

impl ClockConfig {
    /// Checks against the number of clients and the network's own compute times.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), SettingError> {
        let clients = scenario.general.clients;
        let wrong = |key: &str, reason: String| Err(SettingError::new(key, reason).within("clock"));
        let times = self.seconds_per_sample.as_ref();
        let rates = Some(&self.downlink_mbit_per_s);
        for (key, values) in [("seconds_per_sample", times), ("downlink_mbit_per_s", rates)] {
            let least = if key == "seconds_per_sample" { "0 or more" } else { "above 0" };
            let legal =
                |v: f64| v.is_finite() && v >= 0.0 && (key == "seconds_per_sample" || v > 0.0);
            match values {
                Some(PerClient::All(value)) if !legal(*value) => {
                    return wrong(key, format!("must be {least}, not {value}"));
                }
                Some(PerClient::Each(values)) if values.len() != clients => {
                    return wrong(
                        key,
                        format!("has {} values for {clients} clients", values.len()),
                    );
                }
                Some(PerClient::Each(values)) => {
                    if let Some(at) = values.iter().position(|&value| !legal(value)) {
                        let (client, value) = (at + 1, values[at]);
                        return wrong(
                            key,
                            format!("client {client}: must be {least}, not {value}"),
                        );
                    }
                }
                _ => {}
            }
        }
        if !(0.0..=10.0).contains(&self.spread) {
            return wrong("spread", format!("must be from 0 to 10, not {}", self.spread));
        }
        if !self.devices.is_empty() && self.seconds_per_sample.is_some() {
            return wrong(
                "devices",
                "give either `devices` or `seconds_per_sample`, not both".into(),
            );
        }
        for (at, device) in self.devices.iter().enumerate() {
            let key = format!("devices[{at}]");
            if !(device.share > 0.0 && device.share.is_finite()) {
                return wrong(&key, format!("share must be above 0, not {}", device.share));
            }
            if !(device.seconds_per_sample >= 0.0 && device.seconds_per_sample.is_finite()) {
                return wrong(&key, "seconds_per_sample must be given, 0 or more".into());
            }
            if device.downlink_mbit_per_s.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
                return wrong(&key, "downlink_mbit_per_s must be above 0".into());
            }
        }
        let own =
            self.seconds_per_sample.is_some() || !self.devices.is_empty() || self.spread > 0.0;
        if own && scenario.network.stragglers.compute != ComputeTime::None {
            let key = match (&self.seconds_per_sample, self.devices.is_empty()) {
                (Some(_), _) => "seconds_per_sample",
                (None, false) => "devices",
                (None, true) => "spread",
            };
            let reason =
                "has no effect beside [network.stragglers], which says how long clients compute";
            return wrong(key, reason.into());
        }
        Ok(())
    }
}

impl Scenario {
    /// The network, with the time between rounds that follows from the clock where none is given: that of a round with
    /// mean compute time and an upload that takes its deadline, for a model of so many parameters.
    pub fn network_of(&self, parameters: usize) -> fedcote_radio::NetworkConfig {
        let mut network = self.network.clone();
        if network.round_seconds.is_none() {
            network.round_seconds = Some(self.nominal_round_seconds(parameters));
            // Whoever relied on the limit of the network's own default still does.
            network.stragglers.limit_seconds =
                network.stragglers.limit_seconds.or(self.network.limit_seconds());
        }
        network
    }

    fn nominal_round_seconds(&self, parameters: usize) -> f64 {
        let (clock, network) = (&self.clock, &self.network);
        let steps = match self.training.local_steps {
            LocalSteps::Same(steps) => f64::from(steps),
            LocalSteps::Range([low, high]) => 0.5 * (f64::from(low) + f64::from(high)),
        };
        let mean = |values: &PerClient| match values {
            PerClient::All(value) => *value,
            PerClient::Each(values) => values.iter().sum::<f64>() / values.len() as f64,
        };
        let shares: f64 = clock.devices.iter().map(|device| device.share).sum();
        let per_sample = match &clock.seconds_per_sample {
            Some(values) => mean(values),
            None if clock.devices.is_empty() => default_seconds_per_sample(parameters),
            None => {
                let weighted = |device: &Device| device.share * device.seconds_per_sample / shares;
                clock.devices.iter().map(weighted).sum()
            }
        };
        let compute = match network.stragglers.compute {
            ComputeTime::None => steps * self.training.batch as f64 * per_sample,
            _ => mean(&network.stragglers.mean_seconds),
        };
        let bits = network.bits_per_parameter * parameters as f64;
        let download = bits / (1e6 * mean(&clock.downlink_mbit_per_s));
        download + compute + network.deadline_seconds
    }
}

/// The time per sample of a model of so many parameters.
pub(crate) fn default_seconds_per_sample(parameters: usize) -> f64 {
    OPERATIONS_PER_PARAMETER * parameters as f64 / OPERATIONS_PER_SECOND
}
