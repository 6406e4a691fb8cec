//! The runs behind artefacts: shared between them, played once, kept in `OUT/runs`.

use std::collections::HashSet;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fedcote_sim::RoundReport;
use fedcote_sim::comparison::{self, Control, RunId};
use fedcote_sim::folder::{Finished, Lock, RunFolder};
use fedcote_sim::summary::RunSummary;

use super::artefact::Grid;
use super::variant::Variant;
use crate::error::Error;
use crate::run::progress::Progress;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Run {
    pub variant: Variant,
    pub scheme: String,
    pub seed: u64,
}

/// What a run came to.
pub struct Played {
    pub summary: RunSummary,
    pub rounds: Vec<RoundReport>,
}

/// A part of all runs, for several machines: the runs whose number is `part` modulo `parts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    parts: usize,
}

impl Shard {
    /// Everything.
    pub const ALL: Self = Self { part: 0, parts: 1 };

    /// The runs of this part.
    pub fn of<'a>(&self, runs: &'a [Run]) -> Vec<&'a Run> {
        runs.iter().skip(self.part).step_by(self.parts).collect()
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected I/N with 1 <= I <= N, such as 2/8".to_owned();
        let (part, parts) = text.split_once('/').ok_or_else(wrong)?;
        let (part, parts): (usize, usize) =
            (part.parse().map_err(|_| wrong())?, parts.parse().map_err(|_| wrong())?);
        if part == 0 || part > parts { Err(wrong()) } else { Ok(Self { part: part - 1, parts }) }
    }
}

/// The runs of a grid, scenario by scenario, without repetition.
pub fn of_grid(grid: &Grid, seeds: &[u64]) -> Vec<Run> {
    let cells = grid.columns.iter().flat_map(|column| {
        seeds.iter().flat_map(move |&seed| {
            grid.rows.iter().map(move |row| Run {
                variant: grid.variant(row, column),
                scheme: row.scheme.clone(),
                seed,
            })
        })
    });
    distinct(cells)
}

/// Where runs are kept.
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Below this folder.
    pub fn new(out: &Path) -> Self {
        Self { folder: out.join("runs") }
    }

    fn variant(&self, variant: &Variant) -> PathBuf {
        self.folder.join(variant.slug())
    }

    fn path(&self, run: &Run) -> PathBuf {
        self.variant(&run.variant).join(&run.scheme).join(run.seed.to_string())
    }

    /// Whether the run has ended.
    pub fn has(&self, run: &Run) -> bool {
        self.path(run).join(Finished::FILE).is_file()
    }

    /// How long a finished run took.
    pub fn seconds(&self, run: &Run) -> Option<f64> {
        Some(Finished::read(&self.path(run)).ok()??.seconds)
    }

    /// What a run came to, if it has ended.
    pub fn read(&self, run: &Run) -> Result<Option<Played>, Error> {
        if !self.has(run) {
            return Ok(None);
        }
        let scenario = run.variant.scenario(std::slice::from_ref(&run.scheme), &[run.seed])?;
        let folder = self.variant(&run.variant);
        let folder = RunFolder::open(&folder, &scenario, &run.scheme, run.seed)?;
        Ok(folder.finished()?.map(|(finished, rounds)| Played {
            summary: RunSummary::of(scenario.general.rounds, &finished, &rounds),
            rounds,
        }))
    }

    /// Plays the runs that have not ended, scenario by scenario. False when interrupted.
    pub fn play(
        &self,
        runs: &[&Run],
        threads: usize,
        stop: &AtomicBool,
        progress: &Progress,
    ) -> Result<bool, Error> {
        let mut left: Vec<&Run> = runs.iter().copied().filter(|run| !self.has(run)).collect();
        while let Some(first) = left.first() {
            let variant = first.variant.clone();
            let (now, later): (Vec<&Run>, Vec<&Run>) =
                left.into_iter().partition(|run| run.variant == variant);
            left = later;
            let schemes = distinct(now.iter().map(|run| run.scheme.clone()));
            let scenario = variant.scenario(&schemes, &distinct(now.iter().map(|run| run.seed)))?;
            // Data that is not there is refused before a lock makes its folder; reading it twice costs a moment, against
            // hours of training.
            fedcote_learn::data::load(&scenario.data, &scenario.base).map_err(Error::request)?;
            // A run belongs to one command at a time; other runs of the scenario may be another's.
            let locks = now.iter().map(|run| Lock::take(&self.path(run)));
            let _locks: Vec<Lock> = locks.collect::<Result<_, _>>()?;
            let ids: Vec<RunId> = now
                .iter()
                .map(|run| RunId { scheme: run.scheme.clone(), seed: run.seed })
                .collect();
            progress.say(&format!("{} ({} runs)", variant.slug(), ids.len()));
            let control = Control { threads, resume: true, stop, command: String::new() };
            let folder = self.variant(&variant);
            if !comparison::play(&scenario, &folder, &ids, &control, progress)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Each value once, in the order of first appearance.
pub fn distinct<T: Clone + Eq + Hash>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::variant::{Network, Share, Task};
    use super::*;

    #[test]
    fn shards_are_a_partition() {
        let run = |seed| Run {
            variant: Variant::new(Network::Literal, Task::Mnist, Share::Iid, None),
            scheme: "fedavg".into(),
            seed,
        };
        let runs: Vec<Run> = (1..=11).map(run).collect();
        assert_eq!(Shard::ALL.of(&runs).len(), 11);
        let mut seeds: Vec<u64> = Vec::new();
        for shard in ["1/3", "2/3", "3/3"] {
            let part = shard.parse::<Shard>().unwrap();
            seeds.extend(part.of(&runs).iter().map(|run| run.seed));
        }
        assert_eq!(seeds.len(), 11);
        seeds.sort_unstable();
        assert_eq!(seeds, (1..=11).collect::<Vec<u64>>());
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
