//! Clients that fail together: the effective appearance of independent draws with an upload each, exactly.
//!
//! Group `q` is down with probability `φ_q`, afresh in every attempt, and takes the uploads of its clients with it; client `i` of
//! group `q` fails on its own with `ε_i` otherwise. Clients in no group are one group with `φ = 0`. Expand the condition
//! that somebody arrived as the geometric series over the number `m` of attempts in which nobody did; in `a` of these
//! the group was up, so that its draws failed on their own. With `M_{q,a} = Σ_{j in q} s_j ε_j^a` and `1/T = ∫ t^{T−1} dt` for the
//! number `T` of draws that arrived, the sum over draws is that of an exponential generating function:
//!
//! ```text
//! U_{q,a}(z, t) = exp(z (M_{q,a+1} + t (M_{q,a} − M_{q,a+1})))
//! b_{m,a} = C(m, a) φ^{m−a} (1 − φ)^a
//! F_q(z, t, m) = Σ_a b_{m,a} [ φ_q exp(z M_{q,a}) + (1 − φ_q) U_{q,a} ]
//! β̄_i = K! [z^K] Σ_{m≥0} ∫₀¹ s_i z (1 − ε_i) (1 − φ_q) Σ_a b_{m,a} ε_i^a U_{q,a} Π_{r≠q} F_r dt ,    q the group of i
//! ```
//!
//! Nodes in `t` and points on the circle are those of [`PerClient`](super::PerClient). Of a client only `s_i` and `ε_i^a`
//! are its own, so all the rest is summed first: `β̄_i = s_i (1 − ε_i) Σ_a ε_i^a w_{q,a}`. The cost is points × nodes × groups ×
//! terms², and clients × terms. `Σ β̄` telescopes to one, which tells when the series has ended: terms are doubled until then,
//! up to 128; a slower series goes on by octaves (see `tail`).

mod tail;

use super::AppearanceModel;
use super::gram;
use super::per_client::{Complex, points, scale};
use super::series::Mass;
use crate::error::Error;
use crate::groups::Groups;
use crate::{chunks, special};

/// What is lost at most when the series ends.
const REMAINDER: f64 = 1e-14;

/// The first number of terms that are summed one by one, and the logarithm to base 2 of the largest.
const FIRST: usize = 16;
const LARGEST: u32 = 7;

/// `K` independent draws with an upload each, of clients that fail together.
#[derive(Debug, Clone, Copy)]
pub struct Grouped<'a> {
    /// Who fails together.
    pub groups: &'a Groups,
    /// Failure probabilities for whatever reason.
    pub failure: &'a [f64],
    /// Draws per round, `K`.
    pub selected: u64,
}

impl Grouped<'_> {
    /// The cost of an evaluation: groups × nodes × points.
    pub fn work(groups: usize, selected: u64) -> f64 {
        ((groups + 1) * special::unit_rule_len(selected) * points(selected).len()) as f64
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
        let clients: Vec<Client> = (0..selection.len())
            .filter(|&at| selection[at] > 0.0)
            .map(|at| Client {
                at,
                group: self.groups.of(at).unwrap_or(self.groups.len()),
                selection: selection[at] / total,
                own: self.groups.own(at, self.failure[at]),
            })
            .collect();
        let mut terms = FIRST;
        let mut found = self.series(&clients, terms);
        let left = |found: &[f64]| somebody - found.iter().sum::<f64>();
        while left(&found) > REMAINDER && terms < 1 << LARGEST {
            terms *= 2;
            found = self.series(&clients, terms);
        }
        if left(&found) > REMAINDER {
            for rule in &gram::octaves()[(LARGEST - gram::FIRST) as usize..] {
                let added = self.octave(&clients, rule);
                found.iter_mut().zip(&added).for_each(|(sum, added)| *sum += added);
                // Rounding may leave more than the end of the series does.
                let ended = added.iter().sum::<f64>() < REMAINDER;
                if left(&found) <= if ended { 100.0 * REMAINDER } else { REMAINDER } {
                    break;
                }
            }
        }
        out.fill(0.0);
        for (client, value) in clients.iter().zip(&found) {
            out[client.at] = (value / somebody).max(0.0);
        }
        Ok(())
    }
}

/// A client that may be drawn.
struct Client {
    at: usize,
    group: usize,
    selection: f64,
    own: f64,
}

/// A group that somebody who may be drawn is in.
struct Group {
    down: f64,
    /// `M_a` for `a` from 0 to the number of terms.
    moments: Vec<f64>,
    /// `b_{m,a}`, row by row, row `m` having `m + 1` entries; empty for a group that is never down, whose only entry is
    /// `b_{m,m} = 1`.
    binomials: Vec<f64>,
}

impl Group {
    fn new(down: f64, moments: Vec<f64>, terms: usize) -> Self {
        let mut binomials = Vec::new();
        if down > 0.0 {
            binomials.reserve(terms * (terms + 1) / 2);
            binomials.push(1.0);
            for m in 1..terms {
                let last = binomials.len() - m;
                for a in 0..=m {
                    let stays = if a < m { down * binomials[last + a] } else { 0.0 };
                    let rises = if a > 0 { (1.0 - down) * binomials[last + a - 1] } else { 0.0 };
                    binomials.push(stays + rises);
                }
            }
        }
        Self { down, moments, binomials }
    }

