//! Whole comparisons of schemes.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fedcote_plot::report;
use fedcote_sim::comparison::{Control, Event, Listener, RunId, Shard, compare, plan};
use fedcote_sim::folder::Rounds;
use fedcote_sim::remote::Remote;
use fedcote_sim::sweep;
use fedcote_sim::{Classifications, RoundReport, Scenario, Tasks};
use numpy::PyArray1;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::remote::PyRemote;
use crate::scheme::WithSchemes;
use crate::task::{Failure, PythonTasks};
use crate::{refuse, threads};

/// How often to look whether the user pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// A preset's name or a file, or `text` in JSON.
fn read(scenario: &str, text: Option<&str>, overrides: &[String]) -> PyResult<Scenario> {
    match text {
        None => Scenario::load(scenario, overrides),
        Some(text) => {
            let table: serde_json::Value = serde_json::from_str(text).map_err(refuse)?;
            let text = toml::to_string(&table)
                .map_err(|error| refuse(format_args!("{scenario}: {error}")))?;
            Scenario::parse(scenario, &text, overrides, Path::new("."))
        }
    }
    .map_err(refuse)
}

/// How many rounds a scenario has, over all runs.
#[pyfunction]
pub fn planned(scenario: &str, text: Option<&str>, overrides: Vec<String>) -> PyResult<u64> {
    let scenario = read(scenario, text, &overrides)?;
    let rounds = |one: &Scenario| plan(one).len() as u64 * u64::from(one.general.rounds);
    match scenario.sweep.points.as_slice() {
        [] => Ok(rounds(&scenario)),
        points => Ok(points.iter().map(|point| rounds(&point.scenario)).sum()),
    }
}

