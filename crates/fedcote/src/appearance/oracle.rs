//! Independent ways to the same appearances, for tests: enumeration and simulation.

use rand::RngExt;

use crate::random::{Key, Purpose, Stream};
use crate::{Groups, Uploads};

/// Failure probabilities between 0 and 0.97, some of them 0.
pub fn failures(clients: usize, seed: u32) -> Vec<f64> {
    let mut rng = Key::new(11, Purpose::Test).round(seed).stream();
    (0..clients).map(|_| (1.2 * rng.random::<f64>() - 0.2).clamp(0.0, 0.97)).collect()
}

/// Selection probabilities that differ by a factor of about twenty.
pub fn selection(clients: usize, seed: u32) -> Vec<f64> {
    let mut rng = Key::new(12, Purpose::Test).round(seed).stream();
    let weights: Vec<f64> = (0..clients).map(|_| 0.05 + rng.random::<f64>()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// The mean share of every client on a list, given that somebody arrives, by enumeration of all outcomes of
/// all uploads; `None` when nobody can arrive.
pub fn shares(list: &[(u32, u32)], failure: &[f64], uploads: Uploads) -> Option<Vec<(u32, f64)>> {
    let (sums, somebody) = outcomes(list, failure, uploads);
    let pairs = list.iter().zip(sums).map(|(draw, sum)| (draw.0, sum / somebody));
    (somebody > 0.0).then(|| pairs.collect())
}

/// As [`shares`], of clients that fail together: by enumeration of which groups are up as well.
pub fn shares_together(
    list: &[(u32, u32)],
    (groups, failure): (&Groups, &[f64]),
    uploads: Uploads,
) -> Option<Vec<(u32, f64)>> {
    let (mut sums, mut somebody) = (vec![0.0; list.len()], 0.0);
    for pattern in 0..1u32 << groups.len() {
        let is_up = |group: usize| pattern >> group & 1 == 1;
        let chance = |(group, down): (usize, &f64)| if is_up(group) { 1.0 - down } else { *down };
        let chance: f64 = groups.failure().iter().enumerate().map(chance).product();
        let own = |(client, &overall): (usize, &f64)| match groups.of(client).is_none_or(is_up) {
            true => groups.own(client, overall),
            false => 1.0,
        };
        let own: Vec<f64> = failure.iter().enumerate().map(own).collect();
        let (added, arrived) = outcomes(list, &own, uploads);
        sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += chance * added);
        somebody += chance * arrived;
    }
    let pairs = list.iter().zip(sums).map(|(draw, sum)| (draw.0, sum / somebody));
    (somebody > 0.0).then(|| pairs.collect())
}

/// The shares on a list times the probability that somebody arrives, and that probability.
fn outcomes(list: &[(u32, u32)], failure: &[f64], uploads: Uploads) -> (Vec<f64>, f64) {
    // One entry an upload: the place on the list, and the draws it carries.
    let travelling: Vec<(usize, f64)> = match uploads {
        Uploads::PerDraw => {
            (0..list.len()).flat_map(|place| vec![(place, 1.0); list[place].1 as usize]).collect()
        }
        Uploads::PerClient => {
            list.iter().enumerate().map(|(place, draw)| (place, f64::from(draw.1))).collect()
        }
    };
    let mut sums = vec![0.0; list.len()];
    let mut somebody = 0.0;
    for outcome in 1u32..1 << travelling.len() {
        let (mut probability, mut arrived) = (1.0, vec![0.0; list.len()]);
        for (bit, &(place, carries)) in travelling.iter().enumerate() {
            let failure = failure[list[place].0 as usize];
            if outcome >> bit & 1 == 1 {
                probability *= 1.0 - failure;
                arrived[place] += carries;
            } else {
                probability *= failure;
            }
        }
        somebody += probability;
        let total: f64 = arrived.iter().sum();
        for (sum, arrived) in sums.iter_mut().zip(arrived) {
            *sum += probability * arrived / total;
        }
    }
    (sums, somebody)
}

/// Plays 200,000 rounds (draw; upload, and again if nothing arrived) and asserts that the mean shares agree with
/// `expected` within four and a half standard errors.
pub fn simulate(
    expected: &[f64],
    failure: &[f64],
    uploads: Uploads,
    draw: impl Fn(&mut Stream) -> Vec<(u32, u32)>,
) {
    let rounds = 200_000;
    let (mut sum, mut squares) = (vec![0.0; expected.len()], vec![0.0; expected.len()]);
    let mut rng = Key::new(13, Purpose::Test).stream();
    for _ in 0..rounds {
        let list = loop {
            let list = draw(&mut rng);
            if list.iter().any(|draw| failure[draw.0 as usize] < 1.0) {
                break list;
            }
        };
        let mut arrived = vec![0.0; list.len()];
        let mut total = 0.0;
        while total == 0.0 {
            for (arrived, &(client, count)) in arrived.iter_mut().zip(&list) {
                let mut upload = || rng.random::<f64>() >= failure[client as usize];
                *arrived = match uploads {
                    Uploads::PerDraw => (0..count).filter(|_| upload()).count() as f64,
                    Uploads::PerClient => f64::from(if upload() { count } else { 0 }),
                };
                total += *arrived;
            }
        }
        for (&(client, _), arrived) in list.iter().zip(arrived) {
            sum[client as usize] += arrived / total;
            squares[client as usize] += (arrived / total) * (arrived / total);
        }
    }
    let rounds = f64::from(rounds);
    for (client, &expected) in expected.iter().enumerate() {
        let mean = sum[client] / rounds;
        let deviation = ((squares[client] / rounds - mean * mean) / rounds).sqrt();
        let errors = (mean - expected) / deviation.max(1e-12);
        assert!(errors.abs() < 4.5, "client {client}: {mean} for {expected}, {errors} errors");
    }
}
