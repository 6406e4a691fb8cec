//! `fedcote evaluate`.

use std::path::PathBuf;

use crate::arguments::whole;
use crate::error::Error;
use crate::outcome::{Exclusion, Format, Outcome, Procedure};
use crate::problem::{Problem, group, source};
use crate::select::selected;

/// Show what given selection probabilities lead to
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  echo '{\"selected\": 2, \"clients\": [
    {\"id\": \"a\", \"labels\": [30, 10], \"failure\": 0.1, \"selection\": 0.5},
    {\"id\": \"b\", \"labels\": [0, 40], \"failure\": 0.6, \"selection\": 0.5}]}' | fedcote evaluate

Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
pub struct Args {
    /// JSON or CSV file with a selection for every client; `-` or none reads standard input
    file: Option<PathBuf>,
    /// Draws per round [default: the file's]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=fedcote::MAX_SELECTED))]
    selected: Option<u64>,
    #[command(flatten)]
    exclusion: Exclusion,
    /// A group of clients that fail together is down with this probability; may be given several times [default: the file's]
    #[arg(long = "group", value_name = "NAME=PROBABILITY", value_parser = group)]
    groups: Vec<(String, f64)>,
    #[command(flatten)]
    procedure: Procedure,
    #[command(flatten)]
    format: Format,
}

pub fn run(args: Args) -> Result<(), Error> {
    let file = args.file.as_deref();
    let problem = Problem::read(file)?.with_groups(&args.groups);
    let selected = selected(args.selected, &problem)?;
    let threshold = args.exclusion.threshold.or(problem.threshold);
    let (federation, selection) = problem.check(file, true)?;
    let refuse = |error| Error::request(format!("{}: {error}", source(file)));
    let kinds = args.procedure.kinds();
    let evaluation =
        fedcote::evaluate_for(&federation, selected, &selection, kinds).map_err(refuse)?;
    // Probabilities can be given even if no client is eligible.
    let eligible = match fedcote::eligible(&federation, &args.exclusion.options(threshold)) {
        Err(fedcote::Error::NobodyEligible(_)) => vec![false; federation.len()],
        found => found.map_err(refuse)?,
    };
    Outcome {
        method: "given",
        federation: &federation,
        procedure: args.procedure,
        selected,
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
