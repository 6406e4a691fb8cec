//! Reads run folders: `OUT/<scheme>/<seed>/metrics.jsonl` and what lies beside it.
//!
//! Optional fields may be missing; what is there must be right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fedcote_sim::{RoundReport, Scenario};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;
use fedcote_sim::summary::{RunSummary, SchemeSummary, Spread, tail_rounds};

/// A run folder: one scenario, some schemes, some seeds.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where it is.
    pub path: PathBuf,
    /// The folder's own name.
    pub name: String,
    /// The schemes, in the order of the summary, others after them by name.
    pub schemes: Vec<Scheme>,
    /// The text of `scenario.toml`.
    pub scenario: Option<String>,
    /// The number of rounds that the scenario asks for, or the most that any run has.
    pub rounds: u32,
    /// The command that made the run.
    pub command: Option<String>,
    /// The version that made the run.
    pub version: Option<String>,
}

/// All runs of one scheme.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// Its name.
    pub name: String,
    /// One run a seed, ascending.
    pub seeds: Vec<Seed>,
    /// What the summary says of it, or, without a summary, what the metrics say.
    pub summary: SchemeSummary,
}

/// One run of one scheme.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The seed, as the folder is named.
    pub name: String,
    /// What happened, round by round, ascending.
    pub rounds: Vec<RoundReport>,
    /// The round in which the model ceased to be finite.
    pub diverged_at: Option<u32>,
    /// The clients as they were before the first round.
    pub clients: Option<Clients>,
}

/// `clients.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Clients {
    /// Number of labels.
    pub classes: usize,
    /// The share of each label in all data.
    pub global_labels: Vec<f64>,
    /// The clients, in order.
    pub clients: Vec<Client>,
}

/// A client before the first round.
#[derive(Clone, Debug, Deserialize)]
pub struct Client {
    /// Its name.
    pub id: String,
    /// Its share of all samples.
    pub weight: f64,
    /// Its probability of failure.
    pub failure: f64,
    /// The share of each label in its data.
    #[serde(default)]
    pub labels: Vec<f64>,
    /// Its probability of being drawn; schemes without such a probability have none.
    pub selection: Option<f64>,
    /// Its expected share in the aggregate.
    pub appearance: Option<f64>,
    /// Where it stands, in metres.
    pub x: Option<f64>,
    /// Where it stands, in metres.
    pub y: Option<f64>,
    /// Its radio standard.
    pub standard: Option<String>,
    /// Whether it is indoors.
    pub indoor: Option<bool>,
}

#[derive(Deserialize)]
struct SummaryFile {
    #[serde(default)]
    schemes: Vec<SchemeSummary>,
    rounds: Option<u32>,
    command: Option<String>,
    version: Option<String>,
}

