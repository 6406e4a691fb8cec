//! Run folders: what a run leaves on disk, and how an interrupted one goes on.
//!
//! `OUT/<scheme>/<seed>/` holds `config.toml` (everything the run depends on), `metrics.jsonl` (a line a round),
//! `checkpoint/state.safetensors` while it runs, and `model.safetensors`, `clients.json` and `finished.json` in the
//! end. A file is replaced as a whole or not at all; `metrics.jsonl` grows, and is cut back to the checkpoint when a
//! run goes on. Checksums tell a damaged file from a sound one.

pub(crate) mod checkpoint;
mod lock;
mod seals;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;
use crate::report::RoundReport;
use crate::saved::Saved;
use crate::scenario::Scenario;

pub use lock::Lock;
pub use seals::Seals;
use seals::Sum;
pub(crate) use seals::checksum;

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// What a run came to: `finished.json`.
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
    /// The number of classes: a run that diverged can only guess.
    pub classes: usize,
    /// Bytes of server state that grew with the number of clients.
    pub server_memory: usize,
    /// Checksum of `metrics.jsonl`.
    pub metrics_checksum: String,
    /// Checksums of the run's other files, and of this one without it.
    #[serde(skip_serializing_if = "Seals::is_empty", default)]
    pub checksums: Seals,
}

/// Where an interrupted run goes on.
pub struct Resumed {
    /// Rounds already played.
    pub round: u32,
    /// Seconds already spent.
    pub seconds: f64,
    /// The state after them.
    pub saved: Saved,
    /// Checksums of the files written so far.
    pub seals: Seals,
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
    ///
    /// # Errors
    ///
    /// When it is another's, damaged, or cannot be made.
    pub fn open(out: &Path, scenario: &Scenario, scheme: &str, seed: u64) -> Result<Self, Error> {
        Self::open_for(out, scenario, None, scheme, seed)
    }

    /// The same for a task of this identity; a folder of another task is refused.
    ///
    /// # Errors
    ///
    /// As for [`RunFolder::open`].
    pub fn open_for(
        out: &Path,
        scenario: &Scenario,
        task: Option<&str>,
        scheme: &str,
        seed: u64,
    ) -> Result<Self, Error> {
        let path = out.join(scheme).join(seed.to_string());
        let mut config = run_config(scenario, scheme, seed)?;
        if let Some(task) = task {
            config.insert("task".into(), Value::String(task.to_owned()));
        }
        let file = path.join("config.toml");
        match fs::read(&file) {
            Ok(found) => {
                let found = str::from_utf8(&found).ok().and_then(|found| found.parse().ok());
                let Some(found) = found else { return Err(damaged(&path, &file, "is damaged")) };
                if let Some(key) = difference(&found, &config) {
                    let reason = format!(
                        "belongs to another scenario: `{key}` differs; choose another --out, or \
                         remove this folder"
                    );
                    return Err(Error::folder(&path, reason));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Results that do not say what they are of belong to nobody.
                let begun = ["metrics.jsonl", "finished.json", "checkpoint"];
                if begun.iter().any(|name| path.join(name).exists()) {
                    return Err(damaged(&path, &file, "is missing"));
                }
                fs::create_dir_all(&path).map_err(Error::io(&path))?;
                let text = toml::to_string(&config).expect("plain values");
                fedcote_support::write(&file, text.as_bytes())?;
            }
            Err(error) => return Err(Error::io(&file)(error)),
        }
        Ok(Self { path })
    }

    /// The folder of a scheme and seed below `out` as it is, whatever scenario it belongs to.
    pub(crate) fn at(out: &Path, scheme: &str, seed: u64) -> Self {
        Self { path: out.join(scheme).join(seed.to_string()) }
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run came to and all its rounds, when it has ended and its files are sound.
    pub fn finished(&self) -> Result<Option<(Finished, Vec<RoundReport>)>, Error> {
        let file = self.path.join("finished.json");
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&file)(error)),
        };
        let damaged = |path: &Path, what: &str| damaged(&self.path, path, what);
        let finished: Finished =
            serde_json::from_slice(&text).map_err(|_| damaged(&file, "is damaged"))?;
        let mut others = finished.clone();
        if let Some(sum) = others.checksums.take("finished.json")
            && sum != checksum(&serde_json::to_vec(&others).expect("plain data"))
        {
            return Err(damaged(&file, "is damaged (its checksum does not match)"));
        }
        if let Some(name) = others.checksums.broken(&self.path) {
            return Err(damaged(&self.path.join(name), "is missing or damaged"));
        }
        let metrics = self.path.join("metrics.jsonl");
        let bytes = match fs::read(&metrics) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged(&metrics, "is missing"));
            }
            other => other.map_err(Error::io(&metrics))?,
        };
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
        if let Some(mut resumed) = resumed {
            let sum = resumed.seals.take("metrics.jsonl");
            let kept = bytes_of_rounds(&metrics, resumed.round, sum.as_deref())?;
            if let (Some(kept), None) = (kept, resumed.seals.broken(&self.path)) {
                self.truncate(&metrics, kept)?;
                return Ok(Some(resumed));
            }
        }
        // What belongs to the checkpoint is gone or damaged: only a new run is whole.
        self.truncate(&metrics, 0)?;
        Ok(None)
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
        let mut sum = Sum::new();
        sum.add(&fs::read(&path).map_err(Error::io(&path))?);
        Ok(Metrics { path, file: BufWriter::new(file), sum })
    }

    /// Saves a checkpoint after a round. The metrics must have been flushed to the disk before; `seals` are the files
    /// that it depends on.
    pub fn checkpoint(
        &self,
        round: u32,
        seconds: f64,
        saved: &Saved,
        seals: &Seals,
    ) -> Result<(), Error> {
        let file = self.checkpoint_file();
        let folder = file.parent().expect("it is in a folder");
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::save(&file, round, seconds, saved, seals)
    }

    /// Marks the run as finished, then removes the checkpoint.
    pub fn finish(&self, mut finished: Finished) -> Result<(), Error> {
        let sum = checksum(&serde_json::to_vec(&finished).expect("plain data"));
        finished.checksums.set("finished.json", sum);
        self.write_json("finished.json", &finished)?;
        self.tidy()
    }

    /// Removes what no finished run needs: a checkpoint, and files half-written by a run that was killed.
    pub fn tidy(&self) -> Result<(), Error> {
        self.sweep()?;
        let checkpoint = self.path.join("checkpoint");
        match fs::remove_dir_all(&checkpoint) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(&checkpoint)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes files that a run left half-written when it was killed.
    pub fn sweep(&self) -> Result<(), Error> {
        for folder in [&self.path, &self.path.join("checkpoint")] {
            fedcote_support::sweep(folder).map_err(Error::io(folder))?;
        }
        Ok(())
    }

    /// Writes a JSON file of that name as a whole.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec(value).expect("plain data");
        Ok(fedcote_support::write(&self.path.join(name), &text)?)
    }

    fn checkpoint_file(&self) -> PathBuf {
        self.path.join("checkpoint").join("state.safetensors")
    }
}

