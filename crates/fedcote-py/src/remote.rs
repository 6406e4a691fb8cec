//! Stretches of runs: sent by a Python object, and computed in the process that receives them.

use std::sync::{Arc, Mutex};

use fedcote_sim::comparison::RunId;
use fedcote_sim::remote::{Piece, Remote};
use fedcote_sim::stretch::State;
use fedcote_sim::worker::Worker;
use fedcote_sim::{Error, Scenario, Tasks};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::simulate::{described, with_schemes};
use crate::task::{Failure, PythonTasks};

/// A Python object with the attribute `rounds` and the methods `room`, `submit`, `wait` and `cancel` of a [`Remote`].
/// A `ValueError` of theirs means that the request was wrong.
pub struct PyRemote {
    object: Py<PyAny>,
    /// The exception behind the last error.
    raised: Mutex<Option<PyErr>>,
}

impl PyRemote {
    /// Of this object.
    pub fn new(object: Py<PyAny>) -> Self {
        Self { object, raised: Mutex::default() }
    }

    /// Of the object that is made so.
    pub fn make(
        make: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Result<Self, Error> {
        Python::attach(|py| match make(py) {
            Ok(object) => Ok(Self::new(object.unbind())),
            Err(error) => Err(told(py, &error)),
        })
    }

    /// The exception behind the last error.
    pub fn raised(&self) -> Option<PyErr> {
        self.raised.lock().expect("no panic while held").take()
    }

    /// Calls a method and understands what it returns.
    fn call<T>(&self, method: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, Error> {
        Python::attach(|py| {
            method(self.object.bind(py)).map_err(|error| {
                let reason = told(py, &error);
                *self.raised.lock().expect("no panic while held") = Some(error);
                reason
            })
        })
    }
}

/// What an exception says, in one line.
fn told(py: Python<'_>, error: &PyErr) -> Error {
    let text = error.value(py).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let reason = match lines.as_slice() {
        [] => error.get_type(py).to_string(),
        lines => lines.join(" "),
    };
    Error::Remote { reason, request: error.is_instance_of::<PyValueError>(py) }
}

impl Remote for PyRemote {
    fn rounds(&self) -> Option<u32> {
        self.call(|object| object.getattr("rounds")?.extract()).ok().flatten()
    }

    fn room(&self) -> Result<usize, Error> {
        self.call(|object| object.call_method0("room")?.extract())
    }

    fn submit(&self, number: usize, piece: &Piece) -> Result<(), Error> {
        self.call(|object| {
            let state = piece.state.map(|state| PyBytes::new(object.py(), state.as_bytes()));
            let RunId { scheme, seed } = piece.run;
            let arguments = (number, piece.scenario, scheme, *seed, state, piece.rounds);
            object.call_method1("submit", arguments).map(|_| ())
        })
    }

    fn wait(&self) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        self.call(|object| object.call_method0("wait")?.extract())
    }

    fn cancel(&self) {
        // Whoever cancels has no use for what goes wrong then.
        let _ = self.call(|object| object.call_method0("cancel").map(|_| ()));
    }
}

/// Plays up to so many rounds of a run, from a state or from its beginning, of the scenario's own task or of a
/// `fedcote._task.Tasks`. What is wrong with the request is a `ValueError`, what goes wrong with the work a
/// `RuntimeError`. Whoever has two tasks for the same scenario must tell the texts apart by a comment.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // each is an argument of the Python function
pub fn stretch<'py>(
    py: Python<'py>,
    threads: usize,
    scenario: &str,
    scheme: String,
    seed: u64,
    state: Option<&[u8]>,
    rounds: u32,
    tasks: Option<Py<PyAny>>,
    schemes: Py<PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let run = RunId { scheme, seed };
    let state = state.map(State::from_bytes);
    let failure = Failure::default();
    let make = |scenario: &Scenario| -> Result<Box<dyn Tasks>, Error> {
        Python::attach(|py| {
            let made = || {
                let made: Box<dyn Tasks> = match &tasks {
                    Some(tasks) => {
                        Box::new(PythonTasks::new(tasks.bind(py), scenario, failure.clone())?)
                    }
                    None => described(py, scenario, &failure)?,
                };
                with_schemes(made, schemes.bind(py), scenario, &failure)
            };
            made().map_err(|error| told(py, &error))
        })
    };
    let play = || worker(threads)?.play(scenario, &make, &run, state.as_ref(), rounds);
    match py.detach(play) {
        Ok(stretch) => Ok(PyBytes::new(py, &stretch.to_bytes())),
        Err(error) if error.is_request() => Err(PyValueError::new_err(error.to_string())),
        Err(error @ (Error::Task { .. } | Error::Scheme { .. })) => Err(failure.raise(py, &error)),
        Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
    }
}

/// The worker of this process, which is asked for stretches of the same comparison again and again.
fn worker(threads: usize) -> Result<Arc<Worker>, Error> {
    static LAST: Mutex<Option<(usize, Arc<Worker>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match &*last {
        Some((same, worker)) if *same == threads => Ok(Arc::clone(worker)),
        _ => {
            let worker = Arc::new(Worker::new(threads)?);
            *last = Some((threads, Arc::clone(&worker)));
            Ok(worker)
        }
    }
}
