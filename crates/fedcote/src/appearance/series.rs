//! The coefficients of the closed form: one term for each number of failed rounds of uploads.
//!
//! With the moments `M_m = Σ_j s_j ε_j^m`, term `m` carries
//! `g_m = Σ_k M_{m+1}^k M_m^{K−1−k} = (M_m^K − M_{m+1}^K) / (M_m − M_{m+1})`.
//! Differences `D_m = M_m − M_{m+1} = Σ s ε^m (1−ε)` are summed as such, never subtracted, and powers go
//! through `ln_1p` and `exp_m1`, so that nothing cancels for `K` up to 10⁹ or failures up to `1 − 1e-16`.
//!
//! Thirty-two terms are summed one by one; a series that is slower goes on by octaves (see `gram`): as
//! functions of `m` all terms are sums of decaying exponentials, for which those rules are made.

use super::gram;
use crate::chunks;
use crate::error::Error;

/// Relative size of the remainder at which the series ends.
const TOLERANCE: f64 = 1e-17;

/// Moments that are summed in one pass over the clients.
const BLOCK: usize = 4;

/// One term of the series, or one node of a quadrature over many.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    /// `m`.
    pub index: f64,
    /// How many terms it stands for.
    pub weight: f64,
    /// `g_m`.
    pub value: f64,
    /// `∂g_m/∂M_m`.
    pub slope: f64,
    /// `∂g_m/∂M_{m+1}`.
    pub slope_next: f64,
}

/// The terms for one selection.
#[derive(Debug)]
pub struct Series {
    /// Terms `0, 1, 2, …`, weight 1 each.
    pub direct: Vec<Term>,
    /// Quadrature nodes for the rest of a slow series.
    pub nodes: Vec<Term>,
    /// `1 / Σ s`: the series is that of the selection scaled to sum to one.
    pub scale: f64,
    /// `1 / (1 − S₁^K)`, `S₁` being the share of clients that never arrive.
    pub redraw: f64,
    /// `S₁`.
    pub dead: f64,
}

impl Series {
    /// Sums the series for `draws ≥ 2`. The caller has checked its input.
    pub fn new(selection: &[f64], failure: &[f64], selected: u64) -> Result<Self, Error> {
        let Mass { total, live, worst } = Mass::of(selection, failure);
        if live <= 0.0 {
            return Err(Error::NobodyArrives);
        }
        let scale = 1.0 / total;
        let (live, dead) = (live * scale, (total - live).max(0.0) * scale);
        let selected = selected as f64;
        let redraw = if dead > 0.0 { -1.0 / (selected * (-live).ln_1p()).exp_m1() } else { 1.0 };
        let mut series = Self { direct: Vec::new(), nodes: Vec::new(), scale, redraw, dead };

        // Beyond term m the remainder is at most term_m(ε_max) · q / (1 − q), relative to any client's sum.
        let log_ratio = worst.ln() * if dead > 0.0 { 1.0 } else { selected };
        let remainder = log_ratio.exp() / -log_ratio.exp_m1();
        let mut reached = 0.0;
        let mut lost = 0.0;
        let mut power = 1.0;
        for start in (0..1 << gram::FIRST).step_by(BLOCK) {
            let block = moments(selection, failure, start);
            for (offset, (&moment, &drop)) in block[0].iter().zip(&block[1]).enumerate() {
                let (moment, drop) = (moment * scale, drop * scale);
                if moment == 0.0 {
                    return Ok(series);
                }
                let index = (start as usize + offset) as f64;
                let term = Term::new(index, 1.0, dead, moment, drop, lost, selected);
                lost += drop;
                series.direct.push(term);
                reached += power * term.value;
                if power * term.value * remainder <= TOLERANCE * reached {
                    return Ok(series);
                }
                power *= worst;
            }
        }

        let logs = logarithms(failure);
        for rule in gram::octaves() {
            let sums = moments_at(selection, failure, &logs, &rule.nodes);
            let mut last = 0.0;
            for (node, (&index, &weight)) in rule.nodes.iter().zip(&rule.weights).enumerate() {
                let [moment, drop, lost] = [0, 1, 2].map(|kind| sums[kind][node] * scale);
                if moment == 0.0 {
                    return Ok(series);
                }
                let term = Term::new(index, weight, dead, moment, drop, lost, selected);
                series.nodes.push(term);
                last = (index * worst.ln()).exp() * term.value;
                reached += weight * last;
            }
            if last * (1.0 + remainder) <= TOLERANCE * reached {
                break;
            }
        }
        Ok(series)
    }

