//! `cargo xtask bench network`: a million clients, timed.

use std::process::Command;

/// Runs the benchmark, which prints its table.
pub fn run() -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["bench", "--quiet", "--package", "fedcote-radio", "--bench", "network"])
        .status()
        .map_err(|error| format!("cargo bench did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo bench ended with {status}")) }
}
