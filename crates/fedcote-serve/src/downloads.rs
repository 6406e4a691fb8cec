//! What the page offers to save: tables as CSV, figures as SVG, the report.

use std::fmt::Write;
use std::path::Path;

use fedcote_plot::folder::Run;
use fedcote_plot::report;
use hyper::Response;
use serde_json::Value;

use crate::reply::{Body, Refusal, download, whole};
use crate::root::Root;
use crate::runs;
use crate::sweeps::{Sweeps, points};

/// A file of a run, or of one of the sweeps, by its name in the address.
pub fn get(
    root: &Root,
    path: &Path,
    name: &str,
    file: &str,
    sweeps: Option<&mut Sweeps>,
) -> Result<Response<Body>, Refusal> {
    if !root.is_plain(path) {
        let reason = "this run has links or other things in it that are not plain files";
        return Err(Refusal::new(hyper::StatusCode::FORBIDDEN, reason));
    }
    if file == crate::runs::file(path) {
        let text = root.read(&path.join(file), crate::runs::MOST_SCENARIO);
        let text = text.ok_or_else(|| Refusal::missing("no such file"))?;
        return Ok(download("text/plain; charset=utf-8", &format!("{name}.toml"), text));
    }
    let known = matches!(file, "report.html" | "summary.csv" | "rounds.csv");
    let figure = file.strip_suffix(".svg");
    if !known && figure.is_none() {
        return Err(Refusal::missing("no such file"));
    }
    let csv = "text/csv; charset=utf-8";
    let saved = format!("{name}-{file}");
    if let Some(sweeps) = sweeps {
        let (scenario, far) = points(root, path)?;
        let known = sweeps.find(root, path, &scenario, &far);
        let summary = known.summary.as_ref().map_err(Refusal::clone)?;
        if summary.schemes().is_empty() {
            return Err(Refusal::missing("no run of this sweep has ended yet"));
        }
        return match figure {
            None if file == "report.html" => {
                Ok(whole("text/html; charset=utf-8", report::sweep::html(name, summary)))
            }
            None => Ok(download(csv, &saved, summary.to_csv())),
            Some(id) => {
                let found = report::sweep::figures(summary).into_iter().find(|f| f.id == id);
                let found = found.ok_or_else(|| Refusal::missing("no such figure"))?;
                Ok(download("image/svg+xml", &saved, found.wide.document()))
            }
        };
    }
    runs::refuse_huge(root, path)?;
    let run = Run::read(path).map_err(|error| Refusal::missing(error.to_string()))?;
    if file == "report.html" {
        return Ok(whole("text/html; charset=utf-8", report::html(&[run])));
    }
    match figure {
        None if file == "summary.csv" => Ok(download(csv, &saved, report::table(&[run]).csv())),
        None => Ok(download(csv, &saved, rounds(&run))),
        Some(id) => {
            let figure = report::figures(&run).into_iter().find(|figure| figure.id == id);
            let figure = figure.ok_or_else(|| Refusal::missing("no such figure"))?;
            Ok(download("image/svg+xml", &saved, figure.wide.document()))
        }
    }
}

/// The curves of a run, for the chart.
pub fn series(root: &Root, path: &Path) -> Result<Value, Refusal> {
    if !root.is_plain(path) {
        return Err(Refusal::new(hyper::StatusCode::FORBIDDEN, "this run is not plain files"));
    }
    runs::refuse_huge(root, path)?;
    let run = Run::read(path).map_err(|error| Refusal::missing(error.to_string()))?;
    Ok(report::series(&[run]))
}

/// The names of the figures that a run has.
pub fn figures(root: &Root, path: &Path) -> Vec<&'static str> {
    let readable = root.is_plain(path) && runs::refuse_huge(root, path).is_ok();
    let run = readable.then(|| Run::read(path).ok()).flatten();
    run.map_or_else(Vec::new, |run| report::figures(&run).iter().map(|figure| figure.id).collect())
}

/// A line per round of every run.
fn rounds(run: &Run) -> String {
    let mut text = String::from(
        "scheme,seed,round,drawn,arrived,attempts,label_divergence_wanted,label_divergence_realised,\
         train_loss,test_loss,test_accuracy\n",
    );
    for scheme in &run.schemes {
        for seed in &scheme.seeds {
            for round in &seed.rounds {
                let cell = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let _ = writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{},{},{}",
                    fedcote_support::csv_field(&scheme.name),
                    seed.seed,
                    round.round,
                    round.draws(),
                    round.arrivals(),
                    round.attempts,
                    cell(round.label_divergence_wanted),
                    cell(round.label_divergence_realised),
                    cell(round.train_loss),
                    cell(round.test_loss),
                    cell(round.test_accuracy),
                );
            }
        }
    }
    text
}
