//! Writes the report of run folders: `cargo run -p fedcote-plot --example report -- DIR…`

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match fedcote_plot::report::write(&folders, None) {
        Ok(path) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
