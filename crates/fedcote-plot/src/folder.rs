//! What a report shows of a run folder, read by [`fedcote_sim::folder`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use fedcote_sim::RoundReport;
use fedcote_sim::folder::{Overview, Recorded, ScenarioFile, Standing, read_summary};
use fedcote_sim::statistics::{Runs, summaries};
use fedcote_sim::summary::{SchemeSummary, Spread, Summary, tail_rounds};

pub use fedcote_sim::folder::{Client, Clients};

use crate::Error;

/// A run folder: one scenario, some schemes, some seeds.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where it is.
    pub path: PathBuf,
    /// The folder's own name.
    pub name: String,
    /// The schemes, in the order of the scenario.
    pub schemes: Vec<Scheme>,
    /// `scenario.toml`.
    pub scenario: Option<ScenarioFile>,
    /// The scheme that the others are compared with.
    pub against: String,
    /// The number of rounds that the scenario asks for; while no run has ended, the most that any run has.
    pub rounds: u32,
    /// The accuracy to which rounds and costs are counted.
    pub target_accuracy: f64,
    /// Runs of the scenario that have not ended.
    pub unfinished: usize,
    /// Runs that are left out because a file of theirs is damaged: which file, and what is wrong with it.
    pub damaged: Vec<String>,
    /// The instruction sets that its finished runs were computed with.
    pub instructions: BTreeSet<String>,
    /// The day on which its summary, or before there is one its scenario, was written.
    pub written: Option<String>,
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
    /// One run per seed, ascending.
    pub seeds: Vec<Seed>,
    /// What its runs came to so far.
    pub summary: SchemeSummary,
}

/// One run of one scheme.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The seed.
    pub seed: u64,
    /// What happened, round by round, ascending.
    pub rounds: Vec<RoundReport>,
    /// The clients as they were before the first round.
    pub clients: Option<Clients>,
}

impl Run {
    /// Reads a run folder.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let missing = |reason: &str| Error::Missing { path: path.into(), reason: reason.into() };
        if !path.is_dir() {
            return Err(missing(if path.exists() { "not a folder" } else { "no such folder" }));
        }
        let mut damaged = Vec::new();
        let file = match read_summary(path) {
            Ok(file) => file.unwrap_or_default(),
            // The runs say what it would say.
            Err(error @ fedcote_sim::Error::Damaged { .. }) => {
                damaged.push(error.to_string());
                Summary::default()
            }
            Err(error) => return Err(error.into()),
        };
        let overview = Overview::read(path)?;
        let rounds = if file.rounds > 0 { file.rounds } else { overview.rounds };
        let target = overview.target_accuracy;
        let (mut recorded_seeds, mut all) = (Vec::new(), Vec::<Runs>::new());
        let mut instructions = BTreeSet::new();
        for name in overview.schemes() {
            let (mut seeds, mut runs) = (Vec::new(), Vec::new());
            for Standing { run, .. } in overview.runs.iter().filter(|s| s.run.scheme == name) {
                let recorded = match Recorded::read(&run.folder(path)) {
                    Ok(Some(recorded)) => recorded,
                    Ok(None) => continue,
                    // What is damaged is left out and told; the rest is as good as it was.
                    Err(
                        error @ (fedcote_sim::Error::Damaged { .. }
                        | fedcote_sim::Error::Folder { .. }),
                    ) => {
                        damaged.push(error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                runs.extend(
                    recorded.has_begun().then(|| (run.seed, recorded.summary(rounds, target))),
                );
                let Recorded { rounds, clients, finished } = recorded;
                instructions.extend(finished.into_iter().flat_map(|ended| ended.instructions));
                seeds.push(Seed { seed: run.seed, rounds: rounds.reports, clients });
            }
            if seeds.is_empty() {
                continue;
            }
            seeds.sort_by_key(|seed| seed.seed);
            let reference = overview.scenario.as_ref().is_some_and(|file| file.is_reference(name));
            all.push((name, reference, runs));
            recorded_seeds.push(seeds);
        }
        let against = overview.against().unwrap_or_default().to_owned();
        let summed = summaries(&all, Some(&against)).into_iter().zip(recorded_seeds);
        let scheme = |(summary, seeds): (SchemeSummary, _)| Scheme {
            name: summary.name.clone(),
            seeds,
            summary,
        };
        let schemes: Vec<Scheme> = summed.map(scheme).collect();
        if schemes.is_empty() && !damaged.is_empty() {
            return Err(missing(&format!("no run of it can be read; {}", damaged[0])));
        }
        if schemes.is_empty() {
            return Err(missing(
                "no runs in this folder (expected SCHEME/SEED/metrics.jsonl; `fedcote run --out DIR` makes one)",
            ));
        }
        let absolute = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name =
            absolute.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
        let unfinished = overview.missing().count();
        let written = ["summary.json", ScenarioFile::FILE].iter().find_map(|file| {
            let time = fs::metadata(path.join(file)).and_then(|data| data.modified()).ok()?;
            let seconds = time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
            Some(crate::date(seconds / 86_400))
        });
        let Overview { scenario, version, .. } = overview;
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let begun_by = scenario.as_ref().and_then(|file| file.command.clone());
        Ok(Self {
            path: path.to_owned(),
            name,
            schemes,
            scenario,
            against,
            rounds,
            target_accuracy: target,
            unfinished,
            damaged,
            instructions,
            written,
            command: said(file.command).or(begun_by),
            version: said(file.version).or(version),
        })
    }

    /// The first and last round of the tail: the last min(100, ⌈rounds/5⌉) rounds.
    pub fn tail(&self) -> (u32, u32) {
        (self.rounds.saturating_sub(tail_rounds(self.rounds)) + 1, self.rounds)
    }
}

/// The labels that take part, on average, when clients have these shares in the aggregate.
pub fn effective_labels(clients: &Clients, shares: &[f64]) -> Vec<f64> {
    let mut labels = vec![0.0; clients.classes];
    for (client, share) in clients.clients.iter().zip(shares) {
        for (sum, label) in labels.iter_mut().zip(&client.labels) {
            *sum += share * label;
        }
    }
    labels
}

/// The shares in the aggregate when clients are drawn by their weights and nothing is done about failures.
pub fn plain_appearance(clients: &Clients, draws: u64) -> Option<Vec<f64>> {
    let total: f64 = clients.clients.iter().map(|client| client.weight).sum();
    let weights: Vec<f64> = clients.clients.iter().map(|client| client.weight / total).collect();
    let failure: Vec<f64> = clients.clients.iter().map(|client| client.failure).collect();
    fedcote::appearance::appearance(&weights, &failure, draws).ok()
}

/// The expected shares in the aggregate, if the scheme has them for every client.
pub fn appearance(clients: &Clients) -> Option<Vec<f64>> {
    clients.clients.iter().map(|client| client.appearance).collect()
}

impl Seed {
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
    /// What was spent up to and with each round, mean over the seeds that say so for all rounds until then.
    pub fn spent(&self, cost: impl Fn(&RoundReport) -> Option<f64>) -> Vec<(u32, f64)> {
        let mut at: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for seed in &self.seeds {
            let mut total = 0.0;
            for round in &seed.rounds {
                let Some(cost) = cost(round) else { break };
                total += cost;
                at.entry(round.round).or_default().push(total);
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        at.into_iter().map(|(round, values)| (round, mean(&values))).collect()
    }

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
