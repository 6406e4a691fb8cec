//! Aggregation weights after the fact: matched to the labels of those who arrived.
//!
//! Selection makes the label mix right on average; a single round still misses it. Once it is known who arrived,
//! choose aggregation weights `w` on the simplex of the arrivals that minimise
//!
//! ```text
//! Σ_c (α_{g,c} − Σ_i w_i α_{i,c})² / α_{g,c}  +  λ Σ_i (w_i − q_i)² / q_i ,
//! ```
//!
//! the label divergence of this round plus a ridge towards the weights `q` that plain averaging would use: equal ones, or
//! the numbers of draws that arrived. `λ → ∞` is plain averaging; `λ → 0` matches the labels as well as the arrivals allow,
//! at the price of a larger variance `Σ w²`. It is the convex problem of the target with `κ = 1/λ`, and the same
//! solver serves.

use crate::error::{Error, check_length};
use crate::target::TargetProblem;

/// Aggregation weights of the arrivals, summing to one.
///
/// `labels` holds the label shares of each arrival, row after row, `goal` the shares to match, `reference` the weights of plain
/// averaging, which need not be normalised, and `ridge` is `λ`.
///
/// ```
/// // Three arrivals, two of which hold label 0 only: equal weights would give it ⅔ instead of ½.
/// let labels = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
/// let weights = fedcote::matched::weights(&labels, &[0.5, 0.5], &[1.0; 3], 1e-6)?;
/// assert!((weights[0] - 0.25).abs() < 1e-5 && (weights[2] - 0.5).abs() < 1e-5);
/// # Ok::<(), fedcote::Error>(())
/// ```
///
/// # Errors
/// When nobody arrived, lengths do not fit, or `ridge` or a reference weight is not above 0 and finite.
pub fn weights(
    labels: &[f64],
    goal: &[f64],
    reference: &[f64],
    ridge: f64,
) -> Result<Vec<f64>, Error> {
    let legal = "above 0 and finite";
    let valid = |value: f64| value > 0.0 && value.is_finite();
    if let Some(&value) = reference.iter().find(|&&value| !valid(value)) {
        return Err(Error::Parameter { name: "reference", legal, value });
    }
    if !valid(ridge) || !valid(1.0 / ridge) {
        return Err(Error::Parameter { name: "ridge", legal, value: ridge });
    }
    check_length("labels", reference.len().saturating_mul(goal.len()), labels.len())?;
    let total: f64 = reference.iter().sum();
    let reference: Vec<f64> = reference.iter().map(|weight| weight / total).collect();
    let kappa = 1.0 / ridge;
    let problem =
        TargetProblem { reference: &reference, labels, goal, kappa, price: &[], eligible: &[] };
    Ok(problem.solve(None)?.appearance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn objective(labels: &[f64], goal: &[f64], reference: &[f64], ridge: f64, w: &[f64]) -> f64 {
        let classes = goal.len();
        let total: f64 = reference.iter().sum();
        let miss: f64 = (0..classes)
            .filter(|&c| goal[c] > 0.0)
            .map(|c| {
                let mix: f64 = w.iter().enumerate().map(|(i, w)| w * labels[i * classes + c]).sum();
                (goal[c] - mix) * (goal[c] - mix) / goal[c]
            })
            .sum();
        let pull: f64 = w
            .iter()
            .zip(reference.iter().map(|q| q / total))
            .map(|(w, q)| (w - q) * (w - q) / q)
            .sum();
        miss + ridge * pull
    }

    #[test]
    fn two_arrivals_by_hand() {
        // One label each: (w − g)²/(g(1−g)) + λ (w − q)²/(q(1−q)), a parabola in w.
        let (g, q, ridge): (f64, f64, f64) = (0.3, 0.6, 0.5);
        let (a, b) = (1.0 / (g * (1.0 - g)), ridge / (q * (1.0 - q)));
        let expected = (a * g + b * q) / (a + b);
        let found = weights(&[1.0, 0.0, 0.0, 1.0], &[g, 1.0 - g], &[3.0, 2.0], ridge).unwrap();
        assert!((found[0] - expected).abs() < 1e-12, "{found:?} {expected}");
    }

    #[test]
    fn a_strong_ridge_leaves_plain_averaging() {
        let labels = [1.0, 0.0, 0.5, 0.5, 0.0, 1.0];
        let found = weights(&labels, &[0.9, 0.1], &[1.0, 2.0, 1.0], 1e9).unwrap();
        for (found, expected) in found.iter().zip([0.25, 0.5, 0.25]) {
            assert!((found - expected).abs() < 1e-8);
        }
    }

    #[test]
    fn wrong_requests_are_refused() {
        assert!(weights(&[], &[1.0], &[], 1.0).is_err());
        assert!(weights(&[1.0], &[1.0], &[0.0], 1.0).is_err());
        assert!(weights(&[1.0], &[1.0], &[1.0], 0.0).is_err());
        assert!(weights(&[1.0], &[1.0], &[1.0], f64::NAN).is_err());
        assert!(weights(&[1.0, 0.0], &[1.0], &[1.0], 1.0).is_err());
    }

    #[test]
    fn regression_labels_out_of_reach_do_not_stop_the_solver_at_its_start() {
        // The dual gradient rises at first, which the solver took for the end.
        #[rustfmt::skip]
        let counts = [
            1.0, 1.0, 1.0, 1.0,
            1.0, 1.0, 1.0, 1.0,
            0.7600715235732358, 0.0, 0.0, 0.6517423242290706,
            0.0, 0.0, 0.0, 0.0856995176318682,
            0.0, 0.8519963462750574, 0.0, 0.02223180789094078,
            0.0, 0.9249973467597271, 0.5049314157758531, 0.10409476297502718,
            0.6423093570966822, 0.8526458497416016, 0.8728434150486841, 0.8982714523043932,
            0.6716567628613963, 0.4880847160478114, 0.8004585911171059, 0.45589675267133334,
        ];
        let normalised =
            |row: &[f64]| -> Vec<f64> { row.iter().map(|x| x / row.iter().sum::<f64>()).collect() };
        let labels: Vec<f64> = counts.chunks(4).flat_map(normalised).collect();
        let goal = normalised(&[0.4126441196734117, 0.25042750688649146, 0.7920440225425751, 0.05]);
        let reference = [1.51, 2.08, 1.5, 2.44, 0.8, 0.5, 1.98, 1.38];
        for ridge in [1e-4, 2.575e-6, 1e-7] {
            let found = weights(&labels, &goal, &reference, ridge).unwrap();
            let value = |w: &[f64]| objective(&labels, &goal, &reference, ridge, w);
            let best = value(&found);
            for client in 0..8 {
                let towards: Vec<f64> = (0..8)
                    .map(|i| 0.999 * found[i] + if i == client { 0.001 } else { 0.0 })
                    .collect();
                assert!(value(&towards) >= best, "{ridge} {client}: {found:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_on_the_simplex_is_better(
            raw in prop::collection::vec(0.0..1.0f64, 8 * 4), reference in prop::collection::vec(0.5..3.0f64, 8),
            others in prop::collection::vec(prop::collection::vec(0.001..1.0f64, 8), 20),
            goal in prop::collection::vec(0.05..1.0f64, 4), exponent in -6.0..2.0f64,
        ) {
            let normalised = |row: &[f64]| -> Vec<f64> {
                let total: f64 = row.iter().sum::<f64>() + 1e-9;
                row.iter().map(|x| (x + 1e-9 / row.len() as f64) / total).collect()
            };
            let labels: Vec<f64> = raw.chunks(4).flat_map(normalised).collect();
            let goal = normalised(&goal);
            let ridge = 10f64.powf(exponent);
            let found = weights(&labels, &goal, &reference, ridge).unwrap();
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(found.iter().all(|&w| w >= 0.0));
            let value = |w: &[f64]| objective(&labels, &goal, &reference, ridge, w);
            let best = value(&found);
            for other in others {
                let other = normalised(&other);
                // All the way, and a small step of it, where the objective is flattest.
                for step in [1.0, 1e-3] {
                    let w: Vec<f64> =
                        found.iter().zip(&other).map(|(a, b)| a + step * (b - a)).collect();
                    prop_assert!(value(&w) >= best - 1e-12);
                }
            }
        }
    }
}
