//! `rivals`: the protocol of another paper, FedAWE (Xiang et al., NeurIPS 2024), with its schemes and ours, its printed numbers beside.

use fedcote_plot::tables::{Better, Column as Heading, Digits, Row as Line, Table};
use fedcote_sim::summary::{RunSummary, Spread};

use crate::artefact::{Column, Grid, Measure, Row};
use crate::document::Document;
use crate::request::Request;
use crate::tables::{self, Cells};
use crate::variant::{Setting, Share, Variant};

/// Seeds of the full table, as many as FedAWE has.
pub const SEEDS: u64 = 3;

/// FedAWE's dynamics of availability, in the order of its table.
const DYNAMICS: [&str; 4] = ["stationary", "staircase", "sine", "interleaved-sine"];

/// The initial rate that FedAWE's authors found best for two of the schemes; the others have 0.05.
const FAST: Setting = Setting { slug: "rate0.1", keys: &["training.rate=0.1"] };

type Printed = Option<[(f64, f64); 4]>;

/// Rows: name, scheme, setting, and the test accuracies on CIFAR-10 that FedAWE's table 2 prints.
const ROWS: [(&str, &str, Option<Setting>, Printed); 11] = [
    ("fedavg-all", "fedavg-all", None, Some([(55.4, 1.8), (55.4, 1.8), (52.1, 2.2), (51.3, 2.7)])),
    ("fedavg", "fedavg", None, Some([(62.9, 1.4), (63.0, 1.4), (62.1, 1.8), (60.7, 2.0)])),
    ("f3ast", "f3ast", None, Some([(63.5, 0.9), (63.3, 0.9), (62.3, 1.5), (61.3, 1.7)])),
    ("fedau", "fedau", None, Some([(64.1, 1.0), (63.9, 1.5), (63.0, 1.9), (62.8, 1.8)])),
    (
        "fedavg-known",
        "fedavg-known",
        Some(FAST),
        Some([(63.1, 0.9), (66.1, 1.8), (67.3, 1.3), (66.5, 2.4)]),
    ),
    ("mifa", "mifa", None, Some([(65.3, 0.6), (65.3, 0.5), (65.5, 0.6), (64.6, 1.6)])),
    ("fedvarp", "fedvarp", None, Some([(66.3, 0.3), (66.1, 0.3), (66.0, 0.3), (65.7, 0.2)])),
    ("fedawe", "fedawe", Some(FAST), Some([(66.3, 1.1), (66.0, 1.2), (63.5, 2.0), (63.3, 2.7)])),
    ("fedawe without clip", "fedawe-unclipped", Some(FAST), None),
    ("fedcote-matched", "fedcote-matched", None, None),
    ("fedcote-control", "fedcote-control", None, None),
];

/// A column for each of the dynamics.
pub fn grid(request: &Request) -> Grid {
    let row = |&(name, scheme, setting, _): &(&str, &str, Option<Setting>, Printed)| Row {
        name: name.to_owned(),
        scheme: scheme.to_owned(),
        setting,
    };
    let column = |dynamics: &'static str| Column {
        paper: dynamics.to_owned(),
        variant: Variant { rivals: Some(dynamics), ..request.variant(Share::Pairs) },
        measure: Measure::Accuracy,
    };
    let notes = vec![
        "FedAWE's protocol: 100 clients, data divided by Dirichlet mixes of 0.1, each client there with a probability that follows from its \
         labels times the pattern of the column, everyone who is there asked, 10 local steps of batches of 128, rate falling by the square root \
         from 0.05 (0.1 for fedavg-known and fedawe, as its authors chose).",
        "`printed`: its table 2, test accuracy on CIFAR-10 after 2,000 rounds. Where model, data or number of rounds differ, only the order can be compared. Weights here are \
         the clients' shares of the data, there they are equal; `mifa` here averages the clients heard so far, there the others count as zero.",
        "`fedcote-memory` is `mifa` where everyone is asked: nobody is selected. `f3ast` asks at most 10 clients a round.",
    ];
    Grid { rows: ROWS.iter().map(row).collect(), columns: DYNAMICS.map(column).into(), notes }
}

/// What FedAWE prints for a row and a column.
fn printed(row: &Row, column: &Column) -> Option<Spread> {
    let (_, _, _, numbers) = ROWS.iter().find(|(name, ..)| *name == row.name)?;
    let at = DYNAMICS.iter().position(|dynamics| *dynamics == column.paper)?;
    let (mean, std) = (*numbers)?[at];
    Some(Spread { mean: mean / 100.0, std: std / 100.0 })
}

/// The tails beside the printed numbers, then what else the runs came to.
pub fn make(title: String, grid: &Grid, cells: &Cells) -> Document {
    let percent = Digits::Percent(2);
    let columns = grid.columns.iter().flat_map(|column| {
        [&*column.paper, "printed"].map(|name| Heading::new(name, Better::Higher, percent))
    });
    let line = |(row, cells): (&Row, &Vec<Vec<RunSummary>>)| {
        let cells = grid.columns.iter().zip(cells).flat_map(|(column, runs)| {
            [tables::shown(runs, |run| run.tail_accuracy), printed(row, column).into()]
        });
        Line { name: row.name.clone(), cells: cells.collect(), apart: false }
    };
    let table = Table {
        title: "Test accuracy, mean over the tail".into(),
        corner: "scheme".into(),
        columns: columns.collect(),
        rows: grid.rows.iter().zip(cells).map(line).collect(),
    };
    let mut document = tables::tails(title, grid, cells);
    document.tables.insert(0, ("", table));
    document
}
