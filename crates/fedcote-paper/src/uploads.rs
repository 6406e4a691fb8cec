//! `beyond-uploads`: when one upload carries all draws of a client, they fail together. What becomes of a selection that
//! was solved for uploads draw by draw.

use fedcote::{Draws, Evaluation, Options, Uploads, evaluate_for, select};
use fedcote_plot::tables::{Better, Column, Digits, Row, Table};

use crate::document::Document;
use crate::error::Error;
use crate::request::Request;
use crate::selection::world;
use crate::tables;
use crate::variant::Share;

const ROWS: [&str; 3] =
    ["fedavg", "fedcote, solved draw by draw", "fedcote, solved for one upload"];

/// How far the labels are off, over seeds.
pub fn make(title: String, request: &Request) -> Result<Document, Error> {
    let mut rows: [Vec<[f64; 2]>; 3] = Default::default();
    for seed in request.seeds() {
        let world = world(&request.variant(Share::Pairs), seed)?;
        let (federation, draws) = (&*world.federation, world.draws());
        let solve = |uploads| {
            let options = Options::new().with_uploads(uploads);
            select(federation, draws, &options).map_err(Error::work)
        };
        let (apart, together) = (solve(Uploads::PerDraw)?, solve(Uploads::PerClient)?);
        let selections = [federation.weights(), &apart.selection, &together.selection];
        let targets = [federation.weights(), &apart.target, &together.target];
        for ((row, selection), target) in rows.iter_mut().zip(selections).zip(targets) {
            let procedure = (Draws::Independent, Uploads::PerClient);
            let met = evaluate_for(federation, draws, selection, procedure).map_err(Error::work)?;
            row.push([met.label_divergence, farthest(&met, target)]);
        }
    }
    let cells = |row: &[[f64; 2]], at: usize| {
        tables::cell(&row.iter().map(|values| values[at]).collect::<Vec<_>>())
    };
    let line = |(name, row): (&&str, &Vec<[f64; 2]>)| Row {
        name: (*name).to_owned(),
        cells: vec![cells(row, 0), cells(row, 1)],
        apart: false,
    };
    let table = Table {
        title: "Two labels per client, one upload for all draws of a client".into(),
        corner: "selection".into(),
        columns: vec![
            Column::new("χ² of labels", Better::Lower, Digits::Significant(3)),
            Column::new(
                "a client's share, farthest from its aim (%)",
                Better::Lower,
                Digits::Percent(1),
            ),
        ],
        rows: ROWS.iter().zip(&rows).map(line).collect(),
    };
    let text = vec![
        "In real systems a client that is drawn twice uploads once. Both draws then arrive or fail together, so that clients drawn \
         often have less of a say than draws that fail one by one would give them. The second row is a user who does not know."
            .to_owned(),
    ];
    Ok(Document { title, text, tables: vec![("", table)], ..Default::default() })
}

/// The largest relative difference between a client's share in the aggregate and its aim, of clients with an aim.
fn farthest(met: &Evaluation, target: &[f64]) -> f64 {
    let off = met.appearance.iter().zip(target).filter(|(_, aim)| **aim > 1e-6);
    off.map(|(share, aim)| (share - aim).abs() / aim).fold(0.0, f64::max)
}
