//! All that was recorded of a run, and what the runs of a folder add up to, without any data set.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

use super::{
    Clients, Finished, Rounds, ScenarioFile, Standing, damaged, list, metrics, scenario_file,
};
use super::{optional, parse};
use crate::Error;
use crate::comparison::RunId;
use crate::scenario::General;
use crate::summary::{RunSummary, SchemeSummary, Summary};

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

    /// The round in which the numbers blew up.
    pub fn diverged_at(&self) -> Option<u32> {
        let ended = self.finished.as_ref().and_then(|finished| finished.diverged_at);
        self.rounds.diverged_at.or(ended)
    }

    /// Sums up the run, which is to have so many rounds.
    pub fn summary(&self, rounds: u32) -> RunSummary {
        let Self { finished, clients, rounds: Rounds { reports, .. } } = self;
        match finished {
            Some(finished) => RunSummary::of(rounds, finished, reports),
            None => {
                let classes = clients.as_ref().map(|clients| clients.classes);
                RunSummary::so_far(rounds, self.diverged_at(), classes, reports)
            }
        }
    }
}

/// What the runs of a folder add up to.
#[derive(Debug, Clone, PartialEq)]
pub struct Summarised {
    /// The summary of the runs that have begun.
    pub summary: Summary,
    /// All runs of the comparison, with their states.
    pub runs: Vec<Standing>,
}

impl Summarised {
    /// The runs that have not ended; of those that have begun, the summary has what there is.
    pub fn missing(&self) -> impl Iterator<Item = &Standing> {
        self.runs.iter().filter(|standing| !standing.state.has_ended())
    }
}

/// Sums up whatever runs a folder has, from its files alone. A damaged file is an error that names it.
pub fn summarise(out: &Path) -> Result<Summarised, Error> {
    let scenario = ScenarioFile::read(out)?;
    let runs = list(out)?;
    let config = runs.iter().find_map(|standing| config(&standing.run.folder(out)));
    let planned = scenario.as_ref().and_then(|file| file.general.as_ref());
    let planned = planned.or(config.as_ref().map(|(general, _)| general));
    // While no run has ended, the tail is that of the rounds there are.
    let ended = runs.iter().any(|standing| standing.state.has_ended());
    let most = runs.iter().map(|standing| standing.round).max().unwrap_or(0);
    let rounds = planned.filter(|_| ended).map_or(most, |general| general.rounds.max(most));
    let mut schemes: Vec<(&str, Vec<RunSummary>)> = Vec::new();
    for Standing { run, .. } in &runs {
        let at = schemes.iter().position(|(name, _)| *name == run.scheme).unwrap_or_else(|| {
            schemes.push((&run.scheme, Vec::new()));
            schemes.len() - 1
        });
        let recorded = Recorded::read(&run.folder(out))?;
        schemes[at].1.extend(recorded.map(|recorded| recorded.summary(rounds)));
    }
    let begun = schemes.iter().filter(|(_, runs)| !runs.is_empty());
    let summary = Summary {
        schemes: begun.map(|(name, runs)| SchemeSummary::of(name, runs)).collect(),
        rounds,
        command: scenario.and_then(|file| file.command).unwrap_or_default(),
        version: config
            .map_or_else(|| env!("CARGO_PKG_VERSION").to_owned(), |(_, version)| version),
    };
    Ok(Summarised { summary, runs })
}

/// Reads `summary.json` of a comparison, if it is there.
pub fn read_summary(out: &Path) -> Result<Option<Summary>, Error> {
    let path = out.join("summary.json");
    optional(&path)?.map(|bytes| parse(&path, &bytes)).transpose()
}

/// What the `config.toml` of a run says at its top, and the version that wrote it.
fn config(folder: &Path) -> Option<(General, String)> {
    let table: Table = fs::read_to_string(folder.join("config.toml")).ok()?.parse().ok()?;
    let version = table.get("version")?.as_str()?.to_owned();
    Some((scenario_file::general(&table)?, version))
}

impl RunId {
    /// The runs of a comparison, in the order in which they begin.
    pub fn all(general: &General) -> Vec<Self> {
        let of_seed = |&seed: &u64| {
            general.schemes.iter().map(move |scheme| Self { scheme: scheme.clone(), seed })
        };
        general.seeds.iter().flat_map(of_seed).collect()
    }

    /// The folder of the run below that of its comparison.
    pub fn folder(&self, out: &Path) -> PathBuf {
        out.join(&self.scheme).join(self.seed.to_string())
    }
}
