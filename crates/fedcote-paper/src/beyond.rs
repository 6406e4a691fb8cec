//! What is not in the paper, against Ideal: draws with less noise, memory on the server, weights after the fact,
//! failure probabilities that the server is not told, label coverage, noise on labels, clients that are late.

use crate::artefact::{Column, Grid, Measure, Row};
use crate::request::Request;
use crate::variant::{Setting, Share, Variant};

/// The server learns failure probabilities instead of being told; a twentieth of the draws goes by weight meanwhile.
pub const ESTIMATED: Setting = Setting {
    slug: "estimated",
    keys: &["network.knowledge=estimated", "server.exploration=0.05"],
};
const EXPONENTIAL: Setting = Setting {
    slug: "estimated-exponential",
    keys: &[
        "network.knowledge=estimated",
        "server.exploration=0.05",
        "network.estimator=exponential",
    ],
};
const WINDOW: Setting = Setting {
    slug: "estimated-window",
    keys: &["network.knowledge=estimated", "server.exploration=0.05", "network.estimator=window"],
};
const SIGNAL: Setting = Setting {
    slug: "estimated-signal",
    keys: &["network.knowledge=estimated", "server.exploration=0.05", "network.estimator=signal"],
};
const PILOTS: Setting = Setting {
    slug: "estimated-pilots",
    keys: &[
        "network.knowledge=estimated",
        "server.exploration=0.05",
        "network.estimator=signal",
        "network.pilots=everyone",
    ],
};
const BLIND: Setting = Setting {
    slug: "estimated-blind",
    keys: &["network.knowledge=estimated", "server.exploration=0.0"],
};

