//! `fedcote run`: a comparison of schemes.

pub(crate) mod progress;
mod sweep;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fedcote_sim::comparison::{Control, Shard, compare};
use fedcote_sim::folder::ScenarioFile;
use fedcote_sim::scenario::{PRESETS, Preset};
use fedcote_sim::summary::Summary;
use fedcote_sim::sweep::SweepSummary;
use fedcote_sim::{Classifications, Scenario, Tasks};
use fedcote_support::command;

use crate::arguments::{Seeds, whole};
use crate::error::Error;
use crate::extensions::Session;
use crate::place::Place;
use crate::signals;

/// The scenario of whoever names none.
const DEFAULT: &str = "quickstart";

/// How long a run that the live page stops may go on with its round.
const ROUND_TIME: Duration = Duration::from_secs(45);

/// What Ctrl-C says while there are rounds.
pub(crate) const FINISHING: &str = "finishing the round; once more to stop at once";

/// What Ctrl-C says while rounds are computed elsewhere.
pub(crate) const CANCELLING: &str = "cancelling; once more to stop at once";

/// Compare schemes: train with each of them on the same clients, network and seeds
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// A preset's name or a scenario file [default: quickstart; with --resume, the scenario of the folder]
    scenario: Option<String>,
    /// Override a key of the scenario, such as training.rate=0.1 (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Run the comparison with each of these values of a key, such as network.outdoor_excess_loss_db=0,10,20 (may be
    /// repeated, for all combinations): adds to the scenario's table [sweep]
    #[arg(long = "sweep", value_name = "KEY=V1,V2,…")]
    swept: Vec<String>,
    /// Rounds instead of the scenario's: short for --set rounds=R
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u32>(1..=u32::MAX.into()))]
    rounds: Option<u32>,
    /// Seeds instead of the scenario's, such as 7, or 1,2,3, or 1-5
    #[arg(long, value_name = "SEEDS", allow_negative_numbers = true)]
    seeds: Option<Seeds>,
    /// The scheme that the others are compared with, seed by seed [default: the first]: short for --set against=SCHEME
    #[arg(long, value_name = "SCHEME")]
    against: Option<String>,
    /// The folder to write to [default: runs/SCENARIO, numbered if it exists]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume an interrupted comparison and skip finished runs; start one if there is none
    #[arg(long)]
    resume: bool,
    /// Threads to compute with; 0 is one per core; results do not depend on it
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u16>(0..=1024))]
    threads: u16,
    /// Compute with instructions that every processor has, so that different ones come to the same bits; slower: short
    /// for --set portable=true
    #[arg(long)]
    portable: bool,
    /// Execute part I of N of the runs, such as 2/8: N workers that share --out execute them all
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Shard>,
    /// Write event files for TensorBoard, too, one in the folder of every run
    #[arg(long)]
    tensorboard: bool,
    #[command(flatten)]
    place: Place,
    /// Print the resolved scenario and stop
    #[arg(long)]
    print_config: bool,
    /// Print the summary as one JSON document, and nothing else
    #[arg(long)]
    json: bool,
    /// Show the run in a browser as it happens, and afterwards until Ctrl-C (see `fedcote serve`)
    #[arg(long)]
    serve: bool,
    #[command(flatten)]
    address: crate::serve::Address,
    /// Stop when standard input ends: how the live page stops runs
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

