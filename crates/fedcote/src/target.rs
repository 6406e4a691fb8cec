//! The appearance to aim at: convex, with as many unknowns as labels.
//!
//! Over the simplex, minimise
//!
//! ```text
//! κ Σ_c (α_{g,c} − Σ_i β_i α_{i,c})² / α_{g,c}  +  Σ_i (β_i − p_i)² / p_i  +  ρ Σ_i β_i / (1 − ε_i) .
//! ```
//!
//! The first two are term (b) of the convergence bound, label divergence and weight divergence, `κ` being
//! how much more the first matters; the third prices the draws that fail. Stationarity gives
//! `β_i = p_i · max(0, 1 + ν + α_i·y − (ρ/2)/(1−ε_i))`, so only `y` (a number per label) and `ν` are unknown. They minimise the
//! convex, piecewise quadratic dual function
//!
//! ```text
//! Φ(y, ν) = ½ Σ_i p_i max(0, u_i)² − α_g·y − ν + ½ Σ_c α_{g,c} y_c² / κ ,      u_i = 1 + ν + α_i·y − price_i ,
//! ```
//!
//! by a semismooth Newton method (Qi and Sun, *A nonsmooth version of Newton's method*, 1993) with a backtracking
//! step: about ten iterations of `O(N C²)`.

use crate::chunks;
use crate::error::{Error, check_length};

/// What the appearance should come close to.
#[derive(Debug, Clone, Copy)]
pub struct TargetProblem<'a> {
    /// The weights `p` to stay close to, positive; they need not sum to one.
    pub reference: &'a [f64],
    /// Label shares of the same clients, row after row.
    pub labels: &'a [f64],
    /// The label shares to reach, `α_g`. Labels with share 0 do not count.
    pub goal: &'a [f64],
    /// `κ > 0`: how much more labels matter than weights.
    pub kappa: f64,
    /// `(ρ/2)/(1−ε_i)` of each client, or empty for none.
    pub price: &'a [f64],
    /// Which clients take part, or empty for all.
    pub eligible: &'a [bool],
}

/// The optimum and its certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// `β`, summing to one.
    pub appearance: Vec<f64>,
    /// `y` and, last, `ν`: a start for the next problem of the same shape.
    pub multipliers: Vec<f64>,
    /// The largest violation of the optimality conditions, in units of probability.
    pub residual: f64,
    /// Newton iterations made.
    pub iterations: usize,
}

const MAX_ITERATIONS: usize = 200;

/// Iterations without progress after which rounding is what is left.
const PATIENCE: usize = 5;

/// The residual that rounding allows: multipliers of size κ cancel in every `u_i` when labels cannot be matched, and a sum over a
/// whole chunk of clients of equal weight is off by up to half an ulp per client, all in the same direction. Without the latter
/// the solver tried ever shorter steps against rounding: at a million clients seventy evaluations where one is enough.
fn tolerance(point: &[f64], clients: usize) -> f64 {
    let sums = if clients < chunks::CHUNK { 1e-14 } else { LONG_SUMS };
    sums + 1e-17 * largest(point)
}

/// Half the rounding error of one addition for each client of a chunk, the mean of its partial sums being half its sum.
const LONG_SUMS: f64 = 0.25 * f64::EPSILON * chunks::CHUNK as f64;

/// With so many labels a step of Newton's method takes half a gigabyte.
const MOST_CLASSES: usize = 8192;

