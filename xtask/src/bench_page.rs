//! `cargo xtask bench page`: what ten browsers cost a run, the report of a large comparison, and its page.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::run as cargo;

/// Interleaved repeats; the best of each side counts.
const REPEATS: usize = 5;
const BROWSERS: usize = 10;

/// Builds the command, then measures both.
pub fn run() -> Result<(), String> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent folder")?;
    let program = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let words = ["build", "--release", "--quiet", "-p", "fedcote-cli", "-p", "fedcote-plot"];
    let mut build = Command::new(program);
    cargo(
        build.args(words).args(["--bin", "fedcote", "--example", "synthetic"]).current_dir(root),
    )?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let out = target.join("bench-page");
    watched(&target.join("release/fedcote"), &out)?;
    report(&target.join("release"), &out)?;
    crate::browser::bench(&target.join("release/fedcote"), &out)
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn watched(fedcote: &Path, out: &Path) -> Result<(), String> {
    let mut best = [f64::INFINITY; 3];
    for _ in 0..REPEATS {
        for (side, best) in best.iter_mut().enumerate() {
            // What is not there need not go.
            let _ = fs::remove_dir_all(out);
            fs::create_dir_all(out).map_err(text)?;
            *best = best.min(one(fedcote, out, side)?);
        }
    }
    let [alone, beside, within] = best;
    let growth = |seconds: f64| 100.0 * (seconds / alone - 1.0);
    println!(
        "CPU seconds of a run (quickstart, 300 rounds, one seed), best of {REPEATS} interleaved"
    );
    println!("{:<54} {alone:>6.2}", "no browser");
    println!(
        "{:<54} {beside:>6.2} {:>+6.1} %",
        "ten watch through `fedcote serve`: the run's process",
        growth(beside)
    );
    println!(
        "{:<54} {within:>6.2} {:>+6.1} %\n",
        "ten watch through `run --serve`: run and page together",
        growth(within)
    );
    Ok(())
}

/// The CPU seconds of one run: alone (0), watched from another process (1), or by its own page (2).
fn one(fedcote: &Path, out: &Path, side: usize) -> Result<f64, String> {
    let folder = out.join("runs");
    fs::create_dir_all(&folder).map_err(text)?;
    let mut page = None;
    if side == 1 {
        let mut command = Command::new(fedcote);
        command.args(["serve", "--listen", "127.0.0.1:0"]).arg(&folder).stdout(Stdio::piped());
        page = Some(command.spawn().map_err(text)?);
    }
    let mut command = Command::new(fedcote);
    command.args(["run", "quickstart", "--seeds", "1", "--threads", "1", "--out"]);
    command.arg(folder.join("watched")).stdout(Stdio::null()).stderr(Stdio::piped());
    if side == 2 {
        command.args(["--serve", "--listen", "127.0.0.1:0"]);
    }
    let mut process = command.spawn().map_err(text)?;
    let address = match (&mut page, side) {
        (Some(page), _) => page.stdout.take().map(first_address),
        (None, 2) => process.stderr.take().map(first_address),
        _ => None,
    };
    if let Some(address) = address {
        let scenario = folder.join("watched/scenario.toml");
        until(|| scenario.exists())?;
        let address = address?;
        for _ in 0..BROWSERS {
            let address = address.clone();
            std::thread::spawn(move || listen(&address));
        }
    }
    // A process that has ended keeps its times until it is waited for.
    let report = folder.join("watched/report.html");
    until(|| report.exists() && (side == 2 || state(&process) == Some('Z')))?;
    let seconds = seconds(&process).ok_or("no /proc to read CPU times from")?;
    for mut child in [Some(process), page].into_iter().flatten() {
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().map_err(text)?;
    }
    Ok(seconds)
}

/// Host and port of the first address that a program prints; the rest is read and forgotten.
fn first_address(output: impl Read + Send + 'static) -> Result<String, String> {
    let mut lines = BufReader::new(output);
    let mut line = String::new();
    lines.read_line(&mut line).map_err(text)?;
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    address.map(str::to_owned).ok_or_else(|| format!("no address in {line:?}"))
}

/// A browser that reads all events.
fn listen(address: &str) {
    let head = format!("GET /api/runs/watched/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    if stream.write_all(head.as_bytes()).is_ok() {
        // Until the page ends.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
}

fn until(done: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !done() {
        if begun.elapsed() > Duration::from_secs(600) {
            return Err("the run did not end in ten minutes".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The fields of /proc/PID/stat after the name.
fn stat(process: &Child) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{}/stat", process.id())).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn state(process: &Child) -> Option<char> {
    stat(process)?.first()?.chars().next()
}

/// User and system time; the kernel counts in hundredths.
fn seconds(process: &Child) -> Option<f64> {
    let fields = stat(process)?;
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// The report of 12 schemes, 5 seeds, 500 rounds.
fn report(release: &Path, out: &Path) -> Result<(), String> {
    let folder = out.join("large");
    let mut make = Command::new(release.join("examples/synthetic"));
    cargo(make.arg(&folder).args(["12", "5", "500", "20"]))?;
    let begun = Instant::now();
    let mut command = Command::new(release.join("fedcote"));
    cargo(command.arg("report").arg(&folder).stdout(Stdio::null()))?;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = fs::metadata(folder.join("report.html")).map_err(text)?.len();
    println!(
        "report of 12 schemes × 5 seeds × 500 rounds: {:.2} MB in {seconds:.2} s",
        bytes as f64 / 1e6
    );
    Ok(())
}
