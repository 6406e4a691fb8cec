//! What happened in a round.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::clock::Cost;
use crate::part::Count;

/// What happened in a round: a line of `metrics.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round, from 1.
    pub round: u32,
    /// Who was drawn, and how often.
    pub selected: Vec<Count>,
    /// Whose uploads arrived, and how many.
    pub arrived: Vec<Count>,
    /// How often the uploads were tried.
    pub attempts: u32,
    /// How long the round took on the simulated clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Bytes that clients sent, lost or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    /// Bytes that clients received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
    /// Energy of the clients' transmitters, in a network of radio links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// χ² of the label mix that the selection aims at, for a selection by probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_divergence_wanted: Option<f64>,
    /// χ² of the label mix of this round's aggregate; absent when nothing arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_divergence_realised: Option<f64>,
    /// Mean loss on all training samples, in rounds that work it out, if it is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_loss: Option<f64>,
    /// Mean loss on the test set, in rounds that are evaluated, if it is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<f64>,
    /// Share of the test set that is classified correctly, in rounds that are evaluated, of a task that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    /// What else the task reports, by name, in rounds that are evaluated. What is not finite is not read back.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default, deserialize_with = "finite")]
    pub scores: BTreeMap<String, f64>,
}

/// Numbers by name; JSON has null for those that are not finite.
fn finite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let scores = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    Ok(scores.into_iter().filter_map(|(name, score)| Some((name, score?))).collect())
}

impl RoundReport {
    /// The report with what the round cost; `radio` says whether its clients have transmitters.
    pub(crate) fn with_cost(self, cost: Cost, radio: bool) -> Self {
        Self {
            seconds: Some(cost.seconds),
            bytes_up: Some(cost.bytes_up.round() as u64),
            bytes_down: Some(cost.bytes_down.round() as u64),
            joules: radio.then_some(cost.joules),
            ..self
        }
    }

    /// Number of draws.
    pub fn draws(&self) -> u64 {
        self.selected.iter().map(|&(_, copies)| u64::from(copies)).sum()
    }

    /// Number of uploads that arrived.
    pub fn arrivals(&self) -> u64 {
        self.arrived.iter().map(|&(_, copies)| u64::from(copies)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_is_no_number_does_not_hide_the_accuracy() {
        let line = r#"{"round":2,"selected":[],"arrived":[],"attempts":1,"test_loss":null,"test_accuracy":0.075}"#;
        let report: RoundReport = serde_json::from_str(line).unwrap();
        assert_eq!((report.test_loss, report.test_accuracy), (None, Some(0.075)));
    }

    #[test]
    fn scores_are_kept_by_name_and_absent_when_there_are_none() {
        let plain = r#"{"round":2,"selected":[],"arrived":[],"attempts":1}"#;
        let mut report: RoundReport = serde_json::from_str(plain).unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap(), plain);
        report.scores = [("f1".to_owned(), 0.1 + 0.2), ("auc".to_owned(), f64::NAN)].into();
        let text = serde_json::to_string(&report).unwrap();
        let scores = r#","scores":{"auc":null,"f1":0.30000000000000004}}"#;
        assert!(text.ends_with(scores), "{text}");
        report.scores.remove("auc");
        assert_eq!(serde_json::from_str::<RoundReport>(&text).unwrap(), report);
        let wrong = plain.replace('}', r#","scores":{"f1":"high"}}"#);
        assert!(serde_json::from_str::<RoundReport>(&wrong).is_err());
    }

    #[test]
    fn a_number_that_is_none_is_an_error() {
        let line = r#"{"round":2,"selected":[],"arrived":[],"attempts":1,"test_accuracy":"high"}"#;
        assert!(serde_json::from_str::<RoundReport>(line).is_err());
    }
}
