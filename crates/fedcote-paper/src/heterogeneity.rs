//! Figures 3 to 5 and table 13: how much labels matter beside features, one label per client.

use fedcote::Method;
use fedcote_plot::axis::Format;
use fedcote_plot::lines::{Lines, Point, Series};
use fedcote_plot::panel::figure;
use fedcote_plot::scatter::{Cloud, Scatter};
use fedcote_plot::svg::Svg;
use fedcote_plot::tables::{Better, Cell, Column, Digits, Row, Table};
use fedcote_plot::theme::Style;
use fedcote_sim::summary::Spread;

use crate::artefact::Other;
use crate::curves::{self, WIDTH};
use crate::document::Document;
use crate::error::Error;
use crate::gradients::{Gradients, Measured, measured};
use crate::request::Request;
use crate::selection::world;
use crate::tables;
use crate::variant::{Share, Variant};

/// The paper's first iterations.
const ROUNDS: u32 = 50;

/// Balanced and unbalanced: name and u in tenths.
const CASES: [(&str, u8); 2] = [("balanced", 5), ("unbalanced", 9)];

fn variant(request: &Request, unbalance: u8) -> Variant {
    // N = K = 20.
    Variant { unbalance, selected: 20, ..request.variant(Share::OneLabel) }
}

fn cases(request: &Request, store: Gradients) -> Result<Vec<Vec<Measured>>, Error> {
    let rounds = request.rounds.unwrap_or(ROUNDS);
    let of = |(_, unbalance): (&str, u8)| {
        let variant = variant(request, unbalance);
        request.seeds().into_iter().map(|seed| measured(&variant, 1, rounds, seed, store)).collect()
    };
    CASES.into_iter().map(of).collect()
}

fn points(runs: &[Measured], value: impl Fn(&Measured) -> Vec<f64>) -> Vec<Point> {
    let runs: Vec<Vec<f64>> = runs.iter().map(value).collect();
    let rounds = runs.iter().map(Vec::len).min().unwrap_or(0);
    let point = |round: usize| {
        let values: Vec<f64> = runs.iter().map(|run| run[round]).collect();
        let Spread { mean, std } = Spread::of(&values)?;
        Some(Point { x: (round + 1) as f64, mean, deviation: std })
    };
    (0..rounds).filter_map(point).collect()
}

/// One of figures 3, 4 and 5, or table 13.
pub fn make(
    kind: Other,
    title: String,
    request: &Request,
    store: Gradients,
) -> Result<Document, Error> {
    if kind == Other::OneLabel {
        return partition(title, request);
    }
    let cases = cases(request, store)?;
    let text = vec![
        "One label per client, N = K = 20, E = 1, nothing fails, first rounds of training; mean over seeds. V² of a class at a \
         client is the squared distance of its gradient from the gradient over the whole class; G² is the mean over \
         classes, by their share, of the squared norm of the latter."
            .to_owned(),
        kappa(&cases),
    ];
    let tables = vec![("", summary(&cases))];
    let (picture, data) = match kind {
        Other::Gradients => drawn(&title, norms(&cases)),
        Other::GradientRatio => drawn(&title, ratios(&cases)),
        _ => deviations(&title, &cases),
    };
    let (figures, data) = (vec![("", picture)], vec![("curves", data)]);
    Ok(Document { title, text, tables, figures, data })
}

fn series(name: String, style: usize, points: Vec<Point>) -> Series {
    Series { name, style: Style::new(style), points, strong: false }
}

fn drawn(title: &str, lines: Lines) -> (Svg, String) {
    (figure(title, &[&lines], 1, WIDTH), curves::csv(&[&lines]))
}

fn norms(cases: &[Vec<Measured>]) -> Lines {
    let mut lines = Lines::new("");
    lines.x_label = "round".into();
    lines.y_label = "squared norm".into();
    lines.logarithmic = true;
    for (at, ((name, _), runs)) in CASES.iter().zip(cases).enumerate() {
        let (norm, deviation) =
            (points(runs, |m| m.norm.clone()), points(runs, |m| m.deviation.clone()));
        lines.series.push(series(format!("G², {name}"), 2 * at, norm));
        lines.series.push(series(format!("Σ p α V², {name}"), 2 * at + 1, deviation));
    }
    lines
}

fn ratios(cases: &[Vec<Measured>]) -> Lines {
    let mut lines = Lines::new("");
    lines.x_label = "round".into();
    lines.y_label = "κ = G² / Σ p α V²".into();
    lines.logarithmic = true;
    for (at, ((name, _), runs)) in CASES.iter().zip(cases).enumerate() {
        lines.series.push(series((*name).to_owned(), at, points(runs, Measured::ratios)));
    }
    if let (Method::Exact { kappa, .. }, Some(first)) = (Method::EXACT, lines.series.first()) {
        let flat = |point: &Point| Point { mean: kappa, deviation: 0.0, ..*point };
        let points = first.points.iter().map(flat).collect();
        lines.series.push(series("the solver's default".into(), 7, points));
    }
    // Where they span less than a factor of ten the axis is linear, and begins at 0: it is quotients that count.
    let (low, high) = lines.y_range();
    if high <= 10.0 * low {
        lines.logarithmic = false;
        lines.range = Some((0.0, high));
    }
    lines
}