impl Run {
    /// Reads a run folder.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let missing = |reason: &str| Error::Missing { path: path.into(), reason: reason.into() };
        if !path.is_dir() {
            return Err(missing(if path.exists() { "not a folder" } else { "no such folder" }));
        }
        let file: Option<SummaryFile> = optional_json(&path.join("summary.json"))?;
        let file = file.unwrap_or(SummaryFile {
            schemes: Vec::new(),
            rounds: None,
            command: None,
            version: None,
        });
        let mut found: BTreeMap<String, Vec<Seed>> = BTreeMap::new();
        for (name, folder) in folders(path)? {
            let mut seeds = Vec::new();
            for (seed, folder) in folders(&folder)? {
                if folder.join("metrics.jsonl").is_file() {
                    seeds.push(Seed::read(&seed, &folder)?);
                }
            }
            seeds.sort_by_key(|seed| (seed.name.parse().unwrap_or(u64::MAX), seed.name.clone()));
            if !seeds.is_empty() {
                found.insert(name, seeds);
            }
        }
        if found.is_empty() {
            return Err(missing(
                "no runs in this folder (expected SCHEME/SEED/metrics.jsonl; `fedcote run --out DIR` makes one)",
            ));
        }
        let rounds = file.rounds.or_else(|| last_round(&found)).unwrap_or(0);
        let scenario = match fs::read_to_string(path.join("scenario.toml")) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(unreadable(&path.join("scenario.toml"), source)),
        };
        let described = scenario.as_deref().and_then(|text| {
            Scenario::parse("scenario.toml", text, &[], path).map(|scenario| scenario.schemes).ok()
        });
        let described = described.unwrap_or_default();
        let reference = |name: &str| described.resolve(name).is_ok_and(|s| s.is_reference());
        let mut schemes = Vec::new();
        for mut summary in file.schemes {
            if let Some(seeds) = found.remove(&summary.name) {
                summary.reference |= reference(&summary.name);
                schemes.push(Scheme { name: summary.name.clone(), seeds, summary });
            }
        }
        schemes.extend(found.into_iter().map(|(name, seeds)| {
            let runs: Vec<_> = seeds.iter().map(|seed| seed.summary(rounds)).collect();
            let summary = SchemeSummary::of(&name, reference(&name), &runs);
            Scheme { name, seeds, summary }
        }));
        let absolute = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name =
            absolute.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
        let (command, version) = (file.command, file.version);
        Ok(Self { path: path.to_owned(), name, schemes, scenario, rounds, command, version })
    }

    /// The first and last round of the tail: the last min(100, ⌈rounds/5⌉) rounds.
    pub fn tail(&self) -> (u32, u32) {
        (self.rounds.saturating_sub(tail_rounds(self.rounds)) + 1, self.rounds)
    }
}

fn last_round(found: &BTreeMap<String, Vec<Seed>>) -> Option<u32> {
    found.values().flatten().filter_map(|seed| seed.rounds.last()).map(|round| round.round).max()
}

impl Seed {
    fn read(name: &str, folder: &Path) -> Result<Self, Error> {
        let path = folder.join("metrics.jsonl");
        let text = fs::read_to_string(&path).map_err(|source| unreadable(&path, source))?;
        let (rounds, diverged_at) = read_metrics(&path, &text)?;
        let clients: Option<Clients> = optional_json(&folder.join("clients.json"))?;
        if let Some(clients) = &clients {
            clients.check(&folder.join("clients.json"))?;
        }
        Ok(Self { name: name.to_owned(), rounds, diverged_at, clients })
    }
}

fn read_metrics(path: &Path, text: &str) -> Result<(Vec<RoundReport>, Option<u32>), Error> {
    #[derive(Deserialize)]
    struct Diverged {
        diverged_at: u32,
    }
    let (mut rounds, mut diverged_at) = (Vec::<RoundReport>::new(), None);
    let whole = text.ends_with('\n');
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let damaged =
            |reason: String| Error::Damaged { path: path.into(), line: Some(index + 1), reason };
        if line.trim().is_empty() {
            continue;
        }
        if line.contains("\"diverged_at\"") {
            let end: Diverged =
                serde_json::from_str(line).map_err(|error| damaged(short(&error)))?;
            diverged_at = Some(end.diverged_at);
            continue;
        }
        let round: RoundReport = match serde_json::from_str(line) {
            Ok(round) => round,
            // The line that a run was writing when it was stopped, or is writing now.
            Err(_) if index + 1 == lines.len() && !whole => break,
            Err(error) => return Err(damaged(short(&error))),
        };
        if let Some(before) = rounds.last().filter(|before| before.round >= round.round) {
            return Err(damaged(format!("round {} after round {}", round.round, before.round)));
        }
        if let Some(accuracy) = round.test_accuracy.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(damaged(format!("test_accuracy {accuracy} is not between 0 and 1")));
        }
        rounds.push(round);
    }
    Ok((rounds, diverged_at))
}

