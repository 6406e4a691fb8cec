//! The `fedcote` command: parse, call, print.

mod arguments;
mod data;
mod error;
mod evaluate;
mod network;
mod outcome;
mod output;
mod paper;
mod problem;
mod report;
mod run;
mod select;
mod serve;
mod table;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use error::Error;

/// Federated learning over unreliable networks: choose clients so that failures do no harm.
#[derive(Parser)]
#[command(
    name = "fedcote",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit status: 0 done, 1 the work failed, 2 the request was wrong.\n\nStart with: fedcote run"
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
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  fedcote completions bash > ~/.local/share/bash-completion/completions/fedcote"
    )]
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => perform(cli.command),
        Err(asked) if !asked.use_stderr() => output::written(asked.print()),
        Err(bare) if bare.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            bare.exit()
        }
        Err(wrong) => Err(Error::request(arguments::complaint::<Cli>(&wrong))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // When nobody can be told, the status still tells.
            let _ = writeln!(std::io::stderr(), "fedcote: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn perform(command: Command) -> Result<(), Error> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Select(args) => select::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Network(args) => network::run(args),
        Command::Paper(args) => paper::run(args),
        Command::Report(args) => report::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Data(args) => data::run(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "fedcote", &mut script);
            output::write(|out| out.write_all(&script))
        }
    }
}
