//! `fedcote select`.

use std::path::PathBuf;

use fedcote::{Method, Options};

use crate::arguments::{number, whole};
use crate::error::Error;
use crate::outcome::{Format, Outcome, Procedure};
use crate::problem::{Problem, source};

/// Find selection probabilities from label counts and failure probabilities
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"selected\": 2, \"clients\": [
    {\"id\": \"a\", \"labels\": [30, 10], \"failure\": 0.1},
    {\"id\": \"b\", \"labels\": [0, 40], \"failure\": 0.6}]}' | fedcote select
  printf 'id,failure,label_0,label_1\\na,0.1,30,10\\nb,0.6,0,40\\n' |
    fedcote select --selected 2 --json

Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
pub struct Args {
    /// JSON or CSV file; `-` or nothing reads standard input
    file: Option<PathBuf>,
    /// How to solve: `exact` is optimal and says so, `gradient` is the paper's Algorithm 2
    #[arg(long, value_enum, default_value_t = MethodName::Exact)]
    method: MethodName,
    /// With `gradient`: solve for this many draws instead (the paper's FedCote-II)
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=fedcote::MAX_DRAWS))]
    k_apx: Option<u64>,
    /// Exclude clients with a higher failure probability [default: the file's, else 0.85]
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = number)]
    threshold: Option<f64>,
    /// With `exact`: how much more labels matter than weights [default: 1000]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = number)]
    kappa: Option<f64>,
    /// With `exact`: the price of failed draws; above 0 trades bias for arrivals [default: 0]
    #[arg(long, value_name = "RHO", allow_negative_numbers = true, value_parser = number)]
    efficiency: Option<f64>,
    /// Let the threshold lose a label, as in the paper
    #[arg(long)]
    no_coverage: bool,
    /// Draws a round [default: the file's]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=fedcote::MAX_DRAWS))]
    selected: Option<u64>,
    #[command(flatten)]
    procedure: Procedure,
    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MethodName {
    Exact,
    Gradient,
}

pub fn run(args: Args) -> Result<(), Error> {
    let method = args.method()?;
    let file = args.file.as_deref();
    let problem = Problem::read(file)?;
    let draws = draws(args.selected, &problem)?;
    let threshold = args.threshold.or(problem.threshold);
    let (federation, _) = problem.check(file, false)?;
    let (draws_kind, uploads) = args.procedure.kinds();
    let options = Options {
        method,
        threshold: threshold.unwrap_or(Options::default().threshold),
        coverage: !args.no_coverage,
        draws_kind,
        uploads,
    };
    let solution = fedcote::select(&federation, draws, &options, None)
        .map_err(|error| args.blame(&error.to_string()))?;
    Outcome {
        method: solution.method.name(),
        federation: &federation,
        procedure: args.procedure,
        draws,
        selection: &solution.selection,
        appearance: &solution.appearance,
        eligible: &solution.eligible,
        label_divergence: solution.label_divergence,
        weight_divergence: solution.weight_divergence,
        expected_arrivals: solution.expected_arrivals,
        optimality: Some(solution.optimality),
        warnings: &solution.warnings,
    }
    .print(args.format)
}

/// The number of draws: the flag's, else the file's.
pub fn draws(flag: Option<u64>, problem: &Problem) -> Result<u64, Error> {
    flag.or(problem.selected).ok_or_else(|| {
        Error::request("selected: missing; say how many draws a round has with --selected K")
    })
}

impl Args {
    /// A refusal, with the flag or the file at fault.
    fn blame(&self, reason: &str) -> Error {
        let flags = [
            ("threshold: ", self.threshold),
            ("kappa: ", self.kappa),
            ("efficiency: ", self.efficiency),
        ];
        if flags.iter().any(|(name, given)| given.is_some() && reason.starts_with(name)) {
            return Error::request(format!("--{reason}"));
        }
        Error::request(format!("{}: {reason}", source(self.file.as_deref())))
    }

    fn method(&self) -> Result<Method, Error> {
        let stray = |flag: &str, method: &str| {
            Err(Error::request(format!("--{flag} belongs to --method {method}")))
        };
        match (self.method, Method::EXACT, Method::GRADIENT) {
            (MethodName::Exact, Method::Exact { kappa, efficiency }, _) => {
                if self.k_apx.is_some() {
                    return stray("k-apx", "gradient");
                }
                Ok(Method::Exact {
                    kappa: self.kappa.unwrap_or(kappa),
                    efficiency: self.efficiency.unwrap_or(efficiency),
                })
            }
            (_, _, Method::Gradient { max_steps, tolerance, .. }) => {
                if self.kappa.is_some() {
                    return stray("kappa", "exact");
                }
                if self.efficiency.is_some() {
                    return stray("efficiency", "exact");
                }
                Ok(Method::Gradient { k_apx: self.k_apx, max_steps, tolerance })
            }
            (_, method, _) => Ok(method),
        }
    }
}
