//! Whole comparisons of schemes.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fedcote_sim::comparison::{Control, Event, RunId, Shard, compare};
use fedcote_sim::{Classifications, Scenario};
use pyo3::prelude::*;

use crate::refuse;

/// How often to look whether the user pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a scenario, a preset's name or a file, or `text` in TOML, in the folder `out`; the summary as JSON, and the seeds.
#[pyfunction]
pub fn simulate(
    py: Python<'_>,
    scenario: &str,
    text: Option<&str>,
    overrides: Vec<String>,
    out: &str,
    threads: usize,
    resume: bool,
) -> PyResult<(String, Vec<u64>)> {
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
    Ok((summary, scenario.general.seeds))
}