/// `metrics.jsonl`, open at its end.
pub struct Metrics {
    path: PathBuf,
    file: BufWriter<File>,
    sum: Sum,
}

impl Metrics {
    /// Adds a line.
    pub fn add(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).expect("plain data");
        text.push(b'\n');
        self.sum.add(&text);
        // Flushed line by line: the live page and the user read along.
        self.file.write_all(&text).and_then(|()| self.file.flush()).map_err(Error::io(&self.path))
    }

    /// The checksum of all lines, as they were written.
    pub fn checksum(&self) -> String {
        self.sum.text()
    }

    /// Makes sure that all lines are on the disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_data())
            .map_err(Error::io(&self.path))
    }
}

/// What one run depends on: the scenario cut down to its scheme and seed, the scheme written out with all its
/// parameters, so that a run by another definition of a named scheme is told from this one.
fn run_config(scenario: &Scenario, scheme: &str, seed: u64) -> Result<Table, Error> {
    let mut scenario = scenario.clone();
    scenario.general.schemes = vec![scheme.to_owned()];
    scenario.general.seeds = vec![seed];
    scenario.schemes = scenario.schemes.resolved(scheme)?;
    let mut config = scenario.to_table();
    config.insert("version".into(), Value::String(env!("CARGO_PKG_VERSION").to_owned()));
    Ok(config)
}

/// Keys that may differ between the runs of a folder: they change no number.
const INDIFFERENT: [&str; 1] = ["checkpoint_every"];

/// Keys with a path, given from the scenario's folder or from the root.
const PATHS: [&str; 2] = ["data.path", "network.file"];

/// Whether two paths may be the same, one of them given from a folder that is not known.
fn same_place(one: &str, two: &str) -> bool {
    let plain = |path: &str| -> PathBuf {
        Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
    };
    let (one, two) = (plain(one), plain(two));
    (one.is_relative() && two.ends_with(&one)) || (two.is_relative() && one.ends_with(&two))
}

/// The first key in which a configuration on disk differs from the one wanted.
fn difference(found: &Table, wanted: &Table) -> Option<String> {
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
                (Some(Value::String(found)), Some(Value::String(wanted)))
                    if PATHS.contains(&path.as_str()) && same_place(found, wanted) => {}
                _ => return Some(path),
            }
        }
        None
    }
    differing("", found, wanted)
}

/// A run folder that only a new run can mend.
fn damaged(folder: &Path, file: &Path, what: &str) -> Error {
    Error::folder(file, format!("{what}; remove {} to run it again", folder.display()))
}

/// How many bytes of the metrics hold rounds 1 to `round`; nothing if they are not all there, or their checksum is not
/// the one given.
fn bytes_of_rounds(metrics: &Path, round: u32, sum: Option<&str>) -> Result<Option<u64>, Error> {
    let bytes = match fs::read(metrics) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Error::io(metrics)(error)),
    };
    let Some(kept) = kept(&bytes, round) else { return Ok(None) };
    let sound = sum.is_none_or(|sum| sum == checksum(&bytes[..kept]));
    Ok(sound.then_some(kept as u64))
}

/// How many bytes hold the lines of rounds 1 to `round`.
pub(crate) fn kept(bytes: &[u8], round: u32) -> Option<usize> {
    let mut kept = 0_usize;
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    for expected in 1..=round {
        let line = lines.next().filter(|line| line.ends_with(b"\n"));
        let report = line.and_then(|line| serde_json::from_slice::<RoundReport>(line).ok());
        match report {
            Some(report) if report.round == expected => kept += line.expect("it was read").len(),
            _ => return None,
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests;
