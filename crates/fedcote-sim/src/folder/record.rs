//! All that was recorded of a run, and what the runs of a folder add up to, without any data set.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

use super::seals::is_intact;
use super::{
    Clients, Finished, Rounds, ScenarioFile, Standing, State, damaged, list, metrics, scenario_file,
};
use super::{optional, parse};
use crate::Error;
use crate::comparison::RunId;
use crate::scenario::General;
use crate::statistics::{Runs, summaries};
use crate::summary::{RunSummary, Summary, mixed};

/// All that was recorded of a run so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its rounds.
    pub rounds: Rounds,
    /// Its clients, if there are few enough to be listed.
    pub clients: Option<Clients>,
    /// How it ended, if it did.
    pub finished: Option<Finished>,
}

impl Recorded {
    /// Reads the folder of a run; nothing if it has no metrics. Of a run that has ended, each file that is read must
    /// be as it was written.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let finished = Finished::read(folder)?;
        let check = |name: &str, bytes: &[u8]| match &finished {
            Some(finished) => finished.check(folder, name, bytes),
            None => Ok(()),
        };
        let path = folder.join(metrics::FILE);
        let Some(bytes) = optional(&path)? else {
            return match finished {
                Some(_) => Err(damaged(folder, &path, "is missing")),
                None => Ok(None),
            };
        };
        check(metrics::FILE, &bytes)?;
        let rounds = Rounds::parse(&path, &bytes)?;
        let path = folder.join(Clients::FILE);
        let clients = match optional(&path)? {
            Some(bytes) => {
                check(Clients::FILE, &bytes)?;
                Some(Clients::parse(&path, &bytes)?)
            }
            None => None,
        };
        Ok(Some(Self { rounds, clients, finished }))
    }

    /// Whether there is anything to sum up.
    pub fn has_begun(&self) -> bool {
        self.finished.is_some() || self.rounds != Rounds::default()
    }

    /// The round in which the numbers blew up.
    pub fn diverged_at(&self) -> Option<u32> {
        let ended = self.finished.as_ref().and_then(|finished| finished.diverged_at);
        self.rounds.diverged_at.or(ended)
    }

    /// Sums up the run, which is to have so many rounds, with what it takes to an accuracy.
    pub fn summary(&self, rounds: u32, target: f64) -> RunSummary {
        let Self { finished, clients, rounds: Rounds { reports, .. } } = self;
        match finished {
            Some(finished) => RunSummary::of(rounds, target, finished, reports),
            None => {
                let classes = clients.as_ref().map(|clients| clients.classes);
                RunSummary::so_far(rounds, target, self.diverged_at(), classes, reports)
            }
        }
    }
}

/// A comparison as its folder tells it, without the rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// Its scenario.
    pub scenario: Option<ScenarioFile>,
    /// All its runs: those of the scenario in the order in which they begin, then others that the folder has.
    pub runs: Vec<Standing>,
    /// Rounds per run; while no run has ended, the most that one has played.
    pub rounds: u32,
    /// The accuracy to which summaries count rounds and costs.
    pub target_accuracy: f64,
    /// The version that made it.
    pub version: Option<String>,
}

impl Overview {
    /// Reads the folder of a comparison.
    pub fn read(out: &Path) -> Result<Self, Error> {
        let scenario = ScenarioFile::read(out)?;
        let runs = list(out)?;
        let config = runs.iter().find_map(|standing| config(&standing.run.folder(out)));
        let (config, version) = config.unzip();
        let planned = scenario.as_ref().and_then(|file| file.general.as_ref()).or(config.as_ref());
        let ended = runs.iter().any(|standing| standing.state.has_ended());
        let most = runs.iter().map(|standing| standing.round).max().unwrap_or(0);
        // Without a run that has ended, a tail of the rounds to come would be empty.
        let rounds = planned.filter(|_| ended).map_or(most, |general| general.rounds.max(most));
        let target = |general: &General| general.target_accuracy;
        let target_accuracy = planned.map_or_else(|| target(&General::default()), target);
        Ok(Self { scenario, runs, rounds, target_accuracy, version })
    }

    /// The runs that have not ended.
    pub fn missing(&self) -> impl Iterator<Item = &Standing> {
        self.runs.iter().filter(|standing| !standing.state.has_ended())
    }

