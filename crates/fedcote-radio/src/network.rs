//! A network: a source of failures, with devices that break and clients that are late on top.

use std::path::Path;

use fedcote::Groups;
use fedcote::random::{Key, Purpose, Stream};
use rand::RngExt;
use rayon::prelude::*;

use crate::availability::{Availability, Labels};
use crate::config::{Kind, NetworkConfig, PerClient};
use crate::error::{Error, refused};
use crate::geometry::{Area, Point};
use crate::radio::Radio;
use crate::stragglers::Lateness;
use crate::trace::Trace;

/// Where and how a client is in a round.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Place<'a> {
    /// The client, from 0.
    pub client: usize,
    /// The name of its standard.
    pub standard: &'a str,
    /// East of the base station, in metres.
    pub x: f64,
    /// North of the base station, in metres.
    pub y: f64,
    /// Whether it is in the building.
    pub indoor: bool,
    /// To its station, in three dimensions, in metres.
    pub distance: f64,
    /// How much more its link could lose, in dB.
    pub margin_db: f64,
    /// The probability that its upload fails, for whatever reason.
    pub failure: f64,
}

/// What became of one attempt to upload, and what the server may see of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Upload {
    /// Whether it arrived.
    pub arrived: bool,
    /// The margin of its last transmission in dB, above 0 if the link held; none for a network without links.
    pub margin_db: Option<f64>,
    /// How many of its transmissions failed.
    pub failed: u32,
    /// How many transmissions were made.
    pub transmissions: u32,
    /// How long the client computed before it, in a network where that is random.
    pub compute_seconds: Option<f64>,
}

impl Upload {
    /// An upload of which nobody knows more than whether it arrived.
    pub fn known_by_arrival(arrived: bool) -> Self {
        let failed = u32::from(!arrived);
        Self { arrived, margin_db: None, failed, transmissions: 1, compute_seconds: None }
    }
}

/// Something that makes uploads fail. Everything is a function of round and client.
pub trait Source: Send + Sync + std::fmt::Debug {
    /// The number of clients.
    fn clients(&self) -> usize;

    /// The probability that an upload fails.
    fn failure(&self, round: u32, client: usize) -> f64;

    /// Whether one upload arrives; true with probability 1 − `failure` over streams.
    fn arrives(&self, round: u32, client: usize, stream: &mut Stream) -> bool {
        stream.random::<f64>() >= self.failure(round, client)
    }

    /// One upload with what shows of it on the way. Must say the same as `arrives` does, from the same stream.
    fn upload(&self, round: u32, client: usize, stream: &mut Stream) -> Upload {
        Upload::known_by_arrival(self.arrives(round, client, stream))
    }

    /// The power that a client transmits with, if it has a transmitter.
    fn transmit_watts(&self, client: usize) -> Option<f64> {
        let _ = client;
        None
    }

    /// Whether failures differ from round to round.
    fn moves(&self) -> bool {
        false
    }

    /// Where clients are, if they are anywhere.
    fn layout(&self) -> Option<&dyn Layout> {
        None
    }
}

/// The places of clients and stations.
pub trait Layout: Sync {
    /// Where a client is in a round, and how its link fails there.
    fn place(&self, round: u32, client: usize) -> Place<'_>;

    /// The corners of a client's way, up to the one after this round; empty if it stands.
    fn route(&self, round: u32, client: usize) -> Vec<Point>;

    /// The cell and the building.
    fn area(&self) -> Area;

    /// The stations in use, by name.
    fn stations(&self) -> Vec<(&str, Point)>;
}

/// The same probabilities in every round.
#[derive(Debug)]
struct Fixed {
    clients: usize,
    failure: PerClient,
}

impl Source for Fixed {
    fn clients(&self) -> usize {
        self.clients
    }

    fn failure(&self, _round: u32, client: usize) -> f64 {
        self.failure.get(client)
    }
}

/// Who fails when.
#[derive(Debug)]
pub struct Network {
    source: Box<dyn Source>,
    device: PerClient,
    lateness: Option<Lateness>,
    availability: Option<Availability>,
    groups: Option<Groups>,
    rate_bps: f64,
}

