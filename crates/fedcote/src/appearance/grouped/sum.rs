//! Terms of the series, summed over points on the circle and nodes in `t`.

use super::super::per_client::{Complex, points, scale};
use super::{Grouped, Terms};
use crate::{Uploads, chunks, special};

/// A client that may be drawn.
pub(super) struct Client {
    pub(super) at: usize,
    pub(super) group: usize,
    pub(super) selection: f64,
    pub(super) own: f64,
}

/// A group that somebody who may be drawn is in.
struct Group<'a> {
    down: f64,
    terms: Terms,
    members: &'a [Client],
    /// What the factors of its clients need.
    factors: Factors,
}

enum Factors {
    /// One upload per draw: `M_a` and `Σ s ε^{a+1}` at each place, and `Σ s`.
    PerDraw { moments: Vec<[f64; 2]>, all: f64 },
    /// One upload per client: `ε^a` at each place, client after client, and `e^{−s K}` of each.
    PerClient { powers: Vec<f64>, constants: Vec<f64> },
}

impl<'a> Group<'a> {
    fn new(model: &Grouped, members: &'a [Client], terms: impl Fn(f64) -> Terms) -> Self {
        // Never, if it is that of the clients in none.
        let down = model.groups.failure().get(members[0].group).copied().unwrap_or(0.0);
        let terms = terms(down);
        let factors = match model.uploads {
            Uploads::PerDraw => {
                let mut moments = vec![[0.0; 2]; terms.len()];
                for client in members {
                    terms.powers(client.own, |place, power| {
                        moments[place][0] += client.selection * power;
                        moments[place][1] += client.selection * power * client.own;
                    });
                }
                Factors::PerDraw { moments, all: members.iter().map(|c| c.selection).sum() }
            }
            Uploads::PerClient => {
                let mut powers = vec![0.0; members.len() * terms.len()];
                for (at, client) in members.iter().enumerate() {
                    terms.powers(client.own, |place, power| {
                        powers[place * members.len() + at] = power;
                    });
                }
                let constant = |c: &Client| (-c.selection * model.selected as f64).exp();
                Factors::PerClient { powers, constants: members.iter().map(constant).collect() }
            }
        };
        Self { down, terms, members, factors }
    }

    /// How many sums it takes: for each client, or for each place where clients have `ε^a` of their own in common.
    fn sums(&self) -> usize {
        match self.factors {
            Factors::PerDraw { .. } => self.terms.len(),
            Factors::PerClient { .. } => self.members.len(),
        }
    }
}

/// A point `z = K e^{iθ}` on the circle.
struct Point {
    selected: f64,
    /// `cos θ − 1` and `sin θ`.
    fall: f64,
    sine: f64,
}

impl Point {
    /// `exp(z x − K all)`: factors are scaled so that none exceeds 1.
    fn exponential(&self, x: f64, all: f64) -> Complex {
        let growth = self.selected * (x * (1.0 + self.fall) - all);
        Complex::polar(growth.exp(), self.selected * x * self.sine)
    }

    /// `exp(s (z (1 − c) − K))` for each client: of its upload at `t = 1 − c`.
    fn uploads(&self, group: &Group, complement: f64) -> Vec<Complex> {
        if let Factors::PerDraw { .. } = group.factors {
            return Vec::new();
        }
        let real = self.fall - complement * (1.0 + self.fall);
        let imaginary = (1.0 - complement) * self.sine;
        let upload = |client: &Client| {
            let draws = client.selection * self.selected;
            Complex::polar((draws * real).exp(), draws * imaginary)
        };
        group.members.iter().map(upload).collect()
    }
}

/// For each factor, `start` times the product of all others, from both ends.
fn others(factors: &[Complex], start: Complex, others: &mut [Complex]) {
    let mut product = start;
    for (other, factor) in others.iter_mut().zip(factors) {
        *other = product;
        product = product * *factor;
    }
    let mut product = ONE;
    for (other, factor) in others.iter_mut().zip(factors).rev() {
        *other = *other * product;
        product = product * *factor;
    }
}

