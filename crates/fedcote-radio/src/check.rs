//! What makes a description of a network valid.

use fedcote::SettingError;
use fedcote_support::readable;

use crate::config::{ComputeTime, Kind, Mobility, NetworkConfig, PerClient};
use crate::error::{refused, unknown};
use crate::geometry::{Area, Point};
use crate::standard::{PRESETS, ShadowingRange, Standard};

/// As many as a scenario may have.
const MOST_CLIENTS: usize = 100_000_000;

pub(crate) type Check = Result<(), SettingError>;

pub(crate) fn require(holds: bool, key: &str, reason: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(refused(key, reason())) }
}

fn finite(key: &str, value: f64) -> Check {
    require(value.is_finite(), key, || format!("must be a finite number, not {}", readable(value)))
}

pub(crate) fn positive(key: &str, value: f64) -> Check {
    require(value.is_finite() && value > 0.0, key, || {
        format!("must be above 0, not {}", readable(value))
    })
}

fn not_negative(key: &str, value: f64) -> Check {
    require(value.is_finite() && value >= 0.0, key, || {
        format!("must be 0 or more, not {}", readable(value))
    })
}

pub(crate) fn probability(key: &str, value: f64) -> Check {
    require((0.0..=1.0).contains(&value), key, || {
        format!("must be between 0 and 1, not {}", readable(value))
    })
}

pub(crate) fn per_client(
    key: &str,
    values: &PerClient,
    clients: usize,
    each: fn(&str, f64) -> Check,
) -> Check {
    match values {
        PerClient::All(value) => each(key, *value),
        PerClient::Each(values) => {
            require(values.len() == clients, key, || {
                format!("has {} values for {clients} clients", values.len())
            })?;
            values.iter().enumerate().try_for_each(|(client, &value)| {
                each(key, value).map_err(|error| {
                    refused(key, format!("client {}: {}", client + 1, error.reason))
                })
            })
        }
    }
}

/// The keys that only one kind of network reads, and which of them a description changes.
macro_rules! keys_of_kinds {
    ($($kind:ident: $($key:ident)+;)+) => {
        const KEYS: &[(&str, Kind)] = &[$($((stringify!($key), Kind::$kind)),+),+];

        impl NetworkConfig {
            /// The first key that has another value than its default although this kind does not read it.
            fn without_effect(&self) -> Option<&'static str> {
                let default = Self::default();
                let changed = [
                    $($((stringify!($key), self.$key != default.$key)),+),+,
                    ("device_failure", self.device_failure != default.device_failure),
                    ("stragglers", self.stragglers != default.stragglers),
                    ("groups", self.groups != default.groups),
                ];
                let idle = |(key, changed): &&(&str, bool)| *changed && !self.kind.reads(key);
                changed.iter().find(idle).map(|(key, _)| *key)
            }
        }
    };
}

keys_of_kinds! {
    Radio: retransmissions outdoor_excess_loss_db rayleigh standard_order cell_radius_m building_width_m building_depth_m separation_m
        base_station_height_m access_point_height_m device_height_m indoor_share placement positions mobility moving_share
        speed_m_per_s pause_seconds stations standards;
    Fixed: failure;
    Trace: file after_trace;
}

impl Kind {
    /// The only kind that reads this key of `[network]`; `None` if several do.
    fn of_key(key: &str) -> Option<Self> {
        KEYS.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
    }

    /// Whether this key of `[network]` has an effect on a network of this kind.
    pub fn reads(self, key: &str) -> bool {
        match Self::of_key(key) {
            Some(kind) => kind == self,
            None => {
                self != Self::Perfect || !["device_failure", "stragglers", "groups"].contains(&key)
            }
        }
    }
}

