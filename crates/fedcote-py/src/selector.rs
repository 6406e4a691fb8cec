//! `fedcote.Selector` over the library's: clients by number, arrays in and out.

use fedcote::estimate::EstimatorKind;
use fedcote::{Error, Selector};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::select::{Choices, lines};
use crate::{refuse, threads};

type Numbers<'py> = Bound<'py, PyArray1<u32>>;

/// Clients by number, from 0.
#[pyclass(module = "fedcote._fedcote")]
pub struct Core(Selector);

/// An unknown number is the wrapper's mistake, all else the user's.
fn raise(error: Error) -> PyErr {
    match error {
        Error::NoSuchClient(_) => PyIndexError::new_err(error.to_string()),
        _ => refuse(error),
    }
}

#[pymethods]
impl Core {
    #[new]
    fn new(seed: u64, estimator: &str, choices: Choices) -> PyResult<Self> {
        let kind: EstimatorKind = if estimator.starts_with('{') {
            serde_json::from_str(estimator)
                .map_err(|error| refuse(format_args!("estimator: {error}")))?
        } else {
            estimator.parse().map_err(refuse)?
        };
        Selector::new(seed, kind, choices.options()?).map(Self).map_err(refuse)
    }

    fn __len__(&self) -> usize {
        self.0.clients()
    }

    /// How many rounds have begun.
    fn round(&self) -> u32 {
        self.0.round()
    }

    /// Makes room for clients up to this number.
    fn grow(&mut self, clients: usize) {
        self.0.grow(clients);
    }

    fn forget(&mut self, client: u32) -> PyResult<()> {
        self.0.forget(client).map_err(raise)
    }

    fn set_labels(
        &mut self,
        clients: PyReadonlyArray1<'_, u32>,
        counts: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<()> {
        let (classes, counts) = (counts.shape()[1], counts.as_slice()?);
        for (place, &client) in clients.as_slice()?.iter().enumerate() {
            self.0.set_labels(client, &counts[place * classes..][..classes]).map_err(raise)?;
        }
        Ok(())
    }

    fn set_failure(&mut self, client: u32, failure: Option<f64>) -> PyResult<()> {
        self.0.set_failure(client, failure).map_err(raise)
    }

    /// How often each group of clients that fail together is down.
    fn set_groups(&mut self, failure: Vec<f64>) -> PyResult<()> {
        self.0.set_groups(failure).map_err(raise)
    }

    fn set_group(&mut self, client: u32, group: Option<u32>) -> PyResult<()> {
        self.0.set_group(client, group).map_err(raise)
    }

    fn observe(&mut self, client: u32, arrived: bool) -> PyResult<()> {
        self.0.observe(client, arrived).map_err(raise)
    }

    fn observe_signal(&mut self, client: u32, margin_db: f64) -> PyResult<()> {
        self.0.observe_signal(client, margin_db).map_err(raise)
    }

    fn observe_transmissions(&mut self, client: u32, failed: u32, arrived: bool) -> PyResult<()> {
        self.0.observe_transmissions(client, failed, arrived).map_err(raise)
    }

    fn failures<'py>(
        &self,
        py: Python<'py>,
        clients: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let failure = |&client: &u32| self.0.failure(client);
        let failures: Result<Vec<f64>, Error> = clients.as_slice()?.iter().map(failure).collect();
        Ok(failures.map_err(raise)?.into_pyarray(py))
    }

    /// Draws among the clients that are present: clients, and how often each was drawn.
    fn select<'py>(
        &mut self,
        py: Python<'py>,
        clients: PyReadonlyArray1<'py, u32>,
        present: PyReadonlyArray1<'py, bool>,
        selected: u64,
        again: bool,
    ) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
        let (clients, present) = (clients.as_slice()?, present.as_slice()?);
        let drawn = threads::work(py, || self.0.select_present(clients, present, selected, again));
        let (drawn, counts): (Vec<u32>, Vec<u32>) = drawn.map_err(raise)?.into_iter().unzip();
        Ok((drawn.into_pyarray(py), counts.into_pyarray(py)))
    }

    /// The clients of the latest selection.
    fn selected_from<'py>(&self, py: Python<'py>) -> Option<Numbers<'py>> {
        self.0.latest().map(|latest| PyArray1::from_slice(py, &latest.clients))
    }

    /// What the latest selection leads to.
    fn solution<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(latest) = self.0.latest() else { return Ok(None) };
        let (federation, solution) = (&latest.federation, &latest.solution);
        let out = PyDict::new(py);
        out.set_item("selected", solution.selected)?;
        out.set_item("method", solution.method.name())?;
        out.set_item("weights", PyArray1::from_slice(py, federation.weights()))?;
        out.set_item("failure", PyArray1::from_slice(py, federation.failure()))?;
        out.set_item("selection", PyArray1::from_slice(py, &solution.selection))?;
        out.set_item("appearance", PyArray1::from_slice(py, &solution.appearance))?;
        out.set_item("target", PyArray1::from_slice(py, &solution.target))?;
        out.set_item("eligible", PyArray1::from_slice(py, &solution.eligible))?;
        out.set_item("label_divergence", solution.label_divergence)?;
        out.set_item("weight_divergence", solution.weight_divergence)?;
        out.set_item("expected_arrivals", solution.expected_arrivals)?;
        out.set_item("optimality", solution.optimality)?;
        out.set_item("warnings", lines(&solution.warnings))?;
        Ok(Some(out))
    }

    /// `χ²(ᾱ‖α_g)` of an aggregate of these clients of the latest selection with these weights.
    fn label_divergence(&self, clients: Vec<u32>, weights: Vec<f64>) -> PyResult<f64> {
        let weights: Vec<(u32, f64)> = clients.into_iter().zip(weights).collect();
        self.0.label_divergence(&weights).map_err(raise)
    }

    fn state(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(refuse)
    }

    #[staticmethod]
    fn restored(state: &str, choices: Choices) -> PyResult<Self> {
        let wrong = |error: serde_json::Error| refuse(format_args!("state: {error}"));
        let mut state: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(state).map_err(wrong)?;
        let options = serde_json::to_value(choices.options()?).map_err(wrong)?;
        state.insert("options".into(), options);
        serde_json::from_value(state.into()).map(Self).map_err(wrong)
    }
}