    /// `Σ_m ε^m x_m`, `x_m` being what `of` takes from term `m`.
    #[inline]
    pub fn sum(&self, failure: f64, of: impl Fn(&Term) -> f64) -> f64 {
        let mut sum = 0.0;
        for term in self.direct.iter().rev() {
            sum = sum * failure + of(term);
        }
        if !self.nodes.is_empty() && failure > 0.0 {
            let log = failure.ln();
            for term in &self.nodes {
                sum += term.weight * (term.index * log).exp() * of(term);
            }
        }
        sum
    }
}

impl Term {
    /// From the moment of those who can arrive, `D_m`, and `1 − M_m`.
    fn new(
        index: f64,
        weight: f64,
        dead: f64,
        live: f64,
        drop: f64,
        lost: f64,
        selected: f64,
    ) -> Self {
        let moment = dead + live;
        let log_moment = if moment > 0.5 { (-lost).ln_1p() } else { moment.ln() };
        // M_{m+1} = M_m (1 − x)
        let x = (drop / moment).min(1.0);
        let log_ratio = (-x).ln_1p();
        let geometric = if x > 0.0 { -(selected * log_ratio).exp_m1() / x } else { selected };
        // Σ k (1−x)^{k−1}: by its quotient, or by its expansion where that would cancel.
        let weighted = if selected * x > 1e-3 {
            (geometric - selected * ((selected - 1.0) * log_ratio).exp()) / x
        } else {
            let mut sum = 0.0;
            let mut binomial = selected * (selected - 1.0) / 2.0;
            for j in 2..9 {
                let order = f64::from(j);
                sum += (order - 1.0) * binomial;
                binomial *= -x * (selected - order) / (order + 1.0);
            }
            sum
        };
        let power = ((selected - 1.0) * log_moment).exp();
        let value = power * geometric;
        let slope_next = power / moment * weighted;
        let slope = (selected - 1.0) * value / moment - (1.0 - x) * slope_next;
        Self { index, weight, value, slope, slope_next }
    }
}

/// Where the selection lies.
#[derive(Debug, Clone, Copy)]
pub struct Mass {
    /// Σ s.
    pub total: f64,
    /// Σ s over clients with ε < 1.
    pub live: f64,
    /// The largest ε < 1 that may be selected.
    pub worst: f64,
}

impl Mass {
    pub fn of(selection: &[f64], failure: &[f64]) -> Self {
        let mut mass = Self { total: 0.0, live: 0.0, worst: 0.0 };
        for part in chunks::map(selection.len(), |range| {
            let mut part = Self { total: 0.0, live: 0.0, worst: 0.0 };
            for (&selection, &failure) in selection[range.clone()].iter().zip(&failure[range]) {
                part.total += selection;
                if failure < 1.0 && selection > 0.0 {
                    part.live += selection;
                    part.worst = part.worst.max(failure);
                }
            }
            part
        }) {
            mass.total += part.total;
            mass.live += part.live;
            mass.worst = mass.worst.max(part.worst);
        }
        mass
    }
}

/// `M_m` over those who can arrive, and `D_m`, for `m = start …`.
fn moments(selection: &[f64], failure: &[f64], start: u32) -> [[f64; BLOCK]; 2] {
    let flat = chunks::sums(selection.len(), |range| {
        let mut sums = [0.0; 2 * BLOCK];
        for (&selection, &failure) in selection[range.clone()].iter().zip(&failure[range]) {
            let mut power = if failure < 1.0 { selection } else { 0.0 };
            if start > 0 {
                power *= failure.powi(start as i32);
            }
            for m in 0..BLOCK {
                sums[m] += power;
                sums[BLOCK + m] += power * (1.0 - failure);
                power *= failure;
            }
        }
        sums
    });
    std::array::from_fn(|kind| std::array::from_fn(|m| flat[kind * BLOCK + m]))
}

/// `M_m` over those who can arrive, `D_m` and `Σ s (1 − ε^m)` at sixteen places.
fn moments_at(
    selection: &[f64],
    failure: &[f64],
    logs: &[f64],
    places: &[f64; gram::NODES],
) -> [[f64; gram::NODES]; 3] {
    const NODES: usize = gram::NODES;
    let flat = chunks::sums(selection.len(), |range| {
        let mut sums = [0.0; 3 * NODES];
        for client in range {
            let (selection, failure, log) = (selection[client], failure[client], logs[client]);
            if failure < 1.0 && selection > 0.0 {
                for (node, place) in places.iter().enumerate() {
                    let power = selection * (place * log).exp();
                    sums[node] += power;
                    sums[NODES + node] += power * (1.0 - failure);
                    sums[2 * NODES + node] -= selection * (place * log).exp_m1();
                }
            }
        }
        sums
    });
    std::array::from_fn(|kind| std::array::from_fn(|node| flat[kind * NODES + node]))
}

fn logarithms(failure: &[f64]) -> Vec<f64> {
    let mut logs = failure.to_vec();
    chunks::fill(&mut logs, |_, chunk| chunk.iter_mut().for_each(|value| *value = value.ln()));
    logs
}
