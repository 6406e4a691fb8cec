//! The runs in the folder: what they are and how far.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use fedcote_sim::comparison::RunId;
use fedcote_sim::folder::{self, Lock, ScenarioFile, Standing, State};
use fedcote_sim::scenario::General;
use fedcote_sim::summary::{Spread, Summary};
use serde::Serialize;
use toml::Table;

use crate::children::Children;
use crate::reply::Refusal;
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

/// Every setting of a run by its dotted name, in words.
pub fn settings(root: &Root, run: &Path) -> Result<BTreeMap<String, String>, Refusal> {
    fn flatten(prefix: &str, table: &Table, found: &mut BTreeMap<String, String>) {
        for (key, value) in table {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                toml::Value::Table(inner) => flatten(&name, inner, found),
                other => drop(found.insert(name, other.to_string())),
            }
        }
    }
    let text = root.read(&run.join(ScenarioFile::FILE), MOST_SCENARIO);
    let table = text.and_then(|text| text.parse::<Table>().ok());
    let table = table.ok_or_else(|| Refusal::missing("scenario.toml cannot be read"))?;
    let mut found = BTreeMap::new();
    flatten("", &table, &mut found);
    Ok(found)
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
    /// `running`, `finished`, `stopped`, `failed`, `damaged` or `deleted`.
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
        let damaged = states.iter().filter(|state| **state == State::Damaged).count();
        let state = match (running, finished, &message) {
            (true, ..) => "running",
            (_, true, _) => "finished",
            _ if damaged > 0 => "damaged",
            (_, _, Some(_)) => "failed",
            _ => "stopped",
        };
        let damage = || {
            let runs = if damaged == 1 { "run has" } else { "runs have" };
            format!(
                "{damaged} {runs} a damaged finished.json; `fedcote run --resume` begins them anew."
            )
        };
        let message = message.or_else(|| (state == "damaged").then(damage));
        Self { state, own, message }
    }

    /// Of a run folder that is not there any more.
    pub fn deleted() -> Self {
        let message = Some("The folder of this run is gone.".to_owned());
        Self { state: "deleted", own: false, message }
    }

    /// Of a run folder whose scenario cannot be understood.
    pub fn unreadable() -> Self {
        let reason = "scenario.toml cannot be read: it is damaged, or not a scenario.";
        Self { state: "damaged", own: false, message: Some(reason.to_owned()) }
    }
}

/// A run in the list.
#[derive(Debug, Serialize)]
pub struct Listed {
    name: String,
    #[serde(flatten)]
    status: Status,
    #[serde(flatten)]
    general: Option<General>,
    /// The scheme that ended with the highest accuracy, if the summary is there.
    best: Option<Best>,
    /// Seconds of computation, over all runs of a summary.
    seconds: Option<f64>,
    /// Seconds since 1970 at which it was begun.
    begun: u64,
    /// Rounds played, over all schemes and seeds.
    done: u64,
    total: u64,
    /// Seconds since 1970 of the last change.
    changed: u64,
}

/// What a comparison came to.
#[derive(Debug, Serialize)]
struct Best {
    name: String,
    mean: f64,
    std: f64,
}

/// No summary of a run that the page lists is longer.
const MOST_SUMMARY: u64 = 4 << 20;

/// The best scheme and the time, by `summary.json`.
fn outcome(root: &Root, run: &Path) -> (Option<Best>, Option<f64>) {
    let text = root.read(&run.join("summary.json"), MOST_SUMMARY);
    let Some(summary) = text.and_then(|text| serde_json::from_str::<Summary>(&text).ok()) else {
        return (None, None);
    };
    let competing = summary.schemes.iter().filter(|scheme| !scheme.reference);
    let accuracies = competing.filter_map(|scheme| Some((scheme, scheme.test_accuracy?)));
    let best = accuracies.max_by(|(_, one), (_, two)| one.mean.total_cmp(&two.mean));
    let seconds = summary
        .schemes
        .iter()
        .filter_map(|scheme| scheme.seconds.map(|seconds| seconds.mean * scheme.seeds as f64));
    let best =
        best.map(|(scheme, Spread { mean, std })| Best { name: scheme.name.clone(), mean, std });
    (best, Some(seconds.sum::<f64>()).filter(|sum| *sum > 0.0))
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
    let begun = changed(&run.join(ScenarioFile::FILE));
    let mut changed = begun;
    let Some(general) = general(root, &run) else {
        let (name, status) = (name.to_owned(), Status::unreadable());
        let (general, best, seconds) = (None, None, None);
        return Some(Listed {
            name,
            status,
            general,
            best,
            seconds,
            begun,
            done: 0,
            total: 0,
            changed,
        });
    };
    let taken = Lock::is_taken(&run);
    let (mut done, mut states) = (0, Vec::new());
    for id in general.runs() {
        changed = changed.max(self::changed(&id.folder(&run).join("metrics.jsonl")));
        let Standing { state, round, .. } = standing(root, &run, id);
        done += u64::from(if state.has_ended() { general.rounds } else { round });
        states.push(state);
    }
    let total = u64::from(general.rounds) * states.len() as u64;
    let status = Status::of(name, taken, &states, children);
    let (best, seconds) = outcome(root, &run);
    let (name, general) = (name.to_owned(), Some(general));
    Some(Listed { name, status, general, best, seconds, begun, done, total, changed })
}

pub(crate) fn changed(path: &Path) -> u64 {
    let time = fs::symlink_metadata(path).and_then(|data| data.modified()).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}