fn after_help() -> String {
    let mut text = String::from("Presets:\n");
    let dynamic = (
        "…-dynamic",
        "each with radio links with walking clients (paper-dynamic: the calibrated one)",
    );
    for (name, summary) in PRESETS.iter().map(|p| (p.name, p.summary())).chain([dynamic]) {
        text += &hanging(&format!("  {name:<18}"), summary);
    }
    text += "\nExamples:\n  \
             fedcote run\n  \
             fedcote run paper-calibrated --seeds 1-3 --rounds 100\n  \
             fedcote run --set 'schemes=[\"fedavg\",\"scaffold\"]' --out runs/mine\n  \
             fedcote run --resume --out runs/mine --against fedavg\n  \
             fedcote run paper-calibrated --out /shared/paper --shard 2/8\n  \
             fedcote run paper-calibrated --on ray --address local\n  \
             fedcote run --sweep network.outdoor_excess_loss_db=0,10,20,26 --seeds 1-3\n  \
             fedcote run --serve\n  \
             fedcote run --print-config > mine.toml && fedcote run mine.toml\n\n\
             Exit status: 0 done, 1 the work failed, 2 the request was wrong, 3 interrupted, to be resumed.";
    text
}

/// A name and what it is, in lines of a usual terminal, the later ones indented as far as the first.
fn hanging(name: &str, text: &str) -> String {
    let indent = name.chars().count();
    let (mut lines, mut column) = (name.to_owned(), indent);
    for word in text.split(' ') {
        if column + 1 + word.chars().count() > 79 {
            lines += &format!("\n{:indent$}", "");
            column = indent;
        }
        lines += &format!(" {word}");
        column += 1 + word.chars().count();
    }
    lines + "\n"
}

/// Runs the command.
pub fn run(args: Args, session: &Session) -> Result<(), Error> {
    let mut overrides = args.overrides.clone();
    overrides.extend(args.rounds.map(|rounds| format!("rounds={rounds}")));
    overrides.extend(args.seeds.map(|Seeds(seeds)| format!("seeds={seeds:?}")));
    overrides.extend(args.against.as_ref().map(|scheme| format!("against={scheme}")));
    overrides.extend(args.portable.then(|| "portable=true".to_owned()));
    for assignment in &args.swept {
        overrides
            .push(fedcote_sim::scenario::sweep_assignment(assignment).map_err(Error::request)?);
    }
    let name = args.scenario.as_deref();
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| default_out(name.unwrap_or(DEFAULT), args.resume));
    let begun = [ScenarioFile::FILE, fedcote_sim::sweep::FILE].map(|file| out.join(file));
    let begun = begun.into_iter().find(|file| args.resume && file.exists());
    let begun = begun.map(|file| file.to_string_lossy().into_owned());
    let name = name.or(begun.as_deref()).unwrap_or(DEFAULT);
    let scenario = Scenario::load(name, &overrides).map_err(Error::from)?;
    if args.print_config {
        return crate::output::print(&scenario.rooted()?.to_toml());
    }
    crate::output::folder("--out", &out)?;
    // Before signals are looked at: Ray has handlers of its own.
    let remote = args.place.connect(session)?;
    let stop = signals::stop_on_signal(if remote.is_some() { CANCELLING } else { FINISHING })?;
    if args.stop_with_input {
        std::thread::spawn(|| {
            signals::stop_with_input(std::io::stdin().lock(), stop, ROUND_TIME);
            eprintln!(
                "fedcote: interrupted in a round that takes too long; resume goes on from the last checkpoint"
            );
            std::process::exit(fedcote_serve::INTERRUPTED.into());
        });
    }
    if !args.serve && args.address.is_given() {
        return Err(Error::request("--listen, --token and --host belong to --serve"));
    }
    let whole = scenario.sweep.is_empty();
    let page = args.serve.then(|| serve(&args.address, &out, session)).transpose()?;
    let control = Control {
        // Code in Python is called by one run at a time, unless the user asks for more.
        threads: if session.needs_python(&scenario) { args.threads.max(1) } else { args.threads }
            .into(),
        remote: remote.as_deref(),
        resume: args.resume,
        shard: args.shard.unwrap_or_default(),
        stop,
        command: session.command_line(),
        tensorboard: args.tensorboard,
    };
    let style = progress::Style::of(args.json);
    let tasks = |scenario: &Scenario| -> Result<Box<dyn Tasks>, Error> {
        Ok(match &remote {
            // The data set need not be here.
            Some(_) if !session.needs_python(scenario) => {
                Box::new(Classifications::later(scenario))
            }
            _ => session.tasks(scenario)?,
        })
    };
    let found = if whole {
        let progress = progress::Progress::new(&scenario, control.shard, style);
        let tasks = tasks(&scenario)?;
        let summary = compare(&scenario, &*tasks, &out, &control, &progress)?;
        progress.finish();
        summary.map(Found::Comparison)
    } else {
        sweep::run(&scenario, &tasks, &out, &control, style)?.map(Found::Sweep)
    };
    let Some(found) = found else {
        let mut words = vec!["run".to_owned(), "--resume".into(), "--out".into()];
        words.push(out.to_string_lossy().into_owned());
        if let Some(shard) = args.shard {
            words.extend(["--shard".to_owned(), shard.to_string()]);
        }
        words.extend(args.place.words());
        let reason = format!("interrupted; resume with: {}", command(words));
        return Err(Error::Interrupted(reason));
    };
    let report =
        fedcote_plot::report::write(std::slice::from_ref(&out), None).map_err(|error| {
            let again = format!("fedcote report {}", out.display());
            Error::work(format!("{error}; the runs are finished: make the report with: {again}"))
        })?;
    let (json, table, missing, warnings) = match &found {
        Found::Comparison(summary) => (
            serde_json::to_string_pretty(summary),
            table::render(summary, crate::table::styled()),
            summary.missing,
            &summary.warnings,
        ),
        Found::Sweep(summary) => (
            serde_json::to_string_pretty(summary),
            sweep::render(summary, crate::table::styled()),
            summary.missing,
            &summary.warnings,
        ),
    };
    crate::output::print(&if args.json {
        format!("{}\n", json.expect("plain data"))
    } else {
        let missing = match missing {
            0 => String::new(),
            1 => "\n1 run has not finished yet and is not counted.".to_owned(),
            runs => format!("\n{runs} runs have not finished yet and are not counted."),
        };
        let warnings: String =
            warnings.iter().map(|warning| format!("\nWarning: {warning}.")).collect();
        format!("{table}{missing}{warnings}\nReport: {}\n", report.display())
    })?;
    match page {
        None => Ok(()),
        Some(page) => {
            signals::say("");
            eprintln!("The page stays open until Ctrl-C: {}", page.url(""));
            page.until(stop)
        }
    }
}

