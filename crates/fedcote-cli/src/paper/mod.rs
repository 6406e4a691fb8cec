//! `fedcote paper`: the paper's tables and figures, ours beside its own.

mod artefact;
mod beyond;
mod calibrate;
mod curves;
mod document;
mod gradients;
mod grids;
mod heterogeneity;
mod list;
mod numbers;
mod request;
mod runs;
mod selection;
mod settings;
mod tables;
mod theorem;
mod theory;
mod uploads;
mod variant;

use std::collections::HashSet;
use std::path::PathBuf;

use artefact::{ARTEFACTS, Artefact, Body, Other};
use clap::builder::PossibleValuesParser;
use document::{Document, Origin};
use request::{Request, SEEDS};
use runs::{Run, Shard, Store};
use variant::{Network, Task};

use crate::arguments::{Seeds, number, whole};
use crate::error::Error;
use crate::run::progress::{Progress, Style};
use crate::run::{command_line, stop_on_signal};

/// Regenerate the paper's tables and figures, with its own numbers beside
#[derive(clap::Args)]
#[command(after_help = AFTER)]
pub struct Args {
    /// What to make: names from --list, or `all`
    #[arg(value_name = "ARTEFACT", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    artefacts: Vec<String>,
    /// Say what there is to make, what it needs and what of that is there
    #[arg(long)]
    list: bool,
    /// Rounds a run instead of the paper's
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u32>(1..=u32::MAX.into()))]
    rounds: Option<u32>,
    /// Seeds, such as 7, or 1,2,3, or 1-5 [default: 1-5, to calibrate 1-20]
    #[arg(long, value_name = "SEEDS", allow_negative_numbers = true)]
    seeds: Option<Seeds>,
    /// Only these schemes, by the names that tables show
    #[arg(long, value_delimiter = ',', value_name = "A,B,…")]
    schemes: Vec<String>,
    /// The task of artefacts that could have either [default: mnist]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "mnist|cifar10")]
    task: Option<Task>,
    /// The network: link parameters as printed, or with the loss that the paper's accuracies ask for
    #[arg(long, value_enum, default_value_t = Network::Calibrated, hide_possible_values = true, value_name = "literal|calibrated")]
    network: Network,
    /// Play only part I of N of the runs; parts merge by putting their folders together
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// The constant L of the bound in theorem-1 [default: 1]
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = number)]
    smoothness: Option<f64>,
    /// Threads to compute with; 0 is one a core; results do not depend on it
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u16>(0..=1024))]
    threads: u16,
    /// The folder to write to; runs are kept below it and used again
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

fn names() -> Vec<&'static str> {
    ARTEFACTS.iter().map(|artefact| artefact.name).chain(["all"]).collect()
}

/// Runs the command.
pub fn run(args: Args) -> Result<(), Error> {
    let request = Request {
        network: args.network,
        task: args.task.unwrap_or(Task::Mnist),
        rounds: args.rounds,
        seeds: args.seeds.clone().map(|Seeds(seeds)| seeds),
        full_seeds: SEEDS,
        schemes: args.schemes.clone(),
    };
    let store = Store::new(&args.out);
    if args.list {
        return list::print(&request, &store);
    }
    if args.smoothness.is_some_and(|smoothness| !(smoothness > 0.0 && smoothness.is_finite())) {
        return Err(Error::request("--smoothness: must be above 0 and finite"));
    }
    crate::output::folder("--out", &args.out)?;
    let artefacts = asked(&args.artefacts, &request)?;
    check_effect(&args, &artefacts)?;
    let plans = artefacts.iter().map(|artefact| plan(artefact, &request));
    let plans = plans.collect::<Result<Vec<_>, Error>>()?;
    let all: Vec<Run> = runs::distinct(plans.iter().flatten().cloned());
    let shard = args.shard.unwrap_or(Shard::ALL);
    let mine: Vec<&Run> = shard.of(&all);
    let missing = mine.iter().filter(|run| !store.has(run)).count();
    let stop = stop_on_signal()?;
    let width = all.iter().map(|run| run.scheme.len()).max().unwrap_or(0) + 8;
    let rounds = match all.first() {
        Some(run) => run.variant.scenario(std::slice::from_ref(&run.scheme), &[1])?.general.rounds,
        None => 0,
    };
    let progress = Progress::over(missing, rounds, width, Style::of(missing == 0));
    let origin = Origin::new(command_line());
    let cut = if request.is_cut() { "-cut" } else { "" };
    let folder = args.out.join(format!("{}{cut}", request.network));
    for (artefact, plan) in artefacts.iter().zip(&plans) {
        let own: HashSet<&Run> = plan.iter().collect();
        let part: Vec<&Run> = mine.iter().copied().filter(|run| own.contains(run)).collect();
        if !store.play(&part, args.threads.into(), stop, &progress)? {
            progress.finish();
            let reason = "interrupted; the same command goes on where this one stopped";
            return Err(Error::Interrupted(reason.to_owned()));
        }
        match make(artefact, &request, &args, &store)? {
            Some(document) => {
                let name = match (artefact.task, request.task) {
                    (None, Task::Cifar10) => format!("{}-cifar10", artefact.name),
                    _ => artefact.name.to_owned(),
                };
                let page = document.write(&folder, &name, &origin)?;
                progress.say(&format!("{}: {}", artefact.name, page.display()));
                if artefacts.len() == 1 {
                    crate::output::print(&document.text())?;
                }
            }
            None => {
                let left = plan.iter().filter(|run| !store.has(run)).count();
                progress.say(&format!(
                    "{}: {left} of {} runs are missing; put the run folders of all parts together",
                    artefact.name,
                    plan.len()
                ));
            }
        }
    }
    progress.finish();
    Ok(())
}

