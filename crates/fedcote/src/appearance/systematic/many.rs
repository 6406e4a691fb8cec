//! The same appearance for many clients: the walk cut into pieces, and products in place of sums of logarithms.
//!
//! Most clients of a large federation are drawn once or not at all. A passage then takes one factor `ε + (1 − ε) t` out of `P`
//! and puts another in: at every node a product and two quotients. Products lose a digit or so in ten steps of rounding each,
//! so after 16 `K` passages they are formed anew; between these places the pieces of the walk do not depend on each other, and are
//! worked out in parallel. Each settles what its clients have gathered in it, so that its running sums are short, and no digits are
//! lost in their differences: the result is within 1e-10 of the exact one, whatever `N`.

use std::collections::HashMap;

use super::{Node, Systematic, Walk, nodes};
use crate::Uploads;
use crate::chunks;
use crate::error::Error;

/// Nodes that are worked on together.
const LANES: usize = 4;

/// Passages of a piece, at least; and for each draw.
const PIECE: usize = 4096;
const PASSAGES: usize = 16;

/// Writes the appearance to `out`. There are no more draws than clients.
pub(super) fn appearance(
    model: &Systematic,
    selection: &[f64],
    out: &mut [f64],
) -> Result<(), Error> {
    let Walk { counts, passages } = Walk::new(selection, model.order, model.selected);
    let length = PIECE.max(PASSAGES * model.selected as usize);
    let pieces = pieces(&counts, &passages, length);
    drop(counts);
    let nodes = Nodes::new(model.selected);
    let found = chunks::each(&pieces, |piece| {
        let to = (piece.first + length).min(passages.len());
        let end = if to == passages.len() { 1.0 } else { passages[to - 1].0 };
        let mut state = State::new(model, &nodes, piece);
        passages[piece.first..to].iter().for_each(|&(to, slot)| state.pass(to, slot));
        state.finish(end)
    });
    let live: f64 = found.iter().map(|(live, _)| live).sum();
    if live <= 0.0 {
        return Err(Error::NobodyArrives);
    }
    out.fill(0.0);
    for (slot, share) in found.iter().flat_map(|(_, shares)| shares) {
        out[model.order[*slot as usize] as usize] += share;
    }
    out.iter_mut().for_each(|share| *share = (*share / live).max(0.0));
    Ok(())
}

/// Where a piece of the walk begins.
struct Piece {
    /// Its first passage.
    first: usize,
    /// The offset there.
    start: f64,
    /// The slot of each draw, ascending.
    slots: Vec<u32>,
}

fn pieces(counts: &[u64], passages: &[(f64, u32)], length: usize) -> Vec<Piece> {
    // The draw that passes from a slot is the last of those up to it.
    let mut slots: Vec<u32> = Vec::new();
    let mut last = Vec::with_capacity(counts.len());
    for (slot, &count) in (0..).zip(counts) {
        slots.extend(std::iter::repeat_n(slot, count as usize));
        last.push(slots.len().wrapping_sub(1) as u32);
    }
    let mut pieces = Vec::new();
    for (at, &(_, slot)) in passages.iter().enumerate() {
        if at % length == 0 {
            let start = if at == 0 { 0.0 } else { passages[at - 1].0 };
            pieces.push(Piece { first: at, start, slots: slots.clone() });
        }
        slots[last[slot as usize] as usize] = slot + 1;
    }
    if passages.is_empty() {
        pieces.push(Piece { first: 0, start: 0.0, slots });
    }
    pieces
}

/// The nodes as lanes; those that fill the last lane weigh nothing.
struct Nodes {
    all: Vec<Node>,
    value: Vec<[f64; LANES]>,
    weight: Vec<[f64; LANES]>,
}

impl Nodes {
    fn new(selected: u64) -> Self {
        let mut all = nodes(selected);
        let idle = Node { log: 0.0, value: 1.0, complement: 0.0, weight: 0.0 };
        all.resize(all.len().next_multiple_of(LANES), idle);
        let lanes = |of: fn(&Node) -> f64| {
            let lane = |lane: &[Node]| std::array::from_fn(|at| of(&lane[at]));
            all.chunks_exact(LANES).map(lane).collect()
        };
        Self { value: lanes(|node| node.value), weight: lanes(|node| node.weight), all }
    }
}

/// A piece on its way.
struct State<'a> {
    model: &'a Systematic<'a>,
    nodes: &'a Nodes,
    /// `P` at each node.
    product: Vec<[f64; LANES]>,
    /// `Σ length · weight · P / (1 − P(0))` at each node.
    reached: Vec<[f64; LANES]>,
    counts: HashMap<u32, u64>,
    position: f64,
    /// Lengths with somebody who may arrive.
    passed: f64,
    log_nobody: f64,
    certain: u64,
    live: u64,
    shares: Vec<(u32, f64)>,
}

