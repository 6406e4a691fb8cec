//! The documentation is true: generated pages are up to date, every block of code runs, every key is explained.
//!
//! `cargo xtask docs` writes the generated pages anew; `docs/README.md` says how blocks are tested.

// Blocks of code are for a shell, and programs that stand in for others are marked as such.
#![cfg(unix)]

mod blocks;
mod claims;
mod commands;
mod fields;
mod links;
mod pages;
mod recipe;
mod reproduced;
mod scenario;
mod schema;

use std::path::{Path, PathBuf};

/// The project's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a folder")
}

/// Compares a generated page with the file, or writes it when asked to.
fn generated(page: &str, text: &str) {
    let path = root().join(page);
    if std::env::var_os("FEDCOTE_WRITE_DOCS").is_some() {
        std::fs::write(&path, text).expect("written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{page} is out of date: run `cargo xtask docs`");
}
