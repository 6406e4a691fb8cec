//! The data set that travels with the package.

use std::path::Path;

use fedcote_learn::data::{DataSpec, Split, load};
use numpy::{PyArray1, PyArray3, PyArrayMethods};
use pyo3::prelude::*;

use crate::refuse;

type Arrays<'py> = (Bound<'py, PyArray3<u8>>, Bound<'py, PyArray1<u8>>);

fn arrays<'py>(py: Python<'py>, split: &Split) -> PyResult<Arrays<'py>> {
    let shape = [split.len(), split.shape.height, split.shape.width];
    let images = PyArray1::from_slice(py, &split.images).reshape(shape)?;
    Ok((images, PyArray1::from_slice(py, &split.labels)))
}

/// Training images and labels, test images and labels.
#[pyfunction]
pub fn mnist(py: Python<'_>) -> PyResult<(Arrays<'_>, Arrays<'_>)> {
    let data = py.detach(|| load(&DataSpec::default(), Path::new("."))).map_err(refuse)?;
    Ok((arrays(py, &data.train)?, arrays(py, &data.test)?))
}
