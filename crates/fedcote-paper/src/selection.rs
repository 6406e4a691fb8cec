//! Figures 6 and 7: what FedCote selects, and how that changes with the number of draws.

use std::sync::Arc;

use fedcote::divergence::effective_labels;
use fedcote::{Federation, Method, Options, Solution, evaluate, select};
use fedcote_plot::axis::Format;
use fedcote_plot::bars::Bars;
use fedcote_plot::lines::{Lines, Point, Series};
use fedcote_plot::panel::figure;
use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};
use fedcote_plot::theme::Style;
use fedcote_sim::{Classification, World};

use crate::curves::{self, WIDTH};
use crate::document::Document;
use crate::error::Error;
use crate::request::Request;
use crate::variant::{Share, Variant};

/// The world of a variant's first seed.
pub fn world(variant: &Variant, seed: u64) -> Result<World, Error> {
    let scenario = Arc::new(variant.scenario(&["fedavg".to_owned()], &[seed])?);
    let task = Arc::new(Classification::load(&scenario, seed)?);
    Ok(World::new(scenario, task, seed)?)
}

/// The paper's descent: no label coverage.
pub const PAPER: Options = Options::new().with_method(Method::GRADIENT).with_coverage(false);

fn solve(federation: &Federation, draws: u64, options: &Options) -> Result<Solution, Error> {
    select(federation, draws, options).map_err(Error::work)
}

/// Figure 6: selection against weight and failure, client by client; the effective against the actual labels.
pub fn clients(title: String, request: &Request) -> Result<Document, Error> {
    let world = world(&request.variant(Share::Pairs), 1)?;
    let (federation, draws) = (&*world.federation, world.draws());
    let paper = solve(federation, draws, &PAPER)?;
    let exact = solve(federation, draws, &Options::default())?;
    let weights = federation.weights();
    let plain = evaluate(federation, draws, weights).map_err(Error::work)?;
    let names: Vec<String> =
        (0..federation.len()).map(|at| federation.id(at).into_owned()).collect();
    let style = Style::new;
    let mut failure =
        Bars::new("How often uploads fail", &names).bars("failure", federation.failure(), style(1));
    let mut selection = Bars::new("Selection probabilities", &names)
        .bars("fedcote-gradient", &paper.selection, style(5))
        .bars("fedcote", &exact.selection, style(0))
        .ticks("weight (fedavg)", weights, style(7));
    let mut appearance = Bars::new("Share in the aggregate", &names)
        .pale("fedavg", &plain.appearance, style(1))
        .bars("fedcote-gradient", &paper.appearance, style(5))
        .bars("fedcote", &exact.appearance, style(0))
        .ticks("weight", weights, style(7));
    let classes: Vec<String> = (0..federation.classes()).map(|class| class.to_string()).collect();
    let mix = |appearance: &[f64]| effective_labels(federation, appearance);
    let mut labels = Bars::new("Labels in the aggregate", &classes)
        .pale("fedavg", &mix(&plain.appearance), style(1))
        .bars("fedcote-gradient", &mix(&paper.appearance), style(5))
        .bars("fedcote", &mix(&exact.appearance), style(0))
        .ticks("in all data", federation.global_labels(), style(7));
    for bars in [&mut failure, &mut selection, &mut appearance, &mut labels] {
        bars.format = Format::Percent;
        bars.x_label = "client".into();
    }
    failure.marked = None;
    labels.x_label = "label".into();
    let picture = figure(&title, &[&failure, &selection, &appearance, &labels], 1, WIDTH);
    let digits = Digits::Fixed(4);
    let column = |name: &str| Column::new(name, Better::Neither, digits);
    let rows = (0..federation.len()).map(|at| Row {
        name: names[at].clone(),
        cells: [
            federation.failure()[at],
            weights[at],
            paper.selection[at],
            exact.selection[at],
            plain.appearance[at],
            paper.appearance[at],
            exact.appearance[at],
        ]
        .map(Cell::Number)
        .into(),
        apart: false,
    });
    let table = Table {
        title: format!("Clients, seed {}", world.seed),
        corner: "client".into(),
        columns: vec![
            column("failure"),
            column("weight"),
            column("selection, fedcote-gradient"),
            column("selection, fedcote"),
            column("appearance, fedavg"),
            column("appearance, fedcote-gradient"),
            column("appearance, fedcote"),
        ],
        rows: rows.collect(),
    };
    let text = vec![format!(
        "χ² of the labels in the aggregate against those of all data: fedavg {:.3e}, fedcote-gradient {:.3e}, fedcote {:.3e}. \
         Clients that fail with more than 0.85 are not selected: `fedcote-gradient`, as in the paper, then lacks labels that only \
         they hold, where there are such; `fedcote` selects the most reliable holder all the same. Of all selections that match \
         the labels as well it is the nearest to the weights.",
        plain.label_divergence, paper.label_divergence, exact.label_divergence
    )];
    let (tables, figures) = (vec![("", table)], vec![("", picture)]);
    Ok(Document { title, text, tables, figures, ..Default::default() })
}

const DRAWS: [u64; 12] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30];

