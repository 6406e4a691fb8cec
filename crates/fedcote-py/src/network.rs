//! The network: outage probabilities, and who fails when.

use std::path::Path;

use fedcote::random::{Key, Purpose};
use fedcote_radio::NetworkConfig;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{refuse, threads};

/// Φ(−margin/σ), entry by entry.
#[pyfunction]
pub fn outage<'py>(
    py: Python<'py>,
    margin_db: PyReadonlyArray1<'py, f64>,
    sigma_db: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (margin, sigma) = (margin_db.as_slice()?, sigma_db.as_slice()?);
    if let Some(sigma) = sigma.iter().find(|sigma| !(sigma.is_finite() && **sigma >= 0.0)) {
        return Err(refuse(format_args!("sigma_db: must be at least 0 and finite, is {sigma}")));
    }
    if margin.iter().any(|margin| margin.is_nan()) {
        return Err(refuse("margin_db: must be a number, is NaN"));
    }
    let outages = margin.iter().zip(sigma).map(|(&m, &s)| fedcote_radio::outage(m, s));
    Ok(outages.collect::<Vec<_>>().into_pyarray(py))
}

/// Who fails when.
#[pyclass(frozen, module = "fedcote._fedcote")]
pub struct Network {
    network: fedcote_radio::Network,
    seed: u64,
}

impl Network {
    fn check(&self, client: usize) -> PyResult<()> {
        let clients = self.network.clients();
        if client < clients {
            return Ok(());
        }
        let text = format!("client: must be from 0 to {}, is {client}", clients - 1);
        Err(PyIndexError::new_err(text))
    }
}

#[pymethods]
impl Network {
    #[new]
    fn new(
        py: Python<'_>,
        config: &str,
        clients: usize,
        model_parameters: usize,
        seed: u64,
        base: &str,
    ) -> PyResult<Self> {
        let config: NetworkConfig = serde_json::from_str(config)
            .map_err(|error| refuse(format_args!("network: {error}")))?;
        let network = threads::work(py, || {
            fedcote_radio::Network::new(&config, clients, model_parameters, seed, Path::new(base))
        });
        Ok(Self { network: network.map_err(refuse)?, seed })
    }

    #[getter]
    fn clients(&self) -> usize {
        self.network.clients()
    }

    #[getter]
    fn rate_bps(&self) -> f64 {
        self.network.rate_bps()
    }

    #[getter]
    fn moves(&self) -> bool {
        self.network.moves()
    }

    fn failures<'py>(&self, py: Python<'py>, round: u32) -> Bound<'py, PyArray1<f64>> {
        let mut failures = Vec::new();
        threads::work(py, || self.network.failures(round, &mut failures));
        failures.into_pyarray(py)
    }

    fn arrives(&self, round: u32, client: usize, copy: u32, attempt: u32) -> PyResult<bool> {
        self.check(client)?;
        let key = Key::new(self.seed, Purpose::Upload).round(round).client(client as u64);
        Ok(self.network.arrives(round, client, key.copy(copy).attempt(attempt)))
    }

    fn positions<'py>(&self, py: Python<'py>, round: u32) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let places = threads::work(py, || self.network.positions(round));
        let row = |place: &fedcote_radio::Place<'_>| {
            let row = PyDict::new(py);
            row.set_item("client", place.client)?;
            row.set_item("standard", place.standard)?;
            row.set_item("x", place.x)?;
            row.set_item("y", place.y)?;
            row.set_item("indoor", place.indoor)?;
            row.set_item("distance", place.distance)?;
            row.set_item("margin_db", place.margin_db)?;
            row.set_item("failure", place.failure)?;
            Ok(row)
        };
        places.iter().map(row).collect()
    }
}
