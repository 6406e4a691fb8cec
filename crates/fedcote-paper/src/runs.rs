//! The runs behind artefacts: shared between them, played once, kept in `OUT/runs`.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fedcote_sim::comparison::{self, Control, RunId, Shard};
use fedcote_sim::folder::{Finished, RunFolder};
use fedcote_sim::remote::Remote;
use fedcote_sim::summary::RunSummary;
use fedcote_sim::{Classifications, RoundReport};

use crate::artefact::Grid;
use crate::error::Error;
use crate::plan::Watch;
use crate::variant::Variant;

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
    /// Of the rounds that were evaluated: round, test accuracy, training loss.
    pub curve: Vec<(u32, Option<f64>, Option<f64>)>,
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
    /// Runs that were read: several artefacts may need them.
    known: Mutex<HashMap<Run, Arc<Played>>>,
    #[cfg(test)]
    pub reads: std::sync::atomic::AtomicUsize,
}

impl Store {
    /// Below this folder.
    pub fn new(out: &Path) -> Self {
        Self {
            folder: out.join("runs"),
            known: Mutex::default(),
            #[cfg(test)]
            reads: Default::default(),
        }
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

    /// What a run came to, if it has ended. Its files are read once, whoever asks.
    pub fn read(&self, run: &Run) -> Result<Option<Arc<Played>>, Error> {
        let known = self.known.lock().expect("no panic while held").get(run).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let read = self.read_files(run)?.map(Arc::new);
        let mut known = self.known.lock().expect("no panic while held");
        Ok(read.map(|played| Arc::clone(known.entry(run.clone()).or_insert(played))))
    }

    fn read_files(&self, run: &Run) -> Result<Option<Played>, Error> {
        if !self.has(run) {
            return Ok(None);
        }
        let scenario = run.variant.scenario(std::slice::from_ref(&run.scheme), &[run.seed])?;
        let folder = self.variant(&run.variant);
        let folder = RunFolder::open(&folder, &scenario, &run.scheme, run.seed)?;
        #[cfg(test)]
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let evaluated = |report: &RoundReport| {
            let RoundReport { round, test_accuracy, train_loss, .. } = *report;
            test_accuracy.or(train_loss).map(|_| (round, test_accuracy, train_loss))
        };
        Ok(folder.finished()?.map(|(finished, rounds)| Played {
            summary: RunSummary::of(scenario.general.rounds, 0.9, &finished, &rounds),
            curve: rounds.iter().filter_map(evaluated).collect(),
        }))
    }

    /// Plays the runs that have not ended, scenario by scenario. False when interrupted.
    pub fn play(
        &self,
        runs: &[&Run],
        threads: usize,
        stop: &AtomicBool,
        remote: Option<&dyn Remote>,
        watch: &dyn Watch,
    ) -> Result<bool, Error> {
        let mut left: Vec<&Run> = runs.iter().copied().filter(|run| !self.has(run)).collect();
        while let Some(first) = left.first() {
            let variant = first.variant.clone();
            let (now, later): (Vec<&Run>, Vec<&Run>) =
                left.into_iter().partition(|run| run.variant == variant);
            left = later;
            let schemes = distinct(now.iter().map(|run| run.scheme.clone()));
            let scenario = variant.scenario(&schemes, &distinct(now.iter().map(|run| run.seed)))?;
            // Data that is needed here is missed before anything is said; on a cluster it is needed there.
            let tasks = match remote {
                None => Classifications::load(&scenario)?,
                Some(_) => Classifications::later(&scenario),
            };
            let ids: Vec<RunId> = now
                .iter()
                .map(|run| RunId { scheme: run.scheme.clone(), seed: run.seed })
                .collect();
            watch.say(&format!("{} ({} runs)", variant.slug(), ids.len()));
            let control = Control {
                threads,
                remote,
                resume: true,
                shard: Shard::ALL,
                stop,
                command: String::new(),
                tensorboard: false,
            };
            let folder = self.variant(&variant);
            if !comparison::play(&scenario, &tasks, &folder, &ids, &control, watch)? {
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
