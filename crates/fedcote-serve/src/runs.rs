//! The runs in the folder: what they are and how far.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use fedcote_sim::comparison::RunId;
use fedcote_sim::folder::{self, Lock, ScenarioFile, Standing, State};
use fedcote_sim::scenario::General;
use serde::Serialize;

use crate::children::Children;
use crate::root::Root;

/// No scenario is longer.
pub const MOST_SCENARIO: u64 = 1 << 20;
/// More runs than these are not listed.
const MOST_RUNS: usize = 1000;

/// The top of the scenario of a run folder; `None` when it cannot be understood.
pub fn general(root: &Root, run: &Path) -> Option<General> {
    let text = root.read(&run.join(ScenarioFile::FILE), MOST_SCENARIO)?;
    ScenarioFile::parse(&text).general
}

/// How far a run of a run folder is; links are not followed.
pub fn standing(root: &Root, out: &Path, run: RunId) -> Standing {
    folder::standing(out, run, &|path| root.open_file(path))
}

/// Whether a command is working in a run folder.
pub fn is_running(root: &Root, out: &Path) -> bool {
    let runs = general(root, out).map_or_else(Vec::new, |general| general.runs());
    let running = |run| standing(root, out, run).state == State::Running;
    Lock::is_taken(out) || runs.into_iter().any(running)
}

/// The state of a run folder.
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
    /// Of a run folder with runs in these states, of which `taken` says whether a command has its lock.
    pub fn of(name: &str, taken: bool, states: &[State], children: &Children) -> Self {
        let child = children.state(name);
        let own = child.as_ref().is_some_and(|child| child.running);
        let running = own || taken || states.contains(&State::Running);
        let finished = states.iter().all(|state| state.has_ended());
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
    let begun = |name: &String| changed(&root.path().join(name).join(ScenarioFile::FILE));
    names.sort_by_cached_key(|name| std::cmp::Reverse(begun(name)));
    names.truncate(MOST_RUNS);
    let mut listed: Vec<Listed> =
        names.iter().filter_map(|name| one(root, name, children)).collect();
    listed.sort_by(|a, b| (b.changed, &a.name).cmp(&(a.changed, &b.name)));
    listed
}

fn one(root: &Root, name: &str, children: &Children) -> Option<Listed> {
    let run = root.run(name)?;
    let general = general(root, &run)?;
    let taken = Lock::is_taken(&run);
    let mut changed = changed(&run.join(ScenarioFile::FILE));
    let (mut done, mut states) = (0, Vec::new());
    for id in general.runs() {
        changed = changed.max(self::changed(&id.folder(&run).join("metrics.jsonl")));
        let Standing { state, round, .. } = standing(root, &run, id);
        done += u64::from(if state.has_ended() { general.rounds } else { round });
        states.push(state);
    }
    let total = u64::from(general.rounds) * states.len() as u64;
    let status = Status::of(name, taken, &states, children);
    Some(Listed { name: name.to_owned(), status, general, done, total, changed })
}

fn changed(path: &Path) -> u64 {
    let time = fs::symlink_metadata(path).and_then(|data| data.modified()).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}
