//! `fedcote paper`: the paper's tables and figures, ours beside its own.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fedcote_paper::{List, Network, Options, Shard, Task, Watch, names};

use crate::arguments::{Seeds, number, whole};
use crate::error::Error;
use crate::extensions::Session;
use crate::place::Place;
use crate::run::progress::{Progress, Style};
use crate::run::{CANCELLING, FINISHING};
use crate::signals::stop_on_signal;
use crate::table::{Align, Table, styled};

/// Reproduce the paper's tables and figures and compare them with the paper's numbers
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// What to make: names from --list, or `all`
    #[arg(value_name = "ARTEFACT", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    artefacts: Vec<String>,
    /// List the artefacts, the runs they need and how many of these exist
    #[arg(long)]
    list: bool,
    /// Rounds per run instead of the paper's
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u32>(1..=u32::MAX.into()))]
    rounds: Option<u32>,
    /// Seeds, such as 7, or 1,2,3, or 1-5 [default: 1-5, for rivals 1-3, to calibrate 1-20]
    #[arg(long, value_name = "SEEDS", allow_negative_numbers = true)]
    seeds: Option<Seeds>,
    /// Only these schemes, by the names shown in tables
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    schemes: Vec<String>,
    /// The task of artefacts that could have either [default: mnist]
    #[arg(long, hide_possible_values = true, value_name = "mnist|cifar10")]
    #[arg(value_parser = PossibleValuesParser::new(Task::NAMES).try_map(|name| name.parse::<Task>()))]
    task: Option<Task>,
    /// The network: link parameters as printed; with a loss fitted to the paper's FedAvg, on one placement of clients
    /// (`calibrated`) or on another for every seed (`harsh`)
    #[arg(long, default_value_t = Network::Calibrated, hide_possible_values = true, value_name = "literal|calibrated|harsh")]
    #[arg(value_parser = PossibleValuesParser::new(Network::NAMES).try_map(|name| name.parse::<Network>()))]
    network: Network,
    /// Execute only part I of N of the runs; to merge parts, copy their folders into one
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Execute nothing: make artefacts of the runs that are there, of each column the longest; cells that lack one
    /// say so
    #[arg(long, conflicts_with_all = ["shard", "on"])]
    existing: bool,
    #[command(flatten)]
    place: Place,
    /// The constant L of the bound in theorem-1 [default: 1]
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = number)]
    smoothness: Option<f64>,
    /// Threads to compute with; 0 is one per core; results do not depend on it
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u16>(0..=1024))]
    threads: u16,
    /// The folder to write to; runs are kept there and reused
    #[arg(long, value_name = "DIR", default_value = "paper")]
    out: PathBuf,
}

const AFTER: &str = "Examples:
  fedcote paper --list
  fedcote paper table-8
  fedcote paper table-4 --rounds 100 --seeds 1 --schemes fedavg,fedcote,ideal
  fedcote paper all
  fedcote paper table-4 table-6 --shard 2/8 --out part-2

Exit status: 0 done, 1 the work failed, 2 the request was wrong, 3 interrupted, to be resumed.";

/// Runs the command.
pub fn run(args: Args, session: &Session) -> Result<(), Error> {
    let options = Options {
        artefacts: args.artefacts,
        network: args.network,
        task: args.task,
        rounds: args.rounds,
        seeds: args.seeds.map(|Seeds(seeds)| seeds),
        schemes: args.schemes,
        smoothness: args.smoothness,
        shard: args.shard.unwrap_or(Shard::ALL),
        existing: args.existing,
        threads: args.threads.into(),
        out: args.out,
        command: session.command_line(),
    };
    if args.list {
        return crate::output::print(&listed(&options.list(), &options));
    }
    if options.artefacts.is_empty() {
        return Err(Error::request(
            "name an artefact, or `all`; `fedcote paper --list` has the names",
        ));
    }
    crate::output::folder("--out", &options.out)?;
    let plan = options.plan()?;
    // Before signals are looked at: Ray has handlers of its own.
    let remote = args.place.connect(session)?;
    let stop = stop_on_signal(if remote.is_some() { CANCELLING } else { FINISHING })?;
    let missing = plan.missing();
    let width = plan.schemes().map(str::len).max().unwrap_or(0) + 8;
    // Without runs to play there are no bars, but lines about artefacts all the same.
    let style = if missing == 0 { Style::Lines } else { Style::of(false) };
    let progress = Progress::over(missing, plan.rounds(), width, style);
    let made = plan.make(stop, remote.as_deref(), &progress)?;
    progress.finish();
    match made.as_deref() {
        None => Err(Error::Interrupted(
            "interrupted; run the same command again to continue".to_owned(),
        )),
        Some([]) if options.existing => {
            let out = options.out.display();
            Err(Error::work(format!(
                "nothing was made: {out} has none of the runs; `fedcote paper --list` counts what is there"
            )))
        }
        Some([only]) if options.artefacts.len() == 1 => crate::output::print(&only.text),
        Some(_) => Ok(()),
    }
}

impl Watch for Progress {
    fn say(&self, line: &str) {
        Progress::say(self, line);
    }
}

impl From<fedcote_paper::Error> for Error {
    fn from(error: fedcote_paper::Error) -> Self {
        match error {
            // An option of the library is a flag of the command.
            fedcote_paper::Error::Option { name, reason } => {
                Self::request(format!("--{name}: {reason}"))
            }
            error if error.is_request() => Self::request(error),
            error => Self::work(error),
        }
    }
}

/// The list as text.
fn listed(list: &List, options: &Options) -> String {
    let mut table = Table::new([
        ("artefact", Align::Left),
        ("runs", Align::Right),
        ("there", Align::Right),
        ("s per run", Align::Right),
        ("", Align::Left),
    ]);
    for artefact in &list.artefacts {
        table.push([
            artefact.name.to_owned(),
            artefact.runs.map_or("–".to_owned(), |runs| runs.to_string()),
            artefact.runs.map_or(String::new(), |_| artefact.finished.to_string()),
            artefact.seconds_per_run.map_or(String::new(), |mean| format!("{mean:.1}")),
            artefact.what.to_owned(),
        ]);
    }
    let mut text = table.render(styled());
    text += &format!(
        "\nRuns of the {} network{}; artefacts share runs. Seconds are those measured for runs that are there.\n",
        options.network,
        options.rounds.map_or(String::new(), |rounds| format!(", {rounds} rounds")),
    );
    if list.runs > 0 {
        text += &format!("{} runs are there; they took {:.0} s.\n", list.runs, list.seconds);
    }
    text
}