impl TargetProblem<'_> {
    /// Solves the problem, from the multipliers of an earlier one if given.
    pub fn solve(&self, warm: Option<&[f64]>) -> Result<Target, Error> {
        self.check()?;
        let size = self.goal.len() + 1;
        let mut point = match warm {
            Some(warm) if warm.len() == size && warm.iter().all(|x| x.is_finite()) => warm.to_vec(),
            _ => self.start(),
        };
        let mut state = self.evaluate(&point);
        let mut residual = largest(&state.gradient);
        let mut best = (residual, point.clone());
        let mut iterations = 0;
        let mut idle = 0;
        while residual > tolerance(&point, self.reference.len())
            && idle < PATIENCE
            && iterations < MAX_ITERATIONS
        {
            iterations += 1;
            if self.goal.len() > MOST_CLASSES {
                return Err(Error::Parameter {
                    name: "number of labels",
                    legal: "at most 8192 where clients are left out or cost something",
                    value: self.goal.len() as f64,
                });
            }
            let step = newton_step(&mut self.hessian(&point), &state.gradient);
            let slope: f64 = step.iter().zip(&state.gradient).map(|(s, g)| s * g).sum();
            let mut length = 1.0;
            let (next, after) = loop {
                let next: Vec<f64> =
                    point.iter().zip(&step).map(|(x, step)| x + length * step).collect();
                let after = self.evaluate(&next);
                // Near the end Φ is flat to rounding, and the gradient tells better.
                let falls = after.value <= state.value + 1e-4 * length * slope
                    || largest(&after.gradient) < 0.5 * residual;
                if falls || length < 1e-10 {
                    break (next, after);
                }
                length *= 0.5;
            };
            // Far from the optimum Φ falls while the gradient may rise for a while: that is no idling.
            let gains = after.value < state.value - 1e-9 * state.value.abs().max(1e-3);
            point = next;
            state = after;
            residual = largest(&state.gradient);
            idle = if gains { 0 } else { idle + 1 };
            if residual < best.0 {
                // Newton steps converge quadratically: gains below a half are noise.
                if residual < 0.5 * best.0 || best.0 > 1e-6 {
                    idle = 0;
                }
                best = (residual, point.clone());
            }
        }
        let (_, multipliers) = best;
        let mut appearance = vec![0.0; self.reference.len()];
        chunks::fill(&mut appearance, |first, chunk| {
            for (client, out) in (first..).zip(chunk) {
                *out = self.reference[client] * self.activity(client, &multipliers);
            }
        });
        chunks::normalise(&mut appearance);
        Ok(Target { appearance, multipliers, residual: best.0, iterations })
    }

    fn check(&self) -> Result<(), Error> {
        let clients = self.reference.len();
        if clients == 0 {
            return Err(Error::NoClients);
        }
        if self.goal.is_empty() {
            return Err(Error::NoClasses);
        }
        check_length("labels", clients * self.goal.len(), self.labels.len())?;
        if !self.price.is_empty() {
            check_length("price", clients, self.price.len())?;
        }
        if !self.eligible.is_empty() {
            check_length("eligible", clients, self.eligible.len())?;
        }
        if !(self.kappa > 0.0 && self.kappa.is_finite()) {
            return Err(Error::Parameter {
                name: "kappa",
                legal: "above 0 and finite",
                value: self.kappa,
            });
        }
        Ok(())
    }

    fn takes_part(&self, client: usize) -> bool {
        self.eligible.is_empty() || self.eligible[client]
    }

    fn price(&self, client: usize) -> f64 {
        if self.price.is_empty() { 0.0 } else { self.price[client] }
    }

    /// `max(0, u_i)`.
    #[inline]
    fn activity(&self, client: usize, point: &[f64]) -> f64 {
        if !self.takes_part(client) {
            return 0.0;
        }
        let classes = self.goal.len();
        let row = &self.labels[client * classes..][..classes];
        let tilt: f64 = row.iter().zip(point).map(|(label, y)| label * y).sum();
        (1.0 + point[classes] + tilt - self.price(client)).max(0.0)
    }

    /// `y = 0` and the `ν` at which the unclipped appearances sum to one.
    fn start(&self) -> Vec<f64> {
        let [mass, priced] = chunks::sums(self.reference.len(), |range| {
            let mut sums = [0.0; 2];
            for client in range.filter(|&client| self.takes_part(client)) {
                sums[0] += self.reference[client];
                sums[1] += self.reference[client] * self.price(client);
            }
            sums
        });
        let mut start = vec![0.0; self.goal.len() + 1];
        start[self.goal.len()] = (1.0 - mass + priced) / mass;
        start
    }

    /// Φ and its gradient.
    fn evaluate(&self, point: &[f64]) -> Dual {
        let classes = self.goal.len();
        let size = classes + 1;
        let mut dual = Dual { value: 0.0, gradient: vec![0.0; size] };
        let parts = chunks::map(self.reference.len(), |range| {
            let mut part = Dual { value: 0.0, gradient: vec![0.0; size] };
            for client in range {
                let activity = self.activity(client, point);
                if activity <= 0.0 {
                    continue;
                }
                let weight = self.reference[client];
                let row = &self.labels[client * classes..][..classes];
                part.value += 0.5 * weight * activity * activity;
                for (sum, label) in part.gradient.iter_mut().zip(row) {
                    *sum += weight * activity * label;
                }
                part.gradient[classes] += weight * activity;
            }
            part
        });
        for part in parts {
            dual.value += part.value;
            dual.gradient.iter_mut().zip(part.gradient).for_each(|(sum, part)| *sum += part);
        }
        for (c, &goal) in self.goal.iter().enumerate() {
            let y = point[c];
            dual.value += 0.5 * goal * y * y / self.kappa - goal * y;
            dual.gradient[c] += goal * y / self.kappa - goal;
        }
        // A label nobody is to reach has no equation.
        for c in (0..classes).filter(|&c| self.goal[c] == 0.0) {
            dual.gradient[c] = 0.0;
        }
        dual.value -= point[classes];
        dual.gradient[classes] -= 1.0;
        dual
    }

    /// A generalised Hessian of Φ (lower triangle, row after row). Apart from [`evaluate`](Self::evaluate) because most
    /// points that are tried need none.
    fn hessian(&self, point: &[f64]) -> Vec<f64> {
        let classes = self.goal.len();
        let size = classes + 1;
        let parts = chunks::map(self.reference.len(), |range| {
            let mut part = vec![0.0; size * size];
            for client in range.filter(|&client| self.activity(client, point) > 0.0) {
                let weight = self.reference[client];
                let row = &self.labels[client * classes..][..classes];
                for (c, &label) in row.iter().enumerate() {
                    if label != 0.0 {
                        let factor = weight * label;
                        let sums = &mut part[c * size..][..=c];
                        sums.iter_mut().zip(row).for_each(|(sum, label)| *sum += factor * label);
                    }
                }
                let last = &mut part[classes * size..];
                last.iter_mut().zip(row).for_each(|(sum, label)| *sum += weight * label);
                last[classes] += weight;
            }
            part
        });
        let mut hessian = vec![0.0; size * size];
        for part in parts {
            hessian.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        for (c, &goal) in self.goal.iter().enumerate() {
            hessian[c * size + c] += goal / self.kappa;
        }
        for c in (0..classes).filter(|&c| self.goal[c] == 0.0) {
            for other in 0..size {
                hessian[c * size + other] = 0.0;
                hessian[other * size + c] = 0.0;
            }
            hessian[c * size + c] = 1.0;
        }
        hessian
    }
}