const fn private(slug: &'static str, keys: &'static [&'static str]) -> Setting {
    Setting { slug, keys }
}

/// The holders of the first two labels are slow: late in half of the rounds, where others are in one of fifty.
const LATE: Setting = Setting {
    slug: "stragglers",
    keys: &[
        "network.stragglers.compute=exponential",
        "network.stragglers.limit_seconds=0.3",
        "network.stragglers.mean_seconds=[0.3,0.3,0.3,0.3,0.05,0.05,0.05,0.05,0.05,0.05,0.05,0.05,0.05,0.05,0.05,0.05,\
         0.05,0.05,0.05,0.05]",
    ],
};

type Named = (&'static str, &'static str, Option<Setting>);

/// Rows of the large comparison: name shown, scheme, setting.
const ALL: [Named; 27] = [
    ("fedavg", "fedavg", None),
    ("fedcote-gradient", "fedcote-gradient", None),
    ("fedcote", "fedcote", None),
    ("fedcote-systematic", "fedcote-systematic", None),
    ("fedcote-matched", "fedcote-matched", None),
    ("fedcote-systematic-matched", "fedcote-systematic-matched", None),
    ("fedcote-memory-appearance", "fedcote-memory-appearance", None),
    ("fedcote-memory", "fedcote-memory", None),
    ("fedcote-memory-labels", "fedcote-memory-labels", None),
    ("fedcote-control", "fedcote-control", None),
    ("fedcote-control-labels", "fedcote-control-labels", None),
    ("fedcote-control-full", "fedcote-control-full", None),
    ("fedcote-control-auto", "fedcote-control-auto", None),
    ("fedcote-scaffold", "fedcote-scaffold", None),
    ("fedcote, estimated", "fedcote", Some(ESTIMATED)),
    ("fedcote-memory, estimated", "fedcote-memory", Some(ESTIMATED)),
    ("fedcote-control, estimated", "fedcote-control", Some(ESTIMATED)),
    ("mifa", "mifa", None),
    ("fedvarp", "fedvarp", None),
    ("fedau", "fedau", None),
    ("scaffold", "scaffold", None),
    ("scaffold-rate-2", "scaffold-rate-2", None),
    ("ideal", "ideal", None),
    ("ideal-systematic", "ideal-systematic", None),
    ("ideal-memory", "ideal-memory", None),
    ("ideal-scaffold", "ideal-scaffold", None),
    ("ideal-control", "ideal-control", None),
];

const LEARNT: [Named; 13] = [
    ("fedcote (known)", "fedcote", None),
    ("fedcote (beta)", "fedcote", Some(ESTIMATED)),
    ("fedcote (beta without exploration)", "fedcote", Some(BLIND)),
    ("fedcote (exponential)", "fedcote", Some(EXPONENTIAL)),
    ("fedcote (window)", "fedcote", Some(WINDOW)),
    ("fedcote (signal)", "fedcote", Some(SIGNAL)),
    ("fedcote (signal and pilots of everyone)", "fedcote", Some(PILOTS)),
    ("fedcote-memory (known)", "fedcote-memory", None),
    ("fedcote-memory (beta)", "fedcote-memory", Some(ESTIMATED)),
    ("fedcote-memory (exponential)", "fedcote-memory", Some(EXPONENTIAL)),
    ("fedcote-memory (window)", "fedcote-memory", Some(WINDOW)),
    ("fedcote-memory (signal)", "fedcote-memory", Some(SIGNAL)),
    ("fedcote-memory (signal and pilots of everyone)", "fedcote-memory", Some(PILOTS)),
];

const THRESHOLD: [Named; 10] = [
    ("fedcote-gradient, threshold", "fedcote-gradient", None),
    ("fedcote-gradient, coverage", "fedcote-gradient-covered", None),
    ("fedcote, threshold", "fedcote-uncovered", None),
    ("fedcote, coverage", "fedcote", None),
    ("fedcote-memory, 0.85", "fedcote-memory-85", None),
    ("fedcote-memory, 0.95", "fedcote-memory", None),
    ("fedcote-memory, 0.99", "fedcote-memory-99", None),
    ("fedcote-memory, nobody left out", "fedcote-memory-all", None),
    ("mifa", "mifa", None),
    ("ideal", "ideal", None),
];

const PRIVACY: [Named; 6] = [
    ("fedcote, exact counts", "fedcote", None),
    ("fedcote, ε = 1", "fedcote", Some(private("private1", &["server.label_privacy=1.0"]))),
    ("fedcote, ε = 0.1", "fedcote", Some(private("private0.1", &["server.label_privacy=0.1"]))),
    ("fedcote, ε = 0.01", "fedcote", Some(private("private0.01", &["server.label_privacy=0.01"]))),
    (
        "fedcote, ε = 0.001",
        "fedcote",
        Some(private("private0.001", &["server.label_privacy=0.001"])),
    ),
    ("fedavg", "fedavg", None),
];

const STRAGGLERS: [Named; 5] = [
    ("fedavg", "fedavg", Some(LATE)),
    ("fedcote", "fedcote", Some(LATE)),
    ("fedcote-memory", "fedcote-memory", Some(LATE)),
    ("fedcote-memory, estimated", "fedcote-memory", Some(LATE_ESTIMATED)),
    ("ideal", "ideal", None),
];
const LATE_ESTIMATED: Setting = Setting {
    slug: "stragglers-estimated",
    keys: &[
        LATE.keys[0],
        LATE.keys[1],
        LATE.keys[2],
        "network.knowledge=estimated",
        "server.exploration=0.05",
    ],
};

const EVERY_TENTH: &str = "Evaluated every tenth round.";

/// The runs of a comparison, or of a part of it.
pub fn grid(name: &str, request: &Request) -> Grid {
    let pairs = [Share::Pairs];
    let every = [Share::Pairs, Share::Dirichlet(3), Share::Dirichlet(1)];
    let (standing, walking) = ([false].as_slice(), [false, true].as_slice());
    let (rows, moving, shares, notes): (&[Named], _, &[Share], _) = match name {
        "beyond-estimated" => (
            &LEARNT,
            walking,
            &pairs,
            vec![
                "The server starts from nothing: every failure probability is guessed to be one half. Of the draws 5 % go by weight, \
             so that no client is forgotten, except in the row that says otherwise.",
                EVERY_TENTH,
            ],
        ),
        "beyond-threshold" => (
            &THRESHOLD,
            standing,
            &[Share::Pairs, Share::Dirichlet(1)],
            vec![
                "`threshold`: clients that fail more often than 0.85 are left out, whatever they hold, as in the paper. `coverage`: one \
             holder of each label stays. `fedcote-memory` with the threshold named, and with coverage.",
                EVERY_TENTH,
            ],
        ),
        "beyond-privacy" => (
            &PRIVACY,
            standing,
            &pairs,
            vec![
                "ε: differential privacy of each sample in the label counts that a client reports, once; about 3,000 samples per client.",
                EVERY_TENTH,
            ],
        ),
        "beyond-stragglers" => (
            &STRAGGLERS,
            standing,
            &pairs,
            vec![
                "Clients 1 to 4 compute for 0.3 s in the mean, the others for 0.05 s, exponentially distributed; who has not finished \
             after 0.2 s cannot upload in time.",
                EVERY_TENTH,
            ],
        ),
        _ => {
            let moving = match name {
                "beyond-static" => &walking[..1],
                "beyond-walking" => &walking[1..],
                _ => walking,
            };
            let shares = if name == "beyond" { &every[..] } else { &every[..1] };
            return all(request, moving, shares);
        }
    };
    Grid { rows: named(rows), columns: columns(request, moving, shares, false), notes }
}

fn all(request: &Request, moving: &[bool], shares: &[Share]) -> Grid {
    let notes = vec![
        "`estimated`: the server is not told failure probabilities but learns them from what arrives.",
        "`fedcote-memory` draws to keep the server's memory fresh, `fedcote-memory-appearance` for the labels of what arrives.",
        "`fedcote-control` corrects drift where that is safe, `-full` always; `-labels` remembers one vector per class instead of one per \
         client; `-auto` takes longer steps on the server (`server_rate = \"auto\"`).",
        "`mifa`, `fedvarp`, `fedau` and `scaffold` draw by weight; `scaffold-rate-2` has `server_rate = 2`.",
        "Standing clients with two labels each are evaluated after every round, the others every tenth.",
    ];
    Grid { rows: named(&ALL), columns: columns(request, moving, shares, true), notes }
}

fn named(rows: &[Named]) -> Vec<Row> {
    let row = |&(name, scheme, setting): &Named| Row {
        name: name.to_owned(),
        scheme: scheme.to_owned(),
        setting,
    };
    rows.iter().map(row).collect()
}

/// A column for each way to move and to share out the data. Rounds to 90 % need the accuracy of every round; where that
/// is claimed, it is measured.
fn columns(request: &Request, moving: &[bool], shares: &[Share], claimed: bool) -> Vec<Column> {
    let mut columns = Vec::new();
    for &walking in moving {
        for &share in shares {
            let every_round = claimed && !walking && share == Share::Pairs;
            let variant = Variant { walking, every_round, ..request.variant(share) };
            columns.push(Column { paper: variant.words(), variant, measure: Measure::Accuracy });
        }
    }
    columns
}
