//! The data set that travels with the package, and how samples are divided among clients.

use std::path::Path;

use fedcote_learn::data::{DataSpec, Split, load};
use numpy::{PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::{refuse, threads};

type Arrays<'py> = (Bound<'py, PyArray3<u8>>, Bound<'py, PyArray1<u8>>);

fn arrays<'py>(py: Python<'py>, split: &Split) -> PyResult<Arrays<'py>> {
    let shape = [split.len(), split.shape.height, split.shape.width];
    let images = PyArray1::from_slice(py, &split.images).reshape(shape)?;
    Ok((images, PyArray1::from_slice(py, &split.labels)))
}

/// Training images and labels, test images and labels.
#[pyfunction]
pub fn mnist(py: Python<'_>) -> PyResult<(Arrays<'_>, Arrays<'_>)> {
    let data = threads::work(py, || load(&DataSpec::default(), Path::new("."))).map_err(refuse)?;
    Ok((arrays(py, &data.train)?, arrays(py, &data.test)?))
}

/// The samples of each client. `choices` has the keys of a scenario's `[data]` table that divide samples, as JSON.
#[pyfunction]
pub fn partition<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray1<'py, u16>,
    classes: usize,
    clients: usize,
    choices: &str,
    seed: u64,
) -> PyResult<Vec<Bound<'py, PyArray1<u32>>>> {
    // By way of a value: errors then name no place in the text.
    let spec = serde_json::from_str(choices).and_then(serde_json::from_value::<DataSpec>);
    let spec = spec.map_err(|error| refuse(format_args!("partition: {error}")))?;
    let labels = labels.as_slice()?;
    let found =
        threads::work(py, || fedcote_learn::partition(&spec, labels, classes, clients, seed));
    // The keys are arguments here.
    let found = found.map_err(|error| refuse(error.to_string().trim_start_matches("data.")))?;
    Ok((0..found.len()).map(|client| PyArray1::from_slice(py, found.client(client))).collect())
}
