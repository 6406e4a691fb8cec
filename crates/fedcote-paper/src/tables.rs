//! Tables of runs: ours, the paper's, the difference.

use fedcote_plot::tables::{Better, Cell, Column as Heading, Digits, Row as Line, Table};
use fedcote_sim::summary::RunSummary;
use fedcote_sim::summary::Spread;

use crate::artefact::{Column, Grid, Measure, Row};
use crate::document::Document;
use crate::error::Error;
use crate::numbers::number;
use crate::runs::{Run, Store};

/// The runs of each cell: rows, then columns, then seeds.
pub type Cells = Vec<Vec<Vec<RunSummary>>>;

/// Reads the runs of a grid, of each column those with its seeds. If some have not ended: `None`, or the others if they are asked for.
pub fn read(
    grid: &Grid,
    seeds: &[Vec<u64>],
    store: &Store,
    existing: bool,
) -> Result<Option<Cells>, Error> {
    let mut cells = Vec::new();
    for row in &grid.rows {
        let mut line = Vec::new();
        for (column, seeds) in grid.columns.iter().zip(seeds) {
            let mut cell = Vec::new();
            for &seed in seeds {
                let variant = grid.variant(row, column);
                let run = Run { variant, scheme: row.scheme.clone(), seed };
                match store.read(&run)? {
                    Some(played) => cell.push(played.summary.clone()),
                    None if existing => {}
                    None => return Ok(None),
                }
            }
            // Means over different numbers of seeds do not belong beside each other.
            if cell.len() < seeds.len() {
                cell.clear();
            }
            line.push(cell);
        }
        cells.push(line);
    }
    let any = cells.iter().flatten().any(|cell: &Vec<RunSummary>| !cell.is_empty());
    Ok(any.then_some(cells))
}

/// Which rounds and seeds the columns show: what there is decides.
pub fn extents(grid: &Grid, seeds: &[Vec<u64>]) -> Result<String, Error> {
    let mut told: Vec<String> = Vec::new();
    for (column, seeds) in grid.columns.iter().zip(seeds) {
        let name = column.variant.words();
        let of_column = match &seeds[..] {
            [] => format!("{name}: none"),
            seeds => {
                let word = if seeds.len() == 1 { "seed" } else { "seeds" };
                let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
                let rounds = column.variant.rounds()?;
                format!("{name}: {rounds} rounds, {word} {}", seeds.join(", "))
            }
        };
        if !told.contains(&of_column) {
            told.push(of_column);
        }
    }
    Ok(format!(
        "Made of the runs that are there. {}. A scheme that lacks one of these seeds counts as not run.",
        told.join("; ")
    ))
}

/// Mean and deviation over runs of what they have.
pub fn over(runs: &[RunSummary], value: impl Fn(&RunSummary) -> Option<f64>) -> Option<Spread> {
    Spread::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
}

/// Mean and deviation; of a single value, which has no deviation, the value.
pub fn cell(values: &[f64]) -> Cell {
    match values {
        [one] => Cell::Number(*one),
        values => Spread::of(values).into(),
    }
}

/// The paper's number in the units of ours.
pub fn paper(artefact: &str, row: &Row, column: &Column) -> Option<Spread> {
    let value = match artefact {
        // Its columns are those of several tables, its rows readings of their schemes.
        "readings" => {
            let (table, name) = column.paper.split_once(", ")?;
            number(table, crate::readings::scheme(&row.scheme)?, name)?
        }
        _ => number(artefact, &row.scheme, &column.paper)?,
    };
    let unit = if column.measure == Measure::Accuracy { 100.0 } else { 1.0 };
    let std = if value.std.is_nan() { 0.0 } else { value.std / unit };
    Some(Spread { mean: value.mean / unit, std })
}

/// What a run came to after its last round.
fn last(run: &RunSummary, measure: Measure) -> Option<f64> {
    match measure {
        Measure::Accuracy => run.test_accuracy,
        Measure::Loss => run.train_loss,
    }
}

pub fn ours(runs: &[RunSummary], measure: Measure) -> Option<Spread> {
    over(runs, |run| last(run, measure))
}

/// The cell of runs that are not there.
fn not_run() -> Cell {
    Cell::Text("not run".to_owned())
}

/// What runs came to, if there are any.
pub fn shown(runs: &[RunSummary], value: impl Fn(&RunSummary) -> Option<f64>) -> Cell {
    match runs {
        [] => not_run(),
        runs => cell(&runs.iter().filter_map(value).collect::<Vec<_>>()),
    }
}

fn is_apart(row: &Row) -> bool {
    row.name.starts_with("ideal")
}

