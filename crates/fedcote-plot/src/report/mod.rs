//! The report of one or several run folders: one HTML file that needs nothing else.

mod clients;
mod figures;
mod histories;
mod page;
mod script;
pub mod sweep;

use std::fs;
use std::path::{Path, PathBuf};

use fedcote_sim::summary::Spread;

pub use figures::{Figure, figures};
pub use script::{MODULES, policy, series};

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
    if let Some(folder) = swept(folders)? {
        let path = out.map_or_else(|| folder.join("report.html"), Path::to_owned);
        let absolute = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
        save(&path, sweep::html(&name, &sweep::read(folder)?).as_bytes())?;
        return Ok(path);
    }
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
    let (table, drawn) = match swept(folders)? {
        Some(folder) => {
            let summary = sweep::read(folder)?;
            (sweep::table(&summary), vec![sweep::figures(&summary)])
        }
        None => {
            let runs =
                folders.iter().map(|folder| Run::read(folder)).collect::<Result<Vec<_>, _>>()?;
            (table(&runs), runs.iter().map(figures).collect())
        }
    };
    fs::create_dir_all(out).map_err(|source| Error::File { path: out.into(), source })?;
    let mut written = Vec::new();
    let mut put = |name: String, bytes: &[u8]| {
        let path = out.join(name);
        save(&path, bytes)?;
        written.push(path);
        Ok::<(), Error>(())
    };
    put("summary.md".into(), table.markdown().as_bytes())?;
    put("summary.tex".into(), table.latex().as_bytes())?;
    put("summary.csv".into(), table.csv().as_bytes())?;
    put("summary.json".into(), format!("{:#}\n", table.json()).as_bytes())?;
    for (index, figures) in drawn.iter().enumerate() {
        let prefix = if drawn.len() == 1 { String::new() } else { format!("{}-", index + 1) };
        for figure in figures {
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

/// The folder of a sweep, which stands alone.
fn swept(folders: &[PathBuf]) -> Result<Option<&PathBuf>, Error> {
    let sweep = folders.iter().find(|folder| fedcote_sim::sweep::is_sweep(folder));
    match (sweep, folders.len()) {
        (Some(folder), 2..) => {
            let reason = "is the folder of a sweep, which has a report of its own; name it alone";
            Err(Error::Missing { path: folder.clone(), reason: reason.into() })
        }
        (sweep, _) => Ok(sweep),
    }
}

/// The report as HTML.
pub fn html(runs: &[Run]) -> String {
    page::html(runs)
}

/// The summary of all schemes of all runs.
pub fn table(runs: &[Run]) -> Table {
    let against = match runs {
        [run] => run.against.as_str(),
        _ => "what its folder compares with",
    };
    let target = target(runs);
    let column = |name: &str, digits| Column::new(name, Better::Neither, digits);
    let columns = vec![
        column("tail accuracy (%)", Digits::Percent(2)),
        column(&format!("difference from {against} (points)"), Digits::Percent(2)),
        column("last accuracy (%)", Digits::Percent(2)),
        column("swing in the tail (%)", Digits::Percent(2)),
        column("training loss", Digits::Fixed(3)),
        column("test loss", Digits::Fixed(3)),
        column(&format!("rounds to {target}"), Digits::Fixed(0)),
        column(&format!("seconds to {target}"), Digits::Fixed(1)),
        column(&format!("megabytes to {target}"), Digits::Fixed(1)),
        column(&format!("joules to {target}"), Digits::Fixed(1)),
        column("arrivals per round", Digits::Fixed(2)),
        column("label χ², expected", Digits::Significant(2)),
        column("label χ², realised", Digits::Significant(2)),
        column("seeds", Digits::Fixed(0)),
    ];
    let mut rows = Vec::new();
    for (run, folder) in runs.iter().zip(names(runs)) {
        for Scheme { name, summary, .. } in &run.schemes {
            let seeds = match summary.diverged {
                0 => Cell::Number(summary.seeds as f64),
                diverged => Cell::Text(format!("{}, {diverged} diverged", summary.seeds)),
            };
            let mean = |of: Option<Spread>| of.map_or(Cell::Empty, |of| Cell::Number(of.mean));
            let spread = |of: Option<Spread>, measure: &str| match of {
                Some(of) if summary.leads.iter().any(|name| name == measure) => Cell::Leading(of),
                // One seed has no deviation.
                of if summary.seeds > 1 => of.into(),
                of => mean(of),
            };
            let difference = summary.differences.get("tail_accuracy").map(|difference| {
                let chance = if difference.separable { "" } else { ", not separable" };
                let interval = difference.interval(true).unwrap_or_else(|| "one seed".into());
                Cell::Text(format!("{} {interval}{chance}", difference.signed(true)))
            });
            rows.push(Row {
                name: if runs.len() == 1 { name.clone() } else { format!("{folder} · {name}") },
                cells: vec![
                    spread(summary.tail_accuracy, "tail_accuracy"),
                    difference.unwrap_or(Cell::Empty),
                    spread(summary.test_accuracy, "test_accuracy"),
                    mean(summary.tail_spread),
                    spread(summary.train_loss, "train_loss"),
                    spread(summary.test_loss, "test_loss"),
                    spread(summary.rounds_to, "rounds_to"),
                    spread(summary.seconds_to, "seconds_to"),
                    spread(summary.bytes_to.map(megabytes), "bytes_to"),
                    spread(summary.joules_to, "joules_to"),
                    mean(summary.arrivals),
                    mean(summary.label_divergence_wanted),
                    mean(summary.label_divergence_realised),
                    seeds,
                ],
                apart: true,
            });
        }
    }
    let mut table = Table {
        title: "Mean ± standard deviation over seeds, and the mean difference, seed by seed, with its 95 % interval \
                (Student's t). Bold: no other scheme of the folder is separably better, some are separably worse; schemes \
                that diverged or do not meet the network's failures (ideal) do not compete."
            .into(),
        corner: if runs.len() == 1 { "scheme".into() } else { "folder · scheme".into() },
        columns,
        rows,
    };
    drop_empty_columns(&mut table);
    table
}

/// The accuracy that costs count to, if the runs agree on one.
fn target(runs: &[Run]) -> String {
    let mut targets = runs.iter().map(|run: &Run| -> f64 { run.target_accuracy });
    let first = targets.next().unwrap_or_default();
    if targets.all(|other| other == first) {
        format!("{} %", fedcote_support::readable((1e4 * first).round() / 100.0))
    } else {
        "the target".to_owned()
    }
}

fn megabytes(bytes: Spread) -> Spread {
    Spread { mean: bytes.mean / 1e6, std: bytes.std / 1e6 }
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