impl Clients {
    fn check(&self, path: &Path) -> Result<(), Error> {
        let damaged =
            |reason: String| Err(Error::Damaged { path: path.into(), line: None, reason });
        if self.global_labels.len() != self.classes {
            return damaged(format!(
                "{} global labels for {} classes",
                self.global_labels.len(),
                self.classes
            ));
        }
        for Client { id, labels, weight, failure, selection, appearance, .. } in &self.clients {
            if !labels.is_empty() && labels.len() != self.classes {
                return damaged(format!(
                    "client \"{id}\": {} labels for {} classes",
                    labels.len(),
                    self.classes
                ));
            }
            let shares = [Some(*weight), Some(*failure), *selection, *appearance];
            if let Some(share) =
                shares.into_iter().flatten().find(|share| !(0.0..=1.0 + 1e-9).contains(share))
            {
                return damaged(format!("client \"{id}\": {share} is no share between 0 and 1"));
            }
        }
        Ok(())
    }

    /// The labels that take part, on average, when clients have these shares in the aggregate.
    pub fn effective_labels(&self, shares: &[f64]) -> Vec<f64> {
        let mut labels = vec![0.0; self.classes];
        for (client, share) in self.clients.iter().zip(shares) {
            for (sum, label) in labels.iter_mut().zip(&client.labels) {
                *sum += share * label;
            }
        }
        labels
    }

    /// The shares in the aggregate when clients are drawn by their weights and nothing is done about failures.
    pub fn plain_appearance(&self, draws: u64) -> Option<Vec<f64>> {
        let total: f64 = self.clients.iter().map(|client| client.weight).sum();
        let weights: Vec<f64> = self.clients.iter().map(|client| client.weight / total).collect();
        let failure: Vec<f64> = self.clients.iter().map(|client| client.failure).collect();
        fedcote::appearance::appearance(&weights, &failure, draws).ok()
    }

    /// The expected shares in the aggregate, if the scheme has them for every client.
    pub fn appearance(&self) -> Option<Vec<f64>> {
        self.clients.iter().map(|client| client.appearance).collect()
    }
}

impl Seed {
    fn summary(&self, rounds: u32) -> RunSummary {
        let classes = self.clients.as_ref().map(|clients| clients.classes);
        RunSummary::so_far(rounds, self.diverged_at, classes, &self.rounds)
    }

    /// The mean share that each client had in what arrived, over all rounds in which anything did.
    pub fn observed(&self, clients: usize) -> Vec<f64> {
        let mut shares = vec![0.0; clients];
        let mut rounds = 0.0;
        for round in &self.rounds {
            let arrivals = round.arrivals() as f64;
            if arrivals > 0.0 {
                rounds += 1.0;
                for &(client, copies) in &round.arrived {
                    if let Some(share) = shares.get_mut(client as usize) {
                        *share += f64::from(copies) / arrivals;
                    }
                }
            }
        }
        shares.iter_mut().for_each(|share| *share /= f64::max(rounds, 1.0));
        shares
    }
}

impl Scheme {
    /// Mean and deviation over seeds of a value, at each round where any seed has it.
    pub fn curve(&self, value: impl Fn(&RoundReport) -> Option<f64>) -> Vec<(u32, Spread)> {
        let mut at: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for round in self.seeds.iter().flat_map(|seed| &seed.rounds) {
            if let Some(value) = value(round).filter(|value| value.is_finite()) {
                at.entry(round.round).or_default().push(value);
            }
        }
        at.into_iter().filter_map(|(round, values)| Some((round, Spread::of(&values)?))).collect()
    }
}

/// The folders in a folder, by name; hidden ones do not count.
fn folders(path: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let unreadable = |source| unreadable(path, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

fn optional_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(unreadable(path, source)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| Error::Damaged {
        path: path.into(),
        line: Some(error.line()),
        reason: short(&error),
    })
}

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::Damaged { path: path.into(), line: None, reason: "not UTF-8 text".into() }
        }
        _ => Error::File { path: path.into(), action: "read", source },
    }
}

/// What serde_json says, without the place, which the error names itself.
fn short(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}
