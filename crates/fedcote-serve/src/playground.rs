//! The playground: the library called for a few clients at each move of a slider.

use fedcote::{Draws, FederationSpec, Options, Uploads};
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::reply::Refusal;

/// Enough to see the idea, and computed in no time.
const MOST_CLIENTS: usize = 100;
const MOST_LABELS: usize = 50;
const MOST_DRAWS: u64 = 10_000;

/// What the page asks: the same document as `fedcote select` reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    selected: u64,
    /// `appearance` or `freshness`, as in `fedcote select --aim`.
    aim: Option<String>,
    threshold: Option<f64>,
    clients: Vec<Client>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    id: String,
    labels: Vec<f64>,
    failure: f64,
}

/// Selection, appearance and labels by weight (FedAvg) and as FedCote has them.
pub fn answer(question: Question) -> Result<Value, Refusal> {
    let wrong = |reason: String| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, reason);
    let Question { selected, aim, threshold, clients } = question;
    let mut options = Options::default();
    if let Some(aim) = aim {
        options = options
            .with_aim(aim.parse().map_err(|error: fedcote::Error| wrong(error.to_string()))?);
    }
    if let Some(threshold) = threshold {
        options = options.with_threshold(threshold);
    }
    let classes = clients.first().map_or(0, |client| client.labels.len());
    if clients.len() > MOST_CLIENTS || classes > MOST_LABELS || selected > MOST_DRAWS {
        return Err(wrong(format!(
            "at most {MOST_CLIENTS} clients, {MOST_LABELS} labels and {MOST_DRAWS} draws here; `fedcote select` takes more"
        )));
    }
    if clients.iter().any(|client| client.labels.len() != classes) {
        return Err(wrong("every client needs a count for each label".into()));
    }
    let spec = FederationSpec {
        ids: Some(clients.iter().map(|client| client.id.clone()).collect()),
        classes,
        counts: clients.iter().flat_map(|client| client.labels.iter().copied()).collect(),
        failure: clients.iter().map(|client| client.failure).collect(),
    };
    let federation = spec.check().map_err(|error| wrong(error.to_string()))?;
    let labels = |appearance: &[f64]| -> Vec<f64> {
        let share = |label: usize| {
            let of = |(client, share): (usize, &f64)| share * federation.labels(client)[label];
            appearance.iter().enumerate().map(of).sum()
        };
        (0..classes).map(share).collect()
    };
    let kinds = (Draws::Independent, Uploads::PerDraw);
    // By weight there is no answer when nobody with any weight ever arrives.
    let plain = fedcote::evaluate_for(&federation, selected, federation.weights(), kinds).ok();
    let solution = fedcote::select(&federation, selected, &options)
        .map_err(|error| wrong(error.to_string()))?;
    let warnings: Vec<String> = solution.warnings.iter().map(ToString::to_string).collect();
    Ok(json!({
        "weights": federation.weights(),
        "labels": federation.global_labels(),
        "fedavg": plain.map(|plain| json!({
            "selection": federation.weights(),
            "appearance": plain.appearance,
            "labels": labels(&plain.appearance),
            "label_divergence": plain.label_divergence,
            "expected_arrivals": plain.expected_arrivals,
        })),
        "fedcote": {
            "selection": solution.selection,
            "appearance": solution.appearance,
            "eligible": solution.eligible,
            "labels": labels(&solution.appearance),
            "label_divergence": solution.label_divergence,
            "expected_arrivals": solution.expected_arrivals,
        },
        "warnings": warnings,
    }))
}
