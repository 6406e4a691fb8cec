//! What a comparison came to: per scheme, mean and deviation over seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::folder::Finished;
use crate::report::RoundReport;
use crate::scenario::General;
use crate::statistics::Difference;

/// Mean and (sample) standard deviation over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 for a single seed.
    pub std: f64,
}

impl Spread {
    /// Of these values; nothing if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            mean,
            std: if values.len() < 2 { 0.0 } else { (squares / (count - 1.0)).sqrt() },
        })
    }
}

/// What one run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// Test accuracy after the last round; of a run that diverged, that of guessing.
    pub test_accuracy: Option<f64>,
    /// Mean test accuracy over the tail; of a run that diverged, that of guessing.
    pub tail_accuracy: Option<f64>,
    /// Standard deviation of test accuracy over the tail.
    pub tail_spread: Option<f64>,
    /// Training loss after the last round.
    pub train_loss: Option<f64>,
    /// Test loss after the last round.
    pub test_loss: Option<f64>,
    /// Uploads that arrived per round.
    pub arrivals: Option<f64>,
    /// Label divergence that the selection aims at, mean over rounds.
    pub label_divergence_wanted: Option<f64>,
    /// Label divergence of the aggregates, mean over rounds.
    pub label_divergence_realised: Option<f64>,
    /// The first round at which the mean accuracy of the last 10 rounds is past the target.
    pub rounds_to: Option<f64>,
    /// Simulated seconds up to the end of that round.
    pub seconds_to: Option<f64>,
    /// Bytes up and down until then.
    pub bytes_to: Option<f64>,
    /// Joules of the clients' transmitters until then.
    pub joules_to: Option<f64>,
    /// Simulated seconds of the whole run.
    pub clock_seconds: Option<f64>,
    /// Bytes that clients sent.
    pub bytes_up: Option<f64>,
    /// Bytes that clients received.
    pub bytes_down: Option<f64>,
    /// Joules of the clients' transmitters.
    pub joules: Option<f64>,
    /// The round in which the numbers blew up.
    pub diverged_at: Option<u32>,
    /// What else the task reports, by name.
    pub scores: BTreeMap<String, Score<f64>>,
    /// Seconds spent, of a run that has ended.
    pub seconds: Option<f64>,
    /// Bytes of server state that grew with the number of clients.
    pub server_memory: usize,
}

/// A score that the task names: of a run, or over the runs of a scheme.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Score<T> {
    /// After the last round that reports it.
    pub last: Option<T>,
    /// Mean over the tail.
    pub tail: Option<T>,
}

