//! Run folders: the one reader and the one writer of what a comparison leaves on disk.
//!
//! `OUT/` holds `scenario.toml` ([`ScenarioFile`]), and `summary.json` ([`Summary`]) when all runs have ended.
//! `OUT/<scheme>/<seed>/` ([`RunFolder`]) holds `config.toml` (everything the run depends on), `metrics.jsonl` (a line
//! per round: [`Rounds`], [`Tail`]), `checkpoint/state.safetensors` while it runs, `clients.json` ([`Clients`]) after
//! the first round, and `model.safetensors` and `finished.json` ([`Finished`]) in the end. A file is replaced as a
//! whole or not at all; `metrics.jsonl` grows, and is cut back to the checkpoint when a run is resumed. Checksums tell
//! a damaged file from a sound one.
//!
//! An [`Overview`] says which runs a folder has and how far they are, [`Recorded`] is all that was recorded of one of
//! them, and [`summarise`] sums up whatever is there.
//!
//! [`Summary`]: crate::summary::Summary

pub(crate) mod checkpoint;
mod clients;
mod config;
mod finished;
mod list;
mod lock;
mod metrics;
mod record;
mod run;
mod scenario_file;
mod seals;
mod tail;
mod writer;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Error;

pub use checkpoint::Checkpoint;
pub use clients::{Client, Clients};
pub use finished::Finished;
pub use list::{Standing, State, found, list, standing};
pub use lock::Lock;
#[cfg(test)]
pub(crate) use metrics::kept;
pub use metrics::{Diverged, Line, MetricsWriter, Rounds};
pub(crate) use record::summarise_ended;
pub use record::{Overview, Recorded, parse_summary, read_summary, summarise};
pub use run::RunFolder;
pub use scenario_file::ScenarioFile;
pub use seals::Seals;
pub(crate) use seals::{Sum, checksum, sealed};
pub use tail::{News, Tail, last_round};
pub(crate) use writer::RunWriter;

/// Opens a file. Anything else, a named pipe say, could make the reader wait for ever.
fn open_plain(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "is not a plain file; remove it"))
}

/// The bytes of a file that may be missing.
fn optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let read = |mut file: File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    match open_plain(path).and_then(read) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

/// Understands a JSON file; what is wrong is named by file and line.
fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Damaged {
        path: path.to_owned(),
        line: Some(error.line()),
        reason: short(&error),
    })
}

/// What serde_json says, without the place, which the error names itself.
fn short(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// A run folder that only a new run can repair.
fn damaged(folder: &Path, file: &Path, what: &str) -> Error {
    Error::folder(file, format!("{what}; remove {} to run it again", folder.display()))
}

#[cfg(test)]
mod tests;
