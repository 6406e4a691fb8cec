//! Clients that fail together: the effective appearance of independent draws, exactly.
//!
//! Group `q` is down with probability `φ_q`, afresh in every attempt, and takes the uploads of its clients with it; client `i` of
//! group `q` fails on its own with `ε_i` otherwise. Clients in no group are one group with `φ = 0`. Expand the condition
//! that somebody arrived as the geometric series over the number `m` of attempts in which nobody did; in `a` of these
//! the group was up, so that its uploads failed on their own. With `1/T = ∫ t^{T−1} dt` for the
//! number `T` of draws that arrived, the sum over draws is that of an exponential generating function, in which client `j`
//! has a factor `f_j` where its group is up in the attempt that ends the series, and `g_j` where it is down:
//!
//! ```text
//! one upload per draw     f_j = exp(s_j z ε_j^a (ε_j + (1 − ε_j) t))
//!                         g_j = exp(s_j z ε_j^a)
//!                         h_i = f_i
//! one upload per client   f_j = 1 − ε_j^a + ε_j^{a+1} e^{s_j z} + ε_j^a (1 − ε_j) e^{s_j z t}
//!                         g_j = 1 − ε_j^a + ε_j^a e^{s_j z}
//!                         h_i = e^{s_i z t}
//! b_{m,a} = C(m, a) φ_q^{m−a} (1 − φ_q)^a
//! F_q(z, t, m) = Σ_a b_{m,a} [ φ_q Π_{j in q} g_j + (1 − φ_q) Π_{j in q} f_j ]
//! β̄_i = K! [z^K] Σ_{m≥0} ∫₀¹ s_i z (1 − ε_i) (1 − φ_q) Σ_a b_{m,a} ε_i^a h_i Π_{j≠i in q} f_j Π_{r≠q} F_r dt
//! ```
//!
//! `q` being the group of `i`. Nodes in `t` and points on the circle are those of [`PerClient`](super::PerClient). With one upload per
//! draw a group needs no more of its clients than `M_a = Σ_{j in q} s_j ε_j^a`, and of a client only `s_i` and `ε_i^a`
//! are its own: the cost is points × nodes × groups × terms², and clients × terms. With one upload per client it is that and points ×
//! nodes × clients × terms. `Σ β̄` telescopes to one, which tells when the series has ended: terms are doubled until then,
//! up to 128; a slower series goes on by octaves (see `terms`).

mod sum;
mod terms;

use super::per_client::points;
use super::series::Mass;
use super::{AppearanceModel, gram};
use crate::error::Error;
use crate::groups::Groups;
use crate::{Uploads, special};
use sum::Client;
use terms::Terms;

/// What is lost at most when the series ends.
const REMAINDER: f64 = 1e-14;

/// The first number of terms that are summed one by one, and the logarithm to base 2 of the largest.
const FIRST: usize = 4;
const LARGEST: u32 = 7;

/// `K` independent draws of clients that fail together.
#[derive(Debug, Clone, Copy)]
pub struct Grouped<'a> {
    /// Who fails together.
    pub groups: &'a Groups,
    /// Failure probabilities for whatever reason.
    pub failure: &'a [f64],
    /// Draws per round, `K`.
    pub selected: u64,
    /// What uploads when a client is drawn more than once.
    pub uploads: Uploads,
}

impl Grouped<'_> {
    /// The cost of an evaluation: groups × nodes × points. With one upload per client there are clients × nodes × points more, the more
    /// of them the slower the series is: with few draws, or where all groups are often down together.
    pub fn work(&self) -> f64 {
        let clients = match self.uploads {
            Uploads::PerDraw => 0.0,
            Uploads::PerClient => {
                let count = self.failure.len();
                let all = (0..count).all(|client| self.groups.of(client).is_some());
                let down: f64 = self.groups.failure().iter().product();
                let slow = if all { 8.0 / down.ln().abs() } else { 0.0 };
                count as f64 / 32.0 * (1.0 + 200.0 / self.selected as f64 + slow)
            }
        };
        let (nodes, points) = (special::unit_rule_len(self.selected), points(self.selected).len());
        ((self.groups.len() + 1) as f64 + clients) * (nodes * points) as f64
    }
}

impl Grouped<'_> {
    /// The series, client by client, until it adds up to the chance that somebody arrives; and how many terms were summed one by one.
    fn series(&self, clients: &[Client], somebody: f64) -> (Vec<f64>, usize) {
        // Exponents are as large as K, so that the sum is no more exact than that.
        let noise = (10.0 * REMAINDER).max(self.selected as f64 * f64::EPSILON);
        let first = |count| self.sum(clients, &vec![1.0; count], |down| Terms::first(count, down));
        let left = |found: &[f64]| somebody - found.iter().sum::<f64>();
        let mut terms = FIRST;
        let mut found = first(terms);
        while left(&found) > noise && terms < 1 << LARGEST {
            terms *= 2;
            found = first(terms);
        }
        if left(&found) > noise {
            for rule in &gram::octaves()[(LARGEST - gram::FIRST) as usize..] {
                let added = self.sum(clients, &rule.weights, |down| Terms::octave(rule, down));
                found.iter_mut().zip(&added).for_each(|(sum, added)| *sum += added);
                // Rounding of many octaves may leave more than the end of the series does.
                let ended = added.iter().sum::<f64>() < noise;
                if left(&found) <= if ended { 10.0 * noise } else { noise } {
                    break;
                }
            }
        }
        (found, terms)
    }

    /// Who may be drawn, group by group; `total` is that of the selection.
    fn drawn(&self, selection: &[f64], total: f64) -> Vec<Client> {
        let mut clients: Vec<Client> = (0..selection.len())
            .filter(|&at| selection[at] > 0.0)
            .map(|at| Client {
                at,
                group: self.groups.of(at).unwrap_or(self.groups.len()),
                selection: selection[at] / total,
                own: self.groups.own(at, self.failure[at]),
            })
            .collect();
        clients.sort_by_key(|client| client.group);
        clients
    }
}

impl AppearanceModel for Grouped<'_> {
    fn appearance(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error> {
        let Mass { total, live, .. } = Mass::of(selection, self.failure);
        if live <= 0.0 {
            return Err(Error::NobodyArrives);
        }
        let dead = -(self.selected as f64 * (-live / total).ln_1p()).exp_m1();
        let somebody = if live < total { dead } else { 1.0 };
        let clients = self.drawn(selection, total);
        let (found, _) = self.series(&clients, somebody);
        out.fill(0.0);
        for (client, value) in clients.iter().zip(&found) {
            out[client.at] = (value / somebody).max(0.0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
