//! `readings`: schemes that the paper's text or numbers allow to be read in two ways, each beside the paper's number.

use crate::artefact::{Column, Grid, Measure, Row};
use crate::document::Document;
use crate::request::Request;
use crate::tables::{self, Cells};
use crate::variant::{Share, Variant};

/// The paper's scheme, and how it can be read, the first as the program's own.
const READINGS: [(&str, &[&str]); 7] = [
    ("power-of-choice", &["power-of-choice", "power-of-choice-own"]),
    ("newt", &["newt", "newt-previous"]),
    ("tf-aggregation", &["tf-aggregation", "tf-aggregation-renormalised"]),
    ("fedyogi", &["fedyogi", "fedyogi-gamma"]),
    ("fedprox", &["fedprox", "fedprox-mean"]),
    ("scaffold", &["scaffold", "scaffold-printed", "scaffold-trained", "scaffold-trained-printed"]),
    ("fedcote-gradient", &["fedcote-gradient", "fedcote-printed"]),
];

/// The column by which readings are compared.
const COMPARED: &str = "table-4, non-iid accuracy";

/// The paper's scheme that this is a reading of.
pub fn scheme(reading: &str) -> Option<&'static str> {
    READINGS.iter().find(|(_, all)| all.contains(&reading)).map(|(scheme, _)| *scheme)
}

/// Every reading where the paper has numbers.
pub fn grid(request: &Request) -> Grid {
    let pairs = request.variant(Share::Pairs);
    let column = |paper: &str, variant| Column {
        paper: paper.to_owned(),
        variant,
        measure: Measure::Accuracy,
    };
    let columns = vec![
        column("table-4, iid accuracy", request.variant(Share::Iid)),
        column(COMPARED, pairs.clone()),
        column("table-11, mnist non-iid", Variant { selected: 20, ..pairs.clone() }),
        column("table-12, mnist", Variant { walking: true, ..pairs }),
    ];
    let rows = READINGS.iter().flat_map(|(_, all)| all.iter().copied().map(Row::plain)).collect();
    let notes = vec![
        "`power-of-choice-own`: by the loss of the client's own last model, as printed, not of the global one. `newt-previous`: who did \
         not train in the round before has difference 0. `tf-aggregation-renormalised`: p over the clients that can be selected, uploads \
         repeated when nothing arrives. `fedyogi-gamma`: the paper's γ on the server. `fedprox-mean`: the plain mean.",
        "`scaffold-printed`: variates divided by the number of selected clients. `scaffold-trained`: a client's variate advances after \
         training, arrived or not. `fedcote-printed`: Algorithm 2 to the letter.",
    ];
    Grid { rows, columns, notes }
}

/// The table, and for each scheme the reading that is nearest the paper.
pub fn make(title: String, grid: &Grid, cells: &Cells) -> Document {
    let mut document = tables::compared("readings", title, grid, cells);
    let Some(at) = grid.columns.iter().position(|column| column.paper == COMPARED) else {
        return document;
    };
    let column = &grid.columns[at];
    let difference = |name: &str| {
        let (row, cells) = grid.rows.iter().zip(cells).find(|(row, _)| row.name == name)?;
        let ours = tables::ours(&cells[at], column.measure)?;
        Some(100.0 * (ours.mean - tables::paper("readings", row, column)?.mean))
    };
    let mut lines = vec!["Nearest the paper with two labels per client, standing:".to_owned()];
    for (scheme, all) in READINGS {
        let known = all.iter().filter_map(|name| Some((*name, difference(name)?)));
        let nearest = known.min_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        if let Some((name, difference)) = nearest {
            lines.push(format!("- {scheme}: `{name}`, {difference:+.2} points"));
        }
    }
    if lines.len() > 1 {
        document.text.insert(0, lines.join("\n"));
    }
    document
}
