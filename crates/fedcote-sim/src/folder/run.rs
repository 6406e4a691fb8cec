//! The folder of one run: written as the run goes on, and where an interrupted run is resumed from.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::config::{difference, run_config};
use super::{Checkpoint, Finished, MetricsWriter, Rounds, checkpoint, damaged, metrics, optional};
use crate::Error;
use crate::report::RoundReport;
use crate::scenario::Scenario;

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
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
        let config = run_config(scenario, task, scheme, seed)?;
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
                let begun = [metrics::FILE, Finished::FILE, "checkpoint"];
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

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the run ended and all its rounds, when it has ended and all its files are sound.
    pub fn finished(&self) -> Result<Option<(Finished, Vec<RoundReport>)>, Error> {
        let Some(finished) = Finished::read(&self.path)? else { return Ok(None) };
        let mut others = finished.checksums.clone();
        others.take(Finished::FILE);
        if let Some(name) = others.broken(&self.path) {
            return Err(damaged(&self.path, &self.path.join(name), "is missing or damaged"));
        }
        let path = self.path.join(metrics::FILE);
        let Some(bytes) = optional(&path)? else {
            return Err(damaged(&self.path, &path, "is missing"));
        };
        finished.check(&self.path, metrics::FILE, &bytes)?;
        match Rounds::parse(&path, &bytes) {
            Ok(rounds) => Ok(Some((finished, rounds.reports))),
            Err(Error::Damaged { line: Some(line), reason, .. }) => {
                let what = format!("line {line} is damaged: {reason}");
                Err(damaged(&self.path, &path, &what))
            }
            Err(other) => Err(other),
        }
    }

    /// The metrics, open to add to them, and the state to go on from, if there is a sound checkpoint; the metrics are
    /// cut back to it. Without one the run begins again.
    pub fn resume(&self) -> Result<(MetricsWriter, Option<Checkpoint<'static>>), Error> {
        let metrics = self.path.join(metrics::FILE);
        if let Some(mut resumed) = checkpoint::load(&self.checkpoint_file())? {
            let sum = resumed.seals.take(metrics::FILE);
            let lines = metrics::lines_of_rounds(&metrics, resumed.round, sum.as_deref())?;
            if let (Some(lines), None) = (lines, resumed.seals.broken(&self.path)) {
                return Ok((MetricsWriter::begin(&self.path, &lines)?, Some(resumed)));
            }
        }
        // What belongs to the checkpoint is gone or damaged: only a new run is whole.
        Ok((MetricsWriter::begin(&self.path, &[])?, None))
    }

    /// Saves a checkpoint. The metrics must have been flushed to the disk before.
    pub fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let file = self.checkpoint_file();
        let folder = file.parent().expect("it is in a folder");
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        checkpoint::save(&file, checkpoint)
    }

    /// Marks the run as finished, then removes the checkpoint.
    pub fn finish(&self, finished: Finished) -> Result<(), Error> {
        self.write_json(Finished::FILE, &finished.sealed())?;
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
