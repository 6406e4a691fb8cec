//! The selection that leads to a wanted appearance.
//!
//! `β̄(s) = β` is solved by `s_i ← s_i (β_i / β̄_i(s))^θ`, normalised, from `s_i ∝ β_i / (1 − ε_i)`, which is
//! the answer for many draws. In logarithms this is a step `θ r` along the residual `r = ln(β/β̄)`, whose Jacobian has
//! eigenvalues from 1 to `K`: undamped (`θ = 1`) the iteration can cycle, as for `β = (0.9, 0.1)`,
//! `ε = (0, 0.99)`, `K = 10`. So after the first step `θ` is the spectral step length (Barzilai and Borwein, *Two-point step size
//! gradient methods*, 1988), and a step after which `Σ β r²` is above all of its last values is taken back and
//! retried with a quarter of the length.

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
    let mut here = start;
    let mut appearance = vec![0.0; target.len()];
    model.appearance(&here, &mut appearance)?;
    let mut best = Inversion {
        selection: here.clone(),
        appearance: appearance.clone(),
        residual: error(target, &appearance),
        evaluations: 1,
    };
    let mut residual = residuals(target, &appearance);
    let mut merits = vec![products(target, &residual, &residual)[0]];
    let mut trial = vec![0.0; target.len()];
    let mut length: f64 = 1.0;
    let mut idle = 0;
    while best.residual > limits.tolerance
        && best.evaluations < limits.evaluations
        && length > SHORTEST
    {
        chunks::fill(&mut trial, |first, chunk| {
            for (client, value) in (first..).zip(chunk) {
                *value = here[client] * (length * residual[client]).exp();
            }
        });
        chunks::normalise(&mut trial);
        model.appearance(&trial, &mut appearance)?;
        best.evaluations += 1;
        let found = error(target, &appearance);
        idle = if found < 0.9 * best.residual { 0 } else { idle + 1 };
        if found < best.residual {
            best.residual = found;
            best.selection.copy_from_slice(&trial);
            best.appearance.copy_from_slice(&appearance);
        }
        // So close, what rounding leaves does not get better by trying.
        if idle >= 5 && best.residual < 100.0 * limits.tolerance {
            break;
        }
        let after = residuals(target, &appearance);
        let [merit, mixed, before] = products(target, &after, &residual);
        let ceiling = merits.iter().rev().take(MEMORY).fold(0.0, |a: f64, &b| a.max(b));
        if merit < ceiling {
            // ⟨r, y⟩ / ⟨y, y⟩ with y = (r − r') / θ, the change of the residual along the step.
            let curvature = before - 2.0 * mixed + merit;
            let spectral = length * (before - mixed) / curvature;
            length = if spectral > 0.0 { spectral.clamp(1e-3 * length, 1.0) } else { 1.0 };
            merits.push(merit);
            std::mem::swap(&mut here, &mut trial);
            residual = after;
        } else {
            length *= 0.25;
        }
    }
    Ok(best)
}

/// How many past values a step may exceed all but one of.
const MEMORY: usize = 5;

/// Steps shorter than this lead nowhere.
const SHORTEST: f64 = 1e-9;

/// `ln(β/β̄)`, zero for clients that shall not appear.
fn residuals(target: &[f64], appearance: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; target.len()];
    chunks::fill(&mut out, |first, chunk| {
        for (client, out) in (first..).zip(chunk) {
            if target[client] > 0.0 {
                // Never far: a client whose appearance has vanished comes back in a few steps.
                *out = (target[client] / appearance[client]).ln().clamp(-20.0, 20.0);
            }
        }
    });
    out
}

/// `Σ β a²`, `Σ β a b` and `Σ β b²`.
fn products(target: &[f64], a: &[f64], b: &[f64]) -> [f64; 3] {
    chunks::sums(target.len(), |range| {
        let mut sums = [0.0; 3];
        for client in range {
            let (weight, a, b) = (target[client], a[client], b[client]);
            sums[0] += weight * a * a;
            sums[1] += weight * a * b;
            sums[2] += weight * b * b;
        }
        sums
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appearance::Independent;
    use crate::random::{Key, Purpose};
    use rand::RngExt;

    #[test]
    fn one_draw_is_its_own_answer() {
        let failure = [0.1, 0.9];
        let model = Independent { failure: &failure, selected: 1 };
        let start = many_draws(&[0.3, 0.7], &failure);
        let found = invert(&model, &[0.3, 0.7], start, Limits::default()).expect("valid");
        assert_eq!(found.evaluations, 2);
        assert!((found.selection[0] - 0.3).abs() < 1e-15);
    }

    #[test]
    fn the_case_that_cycles_without_damping() {
        let failure = [0.0, 0.99];
        let target = [0.9, 0.1];
        let model = Independent { failure: &failure, selected: 10 };
        let mut selection = many_draws(&target, &failure);
        let mut appearance = vec![0.0; 2];
        for _ in 0..200 {
            model.appearance(&selection, &mut appearance).expect("valid");
            (0..2).for_each(|i| selection[i] *= target[i] / appearance[i]);
            chunks::normalise(&mut selection);
        }
        assert!(error(&target, &appearance) > 0.01, "undamped, it does not converge");
        let start = many_draws(&target, &failure);
        let found = invert(&model, &target, start, Limits::default()).expect("valid");
        assert!(found.residual <= 1e-12, "{}", found.residual);
    }

    #[test]
    fn failures_up_to_one_in_a_billion_of_arriving() {
        let mut stream = Key::new(3, Purpose::Test).stream();
        for selected in [2, 10, 1000, 1_000_000_000] {
            for _ in 0..20 {
                let mut target: Vec<f64> = (0..8).map(|_| 0.01 + stream.random::<f64>()).collect();
                chunks::normalise(&mut target);
                let failure: Vec<f64> =
                    (0..8).map(|_| 1.0 - 10f64.powf(-9.0 * stream.random::<f64>())).collect();
                let model = Independent { failure: &failure, selected };
                let start = many_draws(&target, &failure);
                let found = invert(&model, &target, start, Limits::default()).expect("valid");
                assert!(found.residual < 1e-9, "{selected} draws, {failure:?}: {}", found.residual);
            }
        }
    }
}
