//! The `fedcote` command: parse, call, print.

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

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Federated learning over unreliable networks: choose clients so that failures do no harm.
#[derive(Parser)]
#[command(
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
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(args),
        Command::Select(args) => select::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Network(args) => network::run(args),
        Command::Paper(args) => paper::run(args),
        Command::Report(args) => report::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Data(args) => data::run(args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "fedcote", &mut std::io::stdout());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fedcote: {error}");
            ExitCode::from(error.status())
        }
    }
}
