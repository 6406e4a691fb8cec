//! `calibrate`: the loss outdoors at which FedAvg is as good as in the paper.
//!
//! The paper's link parameters, taken literally, hardly hurt FedAvg. One number is added, the same loss for every
//! outdoor client, and fitted to one number of the paper: FedAvg's accuracy after the last round on MNIST, two labels a
//! client, balanced. FedAvg is run for losses on a grid, each on the same twenty placements; a line through the means by
//! least squares gives the loss, rounded to half a decibel, which is as fine as the spread over placements allows.

use fedcote_plot::axis::Format;
use fedcote_plot::lines::{Lines, Point, Series};
use fedcote_plot::panel::figure;
use fedcote_plot::tables::{Better, Cell, Column as Heading, Digits, Row as Line, Table};
use fedcote_plot::theme::Style;

use super::artefact::{Column, Grid, Measure, Row};
use super::curves::WIDTH;
use super::document::Document;
use super::numbers::number;
use super::request::Request;
use super::tables::{Cells, over};
use super::variant::{Share, Variant, tenths};

/// Placements, each a seed.
pub const SEEDS: u64 = 20;

/// Losses in tenths of a dB.
const GRID: [u16; 4] = [180, 200, 220, 240];

/// FedAvg at every loss.
pub fn grid(request: &Request) -> Grid {
    let of = |excess: u16| Column {
        paper: tenths(excess),
        variant: Variant { excess: Some(excess), ..request.variant(Share::Pairs) },
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
            (*mean).into(),
            mean.map_or(Cell::Empty, |m| Cell::Number(m.std / (runs.len() as f64).sqrt())),
            over(runs, |run| run.tail_accuracy).into(),
            over(runs, |run| run.arrivals).into(),
        ],
        apart: false,
    });
    let column = |name: &str, digits| Heading::new(name, Better::Neither, digits);
    let percent = Digits::Percent(2);
    let table = Table {
        title: "FedAvg, two labels a client".into(),
        corner: "loss outdoors (dB)".into(),
        columns: vec![
            column("last accuracy", percent),
            column("standard error", percent),
            column("tail accuracy", percent),
            column("arrivals a round", Digits::Fixed(2)),
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
    let text = vec![format!(
        "A line through the means by least squares reaches the paper's {:.2} % at {:.2} dB, to half a decibel {:.1} dB: \
         `outdoor_excess_loss_db` of the calibrated network.",
        100.0 * target,
        fitted,
        (2.0 * fitted).round() / 2.0
    )];
    Document { title, text, tables: vec![("", table)], figures: vec![("", picture)] }
}

/// Where a least-squares line through the points has the value `target`.
fn fit(points: &[(f64, f64)], target: f64) -> f64 {
    let count = points.len() as f64;
    let (mean_x, mean_y) = (
        points.iter().map(|p| p.0).sum::<f64>() / count,
        points.iter().map(|p| p.1).sum::<f64>() / count,
    );
    let slope = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - mean_x).powi(2)).sum::<f64>();
    mean_x + (target - mean_y) / slope
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_line_is_as_by_hand() {
        // y = 1 − x/10 exactly: y = 0.75 at x = 2.5.
        let exact = [(0.0, 1.0), (1.0, 0.9), (4.0, 0.6)];
        assert!((super::fit(&exact, 0.75) - 2.5).abs() < 1e-12);
        // Residuals ±1 that cancel leave slope 0.6 and mean (1.5, 2): 2.3 at 1.5 + 0.3/0.6.
        let noisy = [(0.0, 1.0), (1.0, 2.0), (2.0, 2.0), (3.0, 3.0)];
        assert!((super::fit(&noisy, 2.3) - 2.0).abs() < 1e-12);
    }
}
