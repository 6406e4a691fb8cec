//! Scenario files: everything that a comparison depends on, in one TOML document.
//!
//! A scenario is read from a file or a preset, checked once, and can be printed back in full
//! ([`Scenario::to_toml`]); what is printed reads back to the same scenario.

mod check;
mod clock;
mod own;
mod presets;
mod server;
mod source;
mod sweep;

use std::path::{Path, PathBuf};

use fedcote::estimate::EstimatorKind;
use fedcote_learn::Augmentation;
use fedcote_learn::data::{DataSpec, SetKind, Shape};
use fedcote_learn::models::ModelSpec;
use fedcote_radio::{Kind, NetworkConfig};
use fedcote_support::suggestion;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub(crate) use clock::default_seconds_per_sample;
pub use clock::{ClockConfig, Device};
pub use own::OwnTask;
pub(crate) use own::is_place;
pub use presets::{PRESETS, Preset};
pub use server::{Knowledge, Observation, Pilots, Server};
use source::Source;
pub use source::plain;
pub(crate) use source::reason;
pub use sweep::{Axis, Point, Sweep, assignment as sweep_assignment, plain as plain_value};

use crate::Error;
use crate::hostile::Hostile;
use crate::scheme::{self, Schemes};

/// A checked description of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Rounds, clients, seeds, schemes: the keys at the top of the file.
    pub general: General,
    /// The data set and how it is divided.
    pub data: DataSpec,
    /// The model.
    pub model: ModelSpec,
    /// What is learnt instead, in the user's own code.
    pub task: OwnTask,
    /// Local training.
    pub training: Training,
    /// Who fails when.
    pub network: NetworkConfig,
    /// What the server observes of the network, and how uploads are sent.
    pub observation: Observation,
    /// What a round costs.
    pub clock: ClockConfig,
    /// What the server does.
    pub server: Server,
    /// Clients that upload something else than what they learnt.
    pub hostile: Hostile,
    /// Parameters of schemes, and mixtures under new names.
    pub schemes: Schemes,
    /// Keys with several values: a grid of such scenarios, of which this is the first.
    pub sweep: Sweep,
    /// The folder that relative paths in the file start from.
    pub base: PathBuf,
}

/// The keys at the top of a scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct General {
    /// Rounds of training, R.
    pub rounds: u32,
    /// Clients, N.
    pub clients: usize,
    /// Draws per round, K; or `"all"`: everyone who is there is asked, once.
    pub selected: Selected,
    /// One run for each scheme and seed.
    pub seeds: Vec<u64>,
    /// The schemes to compare, by name.
    pub schemes: Vec<String>,
    /// The scheme that the others are compared with, seed by seed; empty for the first.
    pub against: String,
    /// Evaluate every so many rounds, and after the last.
    pub evaluate_every: u32,
    /// Of these evaluations, work out the loss on all training samples every so many rounds, and after the last. It
    /// costs several times as much as the accuracy on the test set.
    pub train_loss_every: u32,
    /// Save a checkpoint at least every so many rounds.
    pub checkpoint_every: u32,
    /// The accuracy to which summaries count rounds, seconds, bytes and joules.
    pub target_accuracy: f64,
    /// Upload attempts in a round in which nothing arrives, before the round's clients are drawn again.
    pub max_attempts: u32,
    /// Compute with instructions that every processor has, so that different ones come to the same bits.
    pub portable: bool,
}

impl Default for General {
    fn default() -> Self {
        Self {
            rounds: 500,
            clients: 20,
            selected: Selected::Number(10),
            seeds: vec![1],
            schemes: ["fedavg", "fedcote", "ideal"].map(str::to_owned).to_vec(),
            against: String::new(),
            evaluate_every: 10,
            train_loss_every: 1,
            checkpoint_every: 50,
            target_accuracy: 0.9,
            max_attempts: 1000,
            portable: false,
        }
    }
}

