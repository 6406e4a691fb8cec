//! The project's tasks: `cargo xtask …`.

mod attack;
mod bench_network;
mod bench_page;
mod bench_peers;
mod bench_selection;
mod bench_simulation;
mod bench_training;
mod browser;
mod package;
mod python;
mod site;
mod soak;
mod torture;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask <task>

Tests
  test                 all tests: format, lints, Rust, packages, documentation, pages in a browser, Python
  test rust            only format, lints, Rust, packages and documentation
  test browser         only the live page, the playground and the report in Chromium
  test python          only the Python package, with a real Flower federation on this machine
  test nvflare         the example for NVFlare in its simulator, which `test` leaves out
  test torch           what needs PyTorch (6 GB below target/python), which is not part of `test`
  fuzz [RUNS]          the readers of files on damaged input, RUNS times each [default: 1000000]
  attack [N] [SEED]    N hostile requests, forms, files, replies and states [default: 10000, seed 1]
  torture [N] [SEED]   N faults injected into runs: kills, full disks, damaged files, … [default: 500, seed 1]
  soak [SEED]          federations of 10,000 rounds in trouble, and a page with 50 watchers [default: seed 1]

What the tests install: Chromium with apt-get if there is none (name another in FEDCOTE_CHROMIUM), and Python packages
into environments below target/python. Without Chromium `test` skips the browser tests and says so, and so it does with the
Python tests without Python 3.10 or a network; in continuous integration (CI=true) it fails instead.

Maintenance
  docs                 write what is generated: docs/reference, the schema, counts and numbers in docs/results
  screenshots [DIR]    pictures of the pages and the report, light and dark, wide and narrow [default: docs/images]
  site                 the pages of docs/ as a web site in target/site, links checked (installs MkDocs below target/python)
  package              package every crate, build it from its archive, print its size
  deny                 check licences, duplicates and sources of all dependencies (needs cargo-deny)

Benchmarks
  bench selection      selection probabilities, compared with the paper's enumeration
  bench network        positions and outage of a million clients
  bench training       local training and evaluation, compared with PyTorch
  bench simulation     whole runs, compared with the same loop in PyTorch, and the cost per round by federation size
  bench peers          whole federations, built in and as a PyTorch task, compared with PyTorch, Flower, FedLab and pfl-research
  bench page           the cost of ten browsers to a run, and the report of a large comparison
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => everything(),
        ["test", "browser"] => timed("browser", browser::test),
        ["test", "rust"] => compiled().and_then(|()| rust()),
        ["test", "python"] => timed("Python", python::run),
        ["test", "nvflare"] => timed("NVFlare", python::nvflare),
        ["test", "torch"] => timed("PyTorch", python::torch),
        ["fuzz"] => fuzz("1000000"),
        ["fuzz", runs] => fuzz(runs),
        ["deny"] => deny(),
        ["torture"] => torture::run(500, 1),
        ["torture", rest @ ..] if rest.len() < 3 => number(rest[0])
            .and_then(|count| torture::run(count, rest.get(1).map_or(Ok(1), |seed| number(seed))?)),
        ["attack"] => attack::run(10_000, 1, true),
        ["attack", rest @ ..] if rest.len() < 3 => number(rest[0]).and_then(|count| {
            attack::run(count, rest.get(1).map_or(Ok(1), |seed| number(seed))?, true)
        }),
        ["soak"] => soak(&soak::WHOLE, 1),
        ["soak", seed] => number(seed).and_then(|seed| soak(&soak::WHOLE, seed)),
        ["screenshots"] => browser::screenshots("docs/images"),
        ["screenshots", out] => browser::screenshots(out),
        ["bench", "page"] => bench_page::run(),
        ["docs"] => docs(),
        ["site"] => site::run(),
        ["package"] => package::all(true),
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
            eprint!("xtask: unknown task\n\n{HELP}");
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

