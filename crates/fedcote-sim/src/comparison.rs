//! A comparison: every scheme with every seed, several runs at once, each resumable.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::Error;
use crate::folder::{Finished, Lock, RunFolder, ScenarioFile, found};
use crate::play::Play;
use crate::report::RoundReport;
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::summary::{RunSummary, SchemeSummary, Summary};

/// Which run: a scheme and a seed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId {
    /// The scheme's name.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
}

/// What happens in a comparison, for whoever listens.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run begins, or goes on after so many rounds.
    Started {
        /// Rounds already played.
        round: u32,
    },
    /// What the user should know about the selection of this run.
    Warned(&'a [String]),
    /// A round was played.
    Round(&'a RoundReport),
    /// A run ended.
    Finished(&'a Finished),
    /// A run was there already.
    Skipped(&'a Finished),
    /// A run was interrupted after so many rounds and can be resumed.
    Interrupted {
        /// Rounds played and saved.
        round: u32,
    },
}

/// Whoever wants to know: progress bars, the live page, tests.
pub trait Listener: Sync {
    /// Called from the run's own thread; must be quick.
    fn event(&self, run: &RunId, event: Event);
}

impl<F: Fn(&RunId, Event) + Sync> Listener for F {
    fn event(&self, run: &RunId, event: Event) {
        self(run, event)
    }
}

/// How to run a comparison.
pub struct Control<'a> {
    /// Threads; 0 means one a core.
    pub threads: usize,
    /// Whether to go on in a folder that has runs already.
    pub resume: bool,
    /// Becomes true when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// The command that repeats the comparison, for the summary.
    pub command: String,
}

/// Runs a comparison in a folder. `None` means that it was interrupted, and can be resumed.
pub fn compare(
    scenario: &Scenario,
    out: &Path,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Option<Summary>, Error> {
    let scenario = Arc::new(scenario.clone());
    let general = &scenario.general;
    let runs = RunId::all(general);
    // What cannot work is refused before anything is written.
    let stage = Stage::new(&scenario, control)?;
    stage.make_ahead(general.seeds[0])?;
    let _lock = Lock::take(out)?;
    let there = found(out)?;
    if !control.resume && !there.is_empty() {
        let reason = "has runs already; add --resume to go on with them, or choose another --out";
        return Err(Error::folder(out, reason));
    }
    if let Some(RunId { scheme, seed }) = there.iter().find(|run| !runs.contains(run)) {
        let reason = format!(
            "has a run of `{scheme}` with seed {seed}, which this scenario has not; go on without a scenario \
             (`fedcote run --resume --out DIR`) or with one that has it, or choose another --out"
        );
        return Err(Error::folder(out, reason));
    }
    // A report is written without the lock.
    fedcote_learn::checkpoint::sweep(out, is_alive).map_err(Error::io(out))?;
    // Every folder is checked before the first round is played.
    let folders = runs
        .iter()
        .map(|run| RunFolder::open(out, &scenario, &run.scheme, run.seed))
        .collect::<Result<Vec<_>, _>>()?;
    let begun_by = ScenarioFile::read(out).ok().flatten().and_then(|file| file.command);
    let command = begun_by.unwrap_or_else(|| control.command.clone());
    ScenarioFile::write(out, &scenario, &command)?;
    // It would speak of fewer runs than there will be.
    remove(&out.join("summary.json"))?;
    remove(&out.join("summary.csv"))?;
    let results = play_all(&stage, &runs, &folders, control, listener)?;
    let Some(results) = results.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let schemes = general
        .schemes
        .iter()
        .map(|scheme| {
            let of_scheme = runs.iter().zip(&results).filter(|(run, _)| run.scheme == *scheme);
            let results: Vec<RunSummary> = of_scheme.map(|(_, result)| result.clone()).collect();
            SchemeSummary::of(scheme, &results)
        })
        .collect();
    let summary = Summary {
        schemes,
        rounds: general.rounds,
        command,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    write(&out.join("summary.json"), &serde_json::to_vec_pretty(&summary).expect("plain data"))?;
    write(&out.join("summary.csv"), summary.to_csv().as_bytes())?;
    Ok(Some(summary))
}

/// Plays some runs of a scenario in a folder, and goes on with those that were begun; the caller sees to it that
/// nobody else plays them. False means that it was interrupted.
pub fn play(
    scenario: &Scenario,
    out: &Path,
    runs: &[RunId],
    control: &Control,
    listener: &dyn Listener,
) -> Result<bool, Error> {
    let scenario = Arc::new(scenario.clone());
    let stage = Stage::new(&scenario, control)?;
    let folders = runs
        .iter()
        .map(|run| RunFolder::open(out, &scenario, &run.scheme, run.seed))
        .collect::<Result<Vec<_>, _>>()?;
    let results = play_all(&stage, runs, &folders, control, listener)?;
    Ok(results.iter().all(Option::is_some))
}

fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    Ok(fedcote_learn::checkpoint::write(path, contents)?)
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}

/// Whether another process has this number, as far as the system tells.
fn is_alive(process: u32) -> bool {
    process != std::process::id() && Path::new("/proc").join(process.to_string()).exists()
}

/// The command with these words, as a shell reads it.
pub fn command(words: impl IntoIterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    let quoted = words.into_iter().map(|word| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    std::iter::once("fedcote".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Plays all runs, as many at once as there are threads. `None` for a run that was interrupted.
fn play_all(
    stage: &Stage,
    runs: &[RunId],
    folders: &[RunFolder],
    control: &Control,
    listener: &dyn Listener,
) -> Result<Vec<Option<RunSummary>>, Error> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results = Mutex::new((0..runs.len()).map(|_| Ok(None)).collect::<Vec<_>>());
    // Runs live on threads of their own and lend each round to the pool, so that the last run of a comparison still
    // uses every core, and a run waits for another for a round at most.
    std::thread::scope(|scope| {
        for _ in 0..stage.pool.current_num_threads().min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= runs.len() || failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let (run, folder) = (&runs[at], &folders[at]);
                    let result =
                        Play { run, folder, control, listener, failed: &failed }.all(stage);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("no panic while held")[at] = result;
                }
            });
        }
    });
    results.into_inner().expect("no panic while held").into_iter().collect()
}
