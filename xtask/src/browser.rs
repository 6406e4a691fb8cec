//! The pages in a real browser: tests and screenshots.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run;

/// The tests of the pages.
pub fn test() -> Result<(), String> {
    test_with(&chromium()?)
}

/// The tests of the pages; without Chromium a line that says that they were skipped. Continuous integration, where
/// nobody reads that line, fails instead.
pub fn test_or_skip() -> Result<(), String> {
    match chromium() {
        Ok(chromium) => test_with(&chromium),
        Err(reason) if crate::strict() => Err(reason),
        Err(reason) => {
            println!("browser tests SKIPPED: {reason}");
            Ok(())
        }
    }
}

fn test_with(chromium: &Path) -> Result<(), String> {
    cargo(chromium, &["--skip", "screenshots", "--skip", "bench", "--test-threads", "2"], None)
}

/// Pictures of the pages and the report, in light and dark, wide and narrow.
pub fn screenshots(out: &str) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let words = ["--exact", "screenshots::screenshots", "--nocapture"];
    cargo(&chromium()?, &words, Some(here.join(out)))
}

/// How soon the page of a large run is there, and how long a move of its slider takes; the run is `large` in this folder.
pub fn bench(program: &Path, runs: &Path) -> Result<(), String> {
    let chromium = match chromium() {
        Ok(chromium) => chromium,
        Err(reason) => {
            println!("page in a browser SKIPPED: {reason}");
            return Ok(());
        }
    };
    let mut command = crate::cargo();
    command.args(["test", "--quiet", "--workspace", "--test", "browser", "--", "--ignored"]);
    command.args(["--exact", "look::bench_of_a_large_run", "--nocapture"]);
    command.env("FEDCOTE_CHROMIUM", chromium);
    command.env("FEDCOTE_PROGRAM", program).env("FEDCOTE_BENCH_RUNS", runs);
    run(&mut command)
}

fn cargo(chromium: &Path, words: &[&str], out: Option<PathBuf>) -> Result<(), String> {
    let mut command = crate::cargo();
    command.args(["test", "--quiet", "--workspace", "--test", "browser", "--", "--ignored"]);
    command.args(words).env("FEDCOTE_CHROMIUM", chromium);
    if let Some(out) = out {
        command.env("FEDCOTE_SCREENSHOTS", out);
    }
    run(&mut command)
}

/// A Chromium: `FEDCOTE_CHROMIUM`, one that is installed, or one that can be.
fn chromium() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("FEDCOTE_CHROMIUM") {
        return Ok(named.into());
    }
    if let Some(found) = installed() {
        return Ok(found);
    }
    let wanted = "Chromium is not installed; install it (Debian and Ubuntu: apt-get install chromium), or name one in \
                  FEDCOTE_CHROMIUM";
    println!(
        "Installs the system package `chromium` with apt-get: the tests of the pages need a browser"
    );
    let mut update = Command::new("apt-get");
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "chromium"]);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run(update.arg("update"))
        .and_then(|()| run(&mut install))
        .map_err(|reason| format!("{wanted} ({reason})"))?;
    installed().ok_or_else(|| wanted.to_owned())
}

fn installed() -> Option<PathBuf> {
    let works = |name: &&str| {
        let mut command = Command::new(name);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works).map(PathBuf::from)
}
