//! Noise on label counts, and what releases with noise add up to.

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

/// The smallest ε at which μ-Gaussian differential privacy is (ε, δ)-differential privacy.
#[pyfunction]
pub fn gaussian_epsilon(mu: f64, delta: f64) -> PyResult<f64> {
    fedcote::privacy::gaussian_epsilon(mu, delta).map_err(refuse)
}
