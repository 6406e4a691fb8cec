//! Checksums of a run's files, by name: what tells a damaged file from a sound one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Checksums by file name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seals(BTreeMap<String, String>);

impl Seals {
    /// Whether nothing is sealed: so it is in folders of early versions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers the checksum of a file.
    pub fn set(&mut self, name: &str, sum: String) {
        self.0.insert(name.to_owned(), sum);
    }

    /// Remembers a file of a folder as it is on the disk.
    pub fn seal(&mut self, folder: &Path, name: &str) -> Result<(), std::io::Error> {
        self.set(name, file_checksum(&folder.join(name))?);
        Ok(())
    }

    /// The checksum of a file.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The checksum of a file, forgotten here.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// The first file of a folder that is missing or not as it was sealed.
    pub fn broken(&self, folder: &Path) -> Option<&str> {
        let sound = |name: &str, sum: &str| {
            file_checksum(&folder.join(name)).is_ok_and(|found| found == sum)
        };
        self.0.iter().find(|(name, sum)| !sound(name, sum)).map(|(name, _)| name.as_str())
    }
}

/// A checksum that grows with a file: FNV-1a over 64 bits, which tells a flipped bit or a lost byte.
#[derive(Debug, Clone, Copy)]
pub struct Sum(u64);

impl Sum {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// And these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// As text.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The checksum of a file, which need not fit into memory.
fn file_checksum(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut sum = Sum::new();
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok(sum.text());
        }
        sum.add(piece);
        let length = piece.len();
        file.consume(length);
    }
}

/// The checksum of all bytes at once.
pub fn checksum(bytes: &[u8]) -> String {
    let mut sum = Sum::new();
    sum.add(bytes);
    sum.text()
}

/// Where the checksum stands in a JSON text, and what stands there while it is worked out.
const MARK: &str = "\"checksum\": \"";
const BLANK: &str = "0000000000000000";

/// A JSON object, written over several lines, with a last field `checksum`, that of the text with zeros in its place.
pub fn sealed(object: &str) -> String {
    let open = object.trim_end().strip_suffix('}').unwrap_or(object).trim_end();
    let text = |sum: &str| format!("{open},\n  {MARK}{sum}\"\n}}");
    text(&checksum(text(BLANK).as_bytes()))
}

/// Whether a text is as [`sealed`] wrote it, however its numbers are understood; early versions did not seal.
pub fn is_intact(text: &str) -> bool {
    let Some(at) = text.rfind(MARK).map(|at| at + MARK.len()) else { return true };
    let Some(sum) = text.get(at..at + BLANK.len()) else { return false };
    checksum(format!("{}{BLANK}{}", &text[..at], &text[at + BLANK.len()..]).as_bytes()) == sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_object_tells_every_change() {
        let text = sealed("{\n  \"a\": 0.25\n}");
        assert!(is_intact(&text) && is_intact("{\n  \"a\": 0.25\n}"));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&value["a"], value["checksum"].as_str().unwrap().len()), (&0.25.into(), 16));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let other = String::from_utf8(bytes).unwrap();
            // What no longer has the field is no summary of this version; JSON or the field's name is broken then.
            let gone = !other.contains(MARK);
            assert!(gone || !is_intact(&other), "{at}: {other}");
        }
    }
}
