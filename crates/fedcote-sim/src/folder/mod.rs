//! Run folders: what a run leaves on disk, and how an interrupted one goes on.
//!
//! `OUT/<scheme>/<seed>/` holds `config.toml` (everything the run depends on), `metrics.jsonl` (a line a round),
//! `checkpoint/state.safetensors` while it runs, and `model.safetensors`, `clients.json` and `finished.json` in the
//! end. A file is replaced as a whole or not at all; `metrics.jsonl` grows, and is cut back to the checkpoint when a
//! run goes on. Checksums tell a damaged file from a sound one.

mod checkpoint;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;
use crate::engine::RoundReport;
use crate::saved::Saved;
use crate::scenario::Scenario;

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    config: String,
}

/// What a run came to: `finished.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Rounds played.
    pub rounds: u32,
    /// The round in which the numbers blew up, if they did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diverged_at: Option<u32>,
    /// Seconds that the run took, interruptions not counted.
    pub seconds: f64,
    /// The number of classes: a run that diverged can only guess.
    pub classes: usize,
    /// Bytes of server state that grew with the number of clients.
    pub server_memory: usize,
    /// Checksum of `metrics.jsonl`.
    pub metrics_checksum: String,
}

/// Where an interrupted run goes on.
pub struct Resumed {
    /// Rounds already played.
    pub round: u32,
    /// Seconds already spent.
    pub seconds: f64,
    /// The state after them.
    pub saved: Saved,
}

/// A line of `metrics.jsonl`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Round(Box<RoundReport>),
    Diverged {
        #[allow(dead_code)] // read from finished.json, here for readers of the file alone
        diverged_at: u32,
    },
}

impl RunFolder {
    /// The folder of a scheme and seed below `out`, made if it is not there. A folder of another
    /// scenario is refused.
    pub fn open(out: &Path, scenario: &Scenario, scheme: &str, seed: u64) -> Result<Self, Error> {
        let path = out.join(scheme).join(seed.to_string());
        let config = run_config(scenario, scheme, seed);
        let text = toml::to_string(&config).expect("plain values");
        let file = path.join("config.toml");
        match fs::read_to_string(&file) {
            Ok(found) => {
                if let Some(key) = difference(&found, &config) {
                    let reason = format!(
                        "belongs to another scenario: `{key}` differs; choose another --out, or \
                         remove this folder"
                    );
                    return Err(Error::folder(&path, reason));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(&path).map_err(Error::io(&path))?;
                fedcote_learn::checkpoint::write(&file, text.as_bytes())?;
            }
            Err(error) => return Err(Error::io(&file)(error)),
        }
        Ok(Self { path, config: text })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run came to and all its rounds, when it has ended and its files are sound.
    pub fn finished(&self) -> Result<Option<(Finished, Vec<RoundReport>)>, Error> {
        let file = self.path.join("finished.json");
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&file)(error)),
        };
        let damaged = |path: &Path, what: &str| {
            let reason = format!("{what}; remove {} to run it again", self.path.display());
            Error::folder(path, reason)
        };
        let finished: Finished =
            serde_json::from_str(&text).map_err(|_| damaged(&file, "is damaged"))?;
        let metrics = self.path.join("metrics.jsonl");
        let bytes = fs::read(&metrics).map_err(Error::io(&metrics))?;
        if checksum(&bytes) != finished.metrics_checksum {
            return Err(damaged(&metrics, "is damaged (its checksum does not match)"));
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged(&metrics, "is damaged"))?;
        let mut reports = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match serde_json::from_str(line) {
                Ok(Line::Round(report)) => reports.push(*report),
                Ok(Line::Diverged { .. }) => {}
                Err(_) => return Err(damaged(&metrics, &format!("line {} is damaged", at + 1))),
            }
        }
        Ok(Some((finished, reports)))
    }

    /// The state to go on from, if there is a sound checkpoint, with `metrics.jsonl` cut back to it. Without one
    /// the run begins anew.
    pub fn resume(&self) -> Result<Option<Resumed>, Error> {
        let metrics = self.path.join("metrics.jsonl");
        let resumed = checkpoint::load(&self.checkpoint_file())?;
        let kept = match &resumed {
            None => 0,
            Some(resumed) => match bytes_of_rounds(&metrics, resumed.round)? {
                Some(bytes) => bytes,
                // The rounds before the checkpoint are gone from the metrics: only a new run is whole.
                None => {
                    self.truncate(&metrics, 0)?;
                    return Ok(None);
                }
            },
        };
        self.truncate(&metrics, kept)?;
        Ok(resumed)
    }

    fn truncate(&self, metrics: &Path, bytes: u64) -> Result<(), Error> {
        let file = File::options().create(true).write(true).truncate(false).open(metrics);
        let file = file.map_err(Error::io(metrics))?;
        file.set_len(bytes).and_then(|()| file.sync_all()).map_err(Error::io(metrics))
    }

    /// Opens `metrics.jsonl` to add to it.
    pub fn metrics(&self) -> Result<Metrics, Error> {
        let path = self.path.join("metrics.jsonl");
        let file =
            File::options().append(true).create(true).open(&path).map_err(Error::io(&path))?;
        Ok(Metrics { path, file: BufWriter::new(file) })
    }

    /// Saves a checkpoint after a round. The metrics must have been flushed to the disk before.
    pub fn checkpoint(&self, round: u32, seconds: f64, saved: &Saved) -> Result<(), Error> {
        let file = self.checkpoint_file();
        let folder = file.parent().expect("it is in a folder");
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::save(&file, round, seconds, saved)
    }

    /// Marks the run as finished, then removes the checkpoint.
    pub fn finish(&self, mut finished: Finished) -> Result<(), Error> {
        let metrics = self.path.join("metrics.jsonl");
        finished.metrics_checksum = checksum(&fs::read(&metrics).map_err(Error::io(&metrics))?);
        self.write_json("finished.json", &finished)?;
        let checkpoint = self.path.join("checkpoint");
        match fs::remove_dir_all(&checkpoint) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(&checkpoint)(error))
            }
            _ => Ok(()),
        }
    }

    /// Writes a JSON file of that name as a whole.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec(value).expect("plain data");
        Ok(fedcote_learn::checkpoint::write(&self.path.join(name), &text)?)
    }

    /// The resolved scenario of this run.
    pub fn config(&self) -> &str {
        &self.config
    }

    fn checkpoint_file(&self) -> PathBuf {
        self.path.join("checkpoint").join("state.safetensors")
    }
}

