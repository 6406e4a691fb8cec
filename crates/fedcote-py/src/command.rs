//! The `fedcote` command inside a Python process.

use std::ffi::OsString;

use fedcote_cli::Extensions;
use fedcote_sim::{Error, Scenario, Tasks};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::simulate::{described, with_schemes};
use crate::task::Failure;

/// Executes a command line, the program's name first, and returns the exit status; `program` are the words that start
/// the command as a process of its own.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    let extensions = Extensions { program, tasks: Some(Box::new(tasks)) };
    py.detach(|| fedcote_cli::main(arguments, &extensions))
}

/// The tasks of a scenario with code in Python. Tracebacks are printed above the command's own line.
fn tasks(scenario: &Scenario) -> Result<Box<dyn Tasks>, Error> {
    Python::attach(|py| {
        let failure = Failure::printed();
        let made = described(py, scenario, &failure)
            .and_then(|tasks| with_schemes(tasks, PyDict::new(py).as_any(), scenario, &failure));
        made.map_err(|error| failure.explain(py, 0, None, error))
    })
}
