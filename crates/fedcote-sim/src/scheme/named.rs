//! Schemes with a name: which parts each is made of.

use super::config::SchemeConfig;
use super::kinds::{AggregationKind, AimKind, FailureKind, LocalKind, SelectionKind, SolverKind};

/// The named schemes and what each is.
pub const NAMED: [(&str, &str); 19] = [
    ("fedavg", "K draws in proportion to the weights; mean of what arrives"),
    ("power-of-choice", "the candidates with the highest loss"),
    ("newt", "the clients whose last model is farthest from the global one"),
    ("gs", "groups that together have the global label mix, in turn"),
    ("tf-aggregation", "weights that make the expectation right, not normalised"),
    ("fednova", "updates divided by their number of steps"),
    ("fedyogi", "an adaptive step on the server"),
    ("fedprox", "a proximal term on the clients"),
    ("scaffold", "control variates"),
    ("ideal", "fedavg on a network without failures"),
    ("fedcote", "selection that undoes the distortion by failures, solved exactly"),
    ("fedcote-gradient", "the same by the paper's projected gradient descent"),
    ("fedcote-ii", "the same descent for a smaller number of draws (K_apx = 4)"),
    ("fedavg-equalised", "fedavg when everyone fails with the mean probability"),
    (
        "fedcote-memory",
        "the server's memory of updates, kept fresh, with the weights that fedcote aims at",
    ),
    ("fedcote-matched", "fedcote with weights that match this round's labels"),
    ("mifa", "fedavg draws; the server remembers everyone's latest update"),
    ("fedvarp", "fedavg draws; variance reduced by everyone's latest update"),
    ("fedau", "fedavg draws; weights from observed participation"),
];

/// The parts and parameters of a named scheme.
pub(super) fn named(name: &str) -> Option<SchemeConfig> {
    use AggregationKind as A;
    use SelectionKind as S;
    let plain = SchemeConfig {
        selection: Some(S::Weights),
        local: Some(LocalKind::Sgd),
        aggregation: Some(A::Mean),
        failures: Some(FailureKind::Network),
        ..Default::default()
    };
    let fedcote = SchemeConfig { selection: Some(S::Fedcote), ..plain.clone() };
    let gradient = SchemeConfig {
        solver: Some(SolverKind::Gradient),
        coverage: Some(false),
        ..fedcote.clone()
    };
    let aggregated = |aggregation| SchemeConfig { aggregation: Some(aggregation), ..plain.clone() };
    let selected = |selection| SchemeConfig {
        selection: Some(selection),
        aggregation: Some(A::WeightedMean),
        ..plain.clone()
    };
    Some(match name {
        "fedavg" => plain,
        "ideal" => SchemeConfig { failures: Some(FailureKind::None), ..plain },
        "fedavg-equalised" => SchemeConfig { failures: Some(FailureKind::Equalised), ..plain },
        "power-of-choice" => selected(S::PowerOfChoice),
        "newt" => selected(S::Newt),
        "gs" => selected(S::Gs),
        "tf-aggregation" => SchemeConfig {
            selection: Some(S::TfAggregation),
            aggregation: Some(A::TfAggregation),
            ..plain
        },
        "fednova" => aggregated(A::Nova),
        "fedyogi" => aggregated(A::Yogi),
        "fedprox" => SchemeConfig { local: Some(LocalKind::Prox), ..aggregated(A::WeightedMean) },
        "scaffold" => SchemeConfig { local: Some(LocalKind::Scaffold), ..plain },
        "fedcote" => fedcote,
        "fedcote-gradient" => gradient,
        "fedcote-ii" => SchemeConfig { k_apx: Some(4), ..gradient },
        "fedcote-memory" => SchemeConfig {
            draws: Some(fedcote::Draws::Systematic),
            aim: Some(AimKind::Freshness),
            aggregation: Some(A::Memory),
            // Who is remembered may come rarely; leaving out fewer clients leaves out less data.
            threshold: Some(0.95),
            ..fedcote
        },
        "fedcote-matched" => SchemeConfig { aggregation: Some(A::LabelMatched), ..fedcote },
        "mifa" => aggregated(A::Memory),
        "fedvarp" => aggregated(A::VarianceReduced),
        "fedau" => aggregated(A::Fedau),
        _ => return None,
    })
}
