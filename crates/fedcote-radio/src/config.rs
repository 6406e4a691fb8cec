//! The description of a network: the `[network]` table of a scenario.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::availability::AvailabilityConfig;
use crate::standard::StandardConfig;

/// Where failures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Wireless links: geometry, path loss, shadowing, outage.
    #[default]
    Radio,
    /// A given probability per client, the same in every round.
    Fixed,
    /// A probability, or a measured 0 or 1, per round and client, from a file.
    Trace,
    /// Everything arrives.
    Perfect,
}

/// How clients move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mobility {
    /// Nobody moves.
    #[default]
    None,
    /// Movers walk to and fro between a point indoors and a point of the cell's edge.
    Walk,
    /// Movers walk to one random point after another: the random waypoint model.
    Waypoint,
}

/// What a round after the last one of a trace looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterTrace {
    /// The trace starts again.
    #[default]
    Repeat,
    /// The last round stays.
    Hold,
}

/// How long a client computes before it uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeTime {
    /// No time at all: no client is late.
    #[default]
    None,
    /// An exponential time.
    Exponential,
    /// A log-normal time.
    LogNormal,
}

/// One value for every client, or a list with a value for each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PerClient {
    /// The same for all.
    All(f64),
    /// One for each client, in order.
    Each(Vec<f64>),
}

impl PerClient {
    /// The value of one client.
    pub fn get(&self, client: usize) -> f64 {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[client],
        }
    }
}

