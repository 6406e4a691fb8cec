//! `fedcote report`: one HTML file from run folders.

use std::path::PathBuf;

use fedcote_plot::report;

use crate::error::Error;

/// Write a report of one or several run folders: tables, curves, clients, labels, network
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  fedcote report runs/static\n  fedcote report runs/static runs/dynamic --out comparison.html"
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
    let path = report::write(&args.folders, args.out.as_deref()).map_err(explain)?;
    let mut text = format!("{}\n", path.display());
    if let Some(folder) = &args.export {
        for path in report::export(&args.folders, folder).map_err(explain)? {
            text += &format!("{}\n", path.display());
        }
    }
    crate::output::print(&text)
}

pub fn explain(error: fedcote_plot::Error) -> Error {
    if error.is_request() { Error::request(error) } else { Error::work(error) }
}