/// `metrics.jsonl`, open at its end.
pub struct Metrics {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Metrics {
    /// Adds a line.
    pub fn add(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).expect("plain data");
        text.push(b'\n');
        // Flushed line by line: the live page and the user read along.
        self.file.write_all(&text).and_then(|()| self.file.flush()).map_err(Error::io(&self.path))
    }

    /// Makes sure that all lines are on the disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_data())
            .map_err(Error::io(&self.path))
    }
}

/// Keeps other commands away from a folder until dropped.
pub struct Lock(#[allow(dead_code)] File); // held, never read

impl Lock {
    /// Takes the lock, or says who has it.
    pub fn take(out: &Path) -> Result<Self, Error> {
        fs::create_dir_all(out).map_err(Error::io(out))?;
        let path = out.join(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(Error::io(&path))?;
        let mut locked = file.try_lock();
        for _ in 0..LOOKS {
            if !matches!(locked, Err(fs::TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => {
                let reason = "another command is working in this folder; wait for it, or choose another --out";
                Err(Error::folder(out, reason))
            }
            Err(fs::TryLockError::Error(error)) => Err(Error::io(&path)(error)),
        }
    }

    /// Whether a command is working in the folder. To know, the lock is held for an instant.
    pub fn is_taken(out: &Path) -> bool {
        let Ok(file) = File::open(out.join(".lock")) else { return false };
        matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
    }
}

/// Tries to take a lock before it is given up: whoever only looks ([`Lock::is_taken`]) is gone by then.
const LOOKS: u32 = 5;

/// What one run depends on: the scenario cut down to its scheme and seed.
fn run_config(scenario: &Scenario, scheme: &str, seed: u64) -> Table {
    let mut scenario = scenario.clone();
    scenario.general.schemes = vec![scheme.to_owned()];
    scenario.general.seeds = vec![seed];
    scenario.schemes.retain(scheme);
    let mut config = scenario.to_table();
    config.insert("version".into(), Value::String(env!("CARGO_PKG_VERSION").to_owned()));
    config
}

/// Keys that may differ between the runs of a folder: they change no number.
const INDIFFERENT: [&str; 1] = ["checkpoint_every"];

/// The first key in which a configuration on disk differs from the one wanted.
fn difference(found: &str, wanted: &Table) -> Option<String> {
    let Ok(found) = found.parse::<Table>() else { return Some("config.toml".to_owned()) };
    fn differing(path: &str, found: &Table, wanted: &Table) -> Option<String> {
        let keys = wanted.keys().chain(found.keys().filter(|key| !wanted.contains_key(*key)));
        for key in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match (found.get(key), wanted.get(key)) {
                (Some(Value::Table(found)), Some(Value::Table(wanted))) => {
                    if let Some(key) = differing(&path, found, wanted) {
                        return Some(key);
                    }
                }
                (found, wanted) if found == wanted || INDIFFERENT.contains(&path.as_str()) => {}
                _ => return Some(path),
            }
        }
        None
    }
    differing("", &found, wanted)
}

/// How many bytes of the metrics hold rounds 1 to `round`; nothing if they are not all there.
fn bytes_of_rounds(metrics: &Path, round: u32) -> Result<Option<u64>, Error> {
    let bytes = match fs::read(metrics) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Error::io(metrics)(error)),
    };
    let mut kept = 0;
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    for expected in 1..=round {
        let line = lines.next().filter(|line| line.ends_with(b"\n"));
        let report = line.and_then(|line| serde_json::from_slice::<RoundReport>(line).ok());
        match report {
            Some(report) if report.round == expected => {
                kept += line.expect("it was read").len() as u64
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(kept))
}

/// A checksum that tells a flipped bit or a lost byte: FNV-1a over 64 bits.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        sum = (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests;
