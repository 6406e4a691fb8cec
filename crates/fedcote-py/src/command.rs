//! The `fedcote` command inside a Python process.

use std::ffi::OsString;

use fedcote_cli::{ConnectRay, Extensions, MakeTasks, Ray};
use fedcote_sim::remote::Remote;
use fedcote_sim::{Error, Scenario, Tasks};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::remote::PyRemote;
use crate::simulate::{described, with_schemes};
use crate::task::Failure;

/// Executes a command line, the program's name first, and returns the exit status; `program` are the words that start
/// the command as a process of its own.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    py.detach(|| {
        let (tasks, ray): (MakeTasks, ConnectRay) = (Box::new(tasks), Box::new(connect));
        let extensions = Extensions { program, tasks: Some(tasks), ray: Some(ray) };
        fedcote_cli::main(arguments, &extensions)
    })
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

/// Connects with a cluster of Ray: a `fedcote._ray.Cluster`.
fn connect(ray: &Ray) -> Result<Box<dyn Remote>, Error> {
    let Ray { address, cpus_per_run, rounds_per_task } = ray;
    Ok(Box::new(PyRemote::make(|py| {
        let cluster = py.import("fedcote._ray")?.getattr("Cluster")?;
        cluster.call1((address.as_deref(), *cpus_per_run, *rounds_per_task))
    })?))
}
