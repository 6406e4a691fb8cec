//! Weighted sums of many arrays in one pass.

use numpy::{Element, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::{refuse, threads};

/// Values a piece of work: its f64 sums stay in the first-level cache.
const CHUNK: usize = 2048;

trait Float: Element + Copy + Send + Sync {
    fn wide(self) -> f64;
    fn narrow(wide: f64) -> Self;
}

impl Float for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn narrow(wide: f64) -> Self {
        wide as f32
    }
}

impl Float for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn narrow(wide: f64) -> Self {
        wide
    }
}

/// `out = Σ weight_i array_i`, summed in f64 in the order of the arrays; whether everything in `out` is finite.
fn weighted_sum<T: Float>(
    py: Python<'_>,
    arrays: Vec<PyReadonlyArray1<'_, T>>,
    weights: Vec<f64>,
    mut out: PyReadwriteArray1<'_, T>,
) -> PyResult<bool> {
    let arrays = arrays.iter().map(|array| array.as_slice()).collect::<Result<Vec<_>, _>>()?;
    let out = out.as_slice_mut()?;
    if arrays.len() != weights.len() || arrays.iter().any(|array| array.len() != out.len()) {
        return Err(refuse("arrays: must be as many as weights, and all as long as the result"));
    }
    let sum = |(index, out): (usize, &mut [T])| {
        let mut sums = [0.0; CHUNK];
        let sums = &mut sums[..out.len()];
        for (array, &weight) in arrays.iter().zip(&weights) {
            let values = &array[index * CHUNK..][..sums.len()];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += weight * value.wide();
            }
        }
        for (out, &sum) in out.iter_mut().zip(&*sums) {
            *out = T::narrow(sum);
        }
        // What is finite in f64 need not be in f32.
        out.iter().all(|value| value.wide().is_finite())
    };
    Ok(threads::work(py, || {
        out.par_chunks_mut(CHUNK).enumerate().map(sum).reduce(|| true, |a, b| a & b)
    }))
}

/// [`weighted_sum`] of `float32` arrays.
#[pyfunction]
pub fn weighted_sum_f32(
    py: Python<'_>,
    arrays: Vec<PyReadonlyArray1<'_, f32>>,
    weights: Vec<f64>,
    out: PyReadwriteArray1<'_, f32>,
) -> PyResult<bool> {
    weighted_sum(py, arrays, weights, out)
}

/// [`weighted_sum`] of `float64` arrays.
#[pyfunction]
pub fn weighted_sum_f64(
    py: Python<'_>,
    arrays: Vec<PyReadonlyArray1<'_, f64>>,
    weights: Vec<f64>,
    out: PyReadwriteArray1<'_, f64>,
) -> PyResult<bool> {
    weighted_sum(py, arrays, weights, out)
}