fn deviations(title: &str, cases: &[Vec<Measured>]) -> (Svg, String) {
    let mut data = String::from("weights,client,class,share,deviation\n");
    for ((name, _), runs) in CASES.iter().zip(cases) {
        for cell in runs.iter().flat_map(|run| &run.cells) {
            let (client, class) = (cell.client + 1, cell.class);
            data += &format!("{name},{client},{class},{},{}\n", cell.share, cell.median());
        }
    }
    let cloud = |(at, ((name, _), runs)): (usize, (&(&str, u8), &Vec<Measured>))| {
        let cells = runs.iter().flat_map(|run| &run.cells);
        Cloud {
            name: (*name).to_owned(),
            style: Style::new(at),
            points: cells.map(|cell| (cell.share, cell.median())).collect(),
        }
    };
    let scatter = Scatter {
        heading: String::new(),
        x_label: "p α: share of all samples".into(),
        y_label: "V², median over rounds".into(),
        x_format: Format::Percent,
        y_format: Format::Number,
        logarithmic: true,
        rule: None,
        clouds: CASES.iter().zip(cases).enumerate().map(cloud).collect(),
    };
    (figure(title, &[&scatter], 1, WIDTH), data)
}

fn summary(cases: &[Vec<Measured>]) -> Table {
    let column = |name: &str| Column::new(name, Better::Neither, Digits::Significant(3));
    let row = |((name, _), runs): (&(&str, u8), &Vec<Measured>)| {
        let over = |value: &dyn Fn(&Measured) -> f64| {
            tables::cell(&runs.iter().map(value).collect::<Vec<_>>())
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ratio = |run: &Measured, pick: fn(f64, f64) -> f64| {
            run.ratios().into_iter().reduce(pick).unwrap_or(f64::NAN)
        };
        let cells = vec![
            over(&|run| mean(&run.norm)),
            over(&|run| mean(&run.deviation)),
            over(&|run| ratio(run, f64::min)),
            over(&|run| mean(&run.ratios())),
            over(&|run| ratio(run, f64::max)),
        ];
        Row { name: (*name).to_owned(), cells, apart: false }
    };
    Table {
        title: "Over the rounds".into(),
        corner: "weights".into(),
        columns: vec![
            column("G², mean"),
            column("Σ p α V², mean"),
            column("κ, smallest"),
            column("κ, mean"),
            column("κ, largest"),
        ],
        rows: CASES.iter().zip(cases).map(row).collect(),
    }
}

fn kappa(cases: &[Vec<Measured>]) -> String {
    let ratios: Vec<f64> = cases.iter().flatten().flat_map(Measured::ratios).collect();
    let (low, high) = (
        ratios.iter().copied().fold(f64::INFINITY, f64::min),
        ratios.iter().copied().fold(0.0, f64::max),
    );
    let Method::Exact { kappa, .. } = Method::EXACT else { return String::new() };
    format!(
        "κ = G² / Σ p α V² was between {low:.0} and {high:.0}; the exact solver's default is {kappa:.0}."
    )
}

fn partition(title: String, request: &Request) -> Result<Document, Error> {
    let column = |name: &str| Column::new(name, Better::Neither, Digits::Fixed(4));
    let mut rows: Vec<Row> = Vec::new();
    for (at, (_, unbalance)) in CASES.into_iter().enumerate() {
        let world = world(&variant(request, unbalance), 1)?;
        let federation = &world.federation;
        for client in 0..federation.len() {
            let held = (0..federation.classes()).filter(|&c| federation.labels(client)[c] > 0.0);
            let held: Vec<String> = held.map(|class| class.to_string()).collect();
            if at == 0 {
                let cells = vec![Cell::Text(held.join(", "))];
                rows.push(Row { name: federation.id(client).into_owned(), cells, apart: false });
            }
            let paper = [[0.05, 0.05], [0.01, 0.09]][at][client % 2];
            rows[client].cells.extend([federation.weights()[client], paper].map(Cell::Number));
        }
    }
    let table = Table {
        title: String::new(),
        corner: "client".into(),
        columns: vec![
            column("label"),
            column("weight, balanced"),
            column("paper"),
            column("weight, unbalanced"),
            column("paper"),
        ],
        rows,
    };
    let text = "Labels count from 0 here, from 1 in the paper. Classes differ in size, so weights are near the paper's, not \
                equal to them: they are counted, never assumed.";
    Ok(Document { title, text: vec![text.into()], tables: vec![("", table)], ..Default::default() })
}