impl<'a> State<'a> {
    fn new(model: &'a Systematic<'a>, nodes: &'a Nodes, piece: &Piece) -> Self {
        let lanes = nodes.value.len();
        let mut state = Self {
            model,
            nodes,
            product: vec![[1.0; LANES]; lanes],
            reached: vec![[0.0; LANES]; lanes],
            counts: HashMap::new(),
            position: piece.start,
            passed: 0.0,
            log_nobody: 0.0,
            certain: 0,
            live: 0,
            shares: Vec::new(),
        };
        for same in piece.slots.chunk_by(|one, two| one == two) {
            state.change(same[0], 0, same.len() as u64);
            state.counts.insert(same[0], same.len() as u64);
        }
        state.shares.clear();
        state
    }

    fn failure(&self, slot: u32) -> f64 {
        self.model.failure[self.model.order[slot as usize] as usize]
    }

    /// Goes on to the next passage, where a draw goes from this slot to the next.
    fn pass(&mut self, to: f64, slot: u32) {
        self.advance(to);
        let (from, into) = (self.count(slot), self.count(slot + 1));
        if (from, into) == (1, 0) {
            self.exchange(slot);
        } else {
            self.change(slot, from, from - 1);
            self.change(slot + 1, into, into + 1);
        }
        match from {
            1 => drop(self.counts.remove(&slot)),
            _ => drop(self.counts.insert(slot, from - 1)),
        }
        self.counts.insert(slot + 1, into + 1);
    }

    fn count(&self, slot: u32) -> u64 {
        self.counts.get(&slot).copied().unwrap_or(0)
    }

    fn advance(&mut self, to: f64) {
        let length = to - self.position;
        self.position = to;
        if length > 0.0 && self.live > 0 {
            self.passed += length;
            let somebody = if self.certain > 0 { 1.0 } else { -self.log_nobody.exp_m1() };
            let scale = length / somebody;
            let lanes = self.reached.iter_mut().zip(&self.product).zip(&self.nodes.weight);
            for ((reached, product), weight) in lanes {
                for at in 0..LANES {
                    reached[at] += scale * weight[at] * product[at];
                }
            }
        }
    }

    /// One draw goes from a client that has it alone to the next, which has none.
    fn exchange(&mut self, slot: u32) {
        let (from, into) = (self.failure(slot), self.failure(slot + 1));
        let (mut left, mut entered) = ([0.0; LANES], [0.0; LANES]);
        let lanes = self.product.iter_mut().zip(&self.reached).zip(&self.nodes.value);
        for ((product, reached), value) in lanes {
            for at in 0..LANES {
                let (before, after) =
                    (from + (1.0 - from) * value[at], into + (1.0 - into) * value[at]);
                let (gone, come) = (1.0 / before, 1.0 / after);
                product[at] *= after * gone;
                left[at] += reached[at] * gone;
                entered[at] += reached[at] * come;
            }
        }
        self.shares.push((slot, (1.0 - from) * left.iter().sum::<f64>()));
        self.shares.push((slot + 1, -(1.0 - into) * entered.iter().sum::<f64>()));
        self.tally(slot, 1, 0);
        self.tally(slot + 1, 0, 1);
    }

    /// A client's count changes: settles what the old one has gathered, and marks where the new one begins.
    fn change(&mut self, slot: u32, from: u64, to: u64) {
        let failure = self.failure(slot);
        let mut share = 0.0;
        let lanes = self.product.iter_mut().flatten().zip(self.reached.iter().flatten());
        for ((product, reached), node) in lanes.zip(&self.nodes.all) {
            let (log_from, slope_from) = self.model.factor(failure, from, node);
            let (log_to, slope_to) = self.model.factor(failure, to, node);
            *product *= (log_to - log_from).exp();
            share += reached * (slope_from - slope_to);
        }
        self.shares.push((slot, share));
        self.tally(slot, from, to);
    }

    fn tally(&mut self, slot: u32, from: u64, to: u64) {
        let failure = self.failure(slot);
        if failure < 1.0 {
            self.live = self.live - from + to;
        }
        if failure == 0.0 {
            self.certain = self.certain - from + to;
        } else {
            let uploads = |count: u64| match self.model.uploads {
                Uploads::PerDraw => count as f64,
                Uploads::PerClient => count.min(1) as f64,
            };
            self.log_nobody += (uploads(to) - uploads(from)) * failure.ln();
        }
    }

    /// Goes on to the end of the piece; what was passed, and what each slot has gathered.
    fn finish(mut self, end: f64) -> (f64, Vec<(u32, f64)>) {
        self.advance(end);
        let counts = std::mem::take(&mut self.counts);
        for (&slot, &count) in &counts {
            let failure = self.failure(slot);
            let pairs = self.reached.iter().flatten().zip(&self.nodes.all);
            let share =
                pairs.map(|(reached, node)| reached * self.model.factor(failure, count, node).1);
            self.shares.push((slot, share.sum()));
        }
        (self.passed, self.shares)
    }
}

#[cfg(test)]
mod tests;