/// A sum over rounds; nothing if some round does not say.
fn total(reports: &[RoundReport], value: impl Fn(&RoundReport) -> Option<f64>) -> Option<f64> {
    let counted = reports.first().and_then(&value).is_some();
    reports.iter().map(value).sum::<Option<f64>>().filter(|_| counted)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// The length of the tail of a run: the last min(100, ⌈rounds/5⌉) rounds.
pub fn tail_rounds(rounds: u32) -> u32 {
    rounds.div_ceil(5).min(100)
}

impl RunSummary {
    /// Sums up a finished run of so many rounds, with what it takes to an accuracy.
    pub fn of(rounds: u32, target: f64, finished: &Finished, reports: &[RoundReport]) -> Self {
        let Finished { diverged_at, classes, seconds, server_memory, .. } = *finished;
        let so_far = Self::so_far(rounds, target, diverged_at, classes, reports);
        Self { seconds: Some(seconds), server_memory, ..so_far }
    }

    /// Sums up what there is of a run of so many rounds. Without the number of classes nothing is known of the accuracy
    /// of a run that diverged; its losses and other scores are worth no mean in any case.
    pub fn so_far(
        rounds: u32,
        target: f64,
        diverged_at: Option<u32>,
        classes: Option<usize>,
        reports: &[RoundReport],
    ) -> Self {
        let evaluations: Vec<(u32, f64)> = reports
            .iter()
            .filter_map(|report| Some((report.round, report.test_accuracy?)))
            .collect();
        let diverged = diverged_at.is_some();
        let last = |value: fn(&RoundReport) -> Option<f64>| reports.iter().rev().find_map(value);
        let loss = |value| last(value).filter(|_| !diverged);
        let in_tail = |round: u32| round > rounds.saturating_sub(tail_rounds(rounds));
        let tail = evaluations.iter().filter(|(round, _)| in_tail(*round));
        let tail: Vec<f64> = tail.map(|(_, accuracy)| *accuracy).collect();
        let spread = if diverged { None } else { Spread::of(&tail) };
        let guess = diverged.then(|| classes.map(|classes| 1.0 / classes as f64));
        let reached = evaluations.iter().enumerate().find_map(|(at, &(round, _))| {
            let recent = evaluations[..=at].iter().filter(|(other, _)| other + 10 > round);
            (mean(recent.map(|(_, accuracy)| *accuracy))? > target).then_some(round)
        });
        let until =
            reached.map(|last| &reports[..reports.partition_point(|report| report.round <= last)]);
        let bytes_up = |report: &RoundReport| Some(report.bytes_up? as f64);
        let bytes_down = |report: &RoundReport| Some(report.bytes_down? as f64);
        let names = reports.iter().filter(|_| !diverged).flat_map(|report| report.scores.keys());
        let names: BTreeSet<&String> = names.collect();
        let score = |name: &String| {
            let values = || reports.iter().filter_map(|r| Some((r.round, *r.scores.get(name)?)));
            let tail = values().filter(|(round, _)| in_tail(*round)).map(|(_, value)| value);
            Score { last: values().next_back().map(|(_, value)| value), tail: mean(tail) }
        };
        Self {
            scores: names.into_iter().map(|name| (name.clone(), score(name))).collect(),
            test_accuracy: guess.unwrap_or_else(|| last(|report| report.test_accuracy)),
            tail_accuracy: guess.unwrap_or(spread.map(|spread| spread.mean)),
            tail_spread: spread.map(|spread| spread.std),
            train_loss: loss(|report| report.train_loss),
            test_loss: loss(|report| report.test_loss),
            arrivals: mean(reports.iter().map(|report| report.arrivals() as f64)),
            label_divergence_wanted: mean(
                reports.iter().filter_map(|report| report.label_divergence_wanted),
            ),
            label_divergence_realised: mean(
                reports.iter().filter_map(|report| report.label_divergence_realised),
            ),
            rounds_to: reached.map(f64::from),
            seconds_to: until.and_then(|until| total(until, |report| report.seconds)),
            bytes_to: until.and_then(|until| total(until, |r| Some(bytes_up(r)? + bytes_down(r)?))),
            joules_to: until.and_then(|until| total(until, |report| report.joules)),
            clock_seconds: total(reports, |report| report.seconds),
            bytes_up: total(reports, bytes_up),
            bytes_down: total(reports, bytes_down),
            joules: total(reports, |report| report.joules),
            diverged_at,
            seconds: None,
            server_memory: 0,
        }
    }
}

/// What the runs of one scheme came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SchemeSummary {
    /// The scheme.
    pub name: String,
    /// Whether it is there to compare with, and does not compete: it meets other failures than the network has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
    /// Test accuracy after the last round.
    pub test_accuracy: Option<Spread>,
    /// Test accuracy over the tail.
    pub tail_accuracy: Option<Spread>,
    /// How much accuracy swings within the tail of a run.
    pub tail_spread: Option<Spread>,
    /// Training loss after the last round.
    pub train_loss: Option<Spread>,
    /// Test loss after the last round.
    pub test_loss: Option<Spread>,
    /// Uploads that arrived per round.
    pub arrivals: Option<Spread>,
    /// Label divergence that the selection aims at.
    pub label_divergence_wanted: Option<Spread>,
    /// Label divergence of the aggregates.
    pub label_divergence_realised: Option<Spread>,
    /// Rounds to the target accuracy, over the runs that got there.
    #[serde(alias = "rounds_to_90")]
    pub rounds_to: Option<Spread>,
    /// Simulated seconds to the target accuracy, over the runs that got there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_to: Option<Spread>,
    /// Bytes up and down to the target accuracy, over the runs that got there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_to: Option<Spread>,
    /// Joules of the clients' transmitters to the target accuracy, over the runs that got there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules_to: Option<Spread>,
    /// How many runs got to the target accuracy.
    #[serde(skip_serializing_if = "is_zero")]
    pub reached: usize,
    /// Simulated seconds per run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_seconds: Option<Spread>,
    /// Bytes that clients sent per run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<Spread>,
    /// Bytes that clients received per run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<Spread>,
    /// Joules of the clients' transmitters per run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<Spread>,
    /// The rounds in which runs diverged.
    pub diverged_at: Vec<u32>,
    /// How many runs diverged.
    pub diverged: usize,
    /// How many runs there are.
    pub seeds: usize,
    /// What else the task reports, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, Score<Spread>>,
    /// Seconds that a run took to compute.
    pub seconds: Option<Spread>,
    /// Bytes of server state that grew with the number of clients.
    pub server_memory: usize,
    /// The differences from the scheme that all are compared with, by measure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub differences: BTreeMap<String, Difference>,
    /// The measures in which no other scheme is separably better, and some are separably worse.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leads: Vec<String>,
}

