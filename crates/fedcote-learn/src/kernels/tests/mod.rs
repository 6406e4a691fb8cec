//! Every kernel on every path that this CPU has, against a naive reference in f64 and finite differences of it.

mod convolution;
mod group_norm;
mod pool;

use fedcote::random::{Key, Purpose};
use rand::RngExt;

use super::plane::Plane;

/// Values in ±1 from the test stream of that number.
pub(super) fn values(seed: u64, len: usize) -> Vec<f32> {
    let mut stream = Key::new(seed, Purpose::Test).stream();
    (0..len).map(|_| 2.0 * stream.random::<f32>() - 1.0).collect()
}

pub(super) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// ‖a − b‖ / ‖b‖.
pub(super) fn distance(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let norm: f64 = b.iter().map(|b| b * b).sum();
    let difference: f64 = a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    (difference / norm).sqrt()
}

/// The gradient of a scalar function by central differences.
pub(super) fn differences(at: &[f64], function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let step = 1e-6;
    let mut at = at.to_vec();
    (0..at.len())
        .map(|i| {
            let value = at[i];
            at[i] = value + step;
            let above = function(&at);
            at[i] = value - step;
            let below = function(&at);
            at[i] = value;
            (above - below) / (2.0 * step)
        })
        .collect()
}

/// A padded copy of dense images.
pub(super) fn padded(plane: Plane, dense: &[f32]) -> Vec<f32> {
    let mut padded = vec![0.0; dense.len() / plane.dense() * plane.padded()];
    plane.pad(dense, &mut padded);
    padded
}

/// The interior of padded images; asserts that the border is still zero.
pub(super) fn interior(plane: Plane, padded: &[f32]) -> Vec<f32> {
    let mut dense = Vec::new();
    for image in padded.chunks_exact(plane.padded()) {
        for row in 0..plane.height {
            let at = plane.origin() + row * plane.row();
            dense.extend_from_slice(&image[at..at + plane.width * plane.channels]);
        }
    }
    assert_eq!(self::padded(plane, &dense), padded, "the border was written");
    dense
}
