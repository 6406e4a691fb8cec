//! The pages in a real browser: tests and screenshots.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::run;

/// The tests of the pages.
pub fn test() -> Result<(), String> {
    cargo(&["--skip", "screenshots", "--test-threads", "2"], None)
}

/// Pictures of the pages and the report, in light and dark, wide and narrow.
pub fn screenshots(out: &str) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    cargo(&["--exact", "screenshots::screenshots", "--nocapture"], Some(here.join(out)))
}

fn cargo(words: &[&str], out: Option<PathBuf>) -> Result<(), String> {
    let chromium = chromium()?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["test", "--quiet", "-p", "fedcote-cli", "--test", "browser", "--", "--ignored"]);
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
    let wanted = "the browser tests need Chromium: install it (Debian and Ubuntu: apt-get install chromium), or name \
                  one in FEDCOTE_CHROMIUM";
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
