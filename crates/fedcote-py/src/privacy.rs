//! Noise on label counts.

use fedcote::privacy::Geometric;
use fedcote::rand::SeedableRng;
use fedcote::random::Stream;
use pyo3::prelude::*;

use crate::refuse;

/// Counts with two-sided geometric noise, none below 0, from a generator with this seed.
#[pyfunction]
pub fn protect(counts: Vec<u64>, epsilon: f64, seed: [u8; 32]) -> PyResult<Vec<u64>> {
    let noise = Geometric::new(epsilon, 1).map_err(refuse)?;
    Ok(noise.protect(&counts, &mut Stream::from_seed(seed)))
}
