//! A comparison: every scheme with every seed, several runs at once, each resumable.
//!
//! [`plan`] says which runs there are, [`play`] plays some of them, [`summarise`] sums up whatever is there;
//! [`compare`] is the three in a row. Any number of workers may play different runs in one folder ([`Shard`]).

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::Error;
use crate::context::Context;
use crate::folder::{self, Finished, Lock, RunFolder, ScenarioFile, found};
pub use crate::plan::{MAX_SEED, RunId, Seeds, Shard, plan};
use crate::remote::{self, Remote};
use crate::report::RoundReport;
use crate::runner::Runner;
use crate::scenario::Scenario;
use crate::summary::Summary;
use crate::task::Tasks;
use crate::tensorboard::EventFiles;

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
    /// Threads; 0 means one per core.
    pub threads: usize,
    /// Where rounds are computed; `None` for here.
    pub remote: Option<&'a dyn Remote>,
    /// Whether to go on in a folder that has runs already.
    pub resume: bool,
    /// Which part of the runs to play; others may play theirs in the same folder at the same time.
    pub shard: Shard,
    /// Becomes true when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// The command that repeats the comparison, for the summary.
    pub command: String,
    /// Whether to write event files for TensorBoard, too.
    pub tensorboard: bool,
}

/// Runs a comparison, or this worker's part of it, in a folder, and sums up what is there. `None` means that it was
/// interrupted, and can be resumed.
///
/// # Errors
///
/// When the folder, scenario or task is refused, or the work fails.
pub fn compare(
    scenario: &Scenario,
    tasks: &dyn Tasks,
    out: &Path,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Option<Summary>, Error> {
    let all = plan(scenario);
    let runs: Vec<RunId> = control.shard.of(&all).into_iter().cloned().collect();
    let Some(first) = runs.first() else {
        let reason = format!("this part is empty: the scenario has {} runs", all.len());
        return Err(Error::Scenario { place: "--shard".to_owned(), reason });
    };
    let scenario = Arc::new(scenario.clone());
    // What cannot work is refused before anything is written.
    let Some(place) = Place::new(&scenario, tasks, first, control)? else { return Ok(None) };
    let _working = Lock::join(out, !control.shard.is_part())?;
    let there = found(out)?;
    if !control.resume && !control.shard.is_part() && !there.is_empty() {
        let reason = "has runs already; add --resume to continue them, or choose another --out";
        return Err(Error::folder(out, reason));
    }
    if let Some(RunId { scheme, seed }) = there.iter().find(|run| !all.contains(run)) {
        let reason = format!(
            "has a run of `{scheme}` with seed {seed}, which this scenario does not have; resume without a scenario \
             (`fedcote run --resume --out DIR`) or with one that has it, or choose another --out"
        );
        return Err(Error::folder(out, reason));
    }
    fedcote_support::sweep(out).map_err(Error::io(out))?;
    // Every folder is checked before the first round is played.
    let task = tasks.identity();
    let folders = open(&scenario, task.as_deref(), out, &runs)?;
    // Other workers' runs must be of this scenario, too, or the summary would compare what cannot be compared.
    for run in found(out)? {
        RunFolder::open_for(out, &scenario, task.as_deref(), &run.scheme, run.seed)?;
    }
    let begun_by = ScenarioFile::read(out).ok().flatten().and_then(|file| file.command);
    let command = begun_by.unwrap_or_else(|| control.command.clone());
    ScenarioFile::write(out, &scenario, &command)?;
    // It would speak of fewer runs than there will be.
    remove(&out.join("summary.json"))?;
    remove(&out.join("summary.csv"))?;
    let events = control.tensorboard.then(|| EventFiles::new(out, listener));
    let listener = events.as_ref().map_or(listener, |events| events);
    let ended = place.play(&runs, &folders, control, listener)?;
    events.map_or(Ok(()), EventFiles::finish)?;
    if !ended {
        return Ok(None);
    }
    summarise(out).map(Some)
}

/// Plays some runs of a scenario in a folder, and goes on with those that were begun. False means that it was
/// interrupted.
///
/// # Errors
///
/// When another command plays one of the runs, the folder, scenario or task is refused, or the work fails.
pub fn play(
    scenario: &Scenario,
    tasks: &dyn Tasks,
    out: &Path,
    runs: &[RunId],
    control: &Control,
    listener: &dyn Listener,
) -> Result<bool, Error> {
    let scenario = Arc::new(scenario.clone());
    let Some(first) = runs.first() else { return Ok(true) };
    let Some(place) = Place::new(&scenario, tasks, first, control)? else { return Ok(false) };
    let folders = open(&scenario, tasks.identity().as_deref(), out, runs)?;
    place.play(runs, &folders, control, listener)
}

/// Where the rounds are computed.
enum Place<'a> {
    Here(Context<'a>),
    Elsewhere(&'a dyn Remote, &'a Scenario),
}

impl<'a> Place<'a> {
    /// Sees that the first run can begin there; `None` means that the user did not want to wait.
    fn new(
        scenario: &'a Arc<Scenario>,
        tasks: &'a dyn Tasks,
        first: &RunId,
        control: &Control<'a>,
    ) -> Result<Option<Self>, Error> {
        Ok(match control.remote {
            None => {
                let context = Context::new(scenario, tasks, control)?;
                context.make_ahead(first.seed)?;
                Some(Self::Here(context))
            }
            Some(remote) => {
                let begins = remote::probe(remote, scenario, first, control)?;
                begins.then_some(Self::Elsewhere(remote, scenario))
            }
        })
    }

    /// Plays these runs; false means that it was interrupted.
    fn play(
        &self,
        runs: &[RunId],
        folders: &[RunFolder],
        control: &Control,
        listener: &dyn Listener,
    ) -> Result<bool, Error> {
        match self {
            Self::Here(context) => play_all(context, runs, folders, control, listener),
            Self::Elsewhere(remote, scenario) => {
                remote::play_all(*remote, scenario, runs, folders, control, listener)
            }
        }
    }
}

/// Sums up the finished runs of a comparison's folder, without its data, and writes `summary.json` and `summary.csv`.
///
/// # Errors
///
/// When a file of a finished run is damaged, or the summary cannot be written.
pub fn summarise(out: &Path) -> Result<Summary, Error> {
    // The last of several workers has the last word.
    let _alone = Lock::wait(&out.join(".summary"))?;
    let summary = folder::summarise_ended(out)?;
    let text = serde_json::to_string_pretty(&summary).expect("plain data");
    write(&out.join("summary.json"), folder::sealed(&text).as_bytes())?;
    write(&out.join("summary.csv"), summary.to_csv().as_bytes())?;
    Ok(summary)
}

/// The folders of these runs, each checked; none of them may be another command's at the moment.
fn open(
    scenario: &Scenario,
    task: Option<&str>,
    out: &Path,
    runs: &[RunId],
) -> Result<Vec<RunFolder>, Error> {
    let open = |run: &RunId| {
        let folder = RunFolder::open_for(out, scenario, task, &run.scheme, run.seed)?;
        Lock::take(folder.path()).map(|_| folder)
    };
    runs.iter().map(open).collect()
}

fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    Ok(fedcote_support::write(path, contents)?)
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}

/// Plays all runs, as many at once as there are threads. False when one was interrupted.
fn play_all(
    context: &Context,
    runs: &[RunId],
    folders: &[RunFolder],
    control: &Control,
    listener: &dyn Listener,
) -> Result<bool, Error> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results = Mutex::new((0..runs.len()).map(|_| Ok(false)).collect::<Vec<_>>());
    // Runs have threads of their own and lend each round to the pool, so that the last run of a comparison still
    // uses every core, and a run waits for another for a round at most.
    std::thread::scope(|scope| {
        for _ in 0..context.pool.current_num_threads().min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= runs.len() || failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let (run, folder) = (&runs[at], &folders[at]);
                    let runner = Runner { run, folder, control, listener, failed: &failed };
                    let result = runner.play(context);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("no panic while held")[at] = result;
                }
            });
        }
    });
    let results: Result<Vec<bool>, Error> =
        results.into_inner().expect("no panic while held").into_iter().collect();
    Ok(results?.into_iter().all(|finished| finished))
}
