//! The `fedcote` command as a library: parse, call, print.
//!
//! The binary is one call of [`main`]; the Python package holds the same command, and what only Python can provide
//! ([`Extensions`]).
//!
//! ```
//! let words = ["fedcote", "run", "--print-config"].map(Into::into);
//! assert_eq!(fedcote_cli::main(words, &fedcote_cli::Extensions::default()), 0);
//! ```
#![deny(missing_docs)]

mod arguments;
mod data;
mod error;
mod evaluate;
mod extensions;
mod import;
mod network;
mod outcome;
mod output;
mod paper;
mod place;
mod problem;
mod report;
mod run;
mod select;
mod serve;
mod signals;
mod table;

use std::ffi::OsString;
use std::io::Write;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use error::Error;
use extensions::Session;
pub use extensions::{ConnectRay, Extensions, MakeTasks, Ray};

/// Federated learning over unreliable networks: choose clients so that failures do no harm.
#[derive(Parser)]
#[command(
    name = "fedcote",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit status: 0 done, 1 the work failed, 2 the request was wrong, 3 interrupted, to be resumed.\n\nStart with: fedcote run"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Select(select::Args),
    Evaluate(evaluate::Args),
    Network(network::Args),
    Paper(paper::Args),
    Report(report::Args),
    Serve(serve::Args),
    Data(data::Args),
    /// Print the JSON schema of scenario files, for editors
    #[command(
        after_help = "Example:\n  fedcote schema > scenario.schema.json\n\nThen, as a file's first line: #:schema ./scenario.schema.json"
    )]
    Schema,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  fedcote completions bash > ~/.local/share/bash-completion/completions/fedcote"
    )]
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Executes a command line, the program's name first; returns the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>, extensions: &Extensions) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let session = Session { words: words.collect(), extensions };
    let result = match Cli::try_parse_from(arguments) {
        Ok(cli) => threads().and_then(|()| perform(cli.command, &session)),
        Err(asked) if !asked.use_stderr() => output::written(asked.print()),
        Err(bare) if bare.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // When nobody can be told, the status still tells.
            let _ = bare.print();
            return 2;
        }
        Err(wrong) => Err(Error::request(arguments::complaint::<Cli>(&wrong, &session.words))),
    };
    match result {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fedcote: {error}");
            error.status()
        }
    }
}

/// The most threads of a pool, as of `--threads`.
const MAX_THREADS: usize = 1024;

/// Starts the threads that everything outside a run's own pool computes on. Left to themselves they start when first needed, and panic if
/// the system has no more of them.
fn threads() -> Result<(), Error> {
    for name in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"] {
        let value = std::env::var(name).unwrap_or_default();
        if value.parse().is_ok_and(|threads: usize| threads > MAX_THREADS) {
            return Err(Error::request(format!(
                "{name}: must be a whole number from 0 to {MAX_THREADS}, is `{value}`"
            )));
        }
    }
    match rayon::ThreadPoolBuilder::new().build_global() {
        // In a host that has started them they are there, an error without a cause.
        Err(error) if std::error::Error::source(&error).is_some() => {
            Err(Error::work(format!("threads: {error}; set RAYON_NUM_THREADS to fewer")))
        }
        _ => Ok(()),
    }
}

fn perform(command: Command, session: &Session) -> Result<(), Error> {
    match command {
        Command::Run(args) => run::run(args, session),
        Command::Select(args) => select::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Network(args) => network::run(args),
        Command::Paper(args) => paper::run(args, session),
        Command::Report(args) => report::run(args),
        Command::Serve(args) => serve::run(args, session),
        Command::Data(args) => data::run(args),
        Command::Schema => output::print(include_str!("schema.json")),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fedcote", &mut script);
            output::write(|out| out.write_all(&script))
        }
    }
}