    /// `b_{m,a}` for all `a ≤ m`; none for a group that is never down.
    fn row(&self, m: usize) -> Option<&[f64]> {
        (!self.binomials.is_empty()).then(|| &self.binomials[m * (m + 1) / 2..][..=m])
    }
}

/// Groups that somebody who may be drawn is in, in order: all others add the factor 1.
fn used(clients: &[Client]) -> Vec<usize> {
    let mut used: Vec<usize> = clients.iter().map(|client| client.group).collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn place(used: &[usize], group: usize) -> usize {
    used.binary_search(&group).expect("listed")
}

/// For each factor, `start` times the product of all others, from both ends.
fn others(factors: &[Complex], start: Complex, others: &mut [Complex]) {
    let mut product = start;
    for (other, factor) in others.iter_mut().zip(factors) {
        *other = product;
        product = product * *factor;
    }
    let mut product = Complex { re: 1.0, im: 0.0 };
    for (other, factor) in others.iter_mut().zip(factors).rev() {
        *other = *other * product;
        product = product * *factor;
    }
}

impl Grouped<'_> {
    /// How often a group is down; never, if it is that of the clients in none.
    fn down(&self, group: usize) -> f64 {
        self.groups.failure().get(group).copied().unwrap_or(0.0)
    }

    /// The sum of the first terms of the series, client by client.
    fn series(&self, clients: &[Client], terms: usize) -> Vec<f64> {
        let used = used(clients);
        let place = |group: usize| place(&used, group);
        let mut moments = vec![vec![0.0; terms + 1]; used.len()];
        for client in clients {
            let mut power = client.selection;
            for moment in &mut moments[place(client.group)] {
                *moment += power;
                power *= client.own;
            }
        }
        let groups: Vec<Group> = used
            .iter()
            .zip(moments)
            .map(|(group, moments)| Group::new(self.down(*group), moments, terms))
            .collect();
        let rule = special::unit_rule(self.selected);
        let parts = chunks::each(&points(self.selected), |&point| {
            at(&groups, self.selected as f64, point, &rule, terms)
        });
        let mut sums = vec![0.0; groups.len() * terms];
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        let share = |client: &Client| {
            let sums = &sums[place(client.group) * terms..][..terms];
            let value = sums.iter().rev().fold(0.0, |value, sum| value * client.own + sum);
            client.selection * (1.0 - client.own) * value
        };
        clients.iter().map(share).collect()
    }
}

/// What one point on the circle adds to `w_{q,a}`, group after group.
fn at(
    groups: &[Group],
    selected: f64,
    (angle, point_weight): (f64, f64),
    rule: &[(f64, f64)],
    terms: usize,
) -> Vec<f64> {
    let count = groups.len();
    // cos θ − 1 and sin θ.
    let half = (0.5 * angle).sin();
    let (fall, sine) = (-2.0 * half * half, angle.sin());
    let phase = Complex::polar(point_weight * selected * scale(selected), (1.0 - selected) * angle);
    // exp(z x − K M_0): every factor is scaled so that none exceeds 1.
    let exponential = |x: f64, all: f64| {
        Complex::polar((selected * (x * (1.0 + fall) - all)).exp(), selected * x * sine)
    };
    let mut whole = vec![Complex::ZERO; count * terms];
    for (group, whole) in groups.iter().zip(whole.chunks_mut(terms)) {
        if group.down > 0.0 {
            for (a, whole) in whole.iter_mut().enumerate() {
                *whole = exponential(group.moments[a], group.moments[0]).scaled(group.down);
            }
        }
    }
    let mut sums = vec![0.0; count * terms];
    let (mut up, mut both) = (whole.clone(), whole.clone());
    let mut collected = vec![Complex::ZERO; count * terms];
    let (mut factors, mut others) = (vec![Complex::ZERO; count], vec![Complex::ZERO; count]);
    for &(complement, weight) in rule {
        for (q, group) in groups.iter().enumerate() {
            for a in 0..terms {
                let (high, low) = (group.moments[a], group.moments[a + 1]);
                // t M_a + (1 − t) M_{a+1}
                let mixed = high - complement * (high - low);
                let value = exponential(mixed, group.moments[0]).scaled(1.0 - group.down);
                up[q * terms + a] = value;
                both[q * terms + a] = value + whole[q * terms + a];
            }
        }
        collected.fill(Complex::ZERO);
        for m in 0..terms {
            for (q, group) in groups.iter().enumerate() {
                let both = &both[q * terms..][..terms];
                factors[q] = match group.row(m) {
                    None => both[m],
                    Some(row) => row
                        .iter()
                        .zip(both)
                        .fold(Complex::ZERO, |sum, (b, both)| sum + both.scaled(*b)),
                };
            }
            self::others(&factors, phase.scaled(weight), &mut others);
            for (q, &other) in others.iter().enumerate() {
                let collected = &mut collected[q * terms..][..terms];
                match groups[q].row(m) {
                    None => collected[m] = collected[m] + other,
                    Some(row) => {
                        for (b, collected) in row.iter().zip(collected) {
                            *collected = *collected + other.scaled(*b);
                        }
                    }
                }
            }
        }
        for ((sum, up), collected) in sums.iter_mut().zip(&up).zip(&collected) {
            *sum += (*up * *collected).re;
        }
    }
    sums
}

#[cfg(test)]
mod tests;