/// Name, caption and SVG of a figure.
type Drawn = (&'static str, String, String);

/// The table of a folder's report as HTML, and its figures: name, caption, SVG.
#[pyfunction]
pub fn figures(py: Python<'_>, folder: PathBuf) -> PyResult<(String, Vec<Drawn>)> {
    py.detach(|| {
        if sweep::is_sweep(&folder) {
            let summary = report::sweep::read(&folder)?;
            let drawn = report::sweep::figures(&summary).into_iter();
            let drawn = drawn.map(|figure| (figure.id, figure.caption, figure.wide.document()));
            return Ok((report::sweep::table(&summary).html(), drawn.collect()));
        }
        let run = fedcote_plot::folder::Run::read(&folder)?;
        let figures = report::figures(&run).into_iter();
        let figures = figures.map(|figure| (figure.id, figure.caption, figure.wide.document()));
        let figures = figures.collect();
        Ok((report::table(&[run]).html(), figures))
    })
    .map_err(|error: fedcote_plot::Error| refuse(error))
}

/// Writes the report of a folder and says where it is.
#[pyfunction]
#[pyo3(name = "report")]
pub fn write_report(py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
    py.detach(|| report::write(&[folder], None)).map_err(refuse)
}

/// Runs a scenario, a preset's name or a file, or `text` in JSON, in the folder `out`; the summary as JSON, and the runs
/// as pairs of scheme and seed; of a sweep, its summary and no runs. `remote` computes the rounds, if it is there. `watch` is told how far it is.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // each is an argument of the Python function
pub fn simulate(
    py: Python<'_>,
    scenario: &str,
    text: Option<&str>,
    overrides: Vec<String>,
    out: &str,
    threads: usize,
    resume: bool,
    tasks: Option<&Bound<'_, PyAny>>,
    schemes: &Bound<'_, PyAny>,
    remote: Option<Py<PyAny>>,
    watch: &Bound<'_, PyAny>,
) -> PyResult<(String, Vec<(String, u64)>)> {
    let scenario = read(scenario, text, &overrides)?;
    let failure = Failure::default();
    let (tasks, schemes) = (tasks.map(|tasks| tasks.clone().unbind()), schemes.clone().unbind());
    let elsewhere = remote.is_some();
    let make = |scenario: &Scenario| -> PyResult<Box<dyn Tasks>> {
        Python::attach(|py| {
            let made: Box<dyn Tasks> = match &tasks {
                Some(tasks) => {
                    Box::new(PythonTasks::new(tasks.bind(py), scenario, failure.clone())?)
                }
                // The data set need not be here.
                None if elsewhere && !scenario.task.is_given() => {
                    Box::new(Classifications::later(scenario))
                }
                None => described(py, scenario, &failure)?,
            };
            with_schemes(made, schemes.bind(py), scenario, &failure)
        })
    };
    let whole = scenario.sweep.is_empty();
    let first = make(if whole { &scenario } else { &scenario.sweep.points[0].scenario })?;
    let threads = if scenario.task.is_given() { threads.max(1) } else { threads };
    let remote = remote.map(PyRemote::new);
    let stop = AtomicBool::new(false);
    let control = Control {
        threads,
        remote: remote.as_ref().map(|remote| remote as &dyn Remote),
        resume,
        shard: Shard::ALL,
        stop: &stop,
        command: "fedcote.simulate".into(),
        tensorboard: false,
    };
    let progress = Progress::default();
    let watch = watch.clone().unbind();
    let (result, interrupt) = py.detach(|| {
        thread::scope(|scope| {
            let out = Path::new(out);
            let run = scope.spawn(|| match whole {
                true => {
                    let summary = compare(&scenario, &*first, out, &control, &progress)?;
                    Ok(summary.map(|summary| serde_json::to_string(&summary)))
                }
                false => {
                    let make = |scenario: &Scenario| {
                        make(scenario).map_err(|error| {
                            let reason = error.to_string();
                            fedcote_sim::Error::Scenario { place: "sweep".to_owned(), reason }
                        })
                    };
                    let summary = sweep::compare(&scenario, &make, out, &control, &progress)?;
                    Ok(summary.map(|summary| serde_json::to_string(&summary)))
                }
            });
            let mut interrupt = None;
            while !run.is_finished() {
                thread::sleep(LOOK);
                if let Err(error) = Python::attach(|py| progress.show(py, &watch)) {
                    // The second time the user's code is interrupted, too; the first time the round is finished.
                    let mut again = interrupt.is_some();
                    interrupt.get_or_insert(error);
                    stop.store(true, Ordering::Relaxed);
                    let tell = |again: bool| {
                        Python::attach(|py| {
                            let told = watch.call_method1(py, "stopping", (again,));
                            told.map(drop).map_err(|error| {
                                (error.is_instance_of::<PyKeyboardInterrupt>(py), error)
                            })
                        })
                    };
                    while let Err((pressed, error)) = tell(again) {
                        if !pressed {
                            interrupt = Some(error);
                            break;
                        }
                        // Pressed while the first time was told: that is the second time.
                        again = true;
                    }
                }
            }
            let last = Python::attach(|py| progress.show(py, &watch));
            (run.join().unwrap_or_else(|panic| resume_unwind(panic)), interrupt.or(last.err()))
        })
    });
    if let Some(interrupt) = interrupt {
        return Err(interrupt);
    }
    let summary = result.map_err(|error| {
        let elsewhere = remote.as_ref().and_then(PyRemote::raised);
        elsewhere.unwrap_or_else(|| failure.raise(py, &error))
    })?;
    let summary = summary.ok_or_else(|| refuse("the comparison was interrupted"))?;
    let summary = summary.map_err(refuse)?;
    if !whole {
        return Ok((summary, Vec::new()));
    }
    let mut seeds = scenario.general.seeds;
    seeds.sort_unstable();
    let schemes = scenario.general.schemes.iter();
    let runs = schemes.flat_map(|name| seeds.iter().map(|&seed| (name.clone(), seed)));
    Ok((summary, runs.collect()))
}

/// The tasks that a scenario describes: in Python, or the built-in ones.
pub fn described(
    py: Python<'_>,
    scenario: &Scenario,
    failure: &Failure,
) -> PyResult<Box<dyn Tasks>> {
    let Some(place) = &scenario.task.python else {
        return Ok(Box::new(
            threads::work(py, || Classifications::load(scenario)).map_err(refuse)?,
        ));
    };
    let settings = serde_json::to_string(&scenario.task.settings).map_err(refuse)?;
    let words = (place, folders(scenario), settings, scenario.general.clients);
    let tasks = py.import("fedcote._own")?.call_method1("tasks", words)?;
    Ok(Box::new(PythonTasks::new(&tasks, scenario, failure.clone())?))
}

/// Where modules are looked for, besides where Python finds them.
fn folders(scenario: &Scenario) -> Vec<PathBuf> {
    let folder = scenario.task.folder.as_deref().unwrap_or(Path::new("."));
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let mut folders = vec![absolute(scenario.base.join(folder)), absolute(".".into())];
    folders.dedup();
    folders
}

/// The same with the schemes of the user's own; `given` has those that are objects, by name.
pub fn with_schemes(
    tasks: Box<dyn Tasks>,
    given: &Bound<'_, PyAny>,
    scenario: &Scenario,
    failure: &Failure,
) -> PyResult<Box<dyn Tasks>> {
    let module = given.py().import("fedcote._scheme")?;
    let schemes = module.call_method1("Schemes", (given, folders(scenario)))?;
    Ok(Box::new(WithSchemes::new(tasks, schemes.unbind(), failure.clone())))
}

/// What has happened since it was last shown.
#[derive(Default)]
struct Progress(Mutex<(u64, Option<String>)>);

impl Listener for Progress {
    fn event(&self, run: &RunId, event: Event) {
        let mut news = self.0.lock().expect("no panic while held");
        match event {
            Event::Started { round } => news.0 += u64::from(round),
            Event::Skipped(finished) => news.0 += u64::from(finished.rounds),
            Event::Round(report) => {
                news.0 += 1;
                if let Some(accuracy) = report.test_accuracy {
                    let RunId { scheme, seed } = run;
                    news.1 = Some(format!("{scheme} seed {seed}: {:.2} %", 100.0 * accuracy));
                }
            }
            Event::Warned(_) | Event::Finished(_) | Event::Interrupted { .. } => {}
        }
    }
}

impl Progress {
    /// Tells what is new; an error is the user's Ctrl-C.
    fn show(&self, py: Python<'_>, watch: &Py<PyAny>) -> PyResult<()> {
        py.check_signals()?;
        let (rounds, text) = std::mem::take(&mut *self.0.lock().expect("no panic while held"));
        if rounds > 0 || text.is_some() {
            watch.call_method1(py, "update", (rounds, text))?;
        }
        Ok(())
    }
}

/// A number that a round may have.
type Number = fn(&RoundReport) -> Option<f64>;

/// The rounds of some runs in a folder, as columns: arrays, and a list for the schemes. Numbers that a round does not
/// have are NaN. What else a task reports has columns by its own names.
#[pyfunction]
pub fn rounds<'py>(
    py: Python<'py>,
    folder: PathBuf,
    runs: Vec<(String, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut read = Vec::new();
    for (scheme, seed) in runs {
        let run = RunId { scheme, seed };
        let rounds = Rounds::read(&run.folder(&folder)).map_err(refuse)?;
        let missing = || refuse(format_args!("{}: no rounds", run.folder(&folder).display()));
        let reports = rounds.ok_or_else(missing)?.reports;
        read.extend(reports.into_iter().map(|report| (run.clone(), report)));
    }
    let names = read.iter().flat_map(|(_, report)| report.scores.keys().cloned());
    let names: BTreeSet<String> = names.collect();
    let whole = |value: fn(&RunId, &RoundReport) -> u64| {
        // Signed, so that differences are numbers, too; no seed or count is above its range.
        PyArray1::from_iter(py, read.iter().map(|(run, report)| value(run, report) as i64))
    };
    let number = |value: &dyn Fn(&RoundReport) -> Option<f64>| {
        let values = read.iter().map(|(_, report)| value(report).unwrap_or(f64::NAN));
        PyArray1::from_iter(py, values)
    };
    let columns = PyDict::new(py);
    let schemes: Vec<&str> = read.iter().map(|(run, _)| run.scheme.as_str()).collect();
    columns.set_item("scheme", schemes)?;
    columns.set_item("seed", whole(|run, _| run.seed))?;
    columns.set_item("round", whole(|_, report| report.round.into()))?;
    columns.set_item("selected", whole(|_, report| report.draws()))?;
    columns.set_item("arrived", whole(|_, report| report.arrivals()))?;
    columns.set_item("attempts", whole(|_, report| report.attempts.into()))?;
    let numbers: [(&str, Number); 9] = [
        ("label_divergence_wanted", |report| report.label_divergence_wanted),
        ("label_divergence_realised", |report| report.label_divergence_realised),
        ("seconds", |report| report.seconds),
        ("bytes_up", |report| Some(report.bytes_up? as f64)),
        ("bytes_down", |report| Some(report.bytes_down? as f64)),
        ("joules", |report| report.joules),
        ("train_loss", |report| report.train_loss),
        ("test_loss", |report| report.test_loss),
        ("test_accuracy", |report| report.test_accuracy),
    ];
    for (name, value) in numbers {
        columns.set_item(name, number(&value))?;
    }
    for name in names {
        // The names above are taken.
        if !columns.contains(&name)? {
            columns.set_item(&name, number(&|report| report.scores.get(&name).copied()))?;
        }
    }
    Ok(columns)
}
