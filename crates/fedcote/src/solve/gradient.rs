//! The paper's Algorithm 2: projected gradient descent on the label divergence.
//!
//! Three repairs to what is printed: the start `s ∝ p` is normalised over the *eligible* clients; the projection is the
//! Euclidean one onto their simplex, which respects `s ≥ 0`; and the step is a spectral one with a
//! non-monotone line search (Birgin, Martínez and Raydan, *Nonmonotone spectral projected gradient methods on convex
//! sets*, 2000), since a fixed step diverges.

use crate::appearance::{AppearanceModel, Independent, gradient};
use crate::chunks;
use crate::divergence::{effective_labels, label_divergence};
use crate::error::Error;
use crate::federation::Federation;

/// How many past values the line search looks back on.
const MEMORY: usize = 10;

/// Where the descent ended.
#[derive(Debug)]
pub struct Descent {
    pub selection: Vec<f64>,
    /// Largest entry of `P(s − ∇) − s`: zero at a stationary point.
    pub residual: f64,
}

/// Minimises `χ²(ᾱ‖α_g)` over the selection of the eligible clients, for `draws` independent draws.
pub fn descend(
    federation: &Federation,
    eligible: &[bool],
    selected: u64,
    start: Vec<f64>,
    max_steps: usize,
    tolerance: f64,
) -> Result<Descent, Error> {
    let model = Independent { failure: federation.failure(), selected };
    let mut appearance = vec![0.0; start.len()];
    let mut objective = |selection: &[f64]| -> Result<(f64, Vec<f64>), Error> {
        model.appearance(selection, &mut appearance)?;
        let cotangent = cotangent(federation, &appearance);
        Ok((label_divergence(federation, &appearance), cotangent))
    };
    let slope_at = |selection: &[f64], cotangent: &[f64]| {
        gradient(selection, federation.failure(), selected, cotangent)
    };

    let mut selection = start;
    let (mut value, cotangent) = objective(&selection)?;
    let mut slope = slope_at(&selection, &cotangent)?;
    let mut history = vec![value];
    let mut step = 1.0;
    let mut best = (f64::INFINITY, Descent { selection: Vec::new(), residual: f64::INFINITY });
    for count in 0..=max_steps {
        let full = projected(&selection, &slope, 1.0, eligible);
        let moves = full.iter().zip(&selection).map(|(to, from)| (to - from).abs());
        let residual = moves.fold(0.0, f64::max);
        // The search is not monotone: what counts is the best point, not the last.
        if value < best.0 {
            best = (value, Descent { selection: selection.clone(), residual });
        }
        if residual <= tolerance || count == max_steps {
            break;
        }
        let aim = projected(&selection, &slope, step, eligible);
        let direction: Vec<f64> = aim.iter().zip(&selection).map(|(to, from)| to - from).collect();
        let descent: f64 = direction.iter().zip(&slope).map(|(d, g)| d * g).sum();
        let ceiling = history.iter().rev().take(MEMORY).fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let mut length = 1.0;
        let (next, next_value, next_cotangent) = loop {
            let next: Vec<f64> =
                selection.iter().zip(&direction).map(|(s, d)| (s + length * d).max(0.0)).collect();
            let (next_value, cotangent) = objective(&next)?;
            if next_value <= ceiling + 1e-4 * length * descent || length < 1e-12 {
                break (next, next_value, cotangent);
            }
            length *= 0.5;
        };
        let next_slope = slope_at(&next, &next_cotangent)?;
        let (mut moved, mut curved) = (0.0, 0.0);
        for client in 0..next.len() {
            let change = next[client] - selection[client];
            moved += change * change;
            curved += change * (next_slope[client] - slope[client]);
        }
        step = if curved > 0.0 { (moved / curved).clamp(1e-10, 1e10) } else { 1e10 };
        selection = next;
        slope = next_slope;
        value = next_value;
        history.push(value);
        if moved == 0.0 {
            break;
        }
    }
    Ok(best.1)
}

/// `∂χ²/∂β̄_i = 2 Σ_c α_{i,c} (ᾱ_c − α_{g,c}) / α_{g,c}`.
fn cotangent(federation: &Federation, appearance: &[f64]) -> Vec<f64> {
    let pull: Vec<f64> = effective_labels(federation, appearance)
        .iter()
        .zip(federation.global_labels())
        .map(|(&found, &goal)| if goal > 0.0 { 2.0 * (found - goal) / goal } else { 0.0 })
        .collect();
    let mut out = vec![0.0; federation.len()];
    chunks::fill(&mut out, |first, chunk| {
        for (client, out) in (first..).zip(chunk) {
            *out =
                federation.labels(client).iter().zip(&pull).map(|(label, pull)| label * pull).sum();
        }
    });
    out
}

fn projected(selection: &[f64], slope: &[f64], step: f64, eligible: &[bool]) -> Vec<f64> {
    let mut point: Vec<f64> =
        selection.iter().zip(slope).map(|(selection, slope)| selection - step * slope).collect();
    project(&mut point, eligible);
    point
}

/// The closest point of the simplex over the eligible clients (Michelot, 1986): subtract the same amount from all,
/// drop who falls below zero, repeat.
pub fn project(point: &mut [f64], eligible: &[bool]) {
    let mut active: Vec<usize> = (0..point.len()).filter(|&client| eligible[client]).collect();
    loop {
        // Subtracting the largest first keeps the sum exact enough for steps of any length.
        let largest = active.iter().map(|&i| point[i]).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = active.iter().map(|&i| point[i] - largest).sum();
        let shift = largest + (sum - 1.0) / active.len() as f64;
        let before = active.len();
        active.retain(|&client| point[client] > shift);
        if active.len() == before || active.is_empty() {
            let mut kept = active.into_iter().peekable();
            for (client, value) in point.iter_mut().enumerate() {
                if kept.next_if_eq(&client).is_some() {
                    *value -= shift;
                } else {
                    *value = 0.0;
                }
            }
            chunks::normalise(point);
            return;
        }
    }
}
