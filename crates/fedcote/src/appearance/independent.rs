//! Independent draws with replacement, each with its own upload: the effective appearance in closed form.
//!
//! The share that client `i` has in the aggregate, on average over draws and failures,
//!
//! ```text
//! β̄_i = s_i (1 − ε_i) Σ_{m≥0} ε_i^m g_m ,      g_m = Σ_{k=0}^{K−1} M_{m+1}^k M_m^{K−1−k} ,      M_m = Σ_j s_j ε_j^m
//! ```
//!
//! equals the sum over all `C(N+K−1, K)` multisets of clients of Proposition 2 of "Robust Federated Learning in
//! Unreliable Wireless Networks: A Client Selection Approach": the condition that somebody arrived is
//! expanded as a geometric series, whose terms factor over the draws. `m` counts the rounds of uploads in which
//! nobody got through before one did. The cost is `O(N)` per term, for any `K`.

use super::AppearanceModel;
use super::series::{Mass, Series};
use crate::chunks;
use crate::error::{Error, check_length, check_probabilities, check_selected};

/// `K` independent draws, each uploading on its own.
#[derive(Debug, Clone, Copy)]
pub struct Independent<'a> {
    /// Failure probabilities, `ε`.
    pub failure: &'a [f64],
    /// Draws per round, `K`.
    pub selected: u64,
}

impl AppearanceModel for Independent<'_> {
    fn appearance(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error> {
        if self.selected == 1 {
            let live = Mass::of(selection, self.failure).live;
            if live <= 0.0 {
                return Err(Error::NobodyArrives);
            }
            chunks::fill(out, |first, chunk| {
                for (client, out) in (first..).zip(chunk) {
                    let dead = self.failure[client] >= 1.0;
                    *out = if dead { 0.0 } else { selection[client] / live };
                }
            });
            return Ok(());
        }
        let series = Series::new(selection, self.failure, self.selected)?;
        let factor = series.scale * series.redraw;
        chunks::fill(out, |first, chunk| {
            for (client, out) in (first..).zip(chunk) {
                let failure = self.failure[client];
                *out = if selection[client] > 0.0 && failure < 1.0 {
                    let sum = series.sum(failure, |term| term.value);
                    selection[client] * factor * (1.0 - failure) * sum
                } else {
                    0.0
                };
            }
        });
        Ok(())
    }
}

/// The effective appearance `β̄` of every client for independent draws.
///
/// `selection` must sum to one within 1e-6 and is scaled to do so exactly. A client with failure
/// probability 1 never appears; when all clients of a draw are such, the server draws again.
///
/// ```
/// // Two clients, two draws: by hand, β̄_1 = 0.25 + 2 · 0.25 · (1 − ½·½) = 0.625.
/// let appearance = fedcote::appearance::appearance(&[0.5, 0.5], &[0.0, 0.5], 2)?;
/// assert!((appearance[0] - 0.625).abs() < 1e-15);
/// # Ok::<(), fedcote::Error>(())
/// ```
pub fn appearance(selection: &[f64], failure: &[f64], selected: u64) -> Result<Vec<f64>, Error> {
    check(selection, failure, selected)?;
    let mut out = vec![0.0; selection.len()];
    Independent { failure, selected }.appearance(selection, &mut out)?;
    Ok(out)
}

