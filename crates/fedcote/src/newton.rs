//! The inversion of systematic draws: that of smooth models, finished by Newton steps.
//!
//! The appearance of systematic draws is continuous and piecewise linear in the selection, with pieces as small as
//! `1/(N K)`. The iteration of [`crate::invert`] takes no account of the draws that a client takes from its neighbours
//! in the order, and can stall on the edges of the pieces. There the semismooth Newton method (Qi and Sun, *A nonsmooth
//! version of Newton's method*, 1993) with the exact derivatives of a piece goes on, with a backtracking step.
//! A solution always exists: a client that is not selected does not appear, so the map takes every face of
//! the simplex to itself, and such a map covers the simplex.

use crate::appearance::{AppearanceModel, Systematic};
use crate::error::Error;
use crate::invert::{Inversion, Limits, invert};

/// The largest number of clients for which Newton's linear systems are solved.
const MAX_CLIENTS: usize = 1000;

/// Solves `β̄(s) = target` from `start` for systematic draws.
///
/// As [`crate::invert::invert`]: returns the best selection found with its residual. Of 300 random cases with up to 30
/// clients, 40 draws and failures up to 0.95, all are solved to 1e-9 with one upload per draw, and all but 2 with one
/// upload per client. Above 1000 clients [`crate::invert::invert`] is all there is.
pub fn invert_systematic(
    model: &Systematic,
    target: &[f64],
    start: Vec<f64>,
    limits: Limits,
) -> Result<Inversion, Error> {
    // Clients that shall not appear are not selected, and take no place in the order.
    let kept: Vec<u32> =
        model.order.iter().copied().filter(|&i| target[i as usize] > 0.0).collect();
    let pick = |values: &[f64]| -> Vec<f64> { kept.iter().map(|&i| values[i as usize]).collect() };
    let order: Vec<u32> = (0..kept.len() as u32).collect();
    let failure = pick(model.failure);
    let groups = model.groups.map(|groups| groups.of_clients(&kept));
    let small = Systematic { failure: &failure, order: &order, groups: groups.as_ref(), ..*model };
    let wanted = pick(target);
    // Newton's steps take over early where they can.
    let first = match kept.len() {
        clients if clients > MAX_CLIENTS => {
            // Among many clients every change of the selection makes other lists, and what remains for single clients does not
            // get smaller by trying; about two seconds on two cores.
            let affordable =
                5e8 / (Systematic::work(clients, model.selected) + 60.0 * clients as f64);
            limits.evaluations.min((affordable as usize).max(2))
        }
        _ => limits.evaluations.min(50),
    };
    let mut found = invert(&small, &wanted, pick(&start), Limits { evaluations: first, ..limits })?;
    finish(&small, &wanted, &mut found, limits)?;
    let equal = vec![1.0 / kept.len() as f64; kept.len()];
    for start in [None, Some(wanted.clone()), Some(equal)] {
        if found.residual <= GOOD || kept.len() > MAX_CLIENTS {
            break;
        }
        let from = match start {
            None => found.clone(),
            Some(selection) => {
                let mut appearance = vec![0.0; kept.len()];
                small.appearance(&selection, &mut appearance)?;
                Inversion { selection, appearance, residual: f64::INFINITY, ..found }
            }
        };
        let other = follow(&small, &wanted, &from, limits)?;
        let evaluations = other.evaluations;
        found = if other.residual < found.residual { other } else { found };
        found.evaluations = evaluations;
    }
    let spread = |values: &[f64]| {
        let mut out = vec![0.0; target.len()];
        kept.iter().zip(values).for_each(|(&client, &value)| out[client as usize] = value);
        out
    };
    Ok(Inversion {
        selection: spread(&found.selection),
        appearance: spread(&found.appearance),
        ..found
    })
}

/// A residual that needs no second try.
const GOOD: f64 = 1e-9;

