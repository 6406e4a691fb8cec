//! The report of one or several run folders: one HTML file that needs nothing else.

mod clients;
mod figures;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use fedcote_sim::summary::Spread;

pub use figures::{Figure, figures};

use crate::Error;
use crate::folder::{Run, Scheme};
use crate::tables::{Better, Cell, Column, Digits, Row, Table};

/// The look of the report, for pages that are to look like it. Its colours come from [`crate::theme::css`].
pub const STYLE: &str = include_str!("page.css");

/// Reads the folders and writes their report; returns where it is.
///
/// Without `out` it goes to `report.html` in the folder, and, for several folders, in the current one.
/// The file appears whole or not at all.
pub fn write(folders: &[PathBuf], out: Option<&Path>) -> Result<PathBuf, Error> {
    let runs = folders.iter().map(|folder| Run::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let path = match (out, folders) {
        (Some(path), _) => path.to_owned(),
        (None, [folder]) => folder.join("report.html"),
        (None, _) => PathBuf::from("report.html"),
    };
    save(&path, html(&runs).as_bytes())?;
    Ok(path)
}

/// Writes the tables (Markdown, LaTeX, CSV, JSON) and the figures (SVG) of the folders into a folder, and
/// returns the files. With the feature `png`, figures are written as PNG, too.
pub fn export(folders: &[PathBuf], out: &Path) -> Result<Vec<PathBuf>, Error> {
    let runs = folders.iter().map(|folder| Run::read(folder)).collect::<Result<Vec<_>, _>>()?;
    fs::create_dir_all(out).map_err(|source| Error::File { path: out.into(), source })?;
    let mut written = Vec::new();
    let mut put = |name: String, bytes: &[u8]| {
        let path = out.join(name);
        save(&path, bytes)?;
        written.push(path);
        Ok::<(), Error>(())
    };
    let table = table(&runs);
    put("summary.md".into(), table.markdown().as_bytes())?;
    put("summary.tex".into(), table.latex().as_bytes())?;
    put("summary.csv".into(), table.csv().as_bytes())?;
    put("summary.json".into(), format!("{:#}\n", table.json()).as_bytes())?;
    for (index, run) in runs.iter().enumerate() {
        let prefix = if runs.len() == 1 { String::new() } else { format!("{}-", index + 1) };
        for figure in figures(run) {
            put(format!("{prefix}{}.svg", figure.id), figure.wide.document().as_bytes())?;
            #[cfg(feature = "png")]
            put(
                format!("{prefix}{}.png", figure.id),
                &crate::png(&figure.wide, crate::theme::Theme::Light, 2.0)?,
            )?;
        }
    }
    Ok(written)
}

/// The report as HTML.
pub fn html(runs: &[Run]) -> String {
    page::html(runs)
}

/// The summary of all schemes of all runs.
pub fn table(runs: &[Run]) -> Table {
    let columns = vec![
        Column::new("tail accuracy (%)", Better::Higher, Digits::Percent(2)),
        Column::new("last accuracy (%)", Better::Higher, Digits::Percent(2)),
        Column::new("swing in the tail (%)", Better::Lower, Digits::Percent(2)),
        Column::new("training loss", Better::Lower, Digits::Fixed(3)),
        Column::new("test loss", Better::Lower, Digits::Fixed(3)),
        Column::new("rounds to 90 %", Better::Lower, Digits::Fixed(0)),
        Column::new("arrivals per round", Better::Neither, Digits::Fixed(2)),
        Column::new("label χ², expected", Better::Lower, Digits::Significant(2)),
        Column::new("label χ², per round", Better::Lower, Digits::Significant(2)),
        Column::new("seeds", Better::Neither, Digits::Fixed(0)),
    ];
    let mut rows = Vec::new();
    for (run, folder) in runs.iter().zip(names(runs)) {
        for Scheme { name, summary, .. } in &run.schemes {
            let seeds = match summary.diverged {
                0 => Cell::Number(summary.seeds as f64),
                diverged => Cell::Text(format!("{}, {diverged} diverged", summary.seeds)),
            };
            let mean = |of: Option<Spread>| of.map_or(Cell::Empty, |of| Cell::Number(of.mean));
            // One seed has no deviation.
            let spread = |of: Option<Spread>| if summary.seeds > 1 { of.into() } else { mean(of) };
            rows.push(Row {
                name: if runs.len() == 1 { name.clone() } else { format!("{folder} · {name}") },
                cells: vec![
                    spread(summary.tail_accuracy),
                    spread(summary.test_accuracy),
                    mean(summary.tail_spread),
                    spread(summary.train_loss),
                    spread(summary.test_loss),
                    spread(summary.rounds_to_90),
                    mean(summary.arrivals),
                    mean(summary.label_divergence_wanted),
                    mean(summary.label_divergence_realised),
                    seeds,
                ],
                apart: summary.reference || summary.diverged > 0,
            });
        }
    }
    let mut table = Table {
        title: "Mean ± standard deviation over seeds. Bold: the best of its column; schemes that diverged or do \
                not meet the network's failures (ideal) do not compete."
            .into(),
        corner: if runs.len() == 1 { "scheme".into() } else { "folder · scheme".into() },
        columns,
        rows,
    };
    drop_empty_columns(&mut table);
    table
}

fn drop_empty_columns(table: &mut Table) {
    let used: Vec<bool> = (0..table.columns.len())
        .map(|column| table.rows.iter().any(|row| row.cells[column] != Cell::Empty))
        .collect();
    let keep = |index: &mut usize| {
        *index += 1;
        used[*index - 1]
    };
    let mut index = 0;
    table.columns.retain(|_| keep(&mut index));
    for row in &mut table.rows {
        let mut index = 0;
        row.cells.retain(|_| keep(&mut index));
    }
}

/// A name for each run that tells it from the others.
fn names(runs: &[Run]) -> Vec<String> {
    let shared = |run: &Run| runs.iter().filter(|other| other.name == run.name).count() > 1;
    let name =
        |run: &Run| if shared(run) { run.path.display().to_string() } else { run.name.clone() };
    runs.iter().map(name).collect()
}

/// Writes a file whole or not at all.
fn save(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed =
        |error: fedcote_support::WriteError| Error::File { path: error.path, source: error.source };
    fedcote_support::write(path, bytes).map_err(failed)
}
