//! Systematic draws: the effective appearance, exactly, with an upload per draw or per client.
//!
//! With the offset `u` uniform in `[0, 1/K)`, the points `u + k/K` on the cumulative selection ([`crate::draw`]) give
//! a list of draws that changes at most `N − 1` times as `u` moves: whenever a point passes the border between two
//! neighbours in the order. The appearance is therefore a finite sum over the intervals between these places,
//! weighted by their lengths. For one list with counts `n_j`, let
//!
//! ```text
//! F_j(t) = (ε_j + (1 − ε_j) t)^{n_j}     one upload per draw,
//! F_j(t) = ε_j + (1 − ε_j) t^{n_j}       one upload per client,
//! ```
//!
//! the generating function of what arrives from client `j`. Writing `1/T = ∫ t^{T−1} dt` for the number `T` of draws that
//! arrived, the share of client `i`, given that somebody arrived, is
//!
//! ```text
//! ∫₀¹ P(t) (ln F_i)'(t) dt / (1 − P(0)) ,        P = Π_j F_j .
//! ```
//!
//! The integrand is a polynomial of degree `K − 1`, which a Gauss–Legendre rule of `⌊K/2⌋ + 1` nodes integrates exactly; for
//! large `K` fewer nodes on panels that halve towards `t = 1` do it to rounding. Lists in which every client has
//! failure probability 1 are drawn again.
//!
//! Of clients that fail together, in groups that are down with probability `φ_q`, `ε_j` is how often each fails on its own, `G_q = Π F_j`
//! over the clients of group `q`, and
//!
//! ```text
//! P = Π_q (φ_q + (1 − φ_q) G_q) ,        (ln F_i)' is multiplied by (1 − φ_q) G_q / (φ_q + (1 − φ_q) G_q), q the group of i.
//! ```
//!
//! **Cost.** `(ln F_i)'` depends on the list only through `n_i`, and `n_i` changes at most twice. So one running sum per
//! node, `R(t) = Σ length · P(t) / (1 − P(0))`, serves all clients: each is settled when its count changes. That
//! takes `O(N)` steps of as many operations as there are nodes, instead of `O(N K)` such steps; the running
//! sums carry twice the digits, so that differences lose nothing. Each group has running sums of its own. For many clients [`many`] does the same in pieces, in parallel.

mod many;

use super::AppearanceModel;
use crate::Uploads;
use crate::draw::check_order;
use crate::error::{Error, check_length, check_probabilities, check_selected};
use crate::groups::Groups;
use crate::pair::Pair;
use crate::special;
use std::borrow::Cow;

/// Systematic draws.
#[derive(Debug, Clone, Copy)]
pub struct Systematic<'a> {
    /// Failure probabilities for whatever reason.
    pub failure: &'a [f64],
    /// Draws per round, `K`.
    pub selected: u64,
    /// The order of the clients on the cumulative selection; see [`crate::draw::label_order`].
    pub order: &'a [u32],
    /// What uploads when a client is drawn more than once.
    pub uploads: Uploads,
    /// Who fails together.
    pub groups: Option<&'a Groups>,
}

impl Systematic<'_> {
    /// Checks the fields and the selection, then computes its appearance.
    ///
    /// ```
    /// use fedcote::{Uploads, appearance::Systematic};
    ///
    /// // Four draws of two clients with s = ½ each: two draws a client, always. With one upload per client, client 1
    /// // arrives always; client 2 half of the time, and then has half of the aggregate.
    /// let model = Systematic {
    ///     failure: &[0.0, 0.5],
    ///     selected: 4,
    ///     order: &[0, 1],
    ///     uploads: Uploads::PerClient,
    ///     groups: None,
    /// };
    /// let appearance = model.checked(&[0.5, 0.5])?;
    /// assert!((appearance[1] - 0.25).abs() < 1e-15);
    /// # Ok::<(), fedcote::Error>(())
    /// ```
    pub fn checked(&self, selection: &[f64]) -> Result<Vec<f64>, Error> {
        check_selected(self.selected)?;
        super::check_selection(selection)?;
        check_length("failure", selection.len(), self.failure.len())?;
        check_probabilities("failure", self.failure)?;
        check_order(self.order, selection.len())?;
        if let Some(groups) = self.groups {
            check_length("groups", selection.len(), groups.clients())?;
        }
        let mut out = vec![0.0; selection.len()];
        self.appearance(selection, &mut out)?;
        Ok(out)
    }

    /// Clients times nodes of the quadrature: the cost of an evaluation, in units of roughly 0.1 µs, of 5 ns where clients are many.
    pub fn work(clients: usize, selected: u64) -> f64 {
        clients as f64 * special::unit_rule_len(selected) as f64
    }
}

