//! `finished.json`: how a run ended.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Seals, checksum, damaged, metrics, optional};
use crate::Error;

/// How a run ended: `finished.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// Rounds played.
    pub rounds: u32,
    /// The round in which the numbers blew up, if they did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diverged_at: Option<u32>,
    /// Seconds that the run took, interruptions not counted.
    pub seconds: f64,
    /// The number of classes, of a task that has an accuracy: a run that diverged can only guess.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub classes: Option<usize>,
    /// Bytes of server state that grew with the number of clients.
    pub server_memory: usize,
    /// The instruction sets that its rounds were computed with: one, unless it was continued on another processor.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub instructions: BTreeSet<String>,
    /// Checksum of `metrics.jsonl`.
    pub metrics_checksum: String,
    /// Checksums of the run's other files, and of this one without it.
    #[serde(skip_serializing_if = "Seals::is_empty", default)]
    pub checksums: Seals,
}

impl Finished {
    /// The file's name in the folder of a run.
    pub const FILE: &str = "finished.json";

    /// Reads the file in the folder of a run, if it is there, and checks it against its own checksum.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(Self::FILE);
        let Some(bytes) = optional(&path)? else { return Ok(None) };
        Self::parse(&bytes).map(Some).map_err(|what| damaged(folder, &path, what))
    }

    /// Understands the file's contents and checks them against their own checksum.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let finished: Self = serde_json::from_slice(bytes).map_err(|_| "is damaged")?;
        let mut others = finished.clone();
        let sum = others.checksums.take(Self::FILE);
        if sum.is_some_and(|sum| sum != others.checksum()) {
            return Err("is damaged (its checksum does not match)");
        }
        Ok(finished)
    }

    /// Checks the contents of another file of the run against its checksum.
    pub(super) fn check(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let sum = match name {
            metrics::FILE => Some(self.metrics_checksum.as_str()),
            // Early versions did not write the others.
            _ => self.checksums.get(name),
        };
        if sum.is_some_and(|sum| sum != checksum(bytes)) {
            let what = "is damaged (its checksum does not match)";
            return Err(damaged(folder, &folder.join(name), what));
        }
        Ok(())
    }

    /// The file's contents, with their own checksum.
    pub(super) fn sealed(mut self) -> Self {
        let sum = self.checksum();
        self.checksums.set(Self::FILE, sum);
        self
    }

    fn checksum(&self) -> String {
        checksum(&serde_json::to_vec(self).expect("plain data"))
    }
}