const ONE: Complex = Complex { re: 1.0, im: 0.0 };

impl Grouped<'_> {
    /// The sum of terms with these weights, client by client; `terms` are those of a group that is down with a probability. Clients
    /// of a group follow each other.
    pub(super) fn sum(
        &self,
        clients: &[Client],
        weights: &[f64],
        terms: impl Fn(f64) -> Terms,
    ) -> Vec<f64> {
        let members = clients.chunk_by(|a, b| a.group == b.group);
        let groups: Vec<Group> = members.map(|m| Group::new(self, m, &terms)).collect();
        let rule = special::unit_rule(self.selected);
        let parts =
            chunks::each(&points(self.selected), |&point| self.at(&groups, point, &rule, weights));
        let mut sums: Vec<Vec<f64>> = groups.iter().map(|group| vec![0.0; group.sums()]).collect();
        for part in parts {
            for (sum, part) in sums.iter_mut().flatten().zip(part.into_iter().flatten()) {
                *sum += part;
            }
        }
        groups.iter().zip(&sums).flat_map(|(group, sums)| group.shares(sums)).collect()
    }

    /// What one point on the circle adds to the sums of each group.
    fn at(
        &self,
        groups: &[Group],
        (angle, point_weight): (f64, f64),
        rule: &[(f64, f64)],
        weights: &[f64],
    ) -> Vec<Vec<f64>> {
        let selected = self.selected as f64;
        let half = (0.5 * angle).sin();
        let point = Point { selected, fall: -2.0 * half * half, sine: angle.sin() };
        let phase =
            Complex::polar(point_weight * selected * scale(selected), (1.0 - selected) * angle);
        let whole: Vec<Vec<Complex>> = groups.iter().map(|g| point.uploads(g, 0.0)).collect();
        // While a group is down nothing depends on t.
        let down: Vec<Vec<Complex>> =
            groups.iter().zip(&whole).map(|(group, whole)| group.down(&point, whole)).collect();
        let (mut up, mut both, mut collected) = (down.clone(), down.clone(), down.clone());
        let mut sums: Vec<Vec<f64>> = groups.iter().map(|group| vec![0.0; group.sums()]).collect();
        let (mut factors, mut others) = (vec![ONE; groups.len()], vec![ONE; groups.len()]);
        for &(complement, weight) in rule {
            let part: Vec<Vec<Complex>> =
                groups.iter().map(|g| point.uploads(g, complement)).collect();
            for (q, group) in groups.iter().enumerate() {
                group.up(&point, complement, (&whole[q], &part[q]), &mut up[q]);
                for (both, (up, down)) in both[q].iter_mut().zip(up[q].iter().zip(&down[q])) {
                    *both = *up + *down;
                }
                collected[q].fill(Complex::ZERO);
            }
            for (term, term_weight) in weights.iter().enumerate() {
                for (q, group) in groups.iter().enumerate() {
                    let (first, weights) = group.terms.of(term);
                    factors[q] = both[q][first..]
                        .iter()
                        .zip(weights)
                        .fold(Complex::ZERO, |sum, (both, weight)| sum + both.scaled(*weight));
                }
                self::others(&factors, phase.scaled(weight * term_weight), &mut others);
                for (q, group) in groups.iter().enumerate() {
                    let (first, weights) = group.terms.of(term);
                    for (collected, weight) in collected[q][first..].iter_mut().zip(weights) {
                        *collected = *collected + others[q].scaled(*weight);
                    }
                }
            }
            for (q, group) in groups.iter().enumerate() {
                group.add((&whole[q], &part[q]), (&up[q], &collected[q]), &mut sums[q]);
            }
        }
        sums
    }
}

