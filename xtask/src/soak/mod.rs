//! `cargo xtask soak`: long trouble. A Flower federation whose clients come, go, lie and fail and whose server is killed
//! again and again, compared with an undisturbed twin; and a page that is visited, watched and told to start and stop
//! runs. Memory must stay within bounds, and nothing may be lost.

mod page;

use std::process::Stdio;
use std::time::Instant;

use crate::attack::script;
use crate::torture::build;

/// How much of it.
pub struct Size {
    /// Rounds of the first federation; the others have a tenth.
    pub rounds: u64,
    /// How many rounds the server lives on average before it is killed.
    pub life: u64,
    pub visits: u64,
    pub watchers: usize,
    /// Runs that are started from the page.
    pub runs: u64,
    /// Rounds of each.
    pub run_rounds: u64,
}

/// As `cargo xtask soak` plays it.
pub const WHOLE: Size =
    Size { rounds: 10_000, life: 20, visits: 1000, watchers: 50, runs: 20, run_rounds: 3000 };

/// As `cargo xtask test` does, whose Python tests have short federations.
pub const SHORT: Size =
    Size { rounds: 0, life: 0, visits: 120, watchers: 10, runs: 3, run_rounds: 500 };

/// The page.
pub fn page(size: &Size, seed: u64) -> Result<(), String> {
    let program = build()?;
    let folder = std::env::temp_dir().join(format!("fedcote-soak-{}", std::process::id()));
    println!("the page, seed {seed}, in {}", folder.display());
    let begun = Instant::now();
    let found = page::soak(&program, &folder, size, seed).map_err(|reason| {
        format!("the page with seed {seed}: {reason} (see {})", folder.display())
    })?;
    println!("\n| page | |\n|---|---|");
    for (name, figure) in found {
        println!("| {name} | {figure} |");
    }
    println!("| seconds | {:.0} |\n", begun.elapsed().as_secs_f64());
    // What is left of a folder that cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

/// The federations, where there is a Python environment for them.
pub fn federations(size: &Size, seed: u64) -> Result<(), String> {
    let Some(mut command) = script("soak.py") else { return Ok(()) };
    let words = [size.rounds.to_string(), seed.to_string(), size.life.to_string()];
    command.args(words).stderr(Stdio::inherit());
    println!("federations, seed {seed}");
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    println!(
        "\n| federation | rounds | nodes | server killed | states compared with the twin's | memory of the twin, MB | state, kB | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for line in text.lines() {
        println!("| {} |", line.replace('\t', " | "));
    }
    println!();
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} ended with {}", done.status))
    }
}
