//! `cargo xtask bench selection`: runs the selection benchmark, optimised.

use std::process::Command;

/// Runs the benchmark of crate `fedcote`, which prints its tables itself.
pub fn run() -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["bench", "-p", "fedcote", "--bench", "selection"])
        .status()
        .map_err(|error| format!("could not start cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the selection benchmark ended with {status}"))
    }
}
