//! `calibrate-placement`: one placement for all seeds, chosen by rule.
//!
//! The spread of the paper's five runs says that they share one placement, and its FedCote that this placement loses no
//! label to the threshold. The rule: of the placements of seeds 1, 2, 3, … the first [`CANDIDATES`] at which, with the loss that
//! `calibrate` found, every label keeps a holder at or below the threshold (at MNIST's rate); of these the one at which
//! FedAvg's mean accuracy after the last round (MNIST, two labels per client, balanced, five seeds) is nearest the
//! paper's, the lowest if two are as near. FedCote's accuracy has no part in it.

use fedcote_plot::tables::{Better, Cell, Column as Heading, Digits, Row as Line, Table};
use fedcote_radio::NetworkConfig;

use crate::artefact::{Column, Grid, Measure, Row};
use crate::document::Document;
use crate::error::Error;
use crate::numbers::number;
use crate::request::Request;
use crate::tables::{Cells, over, shown};
use crate::variant::{Network, Share, Task, Variant};

/// Placements that are tried.
const CANDIDATES: usize = 5;

/// Clients that fail more often are left out by the paper's selection.
const THRESHOLD: f64 = 0.85;

/// FedAvg at every candidate.
pub fn grid(request: &Request) -> Grid {
    let of = |placement: u64| Column {
        paper: placement.to_string(),
        variant: Variant {
            network: Network::Harsh,
            placement: Some(placement),
            ..request.variant(Share::Pairs)
        },
        measure: Measure::Accuracy,
    };
    let columns = candidates().map_or_else(|_| Vec::new(), |found| found.map(of).collect());
    Grid { rows: vec![Row::plain("fedavg")], columns, notes: Vec::new() }
}

/// The lowest placements at which no label is lost.
fn candidates() -> Result<impl Iterator<Item = u64>, Error> {
    Ok(keeping()?.take(CANDIDATES))
}

/// All placements at which no label is lost.
fn keeping() -> Result<impl Iterator<Item = u64>, Error> {
    let variant = Variant::new(Network::Harsh, Task::Mnist, Share::Pairs, None);
    let scenario = variant.scenario(&["fedavg".to_owned()], &[1])?;
    let parameters = scenario.model_parameters()?;
    Ok((1..).filter(move |&placement| covered(&scenario.network, parameters, placement)))
}

/// Whether every label keeps a holder at or below the threshold. Clients 4g + 1 to 4g + 4 hold labels 2g and 2g + 1.
fn covered(config: &NetworkConfig, parameters: usize, placement: u64) -> bool {
    let clients = 20;
    let config = NetworkConfig { placement: Some(placement), ..config.clone() };
    let network =
        fedcote_radio::Network::new(&config, clients, parameters, placement, ".".as_ref());
    let mut failures = Vec::new();
    match network {
        Ok(network) => network.failures(1, &mut failures),
        Err(_) => return false,
    }
    failures.chunks(4).all(|holders| holders.iter().any(|&failure| failure <= THRESHOLD))
}

/// The choice.
pub fn make(title: String, grid: &Grid, cells: &Cells) -> Document {
    let target =
        number("table-4", "fedavg", "non-iid accuracy").map_or(f64::NAN, |n| n.mean / 100.0);
    let runs = || grid.columns.iter().zip(&cells[0]);
    let means = runs().map(|(_, runs)| over(runs, |run| run.test_accuracy));
    let distances: Vec<Option<f64>> =
        means.map(|mean| mean.map(|mean| (mean.mean - target).abs())).collect();
    let rows = runs().zip(&distances).map(|((column, runs), distance)| Line {
        name: column.paper.clone(),
        cells: vec![
            shown(runs, |run| run.test_accuracy),
            distance.map_or(Cell::Empty, Cell::Number),
            shown(runs, |run| run.tail_accuracy),
            shown(runs, |run| run.arrivals),
        ],
        apart: false,
    });
    let column = |name: &str, digits| Heading::new(name, Better::Neither, digits);
    let percent = Digits::Percent(2);
    let table = Table {
        title: "FedAvg, two labels per client".into(),
        corner: "placement".into(),
        columns: vec![
            column("last accuracy", percent),
            column("distance from the paper's", percent),
            column("tail accuracy", percent),
            column("arrivals per round", Digits::Fixed(2)),
        ],
        rows: rows.collect(),
    };
    let percent = 100.0 * target;
    let rule = format!(
        "The rule: of placements 1, 2, 3, … the first {CANDIDATES} at which every label keeps a holder that fails with at most \
         {THRESHOLD} with the loss that was fitted; of these the one at which FedAvg is nearest the paper's \
         {percent:.2} %, the lowest if two are as near. FedCote's accuracy has no part in it."
    );
    let chosen = match nearest(&distances) {
        Some(at) => format!(
            "Nearest is placement {}: `network.placement` of the calibrated network.",
            grid.columns[at].paper
        ),
        None => "No run has an accuracy.".to_owned(),
    };
    let kept = keeping().map_or(0, |kept| kept.take_while(|&placement| placement <= 60).count());
    let lost = format!("Of placements 1 to 60, {} lose a label.", 60 - kept);
    Document {
        title,
        text: vec![chosen, rule, lost],
        tables: vec![("", table)],
        ..Default::default()
    }
}

/// The place of the smallest distance, the first of equals.
fn nearest(distances: &[Option<f64>]) -> Option<usize> {
    let known = distances.iter().enumerate().filter_map(|(at, distance)| Some((at, (*distance)?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::world;

    /// From the labels that clients really hold, where the rule only counts clients.
    #[test]
    fn candidates_are_the_lowest_placements_that_keep_every_label() {
        let found: Vec<u64> = candidates().unwrap().collect();
        let keeps = |placement: u64| {
            let variant = Variant {
                placement: Some(placement),
                ..Variant::new(Network::Harsh, Task::Mnist, Share::Pairs, None)
            };
            let federation = world(&variant, 1).unwrap().federation;
            (0..federation.classes()).all(|class| {
                (0..federation.len()).any(|client| {
                    federation.labels(client)[class] > 0.0
                        && federation.failure()[client] <= THRESHOLD
                })
            })
        };
        assert_eq!(found.len(), CANDIDATES);
        for placement in 1..=found[CANDIDATES - 1] {
            assert_eq!(found.contains(&placement), keeps(placement), "{placement}");
        }
    }

    #[test]
    fn the_nearest_is_the_first_of_equals() {
        assert_eq!(nearest(&[Some(0.3), None, Some(0.1), Some(0.1)]), Some(2));
        assert_eq!(nearest(&[None]), None);
    }
}