/// From so many clients on, the walk is cut into pieces.
const MANY: usize = 20_000;

impl AppearanceModel for Systematic<'_> {
    fn appearance(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error> {
        // Clients that are drawn many times each have no factors to exchange.
        let many = selection.len() >= MANY && self.selected <= selection.len() as u64;
        if many && self.groups.is_none() {
            many::appearance(self, selection, out)
        } else {
            self.whole(selection, out)
        }
    }
}

impl Systematic<'_> {
    /// How often each client fails on its own.
    fn own(&self) -> Cow<'_, [f64]> {
        match self.groups {
            None => Cow::Borrowed(self.failure),
            Some(groups) => {
                let pairs = self.failure.iter().enumerate();
                pairs.map(|(client, &failure)| groups.own(client, failure)).collect()
            }
        }
    }

    /// The group of a client; the last one is of those in none, and never down.
    fn group(&self, client: u32) -> usize {
        self.groups.map_or(0, |groups| groups.of(client as usize).unwrap_or(groups.len()))
    }

    /// The walk as a whole.
    fn whole(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error> {
        let (nodes, own) = (nodes(self.selected), self.own());
        let Walk { mut counts, passages } = Walk::new(selection, self.order, self.selected);
        let mut list = List::new(self, &own, &nodes);
        for (&client, &count) in self.order.iter().zip(&counts) {
            list.change(client, (0, count), |_, _, _| {});
        }
        let mut reached = vec![vec![Pair::default(); nodes.len()]; list.groups.len()];
        let mut sums = vec![Pair::default(); selection.len()];
        let (mut position, mut live) = (0.0, 0.0);
        let mut advance = |list: &List, reached: &mut [Vec<Pair>], to: f64| {
            let length: f64 = to - position;
            position = to;
            if length > 0.0 && list.live > 0 {
                live += length;
                let weight = length / list.somebody();
                list.products(|group, index, product| {
                    reached[group][index].add(weight * nodes[index].weight * product);
                });
            }
        };
        for (to, slot) in passages {
            advance(&list, &mut reached, to);
            let slot = slot as usize;
            for (slot, to) in [(slot, counts[slot] - 1), (slot + 1, counts[slot + 1] + 1)] {
                let client = self.order[slot];
                let (sum, reached) = (&mut sums[client as usize], &reached[self.group(client)]);
                // Settles what the old count has gathered, and marks where the new one begins.
                list.change(client, (counts[slot], to), |node, before, after| {
                    sum.add_product(reached[node], before);
                    sum.add_product(reached[node], -after);
                });
                counts[slot] = to;
            }
        }
        advance(&list, &mut reached, 1.0);
        for (&client, &count) in self.order.iter().zip(&counts) {
            let sum = &mut sums[client as usize];
            for (node, reached) in nodes.iter().zip(&reached[self.group(client)]) {
                let (_, slope) = self.factor(own[client as usize], count, node);
                sum.add_product(*reached, slope);
            }
        }
        if live <= 0.0 {
            return Err(Error::NobodyArrives);
        }
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = (sum.high / live).max(0.0));
        Ok(())
    }
}

