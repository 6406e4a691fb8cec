//! Probabilities to be there that follow from what clients hold.

use fedcote::random::{Key, Stream};
use rand::RngExt;
use rand_distr::{Distribution, Gamma, StandardNormal};

use super::Labels;
use super::config::{AvailabilityConfig, Chance, FlgoMode, Presence, Recipe, without_labels};
use crate::error::Error;

type Spans = Vec<(f64, f64)>;

/// The probability of every client before any pattern and, for the mode of FLGo that needs them, its smallest and largest label
/// over the largest of all.
pub(super) fn base(
    config: &AvailabilityConfig,
    clients: usize,
    key: Key,
    labels: Option<Labels<'_>>,
) -> Result<(Vec<f64>, Spans), Error> {
    let labels = || labels.ok_or_else(without_labels);
    // The stream of what is drawn once, and not for a round.
    let mut stream = key.client(u64::MAX).stream();
    if config.kind == Presence::Flgo {
        let beta = config.strength.unwrap_or(config.mode.strength());
        return Ok(match config.mode {
            FlgoMode::Idl => (vec![1.0; clients], Vec::new()),
            FlgoMode::Homo => (vec![1.0 - beta; clients], Vec::new()),
            FlgoMode::Ln | FlgoMode::Sln => {
                let spread = -(1.0 - beta).ln();
                let draw = |_| (spread * normal(&mut stream)).exp();
                (to_one((0..clients).map(draw).collect()), Vec::new())
            }
            mode => flgo(mode, beta, labels()?),
        });
    }
    let base = match config.chance() {
        Chance::Given(given) => (0..clients).map(|client| given.get(client)).collect(),
        Chance::Recipe(recipe) => coupled(recipe, labels()?, &mut stream),
    };
    Ok((base, Vec::new()))
}

fn normal(stream: &mut Stream) -> f64 {
    StandardNormal.sample(stream)
}

/// Scaled so that the largest is 1.
fn to_one(values: Vec<f64>) -> Vec<f64> {
    let largest = values.iter().copied().fold(0.0, f64::max);
    values.into_iter().map(|value| value / largest).collect()
}

/// The smallest and the largest class that a client holds; of one without samples, class 0.
fn span(row: &[f64]) -> (f64, f64) {
    let held = |count: &f64| *count > 0.0;
    let low = row.iter().position(held).unwrap_or(0);
    let high = row.iter().rposition(held).unwrap_or(0);
    (low as f64, high as f64)
}

/// The modes of FLGo that look at labels or numbers of samples.
fn flgo(mode: FlgoMode, beta: f64, labels: Labels<'_>) -> (Vec<f64>, Spans) {
    let last = (labels.classes - 1).max(1) as f64;
    let rows = || labels.counts.chunks(labels.classes);
    let samples =
        |power: f64| to_one(rows().map(|row| row.iter().sum::<f64>().powf(power)).collect());
    match mode {
        FlgoMode::Ymf => {
            (rows().map(|row| beta * span(row).0 / last + 1.0 - beta).collect(), Vec::new())
        }
        FlgoMode::Yff => {
            let held = |row: &[f64]| row.iter().filter(|count| **count > 0.0).count() as f64;
            let classes = labels.classes as f64;
            (rows().map(|row| beta * held(row) / classes + 1.0 - beta).collect(), Vec::new())
        }
        FlgoMode::Mdf => (samples(beta), Vec::new()),
        FlgoMode::Ldf => (samples(-beta), Vec::new()),
        _ => {
            let spans = rows().map(span).map(|(low, high)| (low / last, high / last)).collect();
            (rows().map(|_| 1.0 - beta).collect(), spans)
        }
    }
}

/// b_i = ⟨shares of labels, φ⟩ for the φ of a recipe.
fn coupled(recipe: Recipe, labels: Labels<'_>, stream: &mut Stream) -> Vec<f64> {
    let classes = labels.classes;
    let rows = || labels.counts.chunks(classes);
    let phi: Vec<f64> = match recipe {
        Recipe::Mifa => {
            let last = (classes - 1).max(1) as f64;
            return rows().map(|row| 0.1 + 0.9 * span(row).0 / last).collect();
        }
        Recipe::Fedawe => (0..classes)
            .map(|class| stream.random::<f64>() * if class < classes / 2 { 1.0 } else { 0.5 })
            .collect(),
        Recipe::Fedau => {
            let gamma = Gamma::new(0.1, 1.0).expect("a shape and a scale above 0");
            normalised((0..classes).map(|_| gamma.sample(stream)).collect())
        }
        Recipe::Fedpbc => normalised((0..classes).map(|_| (10.0 * normal(stream)).exp()).collect()),
    };
    let mean = |row: &[f64]| {
        let samples: f64 = row.iter().sum();
        row.iter().zip(&phi).map(|(count, phi)| count / samples * phi).sum::<f64>()
    };
    let one = |row: &[f64]| match recipe {
        Recipe::Fedau => (mean(row) * 0.1 * classes as f64).clamp(0.02, 1.0),
        Recipe::Fedpbc => mean(row).clamp(0.02, 1.0),
        _ => mean(row),
    };
    rows().map(one).collect()
}

/// Scaled to a sum of 1; all the same if nothing is left of them.
fn normalised(values: Vec<f64>) -> Vec<f64> {
    let total: f64 = values.iter().sum();
    let equal = 1.0 / values.len() as f64;
    values.into_iter().map(|value| if total > 0.0 { value / total } else { equal }).collect()
}