/// Cargo, as this program was started by. Everything that is built is built for the whole workspace: for a single crate
/// the dependencies have other features, and would be built a second time.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// The folder of the workspace.
fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Cargo's target folder.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether nobody reads what was skipped, as in continuous integration.
fn strict() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// All tests. Browsers and runs that are killed wait much of their time; the wheel of the Python package is built meanwhile.
fn everything() -> Result<(), String> {
    compiled()?;
    let (tested, package) = std::thread::scope(|scope| {
        let package = scope.spawn(|| timed("wheel", python::package_or_skip));
        let tested = rust().and_then(|()| timed("browser", browser::test_or_skip));
        let package = package.join().unwrap_or_else(|_| Err("building the wheel panicked".into()));
        (tested, package)
    });
    match (tested, package) {
        (Ok(()), Ok(python::Built::Package(package))) => timed("Python", || python::test(&package)),
        (Ok(()), Ok(python::Built::Skipped(reason))) => {
            println!("Python tests SKIPPED: {reason}");
            Ok(())
        }
        (tested, package) => all_of([tested, package.map(drop)]),
    }
}

/// Whether all went well; otherwise everything that went wrong.
fn all_of(results: impl IntoIterator<Item = Result<(), String>>) -> Result<(), String> {
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs Cargo and says how long it took.
fn part(name: &str, words: &str, flags: Option<&str>) -> Result<(), String> {
    timed(name, || {
        let mut command = cargo();
        command.args(words.split(' '));
        if let Some(flags) = flags {
            command.env("RUSTDOCFLAGS", flags);
        }
        run(&mut command)
    })
}

/// Format and lints of all crates, and their tests compiled.
fn compiled() -> Result<(), String> {
    part("format", "fmt --all --check", None)?;
    part("lints", "clippy --workspace --all-targets --quiet -- -D warnings", None)?;
    part("compilation of tests", "test --workspace --quiet --no-run", None)
}

/// Tests, faults, packages and documentation of all crates.
fn rust() -> Result<(), String> {
    part("tests", "test --workspace --quiet", None)?;
    // Three faults of each kind.
    timed("faults", || torture::run(36, 1))?;
    // The Flower strategy is attacked by a test of the Python package, with the wheel of now.
    timed("hostile cases", || attack::run(300, 1, false))?;
    timed("soak", || soak::page(&soak::SHORT, 1))?;
    timed("packages", || package::all(false))?;
    part("documentation", "doc --workspace --no-deps --quiet", Some("-D warnings"))
}

/// The page and the federations.
fn soak(size: &soak::Size, seed: u64) -> Result<(), String> {
    soak::page(size, seed).and_then(|()| soak::federations(size, seed))
}

/// Writes what is generated; tests compare it.
fn docs() -> Result<(), String> {
    if cfg!(not(unix)) {
        return Err("the tests that write pages are for Unix".into());
    }
    // Sentences are compared with the tables that the others write.
    for tests in
        ["reference_is_up_to_date schema_is_up_to_date count_of_what_reproduces", "sentences_say"]
    {
        let mut command = cargo();
        command.args(["test", "--quiet", "--workspace", "--test", "docs", "--"]);
        run(command.args(tests.split(' ')).env("FEDCOTE_WRITE_DOCS", "1"))?;
    }
    Ok(())
}

/// The fuzz targets, optimised: all tests whose module or file is called so.
fn fuzz(runs: &str) -> Result<(), String> {
    if runs.parse::<u64>().is_err() {
        return Err(format!("`{runs}` is not a number of runs"));
    }
    let mut command = cargo();
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
    let mut command = cargo();
    command.args(["test", "--release", "-p", "fedcote-radio", "-p", "fedcote-sim"]);
    command.args(["-p", "fedcote-cli", "--lib", "--bins", "fuzz::"]);
    run(command.env("FEDCOTE_FUZZ_RUNS", runs))
}

/// Licences, duplicates, sources and known vulnerabilities of the dependencies, by `deny.toml`. What needs the
/// network is a check of its own, so that the others say what they find without it.
fn deny() -> Result<(), String> {
    let found = cargo().args(["deny", "--version"]).output();
    if !found.is_ok_and(|done| done.status.success()) {
        return Err("cargo-deny is missing: cargo install cargo-deny --locked".to_owned());
    }
    run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    run(cargo().args(["deny", "check", "advisories"]))
        .map_err(|reason| format!("{reason} (without its database nothing is known of advisories)"))
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is not a whole number"))
}

/// Runs a command, having said which.
fn run(command: &mut Command) -> Result<(), String> {
    println!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

/// Runs a part and says how long it took.
fn timed<T>(name: &str, part: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let begun = Instant::now();
    let made = part()?;
    println!("{name}: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(made)
}
