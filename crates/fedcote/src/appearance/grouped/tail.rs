//! The slow rest of the series, octave by octave.
//!
//! As a function of `m` every term is a sum of `ρ^m`, `ρ` being the chance that nothing of a list of draws arrives, so sixteen values an
//! octave are enough (see `gram`). They are taken at real `m`, where the mean over the number `a` of attempts in which a group was
//! up goes on: of `ε^a` it is `(φ + (1 − φ) ε)^m`, and the binomial series `Σ_b C(m, b) π^b (1 − π)^{m−b}` is that,
//! `π ≤ ½` being the rarer of up and down and `b` how often that was. Where `b = 0` is out of the question the weights are a bell of deviation `σ`,
//! of which every `⌊σ/1.5⌋`-th is enough: with that step the trapezoidal rule errs by `e^{−2π² 1.5²}`. So a term
//! takes some thirty places, however large `m` is.

use super::{Client, Complex, Grouped, gram, points, scale};
use crate::{chunks, special};

/// What is left of a bell beyond its places: `e^−46`.
const EDGE: f64 = -46.0;

/// A number of attempts in which a group was up, and how often it was that.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// `a`.
    up: f64,
    /// Its share of the mean.
    weight: f64,
    /// `M_a` and `M_{a+1}`.
    moments: [f64; 2],
}

/// A group in the terms of an octave.
struct Group {
    down: f64,
    /// `M_0`.
    all: f64,
    /// Places, those of one term after those of another.
    places: Vec<Place>,
    /// Where the places of each term end.
    ends: Vec<usize>,
}

impl Group {
    fn new(down: f64, members: &[&Client], rule: &gram::Rule) -> Self {
        let all = members.iter().map(|client| client.selection).sum();
        let (mut places, mut ends) = (Vec::new(), Vec::new());
        for &m in &rule.nodes {
            for (up, weight) in ups(m, down) {
                let mut moments = [0.0; 2];
                for client in members {
                    let power = client.selection * client.own.powf(up);
                    moments[0] += power;
                    moments[1] += power * client.own;
                }
                places.push(Place { up, weight, moments });
            }
            ends.push(places.len());
        }
        Self { down, all, places, ends }
    }

    /// Where the places of a term are.
    fn range(&self, term: usize) -> std::ops::Range<usize> {
        let start = if term == 0 { 0 } else { self.ends[term - 1] };
        start..self.ends[term]
    }
}

/// How often a group was up in `m` attempts, with what weight.
fn ups(m: f64, down: f64) -> Vec<(f64, f64)> {
    if down == 0.0 {
        return vec![(m, 1.0)];
    }
    let rare = down.min(1.0 - down);
    let deviation = (m * rare * (1.0 - rare)).sqrt();
    let bell = m * (-rare).ln_1p() < EDGE;
    let step = if bell { (deviation / 1.5).floor().max(1.0) } else { 1.0 };
    let middle = (m * rare).floor();
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut add = |count: f64| {
        let log = log_binomial(m, count, rare);
        let up = if rare < down { count } else { m - count };
        found.push((up, log.exp()));
        log > EDGE
    };
    let mut count = middle;
    while add(count) {
        count += step;
    }
    let mut count = middle - step;
    while count >= 0.0 && add(count) {
        count -= step;
    }
    let total: f64 = found.iter().map(|(_, weight)| weight).sum();
    found.iter_mut().for_each(|(_, weight)| *weight /= total);
    found
}

/// `ln C(m, b) π^b (1 − π)^{m−b}` for real `m` and whole `b`, without the cancellation of gamma functions (C. Loader, "Fast and accurate
/// computation of binomial probabilities", 2000).
fn log_binomial(m: f64, count: f64, rare: f64) -> f64 {
    if count == 0.0 {
        return m * (-rare).ln_1p();
    }
    let rest = m - count;
    let deviances = deviance(count, m * rare) + deviance(rest, m * (1.0 - rare));
    let spread = 0.5 * (std::f64::consts::TAU * count * (rest / m)).ln();
    stirling(m) - stirling(count) - stirling(rest) - deviances - spread
}

/// `x ln(x/mean) + mean − x`.
fn deviance(x: f64, mean: f64) -> f64 {
    let gap = x - mean;
    let ratio = gap / (x + mean);
    if ratio.abs() > 0.1 {
        return x * (x / mean).ln() - gap;
    }
    let square = ratio * ratio;
    let (mut sum, mut power) = (gap * ratio, 2.0 * x * ratio);
    for odd in 1..20 {
        power *= square;
        let added = power / f64::from(2 * odd + 1);
        sum += added;
        if added.abs() <= f64::EPSILON * sum.abs() {
            break;
        }
    }
    sum
}