impl SchemeSummary {
    /// Sums up the runs of a scheme; `reference` says whether it is there to compare with only.
    pub fn of(name: &str, reference: bool, runs: &[RunSummary]) -> Self {
        let spread = |value: fn(&RunSummary) -> Option<f64>| {
            Spread::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
        };
        let names = runs.iter().flat_map(|run| run.scores.keys()).collect::<BTreeSet<_>>();
        let score = |name: &String| {
            let of = |value: fn(&Score<f64>) -> Option<f64>| {
                let values = runs.iter().filter_map(|run| value(run.scores.get(name)?));
                Spread::of(&values.collect::<Vec<_>>())
            };
            Score { last: of(|score| score.last), tail: of(|score| score.tail) }
        };
        Self {
            name: name.to_owned(),
            reference,
            test_accuracy: spread(|run| run.test_accuracy),
            tail_accuracy: spread(|run| run.tail_accuracy),
            tail_spread: spread(|run| run.tail_spread),
            train_loss: spread(|run| run.train_loss),
            test_loss: spread(|run| run.test_loss),
            arrivals: spread(|run| run.arrivals),
            label_divergence_wanted: spread(|run| run.label_divergence_wanted),
            label_divergence_realised: spread(|run| run.label_divergence_realised),
            rounds_to: spread(|run| run.rounds_to),
            seconds_to: spread(|run| run.seconds_to),
            bytes_to: spread(|run| run.bytes_to),
            joules_to: spread(|run| run.joules_to),
            reached: runs.iter().filter(|run| run.rounds_to.is_some()).count(),
            clock_seconds: spread(|run| run.clock_seconds),
            bytes_up: spread(|run| run.bytes_up),
            bytes_down: spread(|run| run.bytes_down),
            joules: spread(|run| run.joules),
            diverged_at: runs.iter().filter_map(|run| run.diverged_at).collect(),
            diverged: runs.iter().filter(|run| run.diverged_at.is_some()).count(),
            seeds: runs.len(),
            scores: names.into_iter().map(|name| (name.clone(), score(name))).collect(),
            seconds: spread(|run| run.seconds),
            server_memory: runs.iter().map(|run| run.server_memory).max().unwrap_or(0),
            differences: BTreeMap::new(),
            leads: Vec::new(),
        }
    }
}

/// What a comparison came to: `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The schemes, in the order of the scenario.
    pub schemes: Vec<SchemeSummary>,
    /// The scheme that the others' differences are from, if there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Rounds per run; while no run has ended, the most that one has played.
    pub rounds: u32,
    /// The accuracy that `rounds_to`, `seconds_to`, `bytes_to` and `joules_to` count to.
    pub target_accuracy: f64,
    /// Runs of the scenario that have not ended; absent when all have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// The instruction sets that the runs were computed with.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub instructions: BTreeSet<String>,
    /// What the user should know about the comparison as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The command that repeats it.
    pub command: String,
    /// The version that made it.
    pub version: String,
}

