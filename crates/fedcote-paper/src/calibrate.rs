//! `calibrate`: the loss outdoors at which FedAvg is as good as in the paper.
//!
//! The paper's link parameters, taken literally, hardly hurt FedAvg. One number is added, the same loss for every
//! outdoor client, and fitted to one number of the paper: FedAvg's accuracy after the last round on MNIST, two labels a
//! client, balanced. FedAvg is run for losses on a grid, each on the same twenty placements; between the two losses whose
//! means enclose the paper's number a straight line gives the loss, rounded to half a decibel, which is as fine as the
//! spread over placements allows.

use fedcote_plot::axis::Format;
use fedcote_plot::lines::{Lines, Point, Series};
use fedcote_plot::panel::figure;
use fedcote_plot::tables::{Better, Cell, Column as Heading, Digits, Row as Line, Table};
use fedcote_plot::theme::Style;

use crate::artefact::{Column, Grid, Measure, Row};
use crate::curves::{self, WIDTH};
use crate::document::Document;
use crate::numbers::number;
use crate::request::Request;
use crate::tables::{Cells, over, shown};
use crate::variant::{Network, Share, Variant, tenths};

/// Placements, each a seed.
pub const SEEDS: u64 = 20;

/// Losses in tenths of a dB.
const GRID: [u16; 4] = [200, 220, 240, 260];

/// FedAvg at every loss.
pub fn grid(request: &Request) -> Grid {
    let of = |excess: u16| Column {
        paper: tenths(excess),
        variant: Variant {
            // Over placements: the loss is fitted before one is chosen.
            network: Network::Harsh,
            excess: Some(excess),
            ..request.variant(Share::Pairs)
        },
        measure: Measure::Accuracy,
    };
    Grid { rows: vec![Row::plain("fedavg")], columns: GRID.map(of).into(), notes: Vec::new() }
}

/// The fit.
pub fn make(title: String, cells: &Cells) -> Document {
    let target =
        number("table-4", "fedavg", "non-iid accuracy").map_or(f64::NAN, |n| n.mean / 100.0);
    let means: Vec<_> = cells[0].iter().map(|runs| over(runs, |run| run.test_accuracy)).collect();
    let losses = GRID.map(|excess| f64::from(excess) / 10.0);
    let points: Vec<Point> = losses
        .iter()
        .zip(&means)
        .filter_map(|(&x, mean)| mean.map(|m| Point { x, mean: m.mean, deviation: m.std }))
        .collect();
    let fitted = fit(&points.iter().map(|p| (p.x, p.mean)).collect::<Vec<_>>(), target);
    let rows = losses.iter().zip(&means).zip(&cells[0]).map(|((loss, mean), runs)| Line {
        name: format!("{loss:.1}"),
        cells: vec![
            shown(runs, |run| run.test_accuracy),
            match (runs.len(), mean) {
                (2.., Some(mean)) => Cell::Number(mean.std / (runs.len() as f64).sqrt()),
                _ => Cell::Empty,
            },
            shown(runs, |run| run.tail_accuracy),
            shown(runs, |run| run.arrivals),
        ],
        apart: false,
    });
    let column = |name: &str, digits| Heading::new(name, Better::Neither, digits);
    let percent = Digits::Percent(2);
    let table = Table {
        title: "FedAvg, two labels per client".into(),
        corner: "loss outdoors (dB)".into(),
        columns: vec![
            column("last accuracy", percent),
            column("standard error", percent),
            column("tail accuracy", percent),
            column("arrivals per round", Digits::Fixed(2)),
        ],
        rows: rows.collect(),
    };
    let mut lines = Lines::new("");
    lines.x_label = "loss outdoors (dB)".into();
    lines.y_label = "accuracy after the last round".into();
    lines.format = Format::Percent;
    let flat = points.iter().map(|p| Point { mean: target, deviation: 0.0, ..*p }).collect();
    let series = |name: &str, style, points| Series {
        name: name.to_owned(),
        style: Style::new(style),
        points,
        strong: false,
    };
    lines.series = vec![series("fedavg", 1, points), series("the paper's", 7, flat)];
    let picture = figure(&title, &[&lines], 1, WIDTH);
    let percent = 100.0 * target;
    let text = match fitted {
        Some(loss) => format!(
            "Between its neighbours a straight line reaches the paper's {percent:.2} % at {loss:.2} dB, to half a decibel \
             {:.1} dB: `outdoor_excess_loss_db` of the calibrated network.",
            (2.0 * loss).round() / 2.0
        ),
        None => format!("No two of these losses enclose the paper's {percent:.2} %."),
    };
    let text = vec![text];
    let data = vec![("curves", curves::csv(&[&lines]))];
    Document { title, text, tables: vec![("", table)], figures: vec![("", picture)], data }
}

/// Where the line between two neighbouring points has the value `target`, for the first two that enclose it.
fn fit(points: &[(f64, f64)], target: f64) -> Option<f64> {
    points.windows(2).find_map(|pair| {
        let [(x, above), (next, below)] = [pair[0], pair[1]];
        let encloses = above >= target && target > below;
        encloses.then(|| x + (next - x) * (above - target) / (above - below))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fit_is_as_by_hand() {
        // From 0.9 at 20 to 0.7 at 22 the line has 0.85 a quarter of the way.
        let points = [(18.0, 0.95), (20.0, 0.9), (22.0, 0.7), (24.0, 0.5)];
        assert!((super::fit(&points, 0.85).unwrap() - 20.5).abs() < 1e-12);
        assert_eq!(super::fit(&points, 0.9), Some(20.0));
        assert_eq!(super::fit(&points, 0.96), None);
        assert_eq!(super::fit(&points, 0.4), None);
    }
}