/// A table with the paper's numbers, and one with what the last round alone does not tell.
pub fn compared(artefact: &str, title: String, grid: &Grid, cells: &Cells) -> Document {
    let mut columns = Vec::new();
    for column in &grid.columns {
        let (better, digits) = match column.measure {
            Measure::Accuracy => (Better::Higher, Digits::Percent(2)),
            Measure::Loss => (Better::Lower, Digits::Significant(4)),
        };
        columns.push(Heading::new(&column.paper, better, digits));
        columns.push(Heading::new("paper", better, digits));
        columns.push(Heading::new("difference", Better::Neither, digits));
    }
    let line = |(row, cells): (&Row, &Vec<Vec<RunSummary>>)| {
        let mut line = Vec::new();
        for (column, runs) in grid.columns.iter().zip(cells) {
            let (ours, theirs) = (ours(runs, column.measure), paper(artefact, row, column));
            let difference = ours.zip(theirs).map(|(ours, theirs)| ours.mean - theirs.mean);
            // A loss of 1e34 has blown up: a difference from it says nothing.
            let sound = difference.filter(|difference| difference.abs() < 1e6);
            line.push(shown(runs, |run| last(run, column.measure)));
            line.push(theirs.into());
            line.push(sound.map_or(Cell::Empty, Cell::Number));
        }
        Line { name: row.name.clone(), cells: line, apart: is_apart(row) }
    };
    let table = Table {
        title: "After the last round".into(),
        corner: "scheme".into(),
        columns,
        rows: grid.rows.iter().zip(cells).map(line).collect(),
    };
    let mut document = tails(title, grid, cells);
    document.tables.insert(0, ("", table));
    document
}

/// A table for each scenario of the grid with what the last round alone does not tell.
pub fn tails(title: String, grid: &Grid, cells: &Cells) -> Document {
    let mut tables: Vec<(&'static str, Table)> = Vec::new();
    let mut seen = Vec::new();
    for (at, column) in grid.columns.iter().enumerate() {
        if !seen.contains(&&column.variant) {
            seen.push(&column.variant);
            tables.push((TAILS[tables.len()], tail(column.variant.words(), grid, cells, at)));
        }
    }
    let mut text = vec![
        "Accuracies in percent, mean ± standard deviation over seeds; in bold the highest mean of a column (the lowest \
         where low is good), which need not be more than chance; Ideal apart. The tail is the last 100 rounds (a fifth of a shorter run): its mean, and the deviation from round to round within a run."
            .to_owned(),
    ];
    text.extend(grid.notes.iter().map(|note| (*note).to_owned()));
    Document { title, text, tables, ..Default::default() }
}

/// File names of the tables of tails.
const TAILS: [&str; 6] = ["tail-1", "tail-2", "tail-3", "tail-4", "tail-5", "tail-6"];

/// What the runs of one scenario came to beyond their last round.
pub fn tail(title: String, grid: &Grid, cells: &Cells, at: usize) -> Table {
    let percent = Digits::Percent(2);
    let columns = vec![
        Heading::new("last accuracy", Better::Higher, percent),
        Heading::new("tail accuracy", Better::Higher, percent),
        Heading::new("spread within a run", Better::Lower, percent),
        Heading::new("rounds to 90 %", Better::Lower, Digits::Fixed(0)),
        Heading::new("arrivals per round", Better::Neither, Digits::Fixed(1)),
        Heading::new("χ² of labels, mean over rounds", Better::Lower, Digits::Significant(3)),
        Heading::new("server memory (MB)", Better::Neither, Digits::Fixed(1)),
        Heading::new("diverged", Better::Neither, Digits::Fixed(0)),
    ];
    let width = columns.len();
    let line = |(row, cells): (&Row, &Vec<Vec<RunSummary>>)| {
        let runs = &cells[at];
        if runs.is_empty() {
            let line = vec![not_run(); width];
            return Line { name: row.name.clone(), cells: line, apart: is_apart(row) };
        }
        let diverged = runs.iter().filter(|run| run.diverged_at.is_some()).count();
        let reached = runs.iter().filter(|run| run.rounds_to.is_some()).count();
        let memory = runs.iter().map(|run| run.server_memory).max().unwrap_or(0);
        let line = vec![
            shown(runs, |run| run.test_accuracy),
            shown(runs, |run| run.tail_accuracy),
            shown(runs, |run| run.tail_spread),
            // A mean over those that got there would flatter a scheme that seldom does.
            match reached == runs.len() {
                true => shown(runs, |run| run.rounds_to),
                false => Cell::Text(format!("{reached} of {} runs", runs.len())),
            },
            shown(runs, |run| run.arrivals),
            shown(runs, |run| run.label_divergence_realised),
            Cell::Number(memory as f64 / 1e6),
            Cell::Text(format!("{diverged} of {}", runs.len())),
        ];
        Line { name: row.name.clone(), cells: line, apart: is_apart(row) || diverged > 0 }
    };
    Table {
        title,
        corner: "scheme".into(),
        columns,
        rows: grid.rows.iter().zip(cells).map(line).collect(),
    }
}