/// What the user should know about runs that were computed with these instruction sets.
pub fn mixed(instructions: &BTreeSet<String>) -> Option<String> {
    let names: Vec<&str> = instructions.iter().map(String::as_str).collect();
    (names.len() > 1).then(|| {
        let names = names.join(", ");
        format!(
            "the runs were computed with different instruction sets ({names}): their last digits may differ for that \
             reason alone; --portable computes with the same one everywhere"
        )
    })
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            schemes: Vec::new(),
            against: None,
            rounds: 0,
            target_accuracy: General::default().target_accuracy,
            missing: 0,
            instructions: BTreeSet::new(),
            warnings: Vec::new(),
            command: String::new(),
            version: String::new(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Summary {
    /// The summary as CSV, a line per scheme.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "scheme,seeds,diverged,test_accuracy_mean,test_accuracy_std,tail_accuracy_mean,\
             tail_accuracy_std,tail_spread_mean,train_loss_mean,train_loss_std,test_loss_mean,\
             arrivals_mean,label_divergence_wanted_mean,label_divergence_realised_mean,\
             rounds_to_mean,seconds_to_mean,bytes_to_mean,joules_to_mean,clock_seconds_mean,\
             bytes_up_mean,bytes_down_mean,joules_mean,seconds_mean,server_memory,\
             tail_accuracy_difference,tail_accuracy_difference_low,tail_accuracy_difference_high\n",
        );
        for scheme in &self.schemes {
            let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let average = |spread: &Option<Spread>| cell(spread.map(|spread| spread.mean));
            let deviation = |spread: &Option<Spread>| cell(spread.map(|spread| spread.std));
            let difference = scheme.differences.get("tail_accuracy");
            let cells = [
                fedcote_support::csv_field(&scheme.name),
                scheme.seeds.to_string(),
                scheme.diverged.to_string(),
                average(&scheme.test_accuracy),
                deviation(&scheme.test_accuracy),
                average(&scheme.tail_accuracy),
                deviation(&scheme.tail_accuracy),
                average(&scheme.tail_spread),
                average(&scheme.train_loss),
                deviation(&scheme.train_loss),
                average(&scheme.test_loss),
                average(&scheme.arrivals),
                average(&scheme.label_divergence_wanted),
                average(&scheme.label_divergence_realised),
                average(&scheme.rounds_to),
                average(&scheme.seconds_to),
                average(&scheme.bytes_to),
                average(&scheme.joules_to),
                average(&scheme.clock_seconds),
                average(&scheme.bytes_up),
                average(&scheme.bytes_down),
                average(&scheme.joules),
                average(&scheme.seconds),
                scheme.server_memory.to_string(),
                cell(difference.map(|difference| difference.mean)),
                cell(difference.and_then(|difference| difference.low)),
                cell(difference.and_then(|difference| difference.high)),
            ];
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_instruction_sets_are_told_and_one_is_not() {
        let sets = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(mixed(&sets(&[])), None);
        assert_eq!(mixed(&sets(&["avx2"])), None);
        let told = mixed(&sets(&["portable", "avx2"])).unwrap();
        assert!(told.contains("(avx2, portable)") && told.contains("--portable"), "{told}");
    }

    fn report(round: u32, accuracy: f64) -> RoundReport {
        RoundReport {
            round,
            selected: vec![(0, 2)],
            arrived: vec![(0, 1)],
            attempts: 1,
            label_divergence_realised: Some(0.5),
            train_loss: Some(1.0 - accuracy),
            test_loss: Some(0.5),
            test_accuracy: Some(accuracy),
            ..RoundReport::default()
        }
    }

    fn finished(diverged_at: Option<u32>) -> Finished {
        Finished {
            rounds: 10,
            diverged_at,
            seconds: 1.0,
            classes: Some(10),
            server_memory: 0,
            instructions: Default::default(),
            metrics_checksum: String::new(),
            checksums: Default::default(),
        }
    }

    #[test]
    fn tail_and_rounds_to_are_as_by_hand() {
        let reports: Vec<_> =
            (1..=10).map(|round| report(round, f64::from(round).min(9.5) / 10.0)).collect();
        let run = RunSummary::of(10, 0.9, &finished(None), &reports);
        // The tail is the last 2 rounds: 0.9 and 0.95.
        assert!((run.tail_accuracy.unwrap() - 0.925).abs() < 1e-12);
        assert!((run.tail_spread.unwrap() - 0.035_355_339).abs() < 1e-8);
        assert_eq!(run.rounds_to, None);
        let reports: Vec<_> =
            (1..=30).map(|round| report(round, if round < 5 { 0.5 } else { 1.0 })).collect();
        // The mean of the last 10 passes 0.9 when at most one of them is 0.5 (0.95): at round 13.
        assert_eq!(RunSummary::of(30, 0.9, &finished(None), &reports).rounds_to, Some(13.0));
    }

    #[test]
    fn costs_to_a_target_are_those_of_the_rounds_until_then() {
        let mut reports: Vec<_> =
            (1..=4).map(|round| report(round, 0.25 * f64::from(round))).collect();
        for report in &mut reports {
            report.seconds = Some(0.5 * f64::from(report.round));
            (report.bytes_up, report.bytes_down) = (Some(10), Some(3));
            report.joules = Some(2.0);
        }
        let run = |reports: &[RoundReport]| RunSummary::so_far(4, 0.49, None, None, reports);
        // The means of the accuracies so far are 0.25, 0.375, 0.5: the target is passed in round 3.
        let found = run(&reports);
        assert_eq!((found.rounds_to, found.seconds_to), (Some(3.0), Some(0.5 + 1.0 + 1.5)));
        assert_eq!((found.bytes_to, found.joules_to), (Some(39.0), Some(6.0)));
        assert_eq!((found.clock_seconds, found.joules), (Some(5.0), Some(8.0)));
        assert_eq!((found.bytes_up, found.bytes_down), (Some(40.0), Some(12.0)));
        // Rounds of an earlier version say nothing about costs: then no sum is known.
        reports[1].seconds = None;
        assert_eq!((run(&reports).seconds_to, run(&reports).rounds_to), (None, Some(3.0)));
    }

    #[test]
    fn diverged_runs_count_but_have_no_loss() {
        let run = RunSummary::of(10, 0.9, &finished(Some(4)), &[report(3, 0.6)]);
        assert_eq!(
            (run.test_accuracy, run.tail_accuracy, run.train_loss),
            (Some(0.1), Some(0.1), None)
        );
        let good = RunSummary::of(10, 0.9, &finished(None), &[report(10, 0.8)]);
        let scheme = SchemeSummary::of("x", false, &[run, good]);
        assert_eq!((scheme.seeds, scheme.diverged, scheme.diverged_at), (2, 1, vec![4]));
        assert!((scheme.test_accuracy.unwrap().mean - 0.45).abs() < 1e-12);
    }

    #[test]
    fn a_scheme_has_mean_and_deviation_over_its_runs() {
        // Twenty rounds: the tail is the last four. Accuracies 0.8, 0.9, 0.8, 0.9 have mean 0.85 and sample
        // deviation 0.05 · √(4/3); the other run is constant at 0.95.
        let accuracies =
            |round: u32| if round < 17 { 0.5 } else { 0.9 - 0.1 * f64::from(round % 2) };
        let swinging: Vec<_> = (1..=20).map(|round| report(round, accuracies(round))).collect();
        let constant: Vec<_> = (1..=20).map(|round| report(round, 0.95)).collect();
        let runs = [&swinging, &constant].map(|run| RunSummary::so_far(20, 0.9, None, None, run));
        let scheme = SchemeSummary::of("x", false, &runs);
        let tail = scheme.tail_accuracy.unwrap();
        assert!((tail.mean - 0.9).abs() < 1e-12);
        assert!((tail.std - 0.1 / 2_f64.sqrt()).abs() < 1e-12, "{tail:?}");
        let swing = scheme.tail_spread.unwrap().mean;
        assert!((swing - 0.05 * (4.0 / 3_f64).sqrt() / 2.0).abs() < 1e-12, "{swing}");
        assert_eq!(scheme.rounds_to.unwrap().mean, 1.0, "of the one that gets there");
        assert_eq!(scheme.arrivals, Some(Spread { mean: 1.0, std: 0.0 }));
    }

    #[test]
    fn nothing_is_guessed_of_a_diverged_run_without_its_classes() {
        let run = RunSummary::so_far(10, 0.9, Some(4), None, &[report(3, 0.6)]);
        assert_eq!((run.test_accuracy, run.tail_accuracy, run.test_loss), (None, None, None));
    }

    #[test]
    fn the_last_loss_on_training_data_may_be_older_than_the_last_evaluation() {
        let mut later = report(2, 0.6);
        later.train_loss = None;
        let run = RunSummary::so_far(10, 0.9, None, None, &[report(1, 0.75), later]);
        assert_eq!((run.train_loss, run.test_accuracy), (Some(0.25), Some(0.6)));
    }
}
