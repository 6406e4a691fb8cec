//! `fedcote evaluate`.

use std::path::PathBuf;

use fedcote::Options;

use crate::arguments::whole;
use crate::error::Error;
use crate::outcome::{Format, Outcome, Procedure};
use crate::problem::{Problem, source};
use crate::select::draws;

/// Show what given selection probabilities lead to
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  echo '{\"selected\": 2, \"clients\": [
    {\"id\": \"a\", \"labels\": [30, 10], \"failure\": 0.1, \"selection\": 0.5},
    {\"id\": \"b\", \"labels\": [0, 40], \"failure\": 0.6, \"selection\": 0.5}]}' | fedcote evaluate

Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
pub struct Args {
    /// JSON or CSV file with a selection for every client; `-` or nothing reads standard input
    file: Option<PathBuf>,
    /// Draws a round [default: the file's]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=fedcote::MAX_DRAWS))]
    selected: Option<u64>,
    #[command(flatten)]
    procedure: Procedure,
    #[command(flatten)]
    format: Format,
}

pub fn run(args: Args) -> Result<(), Error> {
    let file = args.file.as_deref();
    let problem = Problem::read(file)?;
    let draws = draws(args.selected, &problem)?;
    let threshold = problem.threshold.unwrap_or(Options::default().threshold);
    let (federation, selection) = problem.check(file, true)?;
    let evaluation = fedcote::evaluate_for(&federation, draws, &selection, args.procedure.kinds())
        .map_err(|error| Error::request(format!("{}: {error}", source(file))))?;
    let eligible: Vec<bool> =
        federation.failure().iter().map(|&failure| failure <= threshold && failure < 1.0).collect();
    Outcome {
        method: "given",
        federation: &federation,
        procedure: args.procedure,
        draws,
        selection: &selection,
        appearance: &evaluation.appearance,
        eligible: &eligible,
        label_divergence: evaluation.label_divergence,
        weight_divergence: evaluation.weight_divergence,
        expected_arrivals: evaluation.expected_arrivals,
        optimality: None,
        warnings: &evaluation.warnings,
    }
    .print(args.format)
}