/// Whom a round asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a whole number, or \"all\"")]
pub enum Selected {
    /// So many draws.
    Number(u64),
    /// Everyone who is there.
    Everyone(Everyone),
}

/// The word for everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Everyone {
    /// All that are available.
    All,
}

/// Local training: the `[training]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Local steps per round, E: a number, or a range from which each client gets its own.
    pub local_steps: LocalSteps,
    /// Samples in a mini-batch.
    pub batch: usize,
    /// Step size γ.
    pub rate: f64,
    /// Later step sizes, `[[round, rate], …]`: from that round on, that rate.
    pub rate_changes: Vec<(u32, f64)>,
    /// The step size falls by the square root: in round r it is divided by √(1 + (r − 1) · `rate_decay`).
    pub rate_decay: f64,
    /// Shift each training image by up to so many pixels in either direction; what comes in at the edge is zero after
    /// standardisation (a random crop of the image with that much padding).
    pub crop: usize,
    /// Mirror each training image, left to right, with probability one half.
    pub flip: bool,
    /// One shift and one decision to mirror for all images of a mini-batch, as some published code has it, instead of
    /// one for each image.
    pub augment_batch: bool,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            local_steps: LocalSteps::Same(5),
            batch: 128,
            rate: 0.05,
            rate_changes: Vec::new(),
            rate_decay: 0.0,
            crop: 0,
            flip: false,
            augment_batch: false,
        }
    }
}

impl Training {
    /// What is done to training images.
    pub fn augmentation(&self) -> Augmentation {
        Augmentation { crop: self.crop, flip: self.flip, together: self.augment_batch }
    }

    /// The step size of a round.
    pub fn rate_in(&self, round: u32) -> f32 {
        let changes = self.rate_changes.iter().take_while(|(from, _)| *from <= round);
        let rate = changes.last().map_or(self.rate, |(_, rate)| *rate);
        (rate / (1.0 + f64::from(round.saturating_sub(1)) * self.rate_decay).sqrt()) as f32
    }
}

/// How many local steps a client makes in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a whole number, or [low, high]")]
pub enum LocalSteps {
    /// The same for everyone.
    Same(u32),
    /// Each client has its own number between the two, ends included.
    Range([u32; 2]),
}

const SECTIONS: [&str; 10] = [
    "data", "model", "task", "training", "network", "clock", "server", "hostile", "scheme", "sweep",
];

