//! The runs in the folder: what they are and how far.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use fedcote_sim::folder::Lock;
use serde::{Deserialize, Serialize};

use crate::children::Children;
use crate::root::Root;

/// No scenario is longer.
pub const MOST_SCENARIO: u64 = 1 << 20;
/// More runs than these are not listed.
const MOST_RUNS: usize = 1000;

/// The keys of `scenario.toml` that the page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct General {
    /// Rounds of training.
    pub rounds: u32,
    /// Clients.
    pub clients: usize,
    /// Draws a round.
    pub selected: u64,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The schemes.
    pub schemes: Vec<String>,
}

impl General {
    /// Of a run folder; `None` when its scenario cannot be understood.
    pub fn read(root: &Root, run: &Path) -> Option<Self> {
        toml::from_str(&root.read(&run.join("scenario.toml"), MOST_SCENARIO)?).ok()
    }

    /// The runs, as scheme and seed, in the order in which they begin.
    pub fn runs(&self) -> impl Iterator<Item = (&str, u64)> {
        let of_seed = |&seed| self.schemes.iter().map(move |scheme| (scheme.as_str(), seed));
        self.seeds.iter().flat_map(of_seed)
    }
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// `running`, `finished`, `stopped` or `failed`.
    pub state: &'static str,
    /// Whether it can be stopped from here.
    pub own: bool,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Status {
    /// Of a run folder of which all runs have finished or not.
    pub fn of(run: &Path, name: &str, finished: bool, children: &Children) -> Self {
        let child = children.state(name);
        let own = child.as_ref().is_some_and(|child| child.running);
        let running = own || Lock::is_taken(run);
        let message = child.and_then(|child| child.message).filter(|_| !running && !finished);
        let state = match (running, finished, &message) {
            (true, ..) => "running",
            (_, true, _) => "finished",
            (_, _, Some(_)) => "failed",
            _ => "stopped",
        };
        Self { state, own, message }
    }
}

/// A run in the list.
#[derive(Debug, Serialize)]
pub struct Listed {
    name: String,
    #[serde(flatten)]
    status: Status,
    #[serde(flatten)]
    general: General,
    /// Rounds played, over all schemes and seeds.
    done: u64,
    total: u64,
    /// Seconds since 1970 of the last change.
    changed: u64,
}

/// All runs, the latest first.
pub fn list(root: &Root, children: &Children) -> Vec<Listed> {
    let mut names = root.folders(root.path());
    let begun = |name: &String| changed(&root.path().join(name).join("scenario.toml"));
    names.sort_by_cached_key(|name| std::cmp::Reverse(begun(name)));
    names.truncate(MOST_RUNS);
    let mut listed: Vec<Listed> =
        names.iter().filter_map(|name| one(root, name, children)).collect();
    listed.sort_by(|a, b| (b.changed, &a.name).cmp(&(a.changed, &b.name)));
    listed
}

fn one(root: &Root, name: &str, children: &Children) -> Option<Listed> {
    let run = root.run(name)?;
    let general = General::read(root, &run)?;
    let (mut done, mut finished, mut changed) = (0, true, changed(&run.join("scenario.toml")));
    for (scheme, seed) in general.runs() {
        let folder = run.join(scheme).join(seed.to_string());
        let ended = folder.join("finished.json").exists();
        finished &= ended;
        let metrics = folder.join("metrics.jsonl");
        changed = changed.max(self::changed(&metrics));
        done += u64::from(if ended { general.rounds } else { last_round(root, &metrics) });
    }
    let runs = general.seeds.len() * general.schemes.len();
    let total = u64::from(general.rounds) * runs as u64;
    let status = Status::of(&run, name, finished, children);
    Some(Listed { name: name.to_owned(), status, general, done, total, changed })
}

fn changed(path: &Path) -> u64 {
    let time = fs::symlink_metadata(path).and_then(|data| data.modified()).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}

/// The number of the last round in a metrics file; 0 when there is none.
fn last_round(root: &Root, metrics: &Path) -> u32 {
    #[derive(Deserialize)]
    struct Line {
        round: u32,
    }
    let read = || {
        if !root.plain_file(metrics) {
            return None;
        }
        let file = File::open(metrics).ok()?;
        let length = file.metadata().ok()?.len();
        // As much of the end as holds a whole line, which is long when many clients are drawn.
        (16..=24).map(|power| 1 << power).find_map(|window| {
            let mut bytes = Vec::new();
            (&file).seek(SeekFrom::Start(length.saturating_sub(window))).ok()?;
            (&file).take(window).read_to_end(&mut bytes).ok()?;
            let end = bytes.iter().rposition(|&byte| byte == b'\n')?;
            let begin = bytes[..end].iter().rposition(|&byte| byte == b'\n');
            let begin = begin.map(|at| at + 1).or((window >= length).then_some(0))?;
            serde_json::from_slice::<Line>(&bytes[begin..end]).ok()
        })
    };
    read().map_or(0, |line| line.round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_round_is_found_behind_long_lines() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let path = root.path().join("metrics.jsonl");
        for (clients, last) in [(1, 1), (1, 3), (50_000, 1), (50_000, 3)] {
            let drawn = vec!["[0,1]"; clients].join(",");
            let line = |round| format!("{{\"round\":{round},\"selected\":[{drawn}]}}\n");
            let whole: String = (1..=last).map(line).collect();
            fs::write(&path, &whole).unwrap();
            assert_eq!(last_round(&root, &path), last, "{clients}");
            fs::write(&path, whole + "{\"round\":9,\"sel").unwrap();
            assert_eq!(last_round(&root, &path), last, "{clients}");
        }
        fs::write(&path, "").unwrap();
        assert_eq!(last_round(&root, &path), 0);
    }
}