impl NetworkConfig {
    /// Whether this describes a network of so many clients; if not, what is wrong with it.
    ///
    /// A key that another kind reads must have its default value.
    pub fn check(&self, clients: usize) -> Result<(), SettingError> {
        require(clients > 0, "kind", || "a network needs at least one client".into())?;
        require(clients <= MOST_CLIENTS, "clients", || {
            format!("must be from 1 to {MOST_CLIENTS}, is {clients}")
        })?;
        if let Some(key) = self.without_effect() {
            let reason = match Kind::of_key(key) {
                Some(kind) => {
                    let kind = format!("{kind:?}").to_lowercase();
                    format!("has no effect here: it belongs to kind = \"{kind}\"")
                }
                None => "has no effect here: with kind = \"perfect\" every upload arrives".into(),
            };
            return Err(refused(key, reason));
        }
        positive("deadline_seconds", self.deadline_seconds)?;
        positive("bits_per_parameter", self.bits_per_parameter)?;
        self.round_seconds.map_or(Ok(()), |seconds| positive("round_seconds", seconds))?;
        per_client("device_failure", &self.device_failure, clients, probability)?;
        self.check_stragglers(clients)?;
        self.availability.check(clients)?;
        self.groups_of(clients)?;
        match self.kind {
            Kind::Perfect => Ok(()),
            Kind::Fixed => match &self.failure {
                Some(failure) => per_client("failure", failure, clients, probability),
                None => Err(refused(
                    "failure",
                    "is missing: kind = \"fixed\" needs a failure probability, or a list with one per client",
                )),
            },
            Kind::Trace => require(self.file.is_some(), "file", || {
                "is missing: kind = \"trace\" needs a CSV file of round,client,failure".into()
            }),
            Kind::Radio => {
                self.check_geometry(clients)?;
                self.check_mobility()?;
                finite("outdoor_excess_loss_db", self.outdoor_excess_loss_db)?;
                require(self.retransmissions <= 1000, "retransmissions", || {
                    format!("must be at most 1000, not {}", self.retransmissions)
                })?;
                self.check_standards()
            }
        }
    }

    fn check_stragglers(&self, clients: usize) -> Check {
        let stragglers = &self.stragglers;
        if stragglers.compute == ComputeTime::None {
            return Ok(());
        }
        per_client("stragglers.mean_seconds", &stragglers.mean_seconds, clients, positive)?;
        not_negative("stragglers.spread", stragglers.spread)?;
        let limit = stragglers.limit_seconds.unwrap_or(self.seconds_between_rounds());
        require(
            limit.is_finite() && limit > self.deadline_seconds,
            "stragglers.limit_seconds",
            || {
                format!(
                    "must be above deadline_seconds = {}, the time of the upload, not {}",
                    readable(self.deadline_seconds),
                    readable(limit)
                )
            },
        )
    }

    fn check_geometry(&self, clients: usize) -> Check {
        positive("cell_radius_m", self.cell_radius_m)?;
        require(self.cell_radius_m <= 1e6, "cell_radius_m", || {
            format!("must be at most 1e6, not {}", readable(self.cell_radius_m))
        })?;
        for (key, length) in [
            ("building_width_m", self.building_width_m),
            ("building_depth_m", self.building_depth_m),
        ] {
            positive(key, length)?;
            // Below that, walks from wall to wall have more legs than anybody can follow.
            require(length >= 1e-3, key, || {
                format!("must be at least 0.001, not {}", readable(length))
            })?;
        }
        finite("separation_m", self.separation_m)?;
        not_negative("base_station_height_m", self.base_station_height_m)?;
        not_negative("access_point_height_m", self.access_point_height_m)?;
        not_negative("device_height_m", self.device_height_m)?;
        probability("indoor_share", self.indoor_share)?;
        let area = Area::new(self);
        let corner = (area.centre.x.abs() + 0.5 * area.width).hypot(0.5 * area.depth);
        require(corner <= area.radius, "separation_m", || {
            format!(
                "the building reaches {} m from the base station, beyond cell_radius_m = {}",
                readable((10.0 * corner).round() / 10.0),
                readable(area.radius)
            )
        })?;
        for (index, &[x, y]) in self.positions.iter().flatten().enumerate() {
            let distance = x.hypot(y);
            require(distance <= area.radius, "positions", || {
                format!(
                    "client {} at [{}, {}] is outside the cell, cell_radius_m = {}",
                    index + 1,
                    readable(x),
                    readable(y),
                    readable(area.radius)
                )
            })?;
        }
        let given = self.positions.as_ref().map_or(clients, Vec::len);
        require(given == clients, "positions", || {
            format!("has {given} points for {clients} clients")
        })
    }

    fn check_mobility(&self) -> Check {
        if self.mobility == Mobility::None {
            return Ok(());
        }
        probability("moving_share", self.moving_share)?;
        positive("speed_m_per_s", self.speed_m_per_s)?;
        not_negative("pause_seconds", self.pause_seconds)?;
        let seconds = self.seconds_between_rounds();
        let way = self.speed_m_per_s * seconds;
        let key = if seconds > 1.0 { "round_seconds" } else { "speed_m_per_s" };
        require(way <= 2.0 * self.cell_radius_m, key, || {
            let way = readable(way);
            format!("a client would walk {way} m in a round, further than across the cell")
        })
    }

