//! FedBuff (Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022), on the simulated clock.
//!
//! M clients are always under way. Who starts gets the model of that moment, w_i; who ends, after download, training and upload, and
//! gets through, adds s(τ) (y_i − w_i) to a buffer, τ being the steps that the server has made since and s(τ) = 1/√(1 + τ). With B updates the server steps, w ← w + (η/B) Σ,
//! and empties the buffer: a round. Whoever is done makes place for another client, uniform among those that are idle and there. An upload that is lost frees its
//! place when it would have ended. At equal times the server steps before the next client starts, and clients come in order. In a round with
//! nobody there, those under way end; if they do not fill the buffer, it keeps what it has, and the round lasts at least its deadline.

use std::collections::BTreeMap;

use fedcote::random::Purpose;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::part::{Count, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::scheme::settings::{choices, parameters};

choices! {
    /// What an update that is τ server steps old counts.
    #[derive(Copy, Eq)]
    pub enum StalenessKind in "staleness" {
        /// 1/√(1 + τ).
        "root" => Root,
        /// As much as a new one.
        "none" => None,
    }
}

parameters! {
    /// Parameters of `selection = "buffered"`.
    pub struct BufferedSettings {
        /// Updates B in the buffer when the server steps; by default half of K, at least 1.
        buffer: Option<u64> = None, in 1..;
        /// What an update that is some server steps old counts.
        staleness: StalenessKind = StalenessKind::Root;
    }
}

/// A client under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Flight {
    pub(crate) client: u32,
    /// How many started before it.
    pub(crate) number: u32,
    /// The server's step that it starts from.
    pub(crate) version: u32,
    /// When it ends.
    end: f64,
    /// Whether its upload gets through.
    pub(crate) arrives: bool,
}

/// Clients that are always under way.
pub struct Buffered {
    settings: BufferedSettings,
    draws: u64,
    flights: Vec<Flight>,
    /// Those whose updates are in the buffer.
    pub(crate) ended: Vec<Flight>,
    /// Models that somebody started from, by the server's step.
    models: BTreeMap<u32, Vec<f32>>,
    parameters: usize,
    /// Steps that the server made.
    version: u32,
    started: u32,
    time: f64,
}

impl Buffered {
    /// At the beginning, for K draws and models of so many parameters.
    pub fn new(settings: &BufferedSettings, draws: u64, parameters: usize) -> Self {
        Self {
            settings: settings.clone(),
            draws,
            flights: Vec::new(),
            ended: Vec::new(),
            models: BTreeMap::new(),
            parameters,
            version: 0,
            started: 0,
            time: 0.0,
        }
    }

    /// Updates in the buffer when the server steps.
    pub(crate) fn size(&self) -> usize {
        self.settings.buffer.unwrap_or((self.draws / 2).max(1)) as usize
    }

    /// The client that starts next, with its number; none if all places are taken or nobody is idle and there.
    pub(crate) fn next(&self, context: &RoundContext) -> Option<(u32, u32)> {
        if self.flights.len() as u64 >= self.draws {
            return None;
        }
        let busy = |client: u32| self.flights.iter().any(|flight| flight.client == client);
        let idle: Vec<u32> = (0..context.federation.len() as u32)
            .filter(|&client| context.available[client as usize] && !busy(client))
            .collect();
        let key = context.world.key(Purpose::Selection).round(context.round).attempt(self.started);
        let chosen = (!idle.is_empty()).then(|| idle[key.stream().random_range(0..idle.len())]);
        chosen.map(|client| (client, self.started))
    }

    /// It has started with this model, takes so long, and gets through or not.
    pub(crate) fn start(&mut self, client: u32, seconds: f64, arrives: bool, global: &[f32]) {
        self.models.entry(self.version).or_insert_with(|| global.to_vec());
        let end = self.time + seconds;
        let (number, version) = (self.started, self.version);
        self.flights.push(Flight { client, number, version, end, arrives });
        self.started += 1;
    }

    /// The client that ends next; the clock moves there.
    pub(crate) fn end(&mut self) -> Option<Flight> {
        let order = |a: &Flight, b: &Flight| a.end.total_cmp(&b.end).then(a.client.cmp(&b.client));
        let at =
            (0..self.flights.len()).min_by(|&a, &b| order(&self.flights[a], &self.flights[b]))?;
        let flight = self.flights.remove(at);
        self.time = self.time.max(flight.end);
        Some(flight)
    }

    /// The time on its clock.
    pub(crate) fn time(&self) -> f64 {
        self.time
    }

    /// Lets time pass up to then, if it is not later already.
    pub(crate) fn wait_until(&mut self, time: f64) {
        self.time = self.time.max(time);
    }

    /// The model that somebody started from.
    pub(crate) fn model(&self, version: u32) -> &[f32] {
        &self.models[&version]
    }

    /// What an update from this step counts.
    pub(crate) fn weight(&self, version: u32) -> f32 {
        match self.settings.staleness {
            StalenessKind::Root => 1.0 / (1.0 + (self.version - version) as f32).sqrt(),
            StalenessKind::None => 1.0,
        }
    }

    /// The server steps: models that nobody under way started from are forgotten.
    pub(crate) fn step(&mut self) {
        self.version += 1;
        let flights = &self.flights;
        self.models.retain(|version, _| flights.iter().any(|flight| flight.version == *version));
    }
}

impl Selection for Buffered {
    fn draw(&mut self, _context: &RoundContext, _redraw: u32) -> Result<Vec<Count>, Error> {
        Ok(Vec::new())
    }

    fn buffered(&mut self) -> Option<&mut Buffered> {
        Some(self)
    }
}

/// Everything but the models.
#[derive(Serialize, Deserialize)]
struct Rest {
    flights: Vec<Flight>,
    #[serde(default)]
    ended: Vec<Flight>,
    versions: Vec<u32>,
    version: u32,
    started: u32,
    time: f64,
}

impl State for Buffered {
    fn memory(&self) -> usize {
        self.models.values().map(|model| size_of_val(model.as_slice())).sum()
    }

    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        let rest = Rest {
            flights: self.flights.clone(),
            ended: self.ended.clone(),
            versions: self.models.keys().copied().collect(),
            version: self.version,
            started: self.started,
            time: self.time,
        };
        saved.put_value("buffered", &rest);
        for (version, model) in &self.models {
            saved.put(&format!("buffered.{version}"), model);
        }
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        let Rest { flights, ended, versions, version, started, time } =
            saved.get_value("buffered")?;
        let mut model = |version: u32| {
            Ok((version, saved.take(&format!("buffered.{version}"), self.parameters)?))
        };
        self.models = versions.into_iter().map(&mut model).collect::<Result<_, String>>()?;
        if flights.iter().chain(&ended).any(|flight| !self.models.contains_key(&flight.version)) {
            return Err("`buffered` names a model that is missing".to_owned());
        }
        (self.flights, self.version, self.started) = (flights, version, started);
        (self.ended, self.time) = (ended, time);
        Ok(())
    }
}