impl Network {
    /// The network of this description for so many clients that upload models of so many parameters.
    /// Relative trace files are looked for in `base`.
    pub fn new(
        config: &NetworkConfig,
        clients: usize,
        model_parameters: usize,
        seed: u64,
        base: &Path,
    ) -> Result<Self, Error> {
        Self::with_labels(config, clients, model_parameters, seed, base, None)
    }

    /// The same for clients of which the labels are known, as some kinds of availability need.
    pub fn with_labels(
        config: &NetworkConfig,
        clients: usize,
        model_parameters: usize,
        seed: u64,
        base: &Path,
        labels: Option<Labels<'_>>,
    ) -> Result<Self, Error> {
        config.check(clients)?;
        let rate_bps =
            config.bits_per_parameter * model_parameters as f64 / config.transmission_seconds();
        let perfect = config.kind == Kind::Perfect;
        let source: Box<dyn Source> = match config.kind {
            Kind::Radio => Box::new(Radio::new(config, clients, rate_bps, seed)?),
            Kind::Perfect => Box::new(Fixed { clients, failure: PerClient::All(0.0) }),
            Kind::Fixed => {
                let missing = || refused("failure", "is missing");
                let failure = config.failure.clone().ok_or_else(missing)?;
                Box::new(Fixed { clients, failure })
            }
            Kind::Trace => {
                let missing = || refused("file", "is missing");
                let file = base.join(config.file.as_ref().ok_or_else(missing)?);
                Box::new(Trace::read(&file, clients, config.after_trace)?)
            }
        };
        Ok(Self {
            source,
            device: if perfect { PerClient::All(0.0) } else { config.device_failure.clone() },
            lateness: if perfect { None } else { Lateness::new(config) },
            availability: Availability::new(&config.availability, clients, seed, labels)?,
            groups: config.groups_of(clients)?,
            rate_bps,
        })
    }

    /// A network with a source of failures of your own, and nothing else that fails.
    ///
    /// ```
    /// use fedcote_radio::{Network, Source};
    ///
    /// /// Everybody fails every other round.
    /// #[derive(Debug)]
    /// struct Blinking;
    ///
    /// impl Source for Blinking {
    ///     fn clients(&self) -> usize {
    ///         3
    ///     }
    ///     fn failure(&self, round: u32, _client: usize) -> f64 {
    ///         f64::from(round % 2)
    ///     }
    ///     fn moves(&self) -> bool {
    ///         true
    ///     }
    /// }
    ///
    /// let network = Network::from_source(Box::new(Blinking), 1e6);
    /// let mut failures = Vec::new();
    /// network.failures(7, &mut failures);
    /// assert_eq!(failures, [1.0, 1.0, 1.0]);
    /// ```
    pub fn from_source(source: Box<dyn Source>, rate_bps: f64) -> Self {
        Self {
            source,
            device: PerClient::All(0.0),
            lateness: None,
            availability: None,
            groups: None,
            rate_bps,
        }
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.source.clients()
    }

    /// The rate at which a model must be uploaded: its bits over the time of a transmission.
    pub fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    /// Whether failure probabilities differ from round to round.
    pub fn moves(&self) -> bool {
        self.source.moves() || self.availability.as_ref().is_some_and(Availability::moves)
    }

    /// Adds what fails beside the link: independent causes a and b fail with a + b − ab.
    fn with_other_causes(&self, round: u32, client: usize, link: f64) -> f64 {
        let either = |a: f64, b: f64| a + b * (1.0 - a);
        let late = self.lateness.as_ref().map_or(0.0, |lateness| lateness.failure(client));
        let away = self.availability.as_ref().map_or(0.0, |found| 1.0 - found.known(round, client));
        let alone = either(either(either(link, self.device.get(client)), late), away);
        self.groups.as_ref().map_or(alone, |groups| either(alone, groups.down(client)))
    }