impl Group<'_> {
    /// What the sums come to, client by client.
    fn shares(&self, sums: &[f64]) -> Vec<f64> {
        let value = |(at, client): (usize, &Client)| match self.factors {
            Factors::PerClient { .. } => sums[at],
            Factors::PerDraw { .. } => {
                let mut value = 0.0;
                self.terms.powers(client.own, |place, power| value += power * sums[place]);
                value
            }
        };
        let share = |pair: (usize, &Client)| pair.1.selection * (1.0 - pair.1.own) * value(pair);
        self.members.iter().enumerate().map(share).collect()
    }

    /// `φ Π g` at each place.
    fn down(&self, point: &Point, whole: &[Complex]) -> Vec<Complex> {
        let factor = |place: usize| match &self.factors {
            _ if self.down == 0.0 => Complex::ZERO,
            Factors::PerDraw { moments, all } => {
                point.exponential(moments[place][0], *all).scaled(self.down)
            }
            Factors::PerClient { .. } => {
                let start = ONE.scaled(self.down);
                self.at(place, whole, whole).fold(start, |product, factor| product * factor)
            }
        };
        (0..self.terms.len()).map(factor).collect()
    }

    /// `(1 − φ) Π f` at each place.
    fn up(
        &self,
        point: &Point,
        complement: f64,
        (whole, part): (&[Complex], &[Complex]),
        out: &mut [Complex],
    ) {
        let up = 1.0 - self.down;
        for (place, out) in out.iter_mut().enumerate() {
            *out = match &self.factors {
                Factors::PerDraw { moments, all } => {
                    let [high, low] = moments[place];
                    // t M_a + (1 − t) M_{a+1}
                    point.exponential(high - complement * (high - low), *all).scaled(up)
                }
                Factors::PerClient { .. } => {
                    self.at(place, whole, part).fold(ONE.scaled(up), |product, f| product * f)
                }
            };
        }
    }

    /// The factors of the clients at a place, with one upload each: `f`, or `g` where `part` is `whole`.
    fn at<'b>(
        &'b self,
        place: usize,
        whole: &'b [Complex],
        part: &'b [Complex],
    ) -> impl Iterator<Item = Complex> + 'b {
        let count = self.members.len();
        let (powers, constants) = match &self.factors {
            Factors::PerClient { powers, constants } => {
                (&powers[place * count..][..count], &constants[..])
            }
            Factors::PerDraw { .. } => (&[][..], &[][..]),
        };
        let both = whole.iter().zip(part);
        both.zip(self.members).zip(powers.iter().zip(constants)).map(
            |(((whole, part), client), (power, constant))| {
                let sum =
                    whole.scaled(power * client.own) + part.scaled(power * (1.0 - client.own));
                Complex { re: sum.re + (1.0 - power) * constant, im: sum.im }
            },
        )
    }

    /// Adds what one node in `t` adds: to each place `(1 − φ) Π f` times what was collected, or to each client that with `ε^a h` in
    /// the place of its own `f`.
    fn add(
        &self,
        (whole, part): (&[Complex], &[Complex]),
        (up, collected): (&[Complex], &[Complex]),
        sums: &mut [f64],
    ) {
        let Factors::PerClient { powers, .. } = &self.factors else {
            for ((sum, up), collected) in sums.iter_mut().zip(up).zip(collected) {
                *sum += (*up * *collected).re;
            }
            return;
        };
        let count = self.members.len();
        let mut others = vec![ONE; count];
        for (place, collected) in collected.iter().enumerate() {
            let factors: Vec<Complex> = self.at(place, whole, part).collect();
            self::others(&factors, collected.scaled(1.0 - self.down), &mut others);
            let powers = &powers[place * count..][..count];
            for ((sum, power), (other, part)) in
                sums.iter_mut().zip(powers).zip(others.iter().zip(part))
            {
                *sum += power * (*other * *part).re;
            }
        }
    }
}