/// Figure 7: selection probabilities for growing K, and their limit.
pub fn draws(title: String, request: &Request) -> Result<Document, Error> {
    let world = world(&request.variant(Share::Pairs), 1)?;
    let federation = &*world.federation;
    let all = |options: &Options| -> Result<Vec<Solution>, Error> {
        DRAWS.iter().map(|&draws| solve(federation, draws, options)).collect()
    };
    let (descents, solutions) = (all(&PAPER)?, all(&Options::default())?);
    // For many draws the shares of arrivals are those of expected arrivals, so s ∝ β/(1−ε).
    let limit = fedcote::invert::many_draws(&solutions[0].target, federation.failure());
    let shown: Vec<usize> = (0..federation.len()).filter(|&at| limit[at] > 0.0).collect();
    let panel = |heading: &str| {
        let mut lines = Lines::new(heading);
        lines.x_label = "draws per round, K".into();
        lines.y_label = "selection probability".into();
        lines.bands = false;
        lines
    };
    let (mut paper, mut lines) = (panel("The paper's descent"), panel("Exact solver"));
    let infinity = DRAWS[DRAWS.len() - 1] as f64 * 1.15;
    lines.infinity = Some(infinity);
    for (index, &client) in shown.iter().enumerate() {
        let point = |x, mean| Point { x, mean, deviation: 0.0 };
        let points =
            DRAWS.iter().zip(&solutions).map(|(&k, s)| point(k as f64, s.selection[client]));
        let name = format!("client {}", federation.id(client));
        let descent: Vec<Point> = DRAWS
            .iter()
            .zip(&descents)
            .map(|(&k, s)| point(k as f64, s.selection[client]))
            .collect();
        if descent.iter().any(|point| point.mean > 0.0) {
            let (name, style) = (name.clone(), Style::new(index));
            paper.series.push(Series { name, style, points: descent, strong: false });
        }
        let points = points.chain([point(infinity, limit[client])]).collect();
        lines.series.push(Series { name, style: Style::new(index), points, strong: false });
    }
    let gap =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let mut gaps = Lines::new("Largest difference from the limit");
    gaps.x_label = "draws per round, K".into();
    gaps.y_label = "difference".into();
    gaps.logarithmic = true;
    let points = DRAWS.iter().zip(&solutions).map(|(&k, solution)| Point {
        x: k as f64,
        mean: gap(&solution.selection, &limit),
        deviation: 0.0,
    });
    gaps.series.push(Series {
        name: "fedcote".into(),
        style: Style::new(0),
        points: points.collect(),
        strong: true,
    });
    gaps.unnamed = true;
    let picture = figure(&title, &[&paper, &lines, &gaps], 1, WIDTH);
    let data = vec![("curves", curves::csv(&[&paper, &lines, &gaps]))];
    let column = |name: &str| Column::new(name, Better::Neither, Digits::Significant(3));
    let row = |(index, solution): (usize, &Solution)| {
        let before = index.checked_sub(1).map(|before| &solutions[before].selection);
        let descent = index
            .checked_sub(1)
            .map(|before| gap(&descents[index].selection, &descents[before].selection));
        Row {
            name: DRAWS[index].to_string(),
            cells: vec![
                descent.map_or(Cell::Empty, Cell::Number),
                before.map_or(Cell::Empty, |b| Cell::Number(gap(&solution.selection, b))),
                Cell::Number(gap(&solution.selection, &limit)),
            ],
            apart: false,
        }
    };
    let table = Table {
        title: "Largest difference of selection probabilities".into(),
        corner: "K".into(),
        columns: vec![
            column("descent, from the row above"),
            column("exact, from the row above"),
            column("exact, from the limit"),
        ],
        rows: solutions.iter().enumerate().map(row).collect(),
    };
    let text = vec![format!(
        "Seed {}. The paper's descent leaves out clients that fail with more than 0.85; the exact solver keeps the most reliable holder of a \
         label that would be lost. At ∞ is the limit s ∝ β/(1−ε) for K → ∞.",
        world.seed
    )];
    let (tables, figures) = (vec![("", table)], vec![("", picture)]);
    Ok(Document { title, text, tables, figures, data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::{Network, Task};

    #[test]
    fn the_limit_is_approached_by_a_constant_factor() {
        let variant = Variant::new(Network::Harsh, Task::Mnist, Share::Pairs, None);
        let world = world(&variant, 1).unwrap();
        let gap = |draws| {
            let found = solve(&world.federation, draws, &Options::default()).unwrap();
            let limit = fedcote::invert::many_draws(&found.target, world.federation.failure());
            let gaps =
                found.selection.iter().zip(limit).map(|(found, limit)| (found - limit).abs());
            gaps.fold(0.0, f64::max)
        };
        let gaps = [10, 20, 30].map(gap);
        assert!(gaps[2] < 1e-4 && gaps[2] > 0.0, "{gaps:?}");
        // The chance that nobody arrives falls geometrically with K, and the difference with it.
        let (first, second) = (gaps[1] / gaps[0], gaps[2] / gaps[1]);
        assert!((first / second - 1.0).abs() < 0.2, "{gaps:?}");
    }
}