/// Follows the solution of `β̄(s) = β₀ + λ (β − β₀)` from `λ = 0`, where the start solves it, to `λ = 1`.
///
/// On one piece of the map the path is a straight line. It ends where two passages meet; beyond lies another
/// piece, in which `λ` goes on rising, or falls, when the determinant has changed its sign: the path turns, but does not end.
fn follow(
    model: &Systematic,
    target: &[f64],
    start: &Inversion,
    limits: Limits,
) -> Result<Inversion, Error> {
    let clients = target.len();
    let selected = model.selected as f64;
    let mut best = start.clone();
    let mut here = start.clone();
    let way: Vec<f64> = target.iter().zip(&start.appearance).map(|(b, a)| b - a).collect();
    let (mut share, mut orientation) = (0.0, 0.0);
    // A piece costs N³: seconds in all, whatever N.
    let pieces = (1e10 / (clients as f64).powi(3)) as usize;
    for _ in 0..pieces.min(MAX_PIECES) {
        let Some(columns) = model.jacobian(&here.selection) else { break };
        let Some((borders, sign)) = solve(columns, way.clone()) else { break };
        here.evaluations += 1;
        orientation = if orientation == 0.0 { sign } else { orientation };
        let direction = sign * orientation;
        // How far until a passage meets the next one, on the circle of positions?
        let mut cumulated = 0.0;
        let mut passages: Vec<(f64, f64)> = (0..clients - 1)
            .map(|slot| {
                cumulated += here.selection[slot];
                ((selected * cumulated).fract(), direction * selected * borders[slot])
            })
            .collect();
        passages.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut length = if direction > 0.0 { 1.0 - share } else { f64::INFINITY };
        for (index, (place, speed)) in passages.iter().enumerate() {
            let (next, next_speed) = passages
                .get(index + 1)
                .copied()
                .unwrap_or_else(|| (passages[0].0 + 1.0, passages[0].1));
            if speed > &next_speed {
                length = length.min((next - place) / (speed - next_speed));
            }
        }
        let last = direction > 0.0 && length >= 1.0 - share;
        // A little beyond, into the next piece.
        length = if last { length } else { length * (1.0 + 1e-9) + 1e-12 };
        share += direction * length;
        let mut before = 0.0;
        for (slot, value) in here.selection.iter_mut().enumerate() {
            let own = if slot + 1 == clients { 0.0 } else { borders[slot] };
            *value = (*value + direction * length * (own - before)).max(1e-3 * *value);
            before = own;
        }
        crate::chunks::normalise(&mut here.selection);
        if last {
            model.appearance(&here.selection, &mut here.appearance)?;
            here.residual = crate::invert::error(target, &here.appearance);
            let limits = Limits { evaluations: here.evaluations + 100, ..limits };
            finish(model, target, &mut here, limits)?;
            if here.residual < best.residual {
                best = here;
            }
            return Ok(best);
        }
    }
    best.evaluations = here.evaluations;
    Ok(best)
}

/// Pieces after which a path is given up.
const MAX_PIECES: usize = 3_000;

