//! The selection that leads to a wanted appearance.
//!
//! `β̄(s) = β` is solved by `s_i ← s_i (β_i / β̄_i(s))^θ`, normalised, from `s_i ∝ β_i / (1 − ε_i)`, which is
//! the answer for many draws. Undamped (`θ = 1`) the iteration can cycle, as for `β = (0.9, 0.1)`, `ε = (0, 0.99)`,
//! `K = 10`; so a step after which the largest error has not fallen is taken back and retried with half the
//! `θ`, and `θ` grows by 1.2 after one that helped.

use crate::appearance::AppearanceModel;
use crate::chunks;
use crate::error::Error;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Largest relative error of an appearance that is good enough.
    pub tolerance: f64,
    /// Largest number of evaluations of the model.
    pub evaluations: usize,
}

impl Default for Limits {
    /// A relative error of 1e-13, and at most 500 evaluations.
    fn default() -> Self {
        Self { tolerance: 1e-13, evaluations: 500 }
    }
}

/// What the inversion found.
#[derive(Debug, Clone, PartialEq)]
pub struct Inversion {
    /// Selection probabilities, summing to one.
    pub selection: Vec<f64>,
    /// Their appearance.
    pub appearance: Vec<f64>,
    /// The largest `|β̄_i/β_i − 1|`.
    pub residual: f64,
    /// How often the model was evaluated.
    pub evaluations: usize,
}

/// The start `s_i ∝ β_i / (1 − ε_i)`: the answer in the limit of many draws.
pub fn many_draws(target: &[f64], failure: &[f64]) -> Vec<f64> {
    let mut start = target.to_vec();
    chunks::fill(&mut start, |first, chunk| {
        for (value, failure) in chunk.iter_mut().zip(&failure[first..]) {
            if *value > 0.0 {
                *value /= 1.0 - failure;
            }
        }
    });
    chunks::normalise(&mut start);
    start
}

/// Solves `β̄(s) = target` from `start`.
///
/// `target` sums to one; `start` is positive wherever the target is. Returns the best selection found with its
/// residual, converged or not.
pub fn invert(
    model: &dyn AppearanceModel,
    target: &[f64],
    start: Vec<f64>,
    limits: Limits,
) -> Result<Inversion, Error> {
    let mut best = start;
    let mut best_appearance = vec![0.0; target.len()];
    model.appearance(&best, &mut best_appearance)?;
    let mut residual = error(target, &best_appearance);
    let mut evaluations = 1;
    let mut trial = vec![0.0; target.len()];
    let mut trial_appearance = vec![0.0; target.len()];
    let mut damping: f64 = 1.0;
    while residual > limits.tolerance && evaluations < limits.evaluations && damping > 1e-6 {
        chunks::fill(&mut trial, |first, chunk| {
            for (client, value) in (first..).zip(chunk) {
                *value = if target[client] > 0.0 {
                    let ratio = target[client] / best_appearance[client];
                    best[client] * if damping == 1.0 { ratio } else { ratio.powf(damping) }
                } else {
                    0.0
                };
            }
        });
        chunks::normalise(&mut trial);
        model.appearance(&trial, &mut trial_appearance)?;
        evaluations += 1;
        let found = error(target, &trial_appearance);
        if found < residual {
            residual = found;
            std::mem::swap(&mut best, &mut trial);
            std::mem::swap(&mut best_appearance, &mut trial_appearance);
            damping = (1.2 * damping).min(1.0);
        } else {
            damping *= 0.5;
            // Rounding alone moves the error about once it is this small.
            if residual < 100.0 * limits.tolerance {
                break;
            }
        }
    }
    Ok(Inversion { selection: best, appearance: best_appearance, residual, evaluations })
}

pub(crate) fn error(target: &[f64], appearance: &[f64]) -> f64 {
    chunks::map(target.len(), |range| {
        let pairs = target[range.clone()].iter().zip(&appearance[range]);
        let errors =
            pairs.map(
                |(&target, &appearance)| {
                    if target > 0.0 { (appearance / target - 1.0).abs() } else { appearance }
                },
            );
        // `f64::max` would drop a NaN.
        errors.fold(0.0, |worst: f64, error| if error <= worst { worst } else { error })
    })
    .into_iter()
    .fold(0.0, |worst: f64, error| if error <= worst { worst } else { error })
}
