//! Selection probabilities, and what given ones lead to.

use fedcote::appearance::{PerClient, Systematic};
use fedcote::{Draws, Federation, FederationSpec, Groups, Method, Options, Uploads, Warning};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{refuse, threads};

/// The options of `select` as Python gives them: a dictionary.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Choices {
    method: String,
    kappa: f64,
    efficiency: f64,
    k_apx: Option<u64>,
    threshold: f64,
    coverage: bool,
    draws: String,
    uploads: String,
    aim: String,
}

impl Choices {
    pub fn options(&self) -> PyResult<Options> {
        let method = match self.method.as_str() {
            "exact" => Method::Exact { kappa: self.kappa, efficiency: self.efficiency },
            "gradient" => Method::gradient(self.k_apx),
            name => {
                let text = format!("method: must be one of exact, gradient, is {name:?}");
                return Err(refuse(text));
            }
        };
        Ok(Options::new()
            .with_method(method)
            .with_threshold(self.threshold)
            .with_coverage(self.coverage)
            .with_draws(draws_named(&self.draws)?)
            .with_uploads(uploads_named(&self.uploads)?)
            .with_aim(self.aim.parse().map_err(refuse)?))
    }
}

fn draws_named(name: &str) -> PyResult<Draws> {
    match name {
        "independent" => Ok(Draws::Independent),
        "systematic" => Ok(Draws::Systematic),
        _ => {
            Err(refuse(format_args!("draws: must be one of independent, systematic, is {name:?}")))
        }
    }
}

fn uploads_named(name: &str) -> PyResult<Uploads> {
    match name {
        "per-draw" => Ok(Uploads::PerDraw),
        "per-client" => Ok(Uploads::PerClient),
        _ => Err(refuse(format_args!("uploads: must be one of per-draw, per-client, is {name:?}"))),
    }
}

/// Warnings as lines of text.
pub fn lines(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

/// The effective appearance of every client; `order` is the order of systematic draws.
#[pyfunction]
pub fn appearance<'py>(
    py: Python<'py>,
    selection: PyReadonlyArray1<'py, f64>,
    failure: PyReadonlyArray1<'py, f64>,
    selected: u64,
    draws: &str,
    uploads: &str,
    order: Vec<u32>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (selection, failure) = (selection.as_slice()?, failure.as_slice()?);
    let (kind, uploads) = (draws_named(draws)?, uploads_named(uploads)?);
    let found = threads::work(py, || match (kind, uploads) {
        (Draws::Independent, Uploads::PerDraw) => {
            fedcote::appearance::appearance(selection, failure, selected)
        }
        (Draws::Independent, Uploads::PerClient) => {
            PerClient { failure, selected }.checked(selection)
        }
        (Draws::Systematic, uploads) => {
            Systematic { failure, selected, order: &order, uploads, groups: None }
                .checked(selection)
        }
    });
    Ok(found.map_err(refuse)?.into_pyarray(py))
}

fn federation(
    py: Python<'_>,
    labels: &PyReadonlyArray2<'_, f64>,
    failure: &PyReadonlyArray1<'_, f64>,
    ids: Option<Vec<String>>,
    groups: Option<Members>,
) -> PyResult<Federation> {
    let classes = labels.shape()[1];
    let (counts, failure) = (labels.as_slice()?.to_vec(), failure.as_slice()?.to_vec());
    threads::work(py, || {
        let Some((down, of)) = groups else {
            return FederationSpec { ids, classes, counts, failure }.check();
        };
        // First, so that a wrong failure is refused by the name of its client.
        let mut federation = FederationSpec { ids, classes, counts, failure }.check()?;
        let groups = Groups::new(down, of)?;
        federation.set_failure(groups.overall(federation.failure())?)?;
        federation.with_groups(groups)
    })
    .map_err(refuse)
}

/// How often each group is down, and the group of each client.
type Members = (Vec<f64>, Vec<Option<usize>>);

/// Selection probabilities, with everything that is known about them.
#[pyfunction]
pub fn select<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray2<'py, f64>,
    failure: PyReadonlyArray1<'py, f64>,
    selected: u64,
    ids: Option<Vec<String>>,
    groups: Option<Members>,
    choices: Choices,
) -> PyResult<Bound<'py, PyDict>> {
    let federation = federation(py, &labels, &failure, ids, groups)?;
    let options = choices.options()?;
    let found = threads::work(py, || fedcote::select(&federation, selected, &options));
    let found = found.map_err(refuse)?;
    let out = PyDict::new(py);
    out.set_item("method", found.method.name())?;
    out.set_item("weights", PyArray1::from_slice(py, federation.weights()))?;
    out.set_item("failure", PyArray1::from_slice(py, federation.failure()))?;
    out.set_item("selection", found.selection.into_pyarray(py))?;
    out.set_item("appearance", found.appearance.into_pyarray(py))?;
    out.set_item("target", found.target.into_pyarray(py))?;
    out.set_item("eligible", found.eligible.into_pyarray(py))?;
    out.set_item("label_divergence", found.label_divergence)?;
    out.set_item("weight_divergence", found.weight_divergence)?;
    out.set_item("expected_arrivals", found.expected_arrivals)?;
    out.set_item("optimality", found.optimality)?;
    out.set_item("warnings", lines(&found.warnings))?;
    Ok(out)
}

/// What given selection probabilities lead to.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn evaluate<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray2<'py, f64>,
    failure: PyReadonlyArray1<'py, f64>,
    selection: PyReadonlyArray1<'py, f64>,
    selected: u64,
    ids: Option<Vec<String>>,
    groups: Option<Members>,
    draws: &str,
    uploads: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let federation = federation(py, &labels, &failure, ids, groups)?;
    let selection = selection.as_slice()?;
    let procedure = (draws_named(draws)?, uploads_named(uploads)?);
    let found =
        threads::work(py, || fedcote::evaluate_for(&federation, selected, selection, procedure));
    let found = found.map_err(refuse)?;
    let out = PyDict::new(py);
    out.set_item("weights", PyArray1::from_slice(py, federation.weights()))?;
    out.set_item("failure", PyArray1::from_slice(py, federation.failure()))?;
    out.set_item("appearance", found.appearance.into_pyarray(py))?;
    out.set_item("label_divergence", found.label_divergence)?;
    out.set_item("weight_divergence", found.weight_divergence)?;
    out.set_item("expected_arrivals", found.expected_arrivals)?;
    out.set_item("warnings", lines(&found.warnings))?;
    Ok(out)
}
