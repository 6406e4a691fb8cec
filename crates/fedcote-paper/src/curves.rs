//! Figures 2, 8 and 9: curves over rounds, with bands over seeds.

use std::collections::BTreeMap;

use fedcote_plot::axis::Format;
use fedcote_plot::lines::{Lines, Point, Series};
use fedcote_plot::panel::{Panel, figure};
use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};
use fedcote_plot::theme;
use fedcote_sim::summary::Spread;

use crate::artefact::{Curve, Grid};
use crate::document::Document;
use crate::error::Error;
use crate::runs::{Run, Store};
use crate::tables::{self, Cells};

/// Width of figures in pixels.
pub const WIDTH: f64 = 960.0;

/// Draws the runs of a grid, a panel a column.
pub fn draw(
    curve: Curve,
    title: String,
    grid: &Grid,
    seeds: &[Vec<u64>],
    cells: &Cells,
    store: &Store,
) -> Result<Document, Error> {
    let names: Vec<&str> = grid.rows.iter().map(|row| row.name.as_str()).collect();
    let styles = theme::styles(&names);
    let mut panels = Vec::new();
    let mut text = vec![
        "Mean over seeds; bands are one standard deviation. Where a run diverged its curve ends."
            .to_owned(),
    ];
    let mut summaries = Vec::new();
    for (at, column) in grid.columns.iter().enumerate() {
        let mut lines = Lines::new(&column.paper);
        lines.x_label = "round".into();
        (lines.y_label, lines.format) = match curve {
            Curve::Accuracy => ("test accuracy".into(), Format::Percent),
            Curve::MeanLoss => ("training loss, mean over rounds up to r".into(), Format::Number),
        };
        lines.bands = grid.rows.len() <= MANY;
        for ((row, &style), cells) in grid.rows.iter().zip(&styles).zip(cells) {
            let mut runs = Vec::new();
            // A row without one of the seeds is not shown in the table, either.
            for &seed in seeds[at].iter().filter(|_| !cells[at].is_empty()) {
                let variant = grid.variant(row, column);
                let run = Run { variant, scheme: row.scheme.clone(), seed };
                runs.extend(store.read(&run)?.map(|played| values(curve, &played.curve)));
            }
            let points = over_seeds(&runs);
            let strong = theme::is_strong(&row.name);
            lines.series.push(Series { name: row.name.clone(), style, points, strong });
        }
        text.extend(remarks(&lines));
        if !below(&lines).is_empty() {
            lines.range = Some(range(&lines, lines.bands));
        }
        panels.push(lines);
        summaries.push(tables::tail(column.paper.clone(), grid, cells, at));
    }
    let shown: Vec<&dyn Panel> = panels.iter().map(|panel| panel as &dyn Panel).collect();
    let mut figures = vec![("", figure(&title, &shown, 1, WIDTH))];
    if grid.rows.len() > MANY {
        // So many bands in one chart hide each other: a panel a scheme shows them.
        for (part, lines) in PARTS.into_iter().zip(&panels) {
            let each = one_by_one(lines);
            let each: Vec<&dyn Panel> = each.iter().map(|panel| panel as &dyn Panel).collect();
            figures.push((part, figure(&format!("{title}: {}", lines.heading), &each, 4, WIDTH)));
        }
    }
    text.extend(grid.notes.iter().map(|note| (*note).to_owned()));
    let mut tables: Vec<(&'static str, Table)> =
        ["panel-1", "panel-2"].into_iter().zip(summaries).collect();
    if curve == Curve::MeanLoss {
        let several: Vec<bool> = seeds.iter().map(|seeds| seeds.len() > 1).collect();
        tables.insert(0, ("", at_rounds(&panels, &several)));
    }
    let data = vec![("curves", csv(&panels.iter().collect::<Vec<_>>()))];
    Ok(Document { title, text, tables, figures, data })
}

/// The curves of accuracy that the axis leaves out: always below half of where the others end. With them it would begin at 0 and
/// all others would be one line.
fn below(lines: &Lines) -> Vec<&Series> {
    let end = |series: &Series| series.points.last().map(|point| point.mean);
    let mut ends: Vec<f64> = lines.series.iter().filter_map(end).collect();
    ends.sort_by(f64::total_cmp);
    let Some(middle) = ends.get(ends.len() / 2).filter(|_| lines.format == Format::Percent) else {
        return Vec::new();
    };
    let is_below = |series: &&Series| {
        !series.points.is_empty() && series.points.iter().all(|point| point.mean < middle / 2.0)
    };
    lines.series.iter().filter(is_below).collect()
}

/// The y range of the curves that the axis does not leave out.
fn range(lines: &Lines, bands: bool) -> (f64, f64) {
    let below = below(lines);
    let kept = lines.series.iter().filter(|series| !below.contains(series));
    Lines { bands, series: kept.cloned().collect(), ..lines.clone() }.y_range()
}

/// What a reader of a panel cannot see: curves below the axis, and curves that cover each other.
fn remarks(lines: &Lines) -> Vec<String> {
    let heading = &lines.heading;
    let mut remarks: Vec<String> = below(lines)
        .iter()
        .map(|series| {
            let end = series.points.last().map_or(f64::NAN, |point| 100.0 * point.mean);
            format!("{heading}: `{}` is below the axis; it ends at {end:.2} %.", series.name)
        })
        .collect();
    let mut told: Vec<&str> = Vec::new();
    for series in lines.series.iter().filter(|series| !series.points.is_empty()) {
        let same = lines.series.iter().filter(|other| other.points == series.points);
        let names: Vec<&str> = same.map(|other| other.name.as_str()).collect();
        if names.len() > 1 && !told.contains(&names[0]) {
            remarks.push(format!("{heading}: `{}` are the same curve.", names.join("`, `")));
            told.extend(names);
        }
    }
    remarks
}

/// Everything that panels of lines show.
pub fn csv(panels: &[&Lines]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut text = String::from("panel,curve,x,mean,deviation\n");
    for panel in panels {
        for series in &panel.series {
            let (heading, name) = (quoted(&panel.heading), quoted(&series.name));
            for Point { x, mean, deviation } in &series.points {
                let x = if panel.infinity == Some(*x) { &f64::INFINITY } else { x };
                text += &format!("{heading},{name},{x},{mean},{deviation}\n");
            }
        }
    }
    text
}

/// The values of all curves at five rounds, the last one among them.
fn at_rounds(panels: &[Lines], several: &[bool]) -> Table {
    let mut columns = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for (panel, lines) in panels.iter().enumerate() {
        let last = lines.series.iter().flat_map(|series| series.points.last()).map(|p| p.x);
        let last = last.fold(0.0, f64::max);
        for (at, series) in lines.series.iter().enumerate() {
            if panel == 0 {
                let apart = series.name.starts_with("ideal");
                rows.push(Row { name: series.name.clone(), cells: Vec::new(), apart });
            }
            for fifth in 1..=5 {
                let wanted = last * f64::from(fifth) / 5.0;
                let point = series.points.iter().rev().find(|point| point.x <= wanted);
                rows[at].cells.push(match point {
                    None => Cell::Empty,
                    Some(p) if several[panel] => {
                        Cell::Spread(Spread { mean: p.mean, std: p.deviation })
                    }
                    Some(p) => Cell::Number(p.mean),
                });
            }
        }
        for fifth in 1..=5 {
            let name = format!("{}, {:.0}", lines.heading, last * f64::from(fifth) / 5.0);
            columns.push(Column::new(&name, Better::Lower, Digits::Significant(4)));
        }
    }
    Table { title: "Mean loss up to a round".into(), corner: "scheme".into(), columns, rows }
}

const MANY: usize = 4;
const PARTS: [&str; 2] = ["each-1", "each-2"];

/// The values of a run: round and value.
fn values(curve: Curve, rounds: &[(u32, Option<f64>, Option<f64>)]) -> Vec<(u32, f64)> {
    match curve {
        Curve::Accuracy => {
            rounds.iter().filter_map(|&(round, accuracy, _)| Some((round, accuracy?))).collect()
        }
        Curve::MeanLoss => {
            let (mut sum, mut count) = (0.0, 0.0);
            rounds
                .iter()
                .filter_map(|&(round, _, loss)| {
                    sum += loss?;
                    count += 1.0;
                    Some((round, sum / count))
                })
                .collect()
        }
    }
}

fn over_seeds(runs: &[Vec<(u32, f64)>]) -> Vec<Point> {
    let mut at: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(round, value) in runs.iter().flatten() {
        at.entry(round).or_default().push(value);
    }
    let point = |(round, values): (u32, Vec<f64>)| {
        let Spread { mean, std } = Spread::of(&values)?;
        Some(Point { x: round.into(), mean, deviation: std })
    };
    at.into_iter().filter_map(point).collect()
}

/// A panel a scheme with its band, the others in grey behind.
fn one_by_one(lines: &Lines) -> Vec<Lines> {
    let panel = |index: usize| {
        let others = lines.series.iter().enumerate().filter(|(other, _)| *other != index);
        Lines {
            heading: lines.series[index].name.clone(),
            x_label: String::new(),
            y_label: String::new(),
            bands: true,
            unnamed: true,
            context: others.map(|(_, series)| series.points.clone()).collect(),
            series: vec![lines.series[index].clone()],
            tall: Some(176.0),
            ..lines.clone()
        }
    };
    let mut panels: Vec<Lines> = (0..lines.series.len()).map(panel).collect();
    let range = range(lines, true);
    panels.iter_mut().for_each(|panel| panel.range = Some(range));
    panels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: with a curve at 11 % the axis began at 0, and seven others were one line; that three of them are the same was not told.
    #[test]
    fn the_axis_is_that_of_the_curves_that_learn_and_the_rest_is_told() {
        let mut lines = Lines::new("i.i.d.");
        lines.format = Format::Percent;
        let names = ["fedavg", "newt", "gs", "tf-aggregation"];
        let series = |(name, (style, means)): (&str, (_, [f64; 2]))| {
            let point = |(x, mean)| Point { x, mean, deviation: 0.01 };
            let points = [1.0, 2.0].into_iter().zip(means).map(point).collect();
            Series { name: name.to_owned(), style, points, strong: false }
        };
        let means = [[0.8, 0.9], [0.85, 0.95], [0.85, 0.95], [0.2, 0.11]];
        let all = names.into_iter().zip(theme::styles(&names).into_iter().zip(means));
        lines.series = all.map(series).collect();
        assert_eq!(range(&lines, false), (0.8, 0.95));
        assert_eq!(range(&lines, true), (0.8 - 0.01, 0.95 + 0.01));
        let told = remarks(&lines);
        assert_eq!(told[0], "i.i.d.: `tf-aggregation` is below the axis; it ends at 11.00 %.");
        assert_eq!(told[1..], ["i.i.d.: `newt`, `gs` are the same curve."]);
        assert!(one_by_one(&lines).iter().all(|panel| panel.range == Some(range(&lines, true))));
        lines.format = Format::Number;
        assert!(below(&lines).is_empty(), "a low loss is a good one");
    }

    #[test]
    fn the_mean_loss_is_that_of_all_rounds_so_far() {
        let rounds = [(1, 3.0), (2, 1.0), (3, 0.5)].map(|(round, loss)| (round, None, Some(loss)));
        assert_eq!(values(Curve::MeanLoss, &rounds), [(1, 3.0), (2, 2.0), (3, 1.5)]);
        let mut lines = Lines::new("a \"b\"");
        let point = |x| Point { x, mean: 0.5, deviation: 0.25 };
        let points = (1..=10).map(|x| point(f64::from(x))).collect();
        let style = theme::styles(&["fedavg"])[0];
        lines.series = vec![Series { name: "fedavg".into(), style, points, strong: false }];
        assert!(csv(&[&lines]).contains("\n\"a \"\"b\"\"\",\"fedavg\",2,0.5,0.25\n"));
        let table = at_rounds(&[lines], &[true]);
        assert_eq!((table.columns.len(), table.rows[0].cells.len()), (5, 5));
        let runs = [vec![(1, 1.0), (2, 4.0)], vec![(1, 3.0)]];
        let points = over_seeds(&runs);
        assert_eq!((points[0].mean, points[0].deviation), (2.0, 2f64.sqrt()));
        assert_eq!((points[1].mean, points[1].deviation), (4.0, 0.0));
    }
}
