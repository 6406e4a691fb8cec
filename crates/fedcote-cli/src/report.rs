//! `fedcote report`: one HTML file from run folders.

use std::path::{Path, PathBuf};

use fedcote_plot::folder::Run;
use fedcote_plot::report;
use fedcote_sim::folder::ScenarioFile;

use crate::error::Error;

/// Write a report of one or several run folders: tables, curves, clients, labels, network
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  fedcote report runs/static\n  fedcote report runs/static runs/dynamic --out comparison.html\n\n\
                  Exit status: 0 done, 1 the work failed, 2 the request was wrong."
)]
pub struct Args {
    /// Run folders, as `fedcote run --out DIR` makes them; several are compared
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// The report's file [default: report.html in DIR, or here for several]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the tables (Markdown, LaTeX, CSV, JSON) and figures (SVG, PNG) into this folder
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<(), Error> {
    args.out.as_ref().map_or(Ok(()), |file| crate::output::file("--out", file))?;
    args.export.as_ref().map_or(Ok(()), |folder| crate::output::folder("--export", folder))?;
    let mut seen = Vec::new();
    for folder in &args.folders {
        // What is not there is for the report to say.
        let Ok(real) = folder.canonicalize() else { continue };
        if seen.contains(&real) {
            return Err(Error::request(format!("{}: is named twice", folder.display())));
        }
        seen.push(real);
    }
    let path = report::write(&args.folders, args.out.as_deref()).map_err(|error| {
        match args.folders.iter().find_map(|folder| inside(folder)) {
            Some(run) if error.is_request() => {
                Error::request(format!("{error}; did you mean {}?", run.display()))
            }
            _ => explain(error),
        }
    })?;
    // A report of what can be read; what cannot is told here as well as there.
    for run in args.folders.iter().filter_map(|folder| Run::read(folder).ok()) {
        for reason in run.damaged {
            eprintln!("fedcote: left out: {reason}");
        }
    }
    let mut text = format!("{}\n", path.display());
    if let Some(folder) = &args.export {
        for path in report::export(&args.folders, folder).map_err(explain)? {
            text += &format!("{}\n", path.display());
        }
    }
    crate::output::print(&text)
}

/// A run in a folder that holds runs and is none itself.
fn inside(folder: &Path) -> Option<PathBuf> {
    let is_run = |folder: &Path| folder.join(ScenarioFile::FILE).is_file();
    let inner = folder.read_dir().ok()?.flatten().map(|entry| entry.path());
    inner.filter(|inner| is_run(inner) && !is_run(folder)).min()
}

pub fn explain(error: fedcote_plot::Error) -> Error {
    if error.is_request() { Error::request(error) } else { Error::work(error) }
}
