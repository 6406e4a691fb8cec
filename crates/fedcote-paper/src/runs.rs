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

use crate::artefact::{Grid, Row};
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

/// What of a grid's runs is there: changes each column to the scenario of the longest runs that have ended, unless the number
/// of rounds is given, and finds the seeds to show in it. For a mean loss over all rounds that of every fiftieth round will do.
pub fn there(grid: &mut Grid, seeds: &[u64], store: &Store) -> Vec<Vec<u64>> {
    let mut shown = Vec::new();
    for at in 0..grid.columns.len() {
        let wanted = grid.columns[at].variant.clone();
        let mut choices = Vec::new();
        for every_loss in [true, false].into_iter().filter(|&every| wanted.every_loss || !every) {
            let variant = Variant { every_loss, ..wanted.clone() };
            let of_row =
                |row: &Row| store.extents(&Variant { setting: row.setting, ..variant.clone() });
            let mut extents = match wanted.rounds {
                None => distinct(grid.rows.iter().flat_map(of_row)),
                given => vec![given],
            };
            extents.sort_by_key(|rounds| std::cmp::Reverse(rounds.unwrap_or(u32::MAX)));
            choices.extend(extents.into_iter().map(|rounds| Variant { rounds, ..variant.clone() }));
        }
        let with_seeds = |choice: Variant| (most(grid, &choice, seeds, store), choice);
        let found = choices.into_iter().map(with_seeds).find(|(seeds, _)| !seeds.is_empty());
        let (seeds, variant) = found.unwrap_or((Vec::new(), wanted));
        grid.columns[at].variant = variant;
        shown.push(seeds);
    }
    shown
}

/// The seeds with which most runs of a scenario can be shown: those of one row, for all rows that have these.
fn most(grid: &Grid, variant: &Variant, seeds: &[u64], store: &Store) -> Vec<u64> {
    let of_row = |row: &Row| -> Vec<u64> {
        let variant = Variant { setting: row.setting, ..variant.clone() };
        let run = |&seed: &u64| Run { variant: variant.clone(), scheme: row.scheme.clone(), seed };
        seeds.iter().copied().filter(|seed| store.has(&run(seed))).collect()
    };
    let rows: Vec<Vec<u64>> = grid.rows.iter().map(of_row).collect();
    let has = |row: &Vec<u64>, seeds: &[u64]| seeds.iter().all(|seed| row.contains(seed));
    let runs = |seeds: &&Vec<u64>| {
        let rows = rows.iter().filter(|row| has(row, seeds)).count();
        (seeds.len() * rows, rows)
    };
    rows.iter().max_by_key(runs).cloned().unwrap_or_default()
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

    /// The numbers of rounds that this scenario may have been played with; `None` is the paper's own.
    fn extents(&self, variant: &Variant) -> Vec<Option<u32>> {
        let full = Variant { rounds: None, ..variant.clone() };
        let start = format!("{}-r", full.slug());
        let folders = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let cut = folders
            .filter_map(|folder| folder.file_name().to_str()?.strip_prefix(&start)?.parse().ok());
        std::iter::once(None).chain(cut.map(Some)).collect()
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