/// What was made.
enum Found {
    Comparison(Summary),
    Sweep(SweepSummary),
}

/// The page of the folder that the run, or the sweep, is in.
fn serve(
    address: &crate::serve::Address,
    out: &Path,
    session: &Session,
) -> Result<crate::serve::Page, Error> {
    let absolute = std::path::absolute(out).map_err(Error::work)?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(Error::request("--out: --serve needs a folder inside another"));
    };
    let page = address.open(parent, session)?;
    let name: String = name.to_string_lossy().bytes().map(escaped).collect();
    eprintln!("Watch at {}", page.url(&format!("runs/{name}")));
    Ok(page)
}

/// A byte as written in an address.
fn escaped(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    }
}

impl From<fedcote_sim::Error> for Error {
    fn from(error: fedcote_sim::Error) -> Self {
        if error.is_request() { Self::request(error) } else { Self::work(error) }
    }
}

/// `runs/<name>`, or the first `runs/<name>-2`, `-3`, … that is free; to resume, the last that is there.
fn default_out(scenario: &str, resume: bool) -> PathBuf {
    let name = match Preset::find(scenario) {
        Some(_) => scenario,
        None => Path::new(scenario).file_stem().and_then(|stem| stem.to_str()).unwrap_or("run"),
    };
    let folder = |number: u32| match number {
        1 => PathBuf::from("runs").join(name),
        _ => PathBuf::from("runs").join(format!("{name}-{number}")),
    };
    let free = (1..).find(|&number| !folder(number).exists()).expect("numbers do not end");
    folder(if resume { (free - 1).max(1) } else { free })
}