/// The artefacts that were asked for; `all` is everything that suits the task.
fn asked(names: &[String], request: &Request) -> Result<Vec<&'static Artefact>, Error> {
    if names.is_empty() {
        return Err(Error::request(
            "name an artefact, or `all`; `fedcote paper --list` has the names",
        ));
    }
    let mut asked: Vec<&Artefact> = Vec::new();
    for name in names {
        let found: Vec<&Artefact> = match name.as_str() {
            "all" => {
                let suits = |artefact: &&Artefact| {
                    artefact.task.is_none_or(|task| task == request.task) && artefact.is_whole()
                };
                ARTEFACTS.iter().filter(suits).collect()
            }
            name => Artefact::find(name).into_iter().collect(),
        };
        for artefact in found {
            if !asked.iter().any(|other| other.name == artefact.name) {
                asked.push(artefact);
            }
        }
    }
    Ok(asked)
}

/// Refuses what would change nothing.
fn check_effect(args: &Args, artefacts: &[&Artefact]) -> Result<(), Error> {
    let all =
        |other| artefacts.iter().all(|a| matches!(a.body, Body::Other(kind) if kind == other));
    let any =
        |other| artefacts.iter().any(|a| matches!(a.body, Body::Other(kind) if kind == other));
    if args.smoothness.is_some() && !any(Other::Theorem) {
        return Err(Error::request("--smoothness: has no effect here: it belongs to theorem-1"));
    }
    if let Some(task) = args.task {
        // What `all` has suits the task already.
        let by_name = args.artefacts.iter().filter_map(|name| Artefact::find(name));
        let other = |artefact: &Artefact| Some((artefact.name, artefact.task?));
        if let Some((name, own)) = by_name.filter_map(other).find(|(_, own)| *own != task) {
            return Err(Error::request(format!("--task {task}: {name} is about {own}")));
        }
    }
    let flags = [
        ("--task", args.task.is_some()),
        ("--rounds", args.rounds.is_some()),
        ("--seeds", args.seeds.is_some()),
        ("--schemes", !args.schemes.is_empty()),
    ];
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) if all(Other::Enumeration) => {
            Err(Error::request(format!("{flag}: has no effect on table-8, which only counts")))
        }
        _ => Ok(()),
    }
}

/// The runs that an artefact needs.
fn plan(artefact: &Artefact, request: &Request) -> Result<Vec<Run>, Error> {
    let Some(grid) = artefact.grid(request) else { return Ok(Vec::new()) };
    if grid.rows.is_empty() {
        let all = artefact.grid(&Request { schemes: Vec::new(), ..request.clone() });
        let names: Vec<String> =
            all.into_iter().flat_map(|grid| grid.rows).map(|row| row.name).collect();
        return Err(Error::request(format!(
            "--schemes: {} has none of them; its schemes are {}",
            artefact.name,
            names.join(", ")
        )));
    }
    Ok(runs::of_grid(&grid, &artefact.adapt(request).seeds()))
}

/// Makes an artefact; `None` when runs are missing.
fn make(
    artefact: &Artefact,
    request: &Request,
    args: &Args,
    store: &Store,
) -> Result<Option<Document>, Error> {
    let request = &artefact.adapt(request);
    let cuts = match request.cuts() {
        cuts if cuts.is_empty() => String::new(),
        cuts => format!(" (cut down: {cuts})"),
    };
    let (name, what, out) = (artefact.name, artefact.what, &args.out);
    let bare = format!("{name}: {what}{cuts}");
    let title = format!("{name}: {what}, {} network{cuts}", request.network);
    let seeds = &request.seeds();
    let read = |grid| tables::read(grid, seeds, store);
    Ok(match (&artefact.body, artefact.grid(request)) {
        (Body::Table(_), Some(grid)) => {
            read(&grid)?.map(|cells| tables::compared(name, title, &grid, &cells))
        }
        (Body::Beyond, Some(grid)) => read(&grid)?.map(|cells| tables::tails(title, &grid, &cells)),
        (Body::Calibration, Some(grid)) => read(&grid)?.map(|cells| calibrate::make(bare, &cells)),
        (Body::Curves(curve, _), Some(grid)) => curves::draw(*curve, title, &grid, seeds, store)?,
        (Body::Other(kind), _) => Some(match kind {
            Other::Standards => settings::standards(title, request)?,
            Other::Links => settings::links(title, request)?,
            Other::Enumeration => theory::enumeration(bare),
            Other::OneLabel
            | Other::Gradients
            | Other::GradientRatio
            | Other::GradientDeviation => heterogeneity::make(*kind, bare, request, out)?,
            Other::Selection => selection::clients(title, request)?,
            Other::Draws => selection::draws(title, request)?,
            Other::Theorem => theorem::make(title, request, args.smoothness.unwrap_or(1.0), out)?,
            Other::Uploads => uploads::make(title, request)?,
        }),
        (_, None) => None,
    })
}