// By hand, because an untagged enum answers a wrong value with "did not match any variant".
impl<'de> Deserialize<'de> for PerClient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = PerClient;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a number, or a list with a number for each client")
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<PerClient, E> {
                Ok(PerClient::All(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<PerClient, E> {
                Ok(PerClient::All(value as f64))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<PerClient, E> {
                Ok(PerClient::All(value as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PerClient, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(PerClient::Each(values))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// Clients that compute for a random time, and may be late with their upload.
///
/// A client is late when its compute time and the `deadline_seconds` that its upload takes exceed the
/// limit. Lateness is independent of the link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stragglers {
    /// The distribution of the compute time. Default: none, no client is late.
    pub compute: ComputeTime,
    /// The mean compute time, for all clients or for each. Default: 0.1 s.
    pub mean_seconds: PerClient,
    /// The deviation of the logarithm of a log-normal time. Default: 0.5.
    pub spread: f64,
    /// The time from the start of the round to the end of the upload. Default: `round_seconds` if that is given, else 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<f64>,
}

impl Default for Stragglers {
    fn default() -> Self {
        Self {
            compute: ComputeTime::None,
            mean_seconds: PerClient::All(0.1),
            spread: 0.5,
            limit_seconds: None,
        }
    }
}

/// A station beside `base_station` and `access_point`, for standards that name it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StationConfig {
    /// East of the base station, in metres.
    pub x_m: f64,
    /// North of the base station, in metres.
    pub y_m: f64,
    /// Above the ground, in metres.
    pub height_m: f64,
}

/// Clients that fail together: an access point, relay or cell that may be down.
///
/// It is down in an attempt at uploads with its own probability, afresh in every attempt, and takes the uploads of all its
/// clients with it, on top of what their links lose.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupConfig {
    /// The probability that it is down. Default: 0.
    pub failure: f64,
    /// The clients behind it, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<usize>>,
    /// In place of a list: the station whose clients are behind it, `base_station`, `access_point` or one of the network's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<String>,
}

/// The description of a network. The defaults are the static cell of the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Where failures come from. Default: radio.
    pub kind: Kind,

    /// The time an upload may take, τ; the rate is bits over τ. Default: 0.1 s.
    pub deadline_seconds: f64,
    /// How often an upload is transmitted again after it failed, M. All M + 1 transmissions share the time of the upload, so each has
    /// M + 1 times the rate; it is lost when all fail. Default: 0.
    pub retransmissions: u32,
    /// Bits per parameter of the model. Default: 32.
    pub bits_per_parameter: f64,
    /// Loss added to the links of clients outdoors. Default: 0 dB.
    pub outdoor_excess_loss_db: f64,
    /// Rayleigh fading on top of the shadowing. Default: no.
    pub rayleigh: bool,
    /// The standards of clients 1, 2, …, repeated as often as needed.
    /// Default: `wifi24`, `wifi5`, `4g`, `5g`.
    pub standard_order: Vec<String>,

    /// The radius of the cell around the base station. Default: 200 m.
    pub cell_radius_m: f64,
    /// East to west extent of the building. Default: 20 m.
    pub building_width_m: f64,
    /// North to south extent of the building. Default: 20 m.
    pub building_depth_m: f64,
    /// From the base station to the access point in the middle of the building. Default: 30 m.
    pub separation_m: f64,
    /// The height of the base station's antenna. Default: 20 m.
    pub base_station_height_m: f64,
    /// The height of the access point. Default: 3 m.
    pub access_point_height_m: f64,
    /// The height of the clients' devices. Default: 1.5 m.
    pub device_height_m: f64,
    /// The share of clients that stand indoors, the first ones. Default: 0.4.
    pub indoor_share: f64,
    /// The seed of where clients stand and walk, apart from everything else that is random. Default: the run's seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<u64>,
    /// Where clients stand, `[x, y]` in metres from the base station, instead of at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<Vec<[f64; 2]>>,

    /// How clients move. Default: they do not.
    pub mobility: Mobility,
    /// The share of clients that move, drawn by the seed. Default: 0.5.
    pub moving_share: f64,
    /// Walking speed. Default: 1.5 m/s.
    pub speed_m_per_s: f64,
    /// Rest at every waypoint. Default: 0 s.
    pub pause_seconds: f64,
    /// The time from one round to the next, for clients that move. Default: what a round takes by the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_seconds: Option<f64>,

    /// The probability that a device fails (battery, malfunction), whatever its link. Default: 0.
    pub device_failure: PerClient,
    /// The failure probabilities of `kind = "fixed"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<PerClient>,
    /// The file of `kind = "trace"`, relative to the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What comes after the last round of a trace. Default: it repeats.
    pub after_trace: AfterTrace,

    /// Clients that are late.
    pub stragglers: Stragglers,
    /// Clients that come and go.
    pub availability: AvailabilityConfig,
    /// Clients that fail together.
    pub groups: BTreeMap<String, GroupConfig>,
    /// Further stations.
    pub stations: BTreeMap<String, StationConfig>,
    /// Further standards, and changes to those that come with the program.
    pub standards: BTreeMap<String, StandardConfig>,
}

impl NetworkConfig {
    /// The time from one round to the next where nobody says how long a round takes.
    const ROUND_SECONDS: f64 = 1.0;

    /// The time from one round to the next.
    pub(crate) fn seconds_between_rounds(&self) -> f64 {
        self.round_seconds.unwrap_or(Self::ROUND_SECONDS)
    }

    /// How long one transmission of a model takes: M + 1 of them fill the deadline.
    pub fn transmission_seconds(&self) -> f64 {
        self.deadline_seconds / (f64::from(self.retransmissions) + 1.0)
    }

    /// The time that a client has for computing and uploading, where clients may be late.
    pub fn limit_seconds(&self) -> Option<f64> {
        let stragglers = &self.stragglers;
        let limit = || stragglers.limit_seconds.unwrap_or(self.seconds_between_rounds());
        (stragglers.compute != ComputeTime::None && self.kind != Kind::Perfect).then(limit)
    }
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            kind: Kind::Radio,
            deadline_seconds: 0.1,
            retransmissions: 0,
            bits_per_parameter: 32.0,
            outdoor_excess_loss_db: 0.0,
            rayleigh: false,
            standard_order: ["wifi24", "wifi5", "4g", "5g"].map(String::from).into(),
            cell_radius_m: 200.0,
            building_width_m: 20.0,
            building_depth_m: 20.0,
            separation_m: 30.0,
            base_station_height_m: 20.0,
            access_point_height_m: 3.0,
            device_height_m: 1.5,
            indoor_share: 0.4,
            placement: None,
            positions: None,
            mobility: Mobility::None,
            moving_share: 0.5,
            speed_m_per_s: 1.5,
            pause_seconds: 0.0,
            round_seconds: None,
            device_failure: PerClient::All(0.0),
            failure: None,
            file: None,
            after_trace: AfterTrace::Repeat,
            stragglers: Stragglers::default(),
            availability: AvailabilityConfig::default(),
            groups: BTreeMap::new(),
            stations: BTreeMap::new(),
            standards: BTreeMap::new(),
        }
    }
}
