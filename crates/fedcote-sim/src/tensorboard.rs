//! Event files that TensorBoard reads, beside `metrics.jsonl`.
//!
//! A file is a sequence of records (length, its masked CRC-32C, data, its masked CRC-32C: TensorFlow's `record_writer.cc`), each
//! with one message `tensorflow.Event` (`event.proto`, `summary.proto`). A run that begins or is resumed has its file written
//! anew from the rounds of `metrics.jsonl`; rounds are appended; at the end it is written as a whole again. So it is complete
//! whatever was killed in between. The time of an event is its round, so that equal runs have equal files.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use crate::Error;
use crate::comparison::{Event, Listener, RunId};
use crate::folder::Rounds;
use crate::report::RoundReport;

/// The file's name in the folder of a run; TensorBoard looks for `tfevents` in names.
pub const FILE: &str = "events.out.tfevents.0.fedcote";

/// Writes event files, and passes all events on.
pub(crate) struct EventFiles<'a> {
    out: &'a Path,
    listener: &'a dyn Listener,
    open: Mutex<HashMap<RunId, File>>,
    failed: Mutex<Option<Error>>,
}

impl<'a> EventFiles<'a> {
    pub(crate) fn new(out: &'a Path, listener: &'a dyn Listener) -> Self {
        Self { out, listener, open: Mutex::default(), failed: Mutex::default() }
    }

    /// What could not be written, if anything.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.failed.into_inner().expect("no panic while held").map_or(Ok(()), Err)
    }

    /// Writes the file anew from the rounds that a run has.
    fn whole(&self, run: &RunId) -> Result<(), Error> {
        let folder = run.folder(self.out);
        let rounds = Rounds::read(&folder)?.unwrap_or_default();
        Ok(fedcote_support::write(&folder.join(FILE), &contents(&rounds.reports))?)
    }

    fn write(&self, run: &RunId, event: &Event) -> Result<(), Error> {
        let path = run.folder(self.out).join(FILE);
        let mut open = self.open.lock().expect("no panic while held");
        match event {
            Event::Started { .. } => {
                self.whole(run)?;
                let file = File::options().append(true).open(&path).map_err(Error::io(&path))?;
                open.insert(run.clone(), file);
            }
            Event::Round(report) => {
                if let Some(file) = open.get_mut(run) {
                    file.write_all(&record(&event_of(report))).map_err(Error::io(&path))?;
                }
            }
            Event::Finished(_) | Event::Skipped(_) => {
                open.remove(run);
                self.whole(run)?;
            }
            Event::Interrupted { .. } => drop(open.remove(run)),
            Event::Warned(_) => {}
        }
        Ok(())
    }
}

impl Listener for EventFiles<'_> {
    fn event(&self, run: &RunId, event: Event) {
        if let Err(error) = self.write(run, &event) {
            self.failed.lock().expect("no panic while held").get_or_insert(error);
        }
        self.listener.event(run, event);
    }
}

/// The file of these rounds.
pub fn contents(reports: &[RoundReport]) -> Vec<u8> {
    let mut first = Vec::new();
    double(&mut first, 1, 0.0);
    bytes(&mut first, 3, b"brain.Event:2");
    let mut file = record(&first);
    for report in reports {
        file.extend(record(&event_of(report)));
    }
    file
}

/// Every number of a round by name; of the clients that were drawn and that arrived, how many.
pub fn scalars(report: &RoundReport) -> Vec<(String, f64)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(report) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("round", _) => {}
            ("selected", _) => found.push((name, report.draws() as f64)),
            ("arrived", _) => found.push((name, report.arrivals() as f64)),
            ("scores", Value::Object(scores)) => {
                let numbers =
                    scores.iter().filter_map(|(name, score)| Some((name, score.as_f64()?)));
                found.extend(numbers.map(|(name, score)| (format!("scores/{name}"), score)));
            }
            (_, value) => found.extend(value.as_f64().map(|value| (name, value))),
        }
    }
    found
}

/// `Event { wall_time = 1, step = 2, summary = 5 { value = 1 { tag = 1, simple_value = 2 } } }`
fn event_of(report: &RoundReport) -> Vec<u8> {
    let mut summary = Vec::new();
    for (name, value) in scalars(report) {
        let mut scalar = Vec::new();
        bytes(&mut scalar, 1, name.as_bytes());
        scalar.push(2 << 3 | 5);
        scalar.extend((value as f32).to_le_bytes());
        bytes(&mut summary, 1, &scalar);
    }
    let mut event = Vec::new();
    double(&mut event, 1, report.round.into());
    event.push(2 << 3);
    varint(&mut event, report.round.into());
    bytes(&mut event, 5, &summary);
    event
}

fn double(out: &mut Vec<u8>, field: u8, value: f64) {
    out.push(field << 3 | 1);
    out.extend(value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

/// Seven bits a byte, the lowest first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(masked(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked(data).to_le_bytes());
    out
}

/// The checksum turned and shifted, so that it is none of the data that contain it.
fn masked(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Castagnoli's CRC, bit by bit: files are small.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, &byte| {
        let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        (0..8).fold(crc ^ u32::from(byte), shift)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32C (RFC 3720, B.4 has the zeros).
    #[test]
    fn checksums_are_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn numbers_of_a_round_have_names_and_what_is_absent_has_none() {
        let report = RoundReport {
            round: 300,
            selected: vec![(0, 2), (4, 1)],
            arrived: vec![(4, 1)],
            attempts: 1,
            test_accuracy: Some(0.5),
            scores: [("f1".to_owned(), 0.25), ("auc".to_owned(), f64::NAN)].into(),
            ..RoundReport::default()
        };
        let found = scalars(&report);
        let value = |name: &str| found.iter().find(|(other, _)| other == name).map(|(_, v)| *v);
        assert_eq!((value("selected"), value("arrived")), (Some(3.0), Some(1.0)));
        assert_eq!((value("test_accuracy"), value("scores/f1")), (Some(0.5), Some(0.25)));
        assert_eq!((value("train_loss"), value("scores/auc"), value("round")), (None, None, None));
    }

    /// By hand from the definition of the format; TensorBoard itself reads a whole file in the Python tests.
    #[test]
    fn a_record_is_as_by_hand() {
        let report = RoundReport { round: 300, attempts: 2, ..RoundReport::default() };
        let event = event_of(&report);
        assert_eq!(event[0], 0x09);
        assert_eq!(f64::from_le_bytes(event[1..9].try_into().unwrap()), 300.0);
        // 300 = 0b10_0101100: low seven bits first.
        assert_eq!(event[9..12], [0x10, 0xac, 0x02]);
        let attempts = b"\x0a\x08attempts\x15\x00\x00\x00\x40";
        assert!(event.windows(attempts.len()).any(|part| part == attempts), "{event:?}");
        let file = contents(&[report]);
        let first = &file[..8 + 4 + 24 + 4];
        assert_eq!(first[..8], 24u64.to_le_bytes());
        assert!(first[12..36].ends_with(b"\x1a\x0dbrain.Event:2"));
        assert_eq!(file.len(), first.len() + 16 + event.len());
    }
}
