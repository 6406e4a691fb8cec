//! Pictures for the documentation: `cargo xtask screenshots`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::chromium::Browser;
use crate::server::Server;

/// A run of the quickstart scenario with so many rounds.
pub fn short_run(out: &Path, rounds: &str) {
    let status = Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(["run", "quickstart", "--seeds", "1", "--json", "--set", "evaluate_every=5", "--out"])
        .arg(out)
        .args(["--set", &format!("rounds={rounds}")])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "makes pictures: cargo xtask screenshots"]
fn screenshots() {
    let Some(out) = std::env::var_os("FEDCOTE_SCREENSHOTS").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&out).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("quickstart");
    short_run(&run, "300");
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    let report = format!("file://{}/report.html", run.display());
    let address = |path: &str| format!("{}/{path}", server.address);
    for (name, address, ready) in [
        (
            "runs",
            address(""),
            "document.querySelectorAll('#runs tbody tr').length === 1 && document.querySelector('#preset option')",
        ),
        (
            "page",
            address("runs/quickstart"),
            "document.querySelectorAll('#labels svg').length === 5 && document.querySelector('#map [data-fate=failed]')",
        ),
        ("playground", address("playground"), "document.querySelector('#mix svg')"),
        ("report", report, "document.querySelector('svg.fig')"),
    ] {
        for scheme in ["light", "dark"] {
            for (width, height) in [(1280, 960), (390, 844)] {
                browser.prefer(scheme);
                browser.size(width, height);
                browser.open(&address);
                browser.wait(ready);
                browser.eval(
                    "document.fonts.ready.then(() => new Promise((done) => setTimeout(done, 400)))",
                );
                let suffix = if width == 390 { "-phone" } else { "" };
                let file = out.join(format!("{name}-{scheme}{suffix}.png"));
                std::fs::write(&file, decode(&browser.picture())).unwrap();
                println!("{}", file.display());
            }
        }
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// Undoes base64.
fn decode(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut kept, mut bits) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = digits.iter().position(|digit| *digit == byte).expect("base64") as u32;
        kept = (kept << 6 | value) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((kept >> bits) as u8);
        }
    }
    bytes
}
