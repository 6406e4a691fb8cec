//! Helpers shared by the other crates: atomic file replacement, shell quoting, suggestions for typos, number formatting.
//!
//! ```
//! use fedcote_support::{quoted, readable, suggestion, write};
//!
//! assert_eq!(readable(1e300), "1e300");
//! assert_eq!(quoted("my runs"), "'my runs'");
//! assert_eq!(suggestion("rouds", &["rounds", "seeds"]), "; did you mean `rounds`?");
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("summary.json");
//! write(&path, b"{}")?; // The file appears whole or not at all.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

mod files;
mod words;

pub use files::{WriteError, create, remedy, sweep, write, write_with};
pub use words::{command, csv_field, quoted, readable, suggestion};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
