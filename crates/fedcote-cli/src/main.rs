//! The `fedcote` command: see `lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fedcote_cli::main(std::env::args_os(), &fedcote_cli::Extensions::default()).into()
}
