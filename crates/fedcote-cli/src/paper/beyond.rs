//! What is not in the paper, against Ideal: draws with less noise, memory on the server, weights after the fact,
//! failure probabilities that nobody tells.

use super::artefact::{Column, Grid, Measure, Row};
use super::request::Request;
use super::variant::{Share, Variant};

/// Rows: name shown, scheme, whether failure probabilities must be learnt.
const ROWS: [(&str, &str, bool); 18] = [
    ("fedavg", "fedavg", false),
    ("fedcote-gradient", "fedcote-gradient", false),
    ("fedcote", "fedcote", false),
    ("fedcote-systematic", "fedcote-systematic", false),
    ("fedcote-matched", "fedcote-matched", false),
    ("fedcote-systematic-matched", "fedcote-systematic-matched", false),
    ("fedcote-memory-appearance", "fedcote-memory-appearance", false),
    ("fedcote-memory", "fedcote-memory", false),
    ("fedcote-scaffold", "fedcote-scaffold", false),
    ("fedcote, estimated", "fedcote", true),
    ("fedcote-memory, estimated", "fedcote-memory", true),
    ("mifa", "mifa", false),
    ("fedvarp", "fedvarp", false),
    ("fedau", "fedau", false),
    ("scaffold", "scaffold", false),
    ("ideal", "ideal", false),
    ("ideal-systematic", "ideal-systematic", false),
    ("ideal-memory", "ideal-memory", false),
];

/// The runs of the whole comparison, or of a part of it.
pub fn grid(name: &str, request: &Request) -> Grid {
    let mut columns = Vec::new();
    for walking in [false, true] {
        for share in [Share::Pairs, Share::Dirichlet(3), Share::Dirichlet(1)] {
            let wanted = match name {
                "beyond-static" => !walking && share == Share::Pairs,
                "beyond-walking" => walking && share == Share::Pairs,
                _ => true,
            };
            if wanted {
                // Rounds to 90 % need the accuracy of every round; where that is claimed, it is measured.
                let every_round = !walking && share == Share::Pairs;
                let variant = Variant { walking, every_round, ..request.variant(share) };
                columns.push(Column {
                    paper: variant.words(),
                    variant,
                    measure: Measure::Accuracy,
                });
            }
        }
    }
    let row = |(name, scheme, estimated): (&str, &str, bool)| Row {
        name: name.to_owned(),
        scheme: scheme.to_owned(),
        estimated,
    };
    let notes = vec![
        "`estimated`: the server is not told failure probabilities but learns them from what arrives.",
        "`fedcote-memory` draws to keep the server's memory fresh, `fedcote-memory-appearance` for the labels of what arrives.",
        "`mifa`, `fedvarp` and `fedau` correct unavailability without selection: draws by weight.",
        "Standing clients with two labels each are evaluated after every round, the others every tenth.",
    ];
    Grid { rows: ROWS.map(row).into(), columns, notes }
}