/// The vector–Jacobian product of [`appearance`]: entry `i` is `Σ_j v_j ∂β̄_j/∂s_i` for the cotangent `v`.
///
/// With `c_m = Σ_j v_j s_j (1−ε_j) ε_j^m` it is
/// `Σ_m [ v_i (1−ε_i) ε_i^m g_m + c_m ( ε_i^m ∂g_m/∂M_m + ε_i^{m+1} ∂g_m/∂M_{m+1} ) ]`. The selection is
/// taken as it is, not scaled: along directions that keep its sum, this is the derivative of [`appearance`].
pub fn gradient(
    selection: &[f64],
    failure: &[f64],
    selected: u64,
    cotangent: &[f64],
) -> Result<Vec<f64>, Error> {
    check(selection, failure, selected)?;
    check_length("cotangent", selection.len(), cotangent.len())?;
    if selected == 1 {
        return single_draw_gradient(selection, failure, cotangent);
    }
    let mut series = Series::new(selection, failure, selected)?;
    let terms = series.direct.len() + series.nodes.len();
    let mut moments = vec![0.0; terms];
    for part in chunks::map(selection.len(), |range| {
        let mut part = vec![0.0; terms];
        let (direct, nodes) = part.split_at_mut(series.direct.len());
        for client in range {
            let failure = failure[client];
            let mut power = cotangent[client] * selection[client] * series.scale * (1.0 - failure);
            if power == 0.0 {
                continue;
            }
            let first = power;
            for sum in direct.iter_mut() {
                *sum += power;
                power *= failure;
            }
            if !nodes.is_empty() {
                let log = failure.ln();
                for (sum, term) in nodes.iter_mut().zip(&series.nodes) {
                    *sum += first * (term.index * log).exp();
                }
            }
        }
        part
    }) {
        moments.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }

    // A client that never arrives makes redraws more likely: ∂/∂S₁ of 1 / (1 − S₁^K).
    let all = series.direct.iter().chain(&series.nodes).zip(&moments);
    let total: f64 = all.map(|(term, moment)| term.weight * moment * term.value).sum();
    let redraws = total * series.redraw * selected as f64 * series.dead.powf((selected - 1) as f64);
    // With c_m worked into the slopes a client sums Σ ε^m (v (1−ε) g_m + slope_m + ε slope_next_m).
    for (term, moment) in series.direct.iter_mut().chain(&mut series.nodes).zip(moments) {
        term.slope *= moment;
        term.slope_next *= moment;
    }
    let mut out = vec![0.0; selection.len()];
    chunks::fill(&mut out, |first, chunk| {
        for (client, out) in (first..).zip(chunk) {
            let failure = failure[client];
            let share = cotangent[client] * (1.0 - failure);
            let sum = series
                .sum(failure, |term| share * term.value + term.slope + failure * term.slope_next);
            *out = series.redraw * (sum + if failure < 1.0 { 0.0 } else { redraws });
        }
    });
    Ok(out)
}

/// With one draw `β̄ = s / Σ_{ε<1} s`.
fn single_draw_gradient(
    selection: &[f64],
    failure: &[f64],
    cotangent: &[f64],
) -> Result<Vec<f64>, Error> {
    let mass = Mass::of(selection, failure);
    if mass.live <= 0.0 {
        return Err(Error::NobodyArrives);
    }
    let mean = chunks::sum(selection.len(), |range| {
        range
            .filter(|&client| failure[client] < 1.0)
            .map(|client| cotangent[client] * selection[client])
            .sum()
    }) / mass.live;
    let shift = if mass.live < mass.total { mean } else { 0.0 };
    Ok((0..selection.len())
        .map(
            |client| {
                if failure[client] < 1.0 { (cotangent[client] - shift) / mass.live } else { 0.0 }
            },
        )
        .collect())
}

/// Checks what a caller brings to a function over clients.
pub(crate) fn check(selection: &[f64], failure: &[f64], selected: u64) -> Result<(), Error> {
    check_selected(selected)?;
    if selection.is_empty() {
        return Err(Error::NoClients);
    }
    check_length("failure", selection.len(), failure.len())?;
    check_probabilities("failure", failure)?;
    check_selection(selection)
}

/// Checks that the selection is a probability distribution.
pub(crate) fn check_selection(selection: &[f64]) -> Result<(), Error> {
    check_probabilities("selection", selection)?;
    let total = chunks::sum(selection.len(), |range| selection[range].iter().sum());
    if (total - 1.0).abs() <= 1e-6 { Ok(()) } else { Err(Error::SelectionSum(total)) }
}