impl Systematic<'_> {
    /// The derivatives of the appearance with respect to the borders between neighbours in the order.
    ///
    /// Between the places where passages change their order the appearance is linear in the selection. Moving the border after
    /// a slot by `d` moves its passage by `K d`: the list before it lasts longer, the list after it shorter. So column
    /// `slot` is `K` times the difference of the two lists' shares, row after row in the order of slots; `N − 1` columns
    /// of `N`. `None` when rounding merges two borders, or with clients that never arrive.
    pub(crate) fn jacobian(&self, selection: &[f64]) -> Option<Vec<Vec<f64>>> {
        let clients = self.order.len();
        let (nodes, own) = (nodes(self.selected), self.own());
        let Walk { mut counts, passages } = Walk::new(selection, self.order, self.selected);
        if passages.len() + 1 != clients || self.failure.contains(&1.0) {
            return None;
        }
        let mut list = List::new(self, &own, &nodes);
        let mut slopes = vec![vec![0.0; nodes.len()]; clients];
        for slot in 0..clients {
            let slopes = &mut slopes[slot];
            list.change(self.order[slot], (0, counts[slot]), |node, _, slope| slopes[node] = slope);
        }
        let shares = |list: &List, counts: &[u64], slopes: &[Vec<f64>]| -> Vec<f64> {
            let scale = 1.0 / list.somebody();
            let mut factors = vec![vec![0.0; nodes.len()]; list.groups.len()];
            list.products(|group, index, product| {
                factors[group][index] = scale * nodes[index].weight * product;
            });
            let share = |slot: usize| match counts[slot] {
                0 => 0.0,
                _ => {
                    let factors = &factors[self.group(self.order[slot])];
                    factors.iter().zip(&slopes[slot]).map(|(factor, slope)| factor * slope).sum()
                }
            };
            (0..clients).map(share).collect()
        };
        let mut before = shares(&list, &counts, &slopes);
        let mut columns = vec![Vec::new(); clients - 1];
        for (_, slot) in passages {
            let slot = slot as usize;
            for (slot, to) in [(slot, counts[slot] - 1), (slot + 1, counts[slot + 1] + 1)] {
                let (from, slopes) = (counts[slot], &mut slopes[slot]);
                list.change(self.order[slot], (from, to), |node, _, slope| slopes[node] = slope);
                counts[slot] = to;
            }
            let after = shares(&list, &counts, &slopes);
            let selected = self.selected as f64;
            columns[slot] = before.iter().zip(&after).map(|(b, a)| selected * (b - a)).collect();
            before = after;
        }
        Some(columns)
    }
}

/// The places at which a point passes from one client to the next.
struct Walk {
    /// How often each client is drawn before the first passage, in the given order.
    counts: Vec<u64>,
    /// `(K·u, slot)`: there, one draw goes from this slot of the order to the next.
    passages: Vec<(f64, u32)>,
}

impl Walk {
    /// The same arithmetic as [`crate::draw::systematic_at`], so that both agree on every list.
    fn new(selection: &[f64], order: &[u32], selected: u64) -> Self {
        let total: f64 = order.iter().map(|&client| selection[client as usize]).sum();
        let mut counts = Vec::with_capacity(order.len());
        let mut passages = Vec::with_capacity(order.len());
        let (mut before, mut cumulated) = (0, 0.0);
        for (slot, &client) in (0..).zip(order) {
            cumulated += selection[client as usize];
            let points = selected as f64 * (cumulated / total);
            // The count before its passage; a border on a whole number is passed at once.
            let below = if cumulated < total && points < selected as f64 {
                passages.push((points.fract(), slot));
                points.floor() as u64 + 1
            } else {
                selected
            };
            counts.push(below - before);
            before = below;
        }
        // Stable: a point that passes several borders in one place passes them in their order.
        passages.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { counts, passages }
    }
}

/// A node of the rule for integrals over `t` from 0 to 1.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// `ln t`.
    log: f64,
    /// `t`.
    value: f64,
    /// `1 − t`.
    complement: f64,
    weight: f64,
}

fn nodes(selected: u64) -> Vec<Node> {
    let node = |(complement, weight): (f64, f64)| {
        let log = (-complement).ln_1p();
        Node { log, value: log.exp(), complement, weight }
    };
    special::unit_rule(selected).into_iter().map(node).collect()
}

/// A list of draws: what its generating function `P` needs.
struct List<'a> {
    model: &'a Systematic<'a>,
    /// How often each client fails on its own.
    own: &'a [f64],
    nodes: &'a [Node],
    groups: Vec<Group>,
    /// Draws of clients that may arrive.
    live: u64,
}

