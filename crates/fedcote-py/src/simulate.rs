//! Whole comparisons of schemes.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fedcote_sim::comparison::{Control, Event, RunId, Shard, compare};
use fedcote_sim::folder::Rounds;
use fedcote_sim::{Classifications, RoundReport, Scenario};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::refuse;

/// How often to look whether the user pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a scenario, a preset's name or a file, or `text` in JSON, in the folder `out`; the summary as JSON, and the runs
/// as pairs of scheme and seed.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    scenario: &str,
    text: Option<&str>,
    overrides: Vec<String>,
    out: &str,
    threads: usize,
    resume: bool,
) -> PyResult<(String, Vec<(String, u64)>)> {
    let scenario = match text {
        None => Scenario::load(scenario, &overrides),
        Some(text) => {
            let table: serde_json::Value = serde_json::from_str(text).map_err(refuse)?;
            let text = toml::to_string(&table)
                .map_err(|error| refuse(format_args!("{scenario}: {error}")))?;
            Scenario::parse(scenario, &text, &overrides, Path::new("."))
        }
    }
    .map_err(refuse)?;
    let tasks = py.detach(|| Classifications::load(&scenario)).map_err(refuse)?;
    let stop = AtomicBool::new(false);
    let control = Control {
        threads,
        resume,
        shard: Shard::ALL,
        stop: &stop,
        command: "fedcote.simulate".into(),
    };
    let silent = |_: &RunId, _: Event| {};
    let (result, interrupt) = py.detach(|| {
        thread::scope(|scope| {
            let run = scope.spawn(|| compare(&scenario, &tasks, Path::new(out), &control, &silent));
            let mut interrupt = None;
            while !run.is_finished() {
                thread::sleep(LOOK);
                if interrupt.is_none() {
                    interrupt = Python::attach(|py| py.check_signals()).err();
                    stop.fetch_or(interrupt.is_some(), Ordering::Relaxed);
                }
            }
            (run.join().unwrap_or_else(|panic| resume_unwind(panic)), interrupt)
        })
    });
    if let Some(interrupt) = interrupt {
        return Err(interrupt);
    }
    let summary =
        result.map_err(refuse)?.ok_or_else(|| refuse("the comparison was interrupted"))?;
    let summary = serde_json::to_string(&summary).map_err(refuse)?;
    let mut seeds = scenario.general.seeds;
    seeds.sort_unstable();
    let schemes = scenario.general.schemes.iter();
    let runs = schemes.flat_map(|name| seeds.iter().map(|&seed| (name.clone(), seed)));
    Ok((summary, runs.collect()))
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
    let numbers: [(&str, Number); 5] = [
        ("label_divergence_wanted", |report| report.label_divergence_wanted),
        ("label_divergence_realised", |report| report.label_divergence_realised),
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
