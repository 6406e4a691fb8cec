//! `fedcote select`.

use std::path::PathBuf;

use fedcote::{Aim, Method};

use crate::arguments::{number, whole};
use crate::error::Error;
use crate::outcome::{Exclusion, Format, Outcome, Procedure};
use crate::problem::{Problem, group, source};

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
    /// JSON or CSV file; `-` or none reads standard input
    file: Option<PathBuf>,
    /// How to solve: `exact` is optimal, with a certificate, `gradient` is the paper's Algorithm 2
    #[arg(long, value_enum, default_value_t = MethodName::Exact)]
    method: MethodName,
    /// With `gradient`: solve for this many draws instead (the paper's FedCote-II)
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=fedcote::MAX_SELECTED))]
    k_apx: Option<u64>,
    /// What the server does with uploads: `appearance` averages what arrives, `freshness` remembers each client's latest
    /// update and averages all of them
    #[arg(long, value_enum, default_value_t = AimName::Appearance)]
    aim: AimName,
    /// With `exact`: how much more labels matter than weights [default: 1000]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = number)]
    kappa: Option<f64>,
    /// With `exact`: the price of failed draws; above 0 trades bias for arrivals [default: 0]
    #[arg(long, value_name = "RHO", allow_negative_numbers = true, value_parser = number)]
    efficiency: Option<f64>,
    #[command(flatten)]
    exclusion: Exclusion,
    /// Draws per round [default: the file's]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=fedcote::MAX_SELECTED))]
    selected: Option<u64>,
    /// A group of clients that fail together is down with this probability; may be given several times [default: the file's]
    #[arg(long = "group", value_name = "NAME=PROBABILITY", value_parser = group)]
    groups: Vec<(String, f64)>,
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

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AimName {
    Appearance,
    Freshness,
}

pub fn run(args: Args) -> Result<(), Error> {
    let method = args.method()?;
    let file = args.file.as_deref();
    let problem = Problem::read(file)?.with_groups(&args.groups);
    let selected = selected(args.selected, &problem)?;
    let threshold = args.exclusion.threshold.or(problem.threshold);
    let (federation, _) = problem.check(file, false)?;
    let (draws, uploads) = args.procedure.kinds();
    let aim = match args.aim {
        AimName::Appearance => Aim::Appearance,
        AimName::Freshness => Aim::Freshness,
    };
    let options = args.exclusion.options(threshold);
    let options = options.with_method(method).with_draws(draws).with_uploads(uploads).with_aim(aim);
    let solution =
        fedcote::select(&federation, selected, &options).map_err(|error| args.blame(&error))?;
    Outcome {
        method: solution.method.name(),
        federation: &federation,
        procedure: args.procedure,
        selected,
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
pub fn selected(flag: Option<u64>, problem: &Problem) -> Result<u64, Error> {
    flag.or(problem.selected).ok_or_else(|| {
        Error::request("selected: missing; say how many draws per round with --selected K")
    })
}

impl Args {
    /// A refusal, with the flag or the file at fault.
    fn blame(&self, error: &fedcote::Error) -> Error {
        let flag = match error {
            fedcote::Error::NobodyEligible(_) => self.exclusion.threshold,
            fedcote::Error::Parameter { name: "threshold", .. } => self.exclusion.threshold,
            fedcote::Error::Parameter { name: "kappa", .. } => self.kappa,
            fedcote::Error::Parameter { name: "efficiency", .. } => self.efficiency,
            _ => None,
        };
        // These errors begin with the name of the flag.
        match flag {
            Some(_) => Error::request(format!("--{error}")),
            None => Error::request(format!("{}: {error}", source(self.file.as_deref()))),
        }
    }

    fn method(&self) -> Result<Method, Error> {
        let stray = |flag: &str, method: &str| {
            Err(Error::request(format!("--{flag} belongs to --method {method}")))
        };
        match (self.method, Method::EXACT) {
            (MethodName::Exact, Method::Exact { kappa, efficiency }) => {
                if self.k_apx.is_some() {
                    return stray("k-apx", "gradient");
                }
                Ok(Method::Exact {
                    kappa: self.kappa.unwrap_or(kappa),
                    efficiency: self.efficiency.unwrap_or(efficiency),
                })
            }
            _ => {
                if self.kappa.is_some() {
                    return stray("kappa", "exact");
                }
                if self.efficiency.is_some() {
                    return stray("efficiency", "exact");
                }
                Ok(Method::gradient(self.k_apx))
            }
        }
    }
}