/// The draws of clients that fail together.
#[derive(Clone)]
struct Group {
    /// How often it is down.
    down: f64,
    /// `ln G(t)` at each node.
    log: Vec<Pair>,
    /// `ln G(0)`, but for clients that never fail.
    log_nobody: Pair,
    /// Draws of clients that never fail.
    certain: u64,
}

impl<'a> List<'a> {
    fn new(model: &'a Systematic<'a>, own: &'a [f64], nodes: &'a [Node]) -> Self {
        let group = |&down: &f64| Group {
            down,
            log: vec![Pair::default(); nodes.len()],
            log_nobody: Pair::default(),
            certain: 0,
        };
        let down = model.groups.map_or(&[][..], Groups::failure);
        Self { model, own, nodes, groups: down.iter().chain(&[0.0]).map(group).collect(), live: 0 }
    }

    /// Changes a client's count; `each` gets `(ln F)'` at each node before and after.
    fn change(
        &mut self,
        client: u32,
        (from, to): (u64, u64),
        mut each: impl FnMut(usize, f64, f64),
    ) {
        if from == to {
            return;
        }
        let failure = self.own[client as usize];
        let group = &mut self.groups[self.model.group(client)];
        for (index, (log, node)) in group.log.iter_mut().zip(self.nodes).enumerate() {
            let (log_from, slope_from) = self.model.factor(failure, from, node);
            let (log_to, slope_to) = self.model.factor(failure, to, node);
            log.add(log_to);
            log.add(-log_from);
            each(index, slope_from, slope_to);
        }
        if failure < 1.0 {
            self.live = self.live - from + to;
        }
        if failure == 0.0 {
            group.certain = group.certain - from + to;
        } else {
            let uploads = |count: u64| match self.model.uploads {
                Uploads::PerDraw => count as f64,
                Uploads::PerClient => count.min(1) as f64,
            };
            group.log_nobody.add(uploads(to) * failure.ln());
            group.log_nobody.add(-uploads(from) * failure.ln());
        }
    }

    /// The probability that somebody arrives, `1 − P(0)`.
    fn somebody(&self) -> f64 {
        let nobody = |group: &Group| match group.certain {
            0 => log_upload(group.down, group.log_nobody.high),
            _ => group.down.ln(),
        };
        -self.groups.iter().map(nobody).sum::<f64>().exp_m1()
    }

    /// Calls `each` with every group, every node and, there, `P (1 − φ) G / (φ + (1 − φ) G)`.
    fn products(&self, mut each: impl FnMut(usize, usize, f64)) {
        for index in 0..self.nodes.len() {
            let log = |group: &Group| log_upload(group.down, group.log[index].high);
            let all: f64 = self.groups.iter().map(log).sum();
            for (at, group) in self.groups.iter().enumerate() {
                let rest = all - log(group) + group.log[index].high;
                each(at, index, (1.0 - group.down) * rest.exp());
            }
        }
    }
}

impl Systematic<'_> {
    /// `ln F(t)` and its derivative for a client with this many draws.
    #[inline]
    fn factor(&self, failure: f64, count: u64, node: &Node) -> (f64, f64) {
        let selected = count as f64;
        let rate = selected * (1.0 - failure);
        if count == 0 {
            (0.0, 0.0)
        } else if count == 1 || self.uploads == Uploads::PerDraw {
            // One upload per draw: the power of a linear function.
            let missing = (1.0 - failure) * node.complement;
            if missing < 0.5 {
                (selected * (-missing).ln_1p(), rate / (1.0 - missing))
            } else {
                let value = failure + (1.0 - failure) * node.value;
                (selected * value.ln(), rate / value)
            }
        } else {
            let all = selected * node.log;
            let log = log_upload(failure, all);
            (log, rate * (all - node.log - log).exp())
        }
    }
}

/// `ln(ε + (1 − ε) x)` from `ln x`, without loss on either end.
#[inline]
fn log_upload(failure: f64, log: f64) -> f64 {
    if failure == 0.0 {
        log
    } else if log > -0.5 {
        ((1.0 - failure) * log.exp_m1()).ln_1p()
    } else {
        (failure + (1.0 - failure) * log.exp()).ln()
    }
}

#[cfg(test)]
mod tests;