struct Dual {
    value: f64,
    gradient: Vec<f64>,
}

fn largest(values: &[f64]) -> f64 {
    values
        .iter()
        .fold(0.0, |largest, value| if value.abs() <= largest { largest } else { value.abs() })
}

/// Solves `H step = −gradient` by Cholesky's method after scaling the diagonal to one; overwrites `H`.
fn newton_step(hessian: &mut [f64], gradient: &[f64]) -> Vec<f64> {
    let size = gradient.len();
    let scale: Vec<f64> = (0..size)
        .map(|i| {
            let diagonal = hessian[i * size + i];
            if diagonal > 0.0 { 1.0 / diagonal.sqrt() } else { 1.0 }
        })
        .collect();
    for i in 0..size {
        for j in 0..=i {
            hessian[i * size + j] *= scale[i] * scale[j];
        }
        // Enough to keep a singular matrix (nobody active) solvable, too little to matter otherwise.
        hessian[i * size + i] += 1e-15;
    }
    for i in 0..size {
        for j in 0..=i {
            let mut sum = hessian[i * size + j];
            for k in 0..j {
                sum -= hessian[i * size + k] * hessian[j * size + k];
            }
            hessian[i * size + j] =
                if i == j { sum.max(1e-15).sqrt() } else { sum / hessian[j * size + j] };
        }
    }
    let mut step: Vec<f64> = gradient.iter().zip(&scale).map(|(g, scale)| -g * scale).collect();
    for i in 0..size {
        for j in 0..i {
            step[i] -= hessian[i * size + j] * step[j];
        }
        step[i] /= hessian[i * size + i];
    }
    for i in (0..size).rev() {
        for j in i + 1..size {
            step[i] -= hessian[j * size + i] * step[j];
        }
        step[i] /= hessian[i * size + i];
    }
    step.iter_mut().zip(scale).for_each(|(step, scale)| *step *= scale);
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};
    use rand::RngExt;

    #[test]
    fn one_client_excluded_by_hand() {
        // Pure labels, p = (½, ¼, ¼), the third client excluded, β = (½ + d, ½ − d): the objective is
        // 4κd² + 2d² + 4(¼ − d)², least at d = 2 / (8κ + 12).
        for kappa in [0.5, 1.0, 1000.0, 1e9] {
            let problem = TargetProblem {
                reference: &[0.5, 0.25, 0.25],
                labels: &[1.0, 0.0, 0.0, 1.0, 0.0, 1.0],
                goal: &[0.5, 0.5],
                kappa,
                price: &[],
                eligible: &[true, true, false],
            };
            let target = problem.solve(None).expect("valid");
            let shift = 2.0 / (8.0 * kappa + 12.0);
            assert!((target.appearance[0] - 0.5 - shift).abs() < 1e-12, "{:?}", target.appearance);
            assert_eq!(target.appearance[2], 0.0);
            assert!(target.residual < 1e-12);
            let again = problem.solve(Some(&target.multipliers)).expect("valid");
            assert!(again.iterations <= 1);
        }
    }

    /// Forty thousand labels ended the process for want of memory.
    #[test]
    fn more_labels_than_fit_are_refused_where_a_matrix_of_them_is_needed() {
        let classes = 40_000;
        let mut labels = vec![0.0; 3 * classes];
        (0..3 * classes).for_each(|at| labels[at] = f64::from(u8::from(at % 3 == at / classes)));
        let problem = TargetProblem {
            reference: &[0.5, 0.25, 0.25],
            labels: &labels,
            goal: &vec![1.0 / classes as f64; classes],
            kappa: 1000.0,
            price: &[],
            eligible: &[true, true, false],
        };
        let error = problem.solve(None).expect_err("too many").to_string();
        assert!(error.starts_with("number of labels: must be at most 8192"), "{error}");
    }

    #[test]
    fn a_price_above_everything_leaves_the_cheapest() {
        // One label: Σ (β − p)²/p + 2 Σ price·β. With p = (½, ½) and prices 0 and 1 the difference β_1 − β_2 = ½ of the
        // prices', up to all: β = (½ + ¼, ½ − ¼); from a difference of 2 on, β = (1, 0).
        for (price, expected) in [(1.0, 0.75), (2.0, 1.0), (1e6, 1.0)] {
            let problem = TargetProblem {
                reference: &[0.5, 0.5],
                labels: &[1.0, 1.0],
                goal: &[1.0],
                kappa: 1000.0,
                price: &[0.0, price],
                eligible: &[],
            };
            let target = problem.solve(None).expect("valid");
            assert!((target.appearance[0] - expected).abs() < 1e-9, "{:?}", target.appearance);
        }
    }

    /// With a million clients the residual of the optimum itself, 3e-14, was above the tolerance, and the solver tried steps that
    /// rounding swallowed: seventy evaluations where one is enough.
    #[test]
    fn regression_rounding_of_long_sums_is_not_worked_on() {
        let clients = 300_000;
        let mut stream = Key::new(1, Purpose::Test).stream();
        let mut labels = vec![0.0; 10 * clients];
        for row in labels.chunks_exact_mut(10) {
            row[stream.random_range(0..10)] += 0.5;
            row[stream.random_range(0..10)] += 0.5;
        }
        let share = |label: usize| {
            let sum: f64 = labels.iter().skip(label).step_by(10).sum();
            sum / clients as f64
        };
        let goal: Vec<f64> = (0..10).map(share).collect();
        let problem = TargetProblem {
            reference: &vec![1.0 / clients as f64; clients],
            labels: &labels,
            goal: &goal,
            kappa: 1000.0,
            price: &[],
            eligible: &[],
        };
        let target = problem.solve(None).expect("valid");
        assert_eq!(target.iterations, 0, "{:e}", target.residual);
    }
}