/// Newton steps from where the first search ended; all clients in the order of slots.
fn finish(
    model: &Systematic,
    target: &[f64],
    found: &mut Inversion,
    limits: Limits,
) -> Result<(), Error> {
    let clients = target.len();
    if clients > MAX_CLIENTS {
        return Ok(());
    }
    let mut appearance = vec![0.0; clients];
    while found.residual > limits.tolerance && found.evaluations < limits.evaluations {
        let Some(columns) = model.jacobian(&found.selection) else { return Ok(()) };
        let miss: Vec<f64> = target.iter().zip(&found.appearance).map(|(b, a)| b - a).collect();
        let Some((borders, _)) = solve(columns, miss) else { return Ok(()) };
        let mut length = 1.0;
        loop {
            let moved = |slot: usize| {
                let before = if slot == 0 { 0.0 } else { borders[slot - 1] };
                let own = if slot + 1 == clients { 0.0 } else { borders[slot] };
                // Never all the way to zero, from which nothing returns.
                let value = found.selection[slot];
                (value + length * (own - before)).max(0.1 * value)
            };
            let mut selection: Vec<f64> = (0..clients).map(moved).collect();
            crate::chunks::normalise(&mut selection);
            model.appearance(&selection, &mut appearance)?;
            found.evaluations += 1;
            let residual = crate::invert::error(target, &appearance);
            if residual < found.residual {
                found.residual = residual;
                found.selection = selection;
                found.appearance.copy_from_slice(&appearance);
                break;
            }
            length *= 0.5;
            if length < 1e-4 || found.evaluations >= limits.evaluations {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Solves the square system of all rows but the last (the rows of a Jacobian on the simplex sum to zero) by
/// elimination with pivots; `None` when it is singular. Returns the sign of the determinant as well.
fn solve(mut columns: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<(Vec<f64>, f64)> {
    let size = columns.len();
    let mut sign = 1.0;
    for step in 0..size {
        let pivot = (step..size)
            .max_by(|&a, &b| columns[step][a].abs().total_cmp(&columns[step][b].abs()))?;
        if pivot != step {
            sign = -sign;
        }
        right.swap(step, pivot);
        columns.iter_mut().for_each(|column| column.swap(step, pivot));
        let (head, tail) = columns.split_at_mut(step + 1);
        let lead = &mut head[step];
        if lead[step] == 0.0 || !lead[step].is_finite() {
            return None;
        }
        sign *= lead[step].signum();
        let inverse = 1.0 / lead[step];
        lead[step + 1..size].iter_mut().for_each(|value| *value *= inverse);
        for column in tail.iter_mut().chain(std::iter::once(&mut right)) {
            let factor = column[step];
            if factor != 0.0 {
                let pairs = column[step + 1..size].iter_mut().zip(&lead[step + 1..size]);
                pairs.for_each(|(value, lead)| *value -= factor * lead);
            }
        }
    }
    for step in (0..size).rev() {
        right[step] /= columns[step][step];
        let value = right[step];
        for row in 0..step {
            right[row] -= columns[step][row] * value;
        }
    }
    right.truncate(size);
    Some((right, sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uploads;
    use crate::invert::many_draws;
    use crate::random::{Key, Purpose};
    use rand::RngExt;

    #[test]
    fn a_linear_system_by_hand() {
        // x + 2y = 5, 3x − y = 1 (columns), third row redundant: x = 1, y = 2.
        let columns = vec![vec![1.0, 3.0, -4.0], vec![2.0, -1.0, -1.0]];
        let (found, sign) = solve(columns, vec![5.0, 1.0, -6.0]).unwrap();
        assert_eq!(sign, -1.0); // 1·(−1) − 2·3 = −7
        assert!((found[0] - 1.0).abs() < 1e-15 && (found[1] - 2.0).abs() < 1e-15);
        assert!(solve(vec![vec![0.0, 0.0]], vec![1.0, -1.0]).is_none());
    }

    /// A target and failures of all sizes, for so many clients and draws as the case says.
    fn case(number: u32) -> (Vec<f64>, Vec<f64>, u64) {
        let mut rng = Key::new(21, Purpose::Test).round(number).stream();
        let (clients, selected) = (rng.random_range(2..30usize), rng.random_range(1..40u64));
        let failure = (0..clients).map(|_| 0.95 * rng.random::<f64>()).collect();
        let mut target: Vec<f64> = (0..clients).map(|_| 0.02 - rng.random::<f64>().ln()).collect();
        crate::chunks::normalise(&mut target);
        (target, failure, selected)
    }

    /// Inverts so many cases, checks that the residuals are those of the selections found, and counts the failures.
    fn missed(cases: u32, uploads: Uploads) -> usize {
        let missed = |&number: &u32| {
            let (mut target, failure, selected) = case(number);
            if number % 3 == 0 {
                target[0] = 0.0;
                crate::chunks::normalise(&mut target);
            }
            let order: Vec<u32> = (0..target.len() as u32).rev().collect();
            let model =
                Systematic { failure: &failure, selected, order: &order, uploads, groups: None };
            let start = many_draws(&target, &failure);
            let found = invert_systematic(&model, &target, start, Limits::default()).unwrap();
            let appearance = model.checked(&found.selection).unwrap();
            let worst = crate::invert::error(&target, &appearance);
            assert!((worst - found.residual).abs() < 1e-9, "{worst} {}", found.residual);
            worst > 1e-9
        };
        (0..cases).filter(missed).count()
    }

    #[test]
    fn one_upload_a_draw_is_always_inverted() {
        assert_eq!(missed(300, Uploads::PerDraw), 0);
    }

    #[test]
    fn one_upload_a_client_is_nearly_always_inverted() {
        // Targets out of proportion to failures up to 0.95 leave paths too long to follow now and then.
        let missed = missed(300, Uploads::PerClient);
        assert!(missed <= 4, "{missed}");
    }
}