impl Scenario {
    /// Loads a preset or a file, with overrides of the form `a.b=value`.
    pub fn load(name: &str, overrides: &[String]) -> Result<Self, Error> {
        if let Some((preset, walks)) = Preset::find(name) {
            let text = if walks { &preset.walking() } else { preset.text };
            return Self::parse(name, text, overrides, Path::new("."));
        }
        let path = Path::new(name);
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let base = path.parent().unwrap_or(Path::new("."));
                Self::parse(name, &text, overrides, base)
            }
            Err(error) => {
                let presets = Preset::names();
                let presets: Vec<&str> = presets.iter().map(String::as_str).collect();
                let reason = match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        format!("no such file or preset{}", suggestion(name, &presets))
                    }
                    std::io::ErrorKind::InvalidData => "not a text file".to_owned(),
                    _ => error.to_string(),
                };
                Err(Error::Scenario { place: name.to_owned(), reason })
            }
        }
    }

    /// Understands the text of a scenario; `name` stands in messages.
    pub fn parse(name: &str, text: &str, overrides: &[String], base: &Path) -> Result<Self, Error> {
        let mut source = Source::parse(name, text, overrides)?;
        let axes = Sweep::take(&mut source)?;
        if axes.is_empty() {
            return Self::read(&source, base);
        }
        let mut points = Vec::new();
        for (name, settings) in Sweep::combinations(&axes) {
            let scenario = Self::read(&source.at(&settings)?, base)?;
            points.push(Point { name, settings, scenario });
        }
        let first = points[0].scenario.clone();
        Ok(Self { sweep: Sweep { axes, points }, ..first })
    }

    /// Understands and checks what was read.
    fn read(source: &Source, base: &Path) -> Result<Self, Error> {
        let mut top = source.table.clone();
        top.remove("version");
        let mut section = |key: &str| match top.remove(key) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table),
            Some(_) => Err(source.wrong(key, &format!("must be a table: write [{key}]"))),
        };
        let task: OwnTask = source.read("task", section("task")?, &[])?;
        if task.is_given() {
            for key in ["data", "model"] {
                // A task on top of a file: what the file learns is beside the point.
                let beside = source.overrides("task") && !source.overrides(key);
                if !section(key)?.is_empty() && !beside {
                    let reason = "has no effect beside [task], whose function has all settings";
                    return Err(source.wrong(key, reason));
                }
            }
        }
        let data = source.read("data", section("data")?, &[])?;
        let model = source.read("model", section("model")?, &[])?;
        let training = source.read("training", section("training")?, &[])?;
        let mut network = section("network")?;
        // Another kind on top of a file: what the file says about its own kind is beside the point.
        if source.overrides("network.kind")
            && let Some(kind) =
                network.get("kind").and_then(|kind| Kind::deserialize(kind.clone()).ok())
        {
            network.retain(|key, _| kind.reads(key) || source.overrides(&format!("network.{key}")));
        }
        let mut observation = Table::new();
        for key in server::OBSERVATION {
            if let Some(value) = network.remove(key) {
                observation.insert(key.to_owned(), value);
            }
        }
        let network = source.read("network", network, &server::OBSERVATION)?;
        let observation = source.read("network", observation, &[])?;
        let clock = source.read("clock", section("clock")?, &[])?;
        let server = source.read("server", section("server")?, &[])?;
        let hostile = source.read("hostile", section("hostile")?, &[])?;
        let mut schemes = Schemes::default();
        for (name, value) in section("scheme")? {
            let path = format!("scheme.{name}");
            let Value::Table(table) = value else {
                return Err(source.wrong(&path, &format!("must be a table: write [{path}]")));
            };
            let keys = scheme::keys();
            if let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) {
                return Err(source.unknown_key(&path, key, &keys));
            }
            schemes.insert(name, table);
        }
        let fields = General::default();
        let known: Vec<String> = toml::Table::try_from(&fields)
            .expect("the defaults are plain values")
            .keys()
            .cloned()
            .collect();
        if let Some(unknown) = top.keys().find(|key| !known.contains(key)) {
            let known: Vec<&str> = known.iter().map(String::as_str).chain(SECTIONS).collect();
            return Err(source.unknown_key("", unknown, &known));
        }
        let general = source.read("", top, &[])?;
        let base = base.to_owned();
        let scenario = Self {
            general,
            data,
            model,
            task,
            training,
            network,
            observation,
            clock,
            server,
            hostile,
            schemes,
            sweep: Sweep::default(),
            base,
        };
        scenario.check().map_err(|error| source.wrong(&error.key, &error.reason))?;
        Ok(scenario)
    }

    /// How failure probabilities are learnt; an estimator from retransmissions knows how many the network makes.
    pub(crate) fn estimator(&self) -> EstimatorKind {
        let mut kind = self.observation.estimator;
        if let EstimatorKind::Retransmissions { retransmissions, .. } = &mut kind {
            *retransmissions = self.network.retransmissions;
        }
        kind
    }

    /// Shape and classes of the samples, where they are known without reading any, so that a network can be looked at
    /// before the data is there.
    fn samples(&self) -> Option<(Shape, usize)> {
        match self.data.set {
            SetKind::Cifar10 => Some((Shape { height: 32, width: 32, channels: 3 }, 10)),
            SetKind::Mnist => Some((Shape { height: 28, width: 28, channels: 1 }, 10)),
            SetKind::Synthetic => Some(self.data.synthetic_shape()),
            SetKind::Idx => None,
        }
    }

    /// The number of parameters of the model, which decides the rate of an upload.
    pub fn model_parameters(&self) -> Result<usize, Error> {
        if self.task.is_given() {
            let reason = "how large its model is shows only when it runs";
            return Err(Error::Scenario { place: "task".to_owned(), reason: reason.to_owned() });
        }
        let (shape, classes) = match self.samples() {
            Some(known) => known,
            None => {
                let data = fedcote_learn::data::load(&self.data, &self.base)?;
                (data.train.shape, data.train.classes)
            }
        };
        Ok(fedcote_learn::models::build(&self.model, shape, classes)?.len())
    }

    /// The scenario with the paths in it made absolute: it means the same wherever it is written to.
    pub fn rooted(mut self) -> Result<Self, Error> {
        if self.task.is_given() {
            self.task.folder.get_or_insert_with(|| ".".into());
        }
        let paths = [&mut self.data.path, &mut self.network.file, &mut self.task.folder];
        let is_path = |axis: &&mut Axis| PATHS.contains(&axis.key.as_str());
        for value in self.sweep.axes.iter_mut().filter(is_path).flat_map(|axis| &mut axis.values) {
            if let Value::String(path) = value {
                let from_here = self.base.join(&*path);
                let absolute = std::path::absolute(&from_here).map_err(Error::io(&from_here))?;
                *path = absolute.to_string_lossy().into_owned();
            }
        }
        for path in paths.into_iter().flatten() {
            let from_here = self.base.join(&*path);
            *path = std::path::absolute(&from_here).map_err(Error::io(&from_here))?;
        }
        Ok(self)
    }

    /// The whole scenario as TOML, defaults included.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_table()).expect("a scenario is plain TOML")
    }

    /// The whole scenario as a TOML table.
    pub fn to_table(&self) -> Table {
        let table = |value: Result<Table, toml::ser::Error>| value.expect("plain values");
        let mut top = table(Table::try_from(&self.general));
        if self.task.is_given() {
            top.insert("task".into(), table(Table::try_from(&self.task)).into());
        } else {
            top.insert("data".into(), table(Table::try_from(&self.data)).into());
            top.insert("model".into(), table(Table::try_from(&self.model)).into());
        }
        top.insert("training".into(), table(Table::try_from(&self.training)).into());
        let mut network = table(Table::try_from(&self.network));
        network.extend(table(Table::try_from(&self.observation)));
        top.insert("network".into(), network.into());
        top.insert("clock".into(), table(Table::try_from(&self.clock)).into());
        top.insert("server".into(), table(Table::try_from(self.server)).into());
        top.insert("hostile".into(), table(Table::try_from(&self.hostile)).into());
        let mut schemes = Table::new();
        for (name, table) in self.schemes.iter() {
            schemes.insert(name.clone(), table.clone().into());
        }
        if !schemes.is_empty() {
            top.insert("scheme".into(), schemes.into());
        }
        if !self.sweep.is_empty() {
            top.insert("sweep".into(), self.sweep.to_table().into());
        }
        top
    }
}

/// Keys with a path, given from the scenario's folder or from the root.
pub(crate) const PATHS: [&str; 3] = ["data.path", "network.file", "task.folder"];

/// The table where a key that stands in the wrong one belongs, if any has it.
fn elsewhere(key: &str) -> Option<String> {
    if server::SERVER.contains(&key) {
        return Some(format!("server.{key}"));
    }
    let all = Scenario::parse("", "", &[], Path::new(".")).ok()?.to_table();
    let inside = |(_, value): &(&String, &Value)| value.get(key).is_some();
    match all.get(key) {
        Some(value) if !value.is_table() => Some(key.to_owned()),
        _ => all.iter().find(inside).map(|(table, _)| format!("{table}.{key}")),
    }
}

#[cfg(test)]
mod tests;
