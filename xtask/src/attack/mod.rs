//! Hostile cases of our own making: requests on a real socket, forms, files of every kind, and replies and state files of
//! the Flower strategy. Each must be answered: no error of the server's own, no panic, an exit status of 0, 1 or 2 with
//! one line, and all of that in time.

mod files;
pub mod http;
mod mutate;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::torture::{Chance, build};

/// How one case was answered, in a word, or what is wrong.
type Answer = Result<String, String>;

/// The kinds of attack, and the share that each has of a hundred cases.
const KINDS: [(&str, u64); 7] = [
    ("HTTP requests on a socket", 40),
    ("forms that start runs", 15),
    ("scenario files", 10),
    ("problems of `select`, JSON and CSV", 12),
    ("traces of networks", 5),
    ("files of finished runs, for `report`", 5),
    ("checkpoints, for `run --resume`", 3),
];

/// Makes so many cases; `seed` decides which, and is printed so that a failure can be had again. Those against the
/// Flower strategy need an environment of Python.
pub fn run(cases: u64, seed: u64, flower: bool) -> Result<(), String> {
    let program = build()?;
    let folder = std::env::temp_dir().join(format!("fedcote-attack-{}", std::process::id()));
    println!("{cases} cases with seed {seed} in {}", folder.display());
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let samples = files::Samples::new(&program, &folder)?;
    let served = folder.join("served");
    http::hostile(&served).map_err(|error| format!("{}: {error}", served.display()))?;
    let server = http::Server::start(&program, &served)?;
    let mut rows = Vec::new();
    for (at, (kind, share)) in KINDS.into_iter().enumerate() {
        let (begun, mut answers) = (Instant::now(), BTreeMap::<String, u64>::new());
        let count = (cases * share).div_ceil(100);
        for number in 0..count {
            let mut chance = Chance::of(seed, at as u64, number);
            let answer = match at {
                0 => server.request(&mut chance),
                1 => server.form(&mut chance),
                2 => samples.scenario(&mut chance),
                3 => samples.problem(&mut chance),
                4 => samples.trace(&mut chance),
                5 => samples.report(&mut chance),
                _ => samples.resume(&mut chance),
            };
            let answer = answer.map_err(|reason| {
                format!(
                    "{kind}, case {number} with seed {seed}: {reason} (see {})",
                    folder.display()
                )
            })?;
            *answers.entry(answer).or_default() += 1;
        }
        println!("{kind}: {count} cases, {:.0} s", begun.elapsed().as_secs_f64());
        rows.push((kind.to_owned(), count, words(&answers)));
    }
    server.is_well()?;
    drop(server);
    if flower {
        rows.extend(python(cases, seed)?);
    }
    println!("\n| attack | cases | result |\n|---|---|---|");
    let total: u64 = rows.iter().map(|(_, count, _)| count).sum();
    for (kind, count, result) in rows {
        println!("| {kind} | {count} | {result} |");
    }
    println!("\n{total} of {cases} cases with seed {seed}; every one that was made was answered");
    // What is left of a folder that cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

fn words(answers: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> =
        answers.iter().map(|(answer, count)| format!("{answer}: {count}")).collect();
    words.join(", ")
}

/// A script of the Python tests in the environment with Flower that `cargo xtask test python` leaves, or that
/// `FEDCOTE_ATTACK_PYTHON` names; `None` where there is none.
pub fn script(name: &str) -> Option<Command> {
    let usual = crate::target().join("python/flower-newest/bin/python");
    let interpreter = std::env::var_os("FEDCOTE_ATTACK_PYTHON").map_or(usual, PathBuf::from);
    if !interpreter.exists() {
        println!("Flower: left out; `cargo xtask test python` makes its environment");
        return None;
    }
    let mut command = Command::new(interpreter);
    command.arg(crate::root().join("python/tests").join(name));
    Some(command)
}

/// The Flower strategy.
fn python(cases: u64, seed: u64) -> Result<Vec<(String, u64, String)>, String> {
    let Some(mut command) = script("attack.py") else { return Ok(Vec::new()) };
    command.args([cases.div_ceil(10).to_string(), seed.to_string()]);
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() {
        let told = String::from_utf8_lossy(&done.stderr);
        return Err(format!(
            "{command:?}: {text}{told}\n`cargo xtask test python` makes its environment anew, with the package as it is now"
        ));
    }
    // A line of it is: kind, cases, result.
    let row = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        Some((parts.next()?, parts.next()?.parse().ok()?, parts.next()?))
    };
    Ok(text.lines().filter_map(row).collect())
}