    fn check_standards(&self) -> Check {
        require(!self.standard_order.is_empty(), "standard_order", || {
            "must name at least one standard".into()
        })?;
        for (name, station) in &self.stations {
            let key = |last: &str| format!("stations.{name}.{last}");
            require(
                !["base_station", "access_point"].contains(&name.as_str()),
                &format!("stations.{name}"),
                || "is placed by separation_m and its height key: choose another name".into(),
            )?;
            finite(&key("x_m"), station.x_m)?;
            finite(&key("y_m"), station.y_m)?;
            not_negative(&key("height_m"), station.height_m)?;
        }
        // All that are described, used or not: a typo should not wait for its first use.
        for (name, config) in &self.standards {
            self.check_standard(&config.resolve(name)?)?;
        }
        for standard in self.used_standards()? {
            self.check_standard(&standard)?;
        }
        Ok(())
    }

    fn check_standard(&self, standard: &Standard) -> Check {
        let key = |last: &str| format!("standards.{}.{last}", standard.name);
        positive(&key("bandwidth_hz"), standard.bandwidth_hz)?;
        finite(&key("power_dbm"), standard.power_dbm)?;
        positive(&key("carrier_hz"), standard.carrier_hz)?;
        finite(&key("noise_dbm_per_hz"), standard.noise_dbm_per_hz)?;
        positive(&key("reference_m"), standard.reference_m)?;
        not_negative(&key("exponent"), standard.exponent)?;
        not_negative(&key("wall_loss_db"), standard.wall_loss_db)?;
        check_shadowing(&key("shadowing"), &standard.shadowing)?;
        self.station(standard).map(|_| ())
    }

    /// The standards that clients use, each once, in the order of first use.
    pub(crate) fn used_standards(&self) -> Result<Vec<Standard>, SettingError> {
        let mut used: Vec<Standard> = Vec::new();
        for name in &self.standard_order {
            if used.iter().any(|standard| standard.name == *name) {
                continue;
            }
            used.push(match self.standards.get(name) {
                Some(config) => config.resolve(name)?,
                None => Standard::preset(name).ok_or_else(|| {
                    let mut known: Vec<&str> = PRESETS.to_vec();
                    known.extend(self.standards.keys().map(String::as_str));
                    unknown("standard_order", "standard", name, &known)
                })?,
            });
        }
        Ok(used)
    }

    /// The place and height of a standard's station.
    pub(crate) fn station(&self, standard: &Standard) -> Result<(Point, f64), SettingError> {
        match standard.station.as_str() {
            "base_station" => Ok((Point::default(), self.base_station_height_m)),
            "access_point" => Ok((Area::new(self).centre, self.access_point_height_m)),
            name => match self.stations.get(name) {
                Some(station) => Ok((Point { x: station.x_m, y: station.y_m }, station.height_m)),
                None => {
                    let mut known = vec!["base_station", "access_point"];
                    known.extend(self.stations.keys().map(String::as_str));
                    let key = format!("standards.{}.station", standard.name);
                    Err(unknown(key, "station", name, &known))
                }
            },
        }
    }
}

/// Ranges must cover every distance exactly once.
fn check_shadowing(key: &str, ranges: &[ShadowingRange]) -> Check {
    require(!ranges.is_empty(), key, || "must have at least one range of distances".into())?;
    let mut end = 0.0;
    for (index, range) in ranges.iter().enumerate() {
        let refuse = |reason: String| Err(refused(key, format!("range {}: {reason}", index + 1)));
        let ShadowingRange { from_m, to_m, sigma_db } = *range;
        if !(0.0..=100.0).contains(&sigma_db) {
            return refuse(format!(
                "sigma_db must be between 0 and 100, not {}",
                readable(sigma_db)
            ));
        }
        if !(from_m.is_finite() && from_m >= 0.0 && to_m > from_m) {
            let (from_m, to_m) = (readable(from_m), readable(to_m));
            return refuse(format!("from_m = {from_m} must be 0 or more and below to_m = {to_m}"));
        }
        let (from, until) = (readable(from_m), readable(end));
        if from_m < end {
            return refuse(format!(
                "starts at {from} m and overlaps the range before, which ends at {until} m"
            ));
        }
        if from_m > end {
            return refuse(format!(
                "starts at {from} m and leaves a gap: distances up to {until} m are covered"
            ));
        }
        end = to_m;
    }
    require(end == f64::INFINITY, key, || {
        let end = readable(end);
        format!("distances beyond {end} m are not covered: leave out the last to_m")
    })
}
