//! What happened in a round.

use serde::{Deserialize, Serialize};

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
    /// Share of the test set that is classified correctly, in rounds that are evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
}

impl RoundReport {
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
    fn a_number_that_is_none_is_an_error() {
        let line = r#"{"round":2,"selected":[],"arrived":[],"attempts":1,"test_accuracy":"high"}"#;
        assert!(serde_json::from_str::<RoundReport>(line).is_err());
    }
}
