//! `metrics.jsonl`: a line per round, and a last one when the numbers blew up.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::seals::Sum;
use super::{checksum, optional, short};
use crate::Error;
use crate::report::RoundReport;

/// The file's name in the folder of a run.
pub(super) const FILE: &str = "metrics.jsonl";

/// The last line of a run that diverged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diverged {
    /// The round in which the numbers blew up.
    pub diverged_at: u32,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// A round.
    Round(Box<RoundReport>),
    /// The end of a run that diverged.
    Diverged(Diverged),
}

impl Line {
    /// Understands a line that comes after this round (0 for the first line), or says what is wrong with it.
    pub fn parse(text: &[u8], after: u32) -> Result<Self, String> {
        let report: RoundReport = match serde_json::from_slice(text) {
            Ok(report) => report,
            Err(error) => {
                let named = text.windows(13).any(|word| word == b"\"diverged_at\"");
                return match serde_json::from_slice(text) {
                    Ok(end) => Ok(Self::Diverged(end)),
                    Err(other) => Err(short(if named { &other } else { &error })),
                };
            }
        };
        if report.round <= after {
            return Err(match after {
                0 => "round 0; rounds count from 1".to_owned(),
                _ => format!("round {} after round {after}", report.round),
            });
        }
        let wrong = |share: &f64| !(0.0..=1.0).contains(share);
        if let Some(accuracy) = report.test_accuracy.filter(wrong) {
            return Err(format!("test_accuracy {accuracy} is not between 0 and 1"));
        }
        Ok(Self::Round(Box::new(report)))
    }
}

/// All that `metrics.jsonl` says of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rounds {
    /// What happened, round by round, ascending.
    pub reports: Vec<RoundReport>,
    /// The round in which the numbers blew up.
    pub diverged_at: Option<u32>,
}

impl Rounds {
    /// Reads the file in the folder of a run; nothing if it is not there. A last line without an end is one that is
    /// being written, or was when the run was killed: it is left out. Anything else that is wrong is an error that
    /// names file and line.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(FILE);
        optional(&path)?.map(|bytes| Self::parse(&path, &bytes)).transpose()
    }

    /// Understands the file's contents; `path` is for errors.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let damaged =
            |line, reason| Error::Damaged { path: path.to_owned(), line: Some(line), reason };
        // A letter at the end may be cut in two.
        if let Err(error) = str::from_utf8(bytes)
            && error.error_len().is_some()
        {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            return Err(damaged(line, "not UTF-8 text".to_owned()));
        }
        let mut rounds = Self::default();
        for (at, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            match Line::parse(text, rounds.last()) {
                Ok(Line::Round(report)) => rounds.reports.push(*report),
                Ok(Line::Diverged(end)) => rounds.diverged_at = Some(end.diverged_at),
                // Half an object is never a whole one.
                Err(_) if !line.ends_with(b"\n") && !text.ends_with(b"}") => {}
                Err(reason) => return Err(damaged(at + 1, reason)),
            }
        }
        Ok(rounds)
    }

    /// The last round; 0 when there is none.
    pub fn last(&self) -> u32 {
        self.reports.last().map_or(0, |report| report.round)
    }
}

/// `metrics.jsonl`, open at its end.
///
/// A writer begins a file of its own and puts it in the place of the one that is there. So no two writers ever mix
/// their lines, not even on a file system where locks do not hold them apart.
pub struct MetricsWriter {
    path: PathBuf,
    file: File,
    sum: Sum,
}

impl MetricsWriter {
    /// Begins with these lines.
    pub(super) fn begin(folder: &Path, lines: &[u8]) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let file = fedcote_support::create(&path, lines)?;
        let mut sum = Sum::new();
        sum.add(lines);
        Ok(Self { path, file, sum })
    }

    /// Adds a line: a [`RoundReport`] or [`Diverged`].
    pub fn add(&mut self, line: &impl Serialize) -> Result<(), Error> {
        self.add_text(serde_json::to_string(line).expect("plain data"))
    }

    /// Adds a line as it is.
    pub fn add_text(&mut self, mut line: String) -> Result<(), Error> {
        line.push('\n');
        self.sum.add(line.as_bytes());
        // In one piece, line by line: the live page and the user read along.
        self.file.write_all(line.as_bytes()).map_err(Error::io(&self.path))
    }

    /// The checksum of all lines, as they were written.
    pub fn checksum(&self) -> String {
        self.sum.text()
    }

    /// Makes sure that all lines are on the disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io(&self.path))
    }

    /// Makes sure that all lines are on the disk and in their place, where another writer may have put its own.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.sync()?;
        let there = optional(&self.path)?;
        if there.is_some_and(|bytes| checksum(&bytes) == self.checksum()) {
            return Ok(());
        }
        let mut own = Vec::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_end(&mut own));
        read.map_err(Error::io(&self.path))?;
        Ok(fedcote_support::write(&self.path, &own)?)
    }
}

/// The lines of rounds 1 to `round`; nothing if they are not all there, or their checksum is not the one given.
pub(super) fn lines_of_rounds(
    metrics: &Path,
    round: u32,
    sum: Option<&str>,
) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = optional(metrics)?.unwrap_or_default();
    let Some(kept) = kept(&bytes, round) else { return Ok(None) };
    bytes.truncate(kept);
    Ok(sum.is_none_or(|sum| sum == checksum(&bytes)).then_some(bytes))
}

/// How many bytes hold the lines of rounds 1 to `round`.
pub(crate) fn kept(bytes: &[u8], round: u32) -> Option<usize> {
    let mut kept = 0_usize;
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    for expected in 1..=round {
        let line = lines.next().filter(|line| line.ends_with(b"\n"))?;
        match Line::parse(line, expected - 1) {
            Ok(Line::Round(report)) if report.round == expected => kept += line.len(),
            _ => return None,
        }
    }
    Some(kept)
}
