//! What a scheme achieved: mean and deviation over its seeds.

use serde::{Deserialize, Serialize};

use crate::folder::{Round, Seed, tail_length};

/// Mean and standard deviation over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistic {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; 0 for one value.
    pub std: f64,
}

impl Statistic {
    /// Of these values; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, std: if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 } })
    }
}

/// A scheme's line of the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Accuracy of the last evaluation.
    pub test_accuracy: Option<Statistic>,
    /// Mean accuracy over the tail.
    pub tail_accuracy: Option<Statistic>,
    /// Deviation of the accuracy over the tail, from round to round.
    pub tail_spread: Option<Statistic>,
    /// Training loss of the last evaluation.
    pub train_loss: Option<Statistic>,
    /// Test loss of the last evaluation.
    pub test_loss: Option<Statistic>,
    /// Uploads that arrived, a round.
    pub arrivals: Option<Statistic>,
    /// χ² of the expected labels.
    pub label_divergence_wanted: Option<Statistic>,
    /// χ² of the labels that arrived, mean over rounds.
    pub label_divergence_realised: Option<Statistic>,
    /// Rounds until the accuracy, averaged over ten rounds, is past 90 %, over the seeds that get there.
    pub rounds_to_90: Option<Statistic>,
    /// Number of seeds that diverged.
    pub diverged: u64,
    /// Number of seeds.
    pub seeds: u64,
}

impl Summary {
    /// From the metrics themselves, for folders without a summary file.
    pub fn of(seeds: &[Seed], rounds: u64) -> Self {
        let over = |value: &dyn Fn(&Seed) -> Option<f64>| {
            Statistic::of(&seeds.iter().filter_map(value).collect::<Vec<_>>())
        };
        // A run that blew up has no loss and no tail worth a mean; its model does no better than guessing.
        let last = |value: fn(&Round) -> Option<f64>| {
            over(&|seed| {
                seed.rounds.iter().rev().find_map(value).filter(|_| seed.diverged_at.is_none())
            })
        };
        let accuracy = |seed: &Seed| match (&seed.clients, seed.diverged_at) {
            (Some(clients), Some(_)) => Some(1.0 / clients.classes as f64),
            _ => seed.rounds.iter().rev().find_map(|round| round.test_accuracy),
        };
        let mean = |value: fn(&Round) -> Option<f64>| {
            over(&|seed| {
                Some(Statistic::of(&seed.rounds.iter().filter_map(value).collect::<Vec<_>>())?.mean)
            })
        };
        let tail = |seed: &Seed| {
            let first = rounds.saturating_sub(tail_length(rounds)) + 1;
            let finished = seed.diverged_at.is_none();
            let tail = seed.rounds.iter().filter(|round| finished && round.round >= first);
            Statistic::of(&tail.filter_map(|round| round.test_accuracy).collect::<Vec<_>>())
        };
        Self {
            test_accuracy: over(&accuracy),
            tail_accuracy: over(&|seed| Some(tail(seed)?.mean)),
            tail_spread: over(&|seed| Some(tail(seed)?.std)),
            train_loss: last(|round| round.train_loss),
            test_loss: last(|round| round.test_loss),
            arrivals: mean(|round| Some(round.arrivals() as f64)),
            label_divergence_wanted: mean(|round| round.label_divergence_wanted),
            label_divergence_realised: mean(|round| round.label_divergence_realised),
            rounds_to_90: over(&rounds_to_90),
            diverged: seeds.iter().filter(|seed| seed.diverged_at.is_some()).count() as u64,
            seeds: seeds.len() as u64,
        }
    }
}

/// The first round at which the mean accuracy of the evaluations of the last ten rounds is past 90 %.
fn rounds_to_90(seed: &Seed) -> Option<f64> {
    let points: Vec<(u64, f64)> =
        seed.rounds.iter().filter_map(|round| Some((round.round, round.test_accuracy?))).collect();
    let past = |index: &usize| {
        let now = points[*index].0;
        let window: Vec<f64> = points[..=*index]
            .iter()
            .rev()
            .take_while(|(round, _)| round + 10 > now)
            .map(|point| point.1)
            .collect();
        window.iter().sum::<f64>() / window.len() as f64 > 0.9
    };
    (0..points.len()).find(past).map(|index| points[index].0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(accuracies: &[f64]) -> Seed {
        let round = |(index, &accuracy): (usize, &f64)| Round {
            round: index as u64 + 1,
            selected: vec![(0, 2)],
            arrived: vec![(0, 1 + (index % 2) as u32)],
            attempts: Some(1),
            label_divergence_wanted: None,
            label_divergence_realised: Some(0.5),
            train_loss: Some(1.0),
            test_loss: None,
            test_accuracy: Some(accuracy),
        };
        let rounds = accuracies.iter().enumerate().map(round).collect();
        Seed { name: "1".into(), rounds, diverged_at: None, clients: None }
    }

    #[test]
    fn worked_by_hand() {
        // Twenty rounds: the tail is the last four. Accuracies 0.8, 0.9, 0.8, 0.9 have mean 0.85 and
        // sample deviation 0.05 · √(4/3); the other seed is constant at 0.95.
        let mut first = vec![0.5; 16];
        first.extend([0.8, 0.9, 0.8, 0.9]);
        let summary = Summary::of(&[seed(&first), seed(&[0.95; 20])], 20);
        let tail = summary.tail_accuracy.unwrap();
        assert!((tail.mean - 0.9).abs() < 1e-12);
        assert!((tail.std - 0.1 / 2f64.sqrt()).abs() < 1e-12, "{tail:?}");
        let spread = summary.tail_spread.unwrap().mean;
        assert!((spread - 0.05 * (4f64 / 3.0).sqrt() / 2.0).abs() < 1e-12, "{spread}");
        assert!((summary.test_accuracy.unwrap().mean - 0.925).abs() < 1e-12);
        assert_eq!(summary.arrivals, Some(Statistic { mean: 1.5, std: 0.0 }));
        assert_eq!(summary.rounds_to_90.unwrap().mean, 1.0, "of the one that gets there");
        // Five rounds at 0.85: with two at 0.99 the mean of all is 0.89, with three 0.9025.
        let mut rising = vec![0.85; 5];
        rising.extend([0.99; 15]);
        assert_eq!(Summary::of(&[seed(&rising)], 20).rounds_to_90.unwrap().mean, 8.0);
        let mut diverged = seed(&[0.95; 20]);
        diverged.diverged_at = Some(20);
        let summary = Summary::of(&[seed(&first), diverged], 20);
        assert!(
            (summary.tail_accuracy.unwrap().mean - 0.85).abs() < 1e-12,
            "a diverged seed has no tail"
        );
        assert_eq!((summary.diverged, summary.seeds), (1, 2));
        assert_eq!((summary.test_loss, summary.label_divergence_wanted), (None, None));
    }
}
