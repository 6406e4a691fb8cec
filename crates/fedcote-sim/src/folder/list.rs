//! The runs of a comparison's folder, and how far they are.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use serde::Serialize;

use super::{Finished, Lock, ScenarioFile, last_round, metrics, open_plain};
use crate::Error;
use crate::comparison::RunId;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It has not begun.
    Waiting,
    /// A command is working on it.
    Running,
    /// It was begun, has not ended, and can be resumed.
    Interrupted,
    /// It has ended with its last round.
    Finished,
    /// It has ended because the numbers blew up.
    Diverged,
    /// Its `finished.json` cannot be read.
    Damaged,
}

impl State {
    /// Whether the run has ended and its result is there.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Diverged)
    }
}

/// A run and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub run: RunId,
    /// Its state.
    pub state: State,
    /// Rounds played.
    pub round: u32,
}

/// All runs of a comparison: those of its `scenario.toml` in the order in which they begin, then others that the
/// folder has.
pub fn list(out: &Path) -> Result<Vec<Standing>, Error> {
    let general = ScenarioFile::read(out)?.and_then(|file| file.general);
    let mut runs = general.map_or_else(Vec::new, |general| general.runs());
    let others: Vec<RunId> = found(out)?.into_iter().filter(|run| !runs.contains(run)).collect();
    runs.extend(others);
    Ok(runs.into_iter().map(|run| standing(out, run, &open_plain)).collect())
}

/// The runs that a folder has, begun or finished, by scheme and seed.
pub fn found(out: &Path) -> Result<Vec<RunId>, Error> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(out).map_err(Error::io(out))? {
        let folder = entry.map_err(Error::io(out))?.path();
        let scheme = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Whatever else is there has no files of a run.
        let Ok(seeds) = fs::read_dir(&folder) else { continue };
        for seed in seeds.flatten().filter(|_| !scheme.starts_with('.')) {
            let name = seed.file_name().to_string_lossy().into_owned();
            let of_run = ["config.toml", metrics::FILE].map(|file| seed.path().join(file));
            if let Ok(seed) = name.parse()
                && of_run.iter().any(|file| file.is_file())
            {
                runs.push(RunId { scheme: scheme.clone(), seed });
            }
        }
    }
    runs.sort_by(|one, two| (&one.scheme, one.seed).cmp(&(&two.scheme, two.seed)));
    Ok(runs)
}

/// How far a run is. Files are opened by `open`, which may refuse some.
pub fn standing(out: &Path, run: RunId, open: &dyn Fn(&Path) -> io::Result<File>) -> Standing {
    let folder = run.folder(out);
    let (state, round) = match finished(&folder, open) {
        Ok(Some(Finished { diverged_at: Some(_), rounds, .. })) => (State::Diverged, rounds),
        Ok(Some(Finished { rounds, .. })) => (State::Finished, rounds),
        Err(()) => (State::Damaged, 0),
        Ok(None) => {
            let metrics = open(&folder.join(metrics::FILE));
            let round = metrics.and_then(|file| last_round(&file)).unwrap_or(0);
            let begun = round > 0 || folder.join("checkpoint").is_dir();
            let own = open(&folder.join(Lock::FILE)).is_ok_and(|file| Lock::is_held(&file));
            let state = match begun {
                _ if own => State::Running,
                true => State::Interrupted,
                false => State::Waiting,
            };
            (state, round)
        }
    };
    Standing { run, state, round }
}

/// No `finished.json` is longer.
const MOST_FINISHED: u64 = 1 << 20;

fn finished(
    folder: &Path,
    open: &dyn Fn(&Path) -> io::Result<File>,
) -> Result<Option<Finished>, ()> {
    let file = match open(&folder.join(Finished::FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(()),
    };
    let mut bytes = Vec::new();
    file.take(MOST_FINISHED).read_to_end(&mut bytes).map_err(|_| ())?;
    Finished::parse(&bytes).map(Some).map_err(|_| ())
}