    /// Who fails together, if anybody does.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Whether what a client shares with others is up in the attempt that this key names: the same for all of them.
    fn is_up(&self, client: usize, key: Key) -> bool {
        let Some(groups) = &self.groups else { return true };
        let Some(group) = groups.of(client) else { return true };
        let mut stream = key.purpose(Purpose::Group).client(group as u64).copy(0).stream();
        stream.random::<f64>() >= groups.failure()[group]
    }

    /// The probability of every client's upload to fail in a round: link, device, lateness, group, and being away, as far
    /// as `availability.known` tells.
    pub fn failures(&self, round: u32, out: &mut Vec<f64>) {
        out.clear();
        let failure =
            |client| self.with_other_causes(round, client, self.source.failure(round, client));
        in_parallel(self.clients(), out, failure);
    }

    /// The process by which clients come and go, if they do.
    pub fn availability(&self) -> Option<&Availability> {
        self.availability.as_ref()
    }

    /// Whether a client is there in a round: its availability says so, and it does not fail for certain.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn available(&self, round: u32, client: usize) -> bool {
        self.availability.as_ref().is_none_or(|found| found.available(round, client))
            && self.source.failure(round, client) < 1.0
            && self.device.get(client) < 1.0
    }

    /// Whether no upload can arrive in rounds up to this one, whoever comes and goes.
    pub fn is_hopeless(&self, rounds: u32) -> bool {
        let hope = |client: usize| {
            self.availability.as_ref().is_none_or(|found| found.ever(client, rounds))
                && (self.source.moves() || self.source.failure(1, client) < 1.0)
                && self.device.get(client) < 1.0
        };
        !(0..self.clients()).any(hope)
    }

    /// Whether one attempt to upload arrives. The key names the attempt: the same key, the same answer.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn arrives(&self, round: u32, client: usize, key: Key) -> bool {
        self.upload(round, client, key).arrived
    }

    /// One attempt to upload: whether it arrives, and what shows of it on the way.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn upload(&self, round: u32, client: usize, key: Key) -> Upload {
        if self.availability.as_ref().is_some_and(|found| !found.available(round, client)) {
            // Who is away sends nothing.
            return Upload { transmissions: 0, ..Upload::known_by_arrival(false) };
        }
        let mut stream = key.stream();
        let upload = self.source.upload(round, client, &mut stream);
        let sound = upload.arrived && stream.random::<f64>() >= self.device.get(client);
        let computed = self.lateness.as_ref().map(|lateness| lateness.compute(client, &mut stream));
        let arrived =
            sound && computed.is_none_or(|(_, in_time)| in_time) && self.is_up(client, key);
        Upload { arrived, compute_seconds: computed.map(|(seconds, _)| seconds), ..upload }
    }

    /// The mean of a client's compute time, in a network where that is random.
    pub fn mean_compute_seconds(&self, client: usize) -> Option<f64> {
        self.lateness.as_ref().map(|lateness| lateness.mean_seconds(client))
    }

    /// The power that a client transmits with, in a network of radio links.
    pub fn transmit_watts(&self, client: usize) -> Option<f64> {
        self.source.transmit_watts(client)
    }

    /// Where everybody is in a round; empty for a network without places.
    pub fn positions(&self, round: u32) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        if let Some(layout) = self.source.layout() {
            in_parallel(self.clients(), &mut places, |client| {
                let place = layout.place(round, client);
                Place { failure: self.with_other_causes(round, client, place.failure), ..place }
            });
        }
        places
    }

    /// Cell, stations and routes; none for a network without places.
    pub fn layout(&self) -> Option<&dyn Layout> {
        self.source.layout()
    }
}

/// Fills `out` with the value of every client. Values are independent, hence the same on any threads;
/// few clients are not worth waking them.
fn in_parallel<T: Send>(
    clients: usize,
    out: &mut Vec<T>,
    value: impl Fn(usize) -> T + Send + Sync,
) {
    const CHUNK: usize = 4096;
    if clients <= CHUNK {
        out.extend((0..clients).map(value));
    } else {
        (0..clients).into_par_iter().with_min_len(CHUNK).map(value).collect_into_vec(out);
    }
}
