//! Every chore of the project: `cargo xtask …`.

mod bench_network;
mod bench_page;
mod bench_peers;
mod bench_selection;
mod bench_simulation;
mod bench_training;
mod browser;
mod python;
mod torture;

use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask <chore>

  test                 all tests: format, lints, Rust, documentation, pages in a browser, Python with a real federation
  test browser         the live page, the playground and the report in Chromium only
  test rust            format, lints, Rust and documentation only
  test python          the Python package only
  fuzz [RUNS]          readers of files on damaged input, RUNS times each (a million by default)
  torture [N] [SEED]   N faults injected into runs (500 by default): kills, full disks, damaged files, …
  screenshots [DIR]    pictures of the pages and the report, light and dark, wide and narrow
  bench page           what ten browsers cost a run, and the report of a large comparison
  deny                 licences, duplicates and sources of all dependencies (needs cargo-deny)
  docs                 the generated pages of docs/reference, written anew
  bench selection      selection probabilities, against the paper's enumeration
  bench network        a million clients' positions and outage
  bench training       local training and evaluation, beside PyTorch
  bench simulation     whole runs, beside the same loop in PyTorch, and the cost of a round by federation size
  bench peers          whole federations beside PyTorch, Flower, FedLab and pfl-research
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => rust()
            .and_then(|()| timed("browser", browser::test))
            .and_then(|()| timed("Python", python::run)),
        ["test", "browser"] => timed("browser", browser::test),
        ["test", "rust"] => rust(),
        ["test", "python"] => timed("Python", python::run),
        ["fuzz"] => fuzz("1000000"),
        ["fuzz", runs] => fuzz(runs),
        ["deny"] => deny(),
        ["torture"] => torture::run(500, 1),
        ["torture", rest @ ..] if rest.len() < 3 => number(rest[0])
            .and_then(|count| torture::run(count, rest.get(1).map_or(Ok(1), |seed| number(seed))?)),
        ["screenshots"] => browser::screenshots("docs/images"),
        ["screenshots", out] => browser::screenshots(out),
        ["bench", "page"] => bench_page::run(),
        ["docs"] => docs(),
        ["bench", "selection"] => bench_selection::run(),
        ["bench", "network"] => bench_network::run(),
        ["bench", "training"] => bench_training::run(),
        ["bench", "simulation"] => bench_simulation::run(),
        ["bench", "peers"] => bench_peers::run(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("unknown chore\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Format, lints, tests and documentation of all crates.
fn rust() -> Result<(), String> {
    let cargo = |name: &str, words: &str, flags: Option<&str>| {
        timed(name, || {
            let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            command.args(words.split(' '));
            if let Some(flags) = flags {
                command.env("RUSTDOCFLAGS", flags);
            }
            run(&mut command)
        })
    };
    cargo("format", "fmt --all --check", None)?;
    cargo("lints", "clippy --workspace --all-targets --quiet -- -D warnings", None)?;
    cargo("tests", "test --workspace --quiet", None)?;
    // Three faults of each kind.
    timed("faults", || torture::run(36, 1))?;
    cargo("documentation", "doc --workspace --no-deps --quiet", Some("-D warnings"))
}

/// Writes the generated pages; a test compares them.
fn docs() -> Result<(), String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["test", "--quiet", "-p", "fedcote-cli", "--test", "docs", "reference"]);
    run(command.env("FEDCOTE_WRITE_DOCS", "1"))
}

/// The fuzz targets, optimised: all tests whose module or file is called so.
fn fuzz(runs: &str) -> Result<(), String> {
    if runs.parse::<u64>().is_err() {
        return Err(format!("`{runs}` is no number of runs"));
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args([
        "test",
        "--release",
        "-p",
        "fedcote-learn",
        "-p",
        "fedcote-serve",
        "--test",
        "fuzz",
    ]);
    run(command.env("FEDCOTE_FUZZ_RUNS", runs))?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["test", "--release", "-p", "fedcote-radio", "-p", "fedcote-sim"]);
    command.args(["-p", "fedcote-cli", "--lib", "--bins", "fuzz::"]);
    run(command.env("FEDCOTE_FUZZ_RUNS", runs))
}

/// Licences, duplicates, sources and known vulnerabilities of the dependencies, by `deny.toml`. What needs the
/// network is a check of its own, so that the others say what they find without it.
fn deny() -> Result<(), String> {
    let cargo = || Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let found = cargo().args(["deny", "--version"]).output();
    if !found.is_ok_and(|done| done.status.success()) {
        return Err("cargo-deny is missing: cargo install cargo-deny --locked".to_owned());
    }
    run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    run(cargo().args(["deny", "check", "advisories"]))
        .map_err(|reason| format!("{reason} (without its database nothing is known of advisories)"))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// Runs a command, having said which.
fn run(command: &mut Command) -> Result<(), String> {
    println!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

/// Runs a part and says how long it took.
fn timed(name: &str, part: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let begun = Instant::now();
    part()?;
    println!("{name}: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}