/// `ln Γ(x + 1) − (x + ½) ln x + x − ½ ln 2π`.
fn stirling(x: f64) -> f64 {
    if x < 16.0 {
        return libm::lgamma(x + 1.0) - (x + 0.5) * x.ln() + x - 0.5 * std::f64::consts::TAU.ln();
    }
    let square = 1.0 / (x * x);
    (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x
}

impl Grouped<'_> {
    /// The sum of the terms of an octave, client by client.
    pub(super) fn octave(&self, clients: &[Client], rule: &gram::Rule) -> Vec<f64> {
        let used = super::used(clients);
        let groups: Vec<Group> = used
            .iter()
            .map(|&group| {
                let members: Vec<&Client> = clients.iter().filter(|c| c.group == group).collect();
                Group::new(self.down(group), &members, rule)
            })
            .collect();
        let nodes = special::unit_rule(self.selected);
        let parts = chunks::each(&points(self.selected), |&point| {
            at(&groups, self.selected as f64, point, &nodes, rule)
        });
        let mut sums: Vec<Vec<f64>> =
            groups.iter().map(|group| vec![0.0; group.places.len()]).collect();
        for part in parts {
            for (sum, part) in sums.iter_mut().flatten().zip(part.into_iter().flatten()) {
                *sum += part;
            }
        }
        let share = |client: &Client| {
            let at = super::place(&used, client.group);
            let places = groups[at].places.iter().zip(&sums[at]);
            let value: f64 = places.map(|(place, sum)| client.own.powf(place.up) * sum).sum();
            client.selection * (1.0 - client.own) * value
        };
        clients.iter().map(share).collect()
    }
}

/// What one point on the circle adds to each place of each group.
fn at(
    groups: &[Group],
    selected: f64,
    (angle, point_weight): (f64, f64),
    nodes: &[(f64, f64)],
    rule: &gram::Rule,
) -> Vec<Vec<f64>> {
    let half = (0.5 * angle).sin();
    let (fall, sine) = (-2.0 * half * half, angle.sin());
    let phase = Complex::polar(point_weight * selected * scale(selected), (1.0 - selected) * angle);
    let exponential = |x: f64, all: f64| {
        Complex::polar((selected * (x * (1.0 + fall) - all)).exp(), selected * x * sine)
    };
    // The part of a factor in which the group is down does not depend on t.
    let sum = |group: &Group, term: usize, one: &dyn Fn(usize) -> Complex| {
        let weighted = |at: usize| one(at).scaled(group.places[at].weight);
        group.range(term).map(weighted).fold(Complex::ZERO, |sum, value| sum + value)
    };
    let whole = |group: &Group, term: usize| match group.down > 0.0 {
        true => sum(group, term, &|at| exponential(group.places[at].moments[0], group.all))
            .scaled(group.down),
        false => Complex::ZERO,
    };
    let wholes: Vec<Vec<Complex>> = groups
        .iter()
        .map(|group| (0..rule.nodes.len()).map(|term| whole(group, term)).collect())
        .collect();
    let mut up: Vec<Vec<Complex>> =
        groups.iter().map(|group| vec![Complex::ZERO; group.places.len()]).collect();
    let mut sums: Vec<Vec<f64>> =
        groups.iter().map(|group| vec![0.0; group.places.len()]).collect();
    let (mut factors, mut others) =
        (vec![Complex::ZERO; groups.len()], vec![Complex::ZERO; groups.len()]);
    for &(complement, weight) in nodes {
        for (group, up) in groups.iter().zip(&mut up) {
            for (place, up) in group.places.iter().zip(up) {
                let [high, low] = place.moments;
                let mixed = high - complement * (high - low);
                *up = exponential(mixed, group.all).scaled(1.0 - group.down);
            }
        }
        for (term, term_weight) in rule.weights.iter().enumerate() {
            for (q, group) in groups.iter().enumerate() {
                factors[q] = wholes[q][term] + sum(group, term, &|at| up[q][at]);
            }
            super::others(&factors, phase.scaled(weight * term_weight), &mut others);
            for (q, group) in groups.iter().enumerate() {
                for at in group.range(term) {
                    sums[q][at] += group.places[at].weight * (up[q][at] * others[q]).re;
                }
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of ε^a is (φ + (1 − φ) ε)^m, for whole and for other m.
    #[test]
    fn means_of_powers_are_the_binomial_theorem() {
        for m in [128.0, 131.7, 1000.3, 65536.0, 3e6 + 0.25, 1e12, 4e18] {
            for down in [1e-12, 1e-4, 0.01, 0.2, 0.5, 0.500001, 0.9, 0.9999, 1.0 - 1e-9, 1.0] {
                let places = ups(m, down);
                assert!(places.len() < 180, "{m} {down}: {}", places.len());
                // Such that ε^m is about e^−rate, and far smaller.
                let slow = [0.0, 0.01, 0.3, 1.0, 4.0, 30.0].map(|rate: f64| (-rate / m).exp());
                for own in slow.into_iter().chain([0.0, 0.1, 0.5, 0.9]) {
                    let found: f64 = places.iter().map(|(up, w)| w * own.powf(*up)).sum();
                    let exact = (m * ((1.0 - down) * (own - 1.0)).ln_1p()).exp();
                    assert!((found - exact).abs() < 1e-13, "{m} {down} {own}: {found} {exact}");
                }
            }
        }
    }
}