    /// The scheme that the others are compared with: the scenario's, or the first.
    pub fn against(&self) -> Option<&str> {
        let general = self.scenario.as_ref().and_then(|file| file.general.as_ref());
        let named = general.map(|general| general.against.as_str()).unwrap_or_default();
        let schemes = self.schemes();
        schemes.iter().find(|name| **name == named).or(schemes.first()).copied()
    }

    /// The schemes of the runs, each once, in order.
    pub fn schemes(&self) -> Vec<&str> {
        let mut schemes: Vec<&str> = Vec::new();
        for Standing { run, .. } in &self.runs {
            if !schemes.contains(&run.scheme.as_str()) {
                schemes.push(&run.scheme);
            }
        }
        schemes
    }
}

/// Sums up whatever runs a folder has, from its files alone, and says which there are. A run that has not ended counts
/// with the rounds that it has. A damaged file is an error that names it.
///
/// # Errors
///
/// When a file cannot be read or is damaged.
pub fn summarise(out: &Path) -> Result<(Summary, Overview), Error> {
    sum_up(out, |_| true)
}

/// Sums up the runs that have ended.
///
/// # Errors
///
/// When a file cannot be read or is damaged.
pub(crate) fn summarise_ended(out: &Path) -> Result<Summary, Error> {
    // What is damaged is read, too, to say so.
    let counts = |state: State| state.has_ended() || state == State::Damaged;
    sum_up(out, counts).map(|(summary, _)| summary)
}

fn sum_up(out: &Path, counts: impl Fn(State) -> bool) -> Result<(Summary, Overview), Error> {
    let overview = Overview::read(out)?;
    let scenario = overview.scenario.as_ref();
    let reference = |name: &str| scenario.is_some_and(|file| file.is_reference(name));
    let (mut all, mut instructions) = (Vec::<Runs>::new(), BTreeSet::new());
    for name in overview.schemes() {
        let mut runs = Vec::new();
        let counted = |s: &&Standing| s.run.scheme == name && counts(s.state);
        for Standing { run, .. } in overview.runs.iter().filter(counted) {
            let recorded = Recorded::read(&run.folder(out))?.filter(Recorded::has_begun);
            let ended = recorded.as_ref().and_then(|recorded| recorded.finished.as_ref());
            instructions.extend(ended.into_iter().flat_map(|ended| ended.instructions.clone()));
            let target = overview.target_accuracy;
            let summary =
                |recorded: Recorded| (run.seed, recorded.summary(overview.rounds, target));
            runs.extend(recorded.map(summary));
        }
        if !runs.is_empty() {
            all.push((name, reference(name), runs));
        }
    }
    let against = overview.against();
    let schemes = summaries(&all, against);
    let command = overview.scenario.as_ref().and_then(|file| file.command.clone());
    let version = overview.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
    let summary = Summary {
        against: against.filter(|_| schemes.len() > 1).map(str::to_owned),
        schemes,
        rounds: overview.rounds,
        target_accuracy: overview.target_accuracy,
        missing: overview.missing().count(),
        warnings: mixed(&instructions).into_iter().collect(),
        instructions,
        command: command.unwrap_or_default(),
        version,
    };
    Ok((summary, overview))
}

/// Reads `summary.json` of a comparison, if it is there.
pub fn read_summary(out: &Path) -> Result<Option<Summary>, Error> {
    let path = out.join("summary.json");
    optional(&path)?.map(|bytes| parse_summary(&path, &bytes)).transpose()
}

/// Understands the contents of `summary.json`, which must be as they were written.
pub fn parse_summary(path: &Path, bytes: &[u8]) -> Result<Summary, Error> {
    let summary = parse(path, bytes)?;
    if str::from_utf8(bytes).is_ok_and(is_intact) {
        return Ok(summary);
    }
    let reason = "is damaged or was altered (its checksum does not match); `fedcote run --resume --out DIR` writes it anew";
    Err(Error::Damaged { path: path.to_owned(), line: None, reason: reason.into() })
}

/// What the `config.toml` of a run says at its top, and the version that wrote it.
fn config(folder: &Path) -> Option<(General, String)> {
    let table: Table = fs::read_to_string(folder.join("config.toml")).ok()?.parse().ok()?;
    let version = table.get("version")?.as_str()?.to_owned();
    Some((scenario_file::general(&table)?, version))
}

impl RunId {
    /// The folder of the run below that of its comparison.
    pub fn folder(&self, out: &Path) -> PathBuf {
        out.join(&self.scheme).join(self.seed.to_string())
    }
}
