//! What a round costs: seconds on a simulated clock, bytes, and the energy of transmitters.
//!
//! A client that is drawn receives the model, and whatever else its scheme sends ([`Traffic`]), at the rate of its
//! downlink; computes; and uploads at the rate of the network, bits over the time of a transmission. The uploads of its
//! copies follow one another. A transmission takes as long whether it gets through or not, so a lost upload is
//! waited for until it would have ended. The server goes on when the last of those that it drew is done, or, where
//! clients may be late, when their time is up. When nothing arrived the uploads are repeated, without the download and the training.
//! Whatever is sent counts, lost or not.

use std::collections::BTreeSet;

use fedcote::random::{Key, Purpose};
use fedcote_radio::{Network, Upload};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::scenario::{ClockConfig, Scenario, default_seconds_per_sample};

/// Bits of a number that is sent beside a model.
const NUMBER_BITS: f64 = 32.0;

/// A forward pass takes a third of a training step.
const FORWARD: f64 = 1.0 / 3.0;

/// What a part of a scheme sends to and from a drawn client beside the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Vectors of model size to the client.
    pub vectors_down: u32,
    /// Vectors of model size from the client, with every upload.
    pub vectors_up: u32,
    /// Single numbers to the client.
    pub numbers_down: u32,
    /// Single numbers from the client, with every upload.
    pub numbers_up: u32,
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            vectors_down: self.vectors_down + other.vectors_down,
            vectors_up: self.vectors_up + other.vectors_up,
            numbers_down: self.numbers_down + other.numbers_down,
            numbers_up: self.numbers_up + other.numbers_up,
        }
    }
}

/// Clients that were asked for a loss on their own data before the draw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Who was asked.
    pub clients: &'a [u32],
    /// Whether it is the loss of the global model, which then has to be sent.
    pub of_global: bool,
}

/// What something cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// On the simulated clock.
    pub seconds: f64,
    /// From clients.
    pub bytes_up: f64,
    /// To clients.
    pub bytes_down: f64,
    /// Of the clients' transmitters; nothing where they have none.
    pub joules: f64,
}

/// How long things take.
#[derive(Debug)]
pub struct Clock {
    config: ClockConfig,
    seed: u64,
    parameters: usize,
    batch: usize,
    /// Samples of each client.
    samples: Vec<f64>,
    model_bits: f64,
    uplink_bps: f64,
    /// The time for computing and uploading where clients may be late.
    limit: Option<f64>,
}

impl Clock {
    /// The clock of a scenario with a model of so many parameters and clients with so many samples.
    pub(crate) fn new(
        scenario: &Scenario,
        parameters: usize,
        samples: Vec<f64>,
        seed: u64,
    ) -> Self {
        let network = &scenario.network;
        let model_bits = network.bits_per_parameter * parameters as f64;
        Self {
            config: scenario.clock.clone(),
            seed,
            parameters,
            batch: scenario.training.batch,
            samples,
            model_bits,
            uplink_bps: model_bits / network.transmission_seconds(),
            limit: network.limit_seconds(),
        }
    }

    /// The time that a client computes for one sample, and its downlink in bit/s.
    fn device(&self, client: u32) -> (f64, f64) {
        let config = &self.config;
        let mut stream = Key::new(self.seed, Purpose::Device).client(client.into()).stream();
        let mut downlink = config.downlink_mbit_per_s.get(client as usize);
        let mut seconds = match &config.seconds_per_sample {
            Some(times) => times.get(client as usize),
            None => default_seconds_per_sample(self.parameters),
        };
        if let Some(last) = config.devices.last() {
            let total: f64 = config.devices.iter().map(|device| device.share).sum();
            let mut lot = stream.random::<f64>() * total;
            let reached = |device: &&crate::scenario::Device| {
                lot -= device.share;
                lot < 0.0
            };
            let device = config.devices.iter().find(reached).unwrap_or(last);
            seconds = device.seconds_per_sample;
            downlink = device.downlink_mbit_per_s.unwrap_or(downlink);
        }
        if config.spread > 0.0 {
            let unit: f64 = StandardNormal.sample(&mut stream);
            seconds *= (config.spread * unit).exp();
        }
        (seconds, 1e6 * downlink)
    }

    fn bits(&self, vectors: u32, numbers: u32) -> f64 {
        f64::from(vectors) * self.model_bits + f64::from(numbers) * NUMBER_BITS
    }

    /// How long a client trains for so many local steps, where the network does not say.
    fn training_seconds(&self, client: u32, steps: u32) -> f64 {
        let batch = (self.batch as f64).min(self.samples[client as usize]);
        f64::from(steps) * batch * self.device(client).0
    }

    /// How long a client takes on average to receive the model, train for so many local steps, and upload once.
    pub(crate) fn usual_seconds(&self, network: &Network, client: u32, steps: u32) -> f64 {
        let mean = network.mean_compute_seconds(client as usize);
        let computed = mean.unwrap_or_else(|| self.training_seconds(client, steps));
        let air = self.model_bits / self.uplink_bps;
        let limit = self.limit.unwrap_or(f64::INFINITY);
        self.download_seconds(client, 1, 0) + (computed + air).min(limit)
    }

    /// How long a client takes to receive so many vectors and numbers.
    fn download_seconds(&self, client: u32, vectors: u32, numbers: u32) -> f64 {
        self.bits(vectors, numbers) / self.device(client).1
    }
}

/// The costs of a round as it goes on.
pub(crate) struct Meter<'a> {
    clock: &'a Clock,
    network: &'a Network,
    cost: Cost,
    /// Who has the model of this round already.
    informed: BTreeSet<u32>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(clock: &'a Clock, network: &'a Network) -> Self {
        Self { clock, network, cost: Cost::default(), informed: BTreeSet::new() }
    }

    /// The costs so far.
    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }

    fn send(&mut self, client: u32, bits: f64, transmissions: u32) -> f64 {
        let bits = bits * f64::from(transmissions);
        let air = bits / self.clock.uplink_bps;
        self.cost.bytes_up += bits / 8.0;
        self.cost.joules += self.network.transmit_watts(client as usize).unwrap_or(0.0) * air;
        air
    }

    /// Vectors that a client receives: the model only once a round.
    fn receive(&mut self, client: u32, vectors: u32, numbers: u32) -> f64 {
        let vectors = vectors + u32::from(self.informed.insert(client));
        self.cost.bytes_down += self.clock.bits(vectors, numbers) / 8.0;
        self.clock.download_seconds(client, vectors, numbers)
    }

    /// Every client tells the server so many numbers before the first round.
    pub(crate) fn register(&mut self, clients: usize, numbers: u32) {
        let mut slowest: f64 = 0.0;
        for client in 0..clients as u32 {
            slowest = slowest.max(self.send(client, self.clock.bits(0, numbers), 1));
        }
        self.cost.seconds += slowest;
    }

    /// These clients answer with a loss on their data: of the model, which they are sent, or of one that they have.
    pub(crate) fn ask_losses(&mut self, asked: Asked) {
        let mut slowest: f64 = 0.0;
        for &client in asked.clients {
            let received = if asked.of_global { self.receive(client, 0, 0) } else { 0.0 };
            let samples = self.clock.samples[client as usize];
            let computed = FORWARD * samples * self.clock.device(client).0;
            let sent = self.send(client, self.clock.bits(0, 1), 1);
            slowest = slowest.max(received + computed + sent);
        }
        self.cost.seconds += slowest;
    }

    /// The drawn clients that are not away receive the model and what goes with it; how long each takes for that.
    pub(crate) fn broadcast(
        &mut self,
        drawn: &[(u32, Traffic)],
        away: impl Fn(u32) -> bool,
    ) -> Vec<f64> {
        let received = |&(client, traffic): &(u32, Traffic)| match away(client) {
            true => 0.0,
            false => self.receive(client, traffic.vectors_down, traffic.numbers_down),
        };
        drawn.iter().map(received).collect()
    }

    /// One attempt of the drawn clients at their uploads. `received` is how long they took to receive the model, in the
    /// first attempt after it was sent; in later ones they have trained already.
    pub(crate) fn attempt(
        &mut self,
        drawn: &[(u32, Traffic)],
        steps: impl Fn(u32) -> u32,
        uploads: &[Vec<Upload>],
        received: Option<&[f64]>,
    ) {
        let (mut slowest, mut somebody): (f64, bool) = (0.0, false);
        for (place, (&(client, traffic), uploads)) in drawn.iter().zip(uploads).enumerate() {
            // Who is away sends nothing, and is not waited for.
            if uploads.iter().all(|upload| upload.transmissions == 0) {
                continue;
            }
            somebody = true;
            let bits = self.clock.bits(1 + traffic.vectors_up, traffic.numbers_up);
            let air: f64 =
                uploads.iter().map(|upload| self.send(client, bits, upload.transmissions)).sum();
            let random =
                uploads.iter().filter_map(|upload| upload.compute_seconds).reduce(f64::max);
            let mean = || self.network.mean_compute_seconds(client as usize);
            let computed = match (random.or_else(mean), received) {
                (Some(seconds), _) => seconds,
                (None, Some(_)) => self.clock.training_seconds(client, steps(client)),
                (None, None) => 0.0,
            };
            let took = (computed + air).min(self.clock.limit.unwrap_or(f64::INFINITY));
            slowest = slowest.max(received.map_or(0.0, |received| received[place]) + took);
        }
        self.cost.seconds += slowest;
        if !somebody {
            self.idle();
        }
    }

    /// One client receives the model, trains and uploads, without a round around it: how long that takes.
    pub(crate) fn flight(&mut self, client: u32, steps: u32, upload: &Upload) -> f64 {
        self.cost.bytes_down += self.clock.model_bits / 8.0;
        let received = self.clock.download_seconds(client, 1, 0);
        let air = self.send(client, self.clock.model_bits, upload.transmissions);
        let random = upload.compute_seconds;
        let random = random.or_else(|| self.network.mean_compute_seconds(client as usize));
        let computed = random.unwrap_or_else(|| self.clock.training_seconds(client, steps));
        received + (computed + air).min(self.clock.limit.unwrap_or(f64::INFINITY))
    }

    /// So much time has passed.
    pub(crate) fn pass(&mut self, seconds: f64) {
        self.cost.seconds += seconds;
    }

    /// A round in which nobody can be reached: its deadline passes.
    pub(crate) fn idle(&mut self) {
        self.cost.seconds += self.idle_seconds();
    }

    /// How long such a round lasts.
    pub(crate) fn idle_seconds(&self) -> f64 {
        self.clock.model_bits / self.clock.uplink_bps
    }
}

/// Every client's own number of samples.
pub(crate) fn samples(counts: &[f64], classes: usize) -> Vec<f64> {
    counts.chunks(classes).map(|row| row.iter().sum()).collect()
}
