//! The runs in the folder: what they are and how far.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fedcote_sim::comparison::RunId;
use fedcote_sim::folder::{self, Clients, Lock, ScenarioFile, Standing, State};
use fedcote_sim::scenario::General;
use fedcote_sim::summary::Spread;
use hyper::StatusCode;
use serde::Serialize;
use toml::Table;

use crate::children::Children;
use crate::reply::Refusal;
use crate::root::Root;
use crate::sweeps;

/// No scenario is longer.
pub const MOST_SCENARIO: u64 = 1 << 20;
/// No comparison that the page shows has more runs.
pub const MOST_SCHEMES_AND_SEEDS: usize = 10_000;
/// No file that a report reads of a run is longer.
const MOST_READ: u64 = 512 << 20;
/// More runs than these are not listed.
const MOST_RUNS: usize = 1000;

/// The top of the scenario of a run folder; `None` when it cannot be understood, or has too many runs.
pub fn general(root: &Root, run: &Path) -> Option<General> {
    understood(root, run).filter(|general| !is_endless(general))
}

fn understood(root: &Root, run: &Path) -> Option<General> {
    let text = root.read(&run.join(ScenarioFile::FILE), MOST_SCENARIO)?;
    ScenarioFile::parse(&text).general
}

/// Whether a comparison has so many runs that to look at each of them takes minutes: it is none of ours.
fn is_endless(general: &General) -> bool {
    general.schemes.len().saturating_mul(general.seeds.len()) > MOST_SCHEMES_AND_SEEDS
}

/// The name of the file that a run, or a sweep, was begun by.
pub fn file(run: &Path) -> &'static str {
    if fedcote_sim::sweep::is_sweep(run) { fedcote_sim::sweep::FILE } else { ScenarioFile::FILE }
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
    let file = file(run);
    let text = root.read(&run.join(file), MOST_SCENARIO);
    let table = text.and_then(|text| text.parse::<Table>().ok());
    let table = table.ok_or_else(|| Refusal::missing(format!("{file} cannot be read")))?;
    let mut found = BTreeMap::new();
    flatten("", &table, &mut found);
    Ok(found)
}

/// Refuses a run whose files are too large to be read as a whole, as a report must.
pub fn refuse_huge(root: &Root, out: &Path) -> Result<(), Refusal> {
    let reason = "this run is too large for the page; make its report with `fedcote report`";
    let huge = || Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
    let general = understood(root, out);
    if general.as_ref().is_some_and(is_endless) {
        return huge();
    }
    let mut files = vec![out.join("summary.json")];
    for run in general.map_or_else(Vec::new, |general| general.runs()) {
        let folder = run.folder(out);
        files.extend(["metrics.jsonl", Clients::FILE].map(|name| folder.join(name)));
    }
    let length = |path: &PathBuf| fs::symlink_metadata(path).map_or(0, |data| data.len());
    let total = files.iter().map(length).fold(0, u64::saturating_add);
    if total <= MOST_READ { Ok(()) } else { huge() }
}

/// How far a run of a run folder is; links are not followed.
pub fn standing(root: &Root, out: &Path, run: RunId) -> Standing {
    folder::standing(out, run, &|path| root.open_file(path))
}

/// Whether a command is working in a run folder.
pub fn is_running(root: &Root, out: &Path) -> bool {
    let runs = general(root, out).map_or_else(Vec::new, |general| general.runs());
    let running = |run| standing(root, out, run).state == State::Running;
    let combinations = || {
        let swept = fedcote_sim::sweep::is_sweep(out);
        let folders = if swept { root.folders(out) } else { Vec::new() };
        folders.iter().any(|name| is_running(root, &out.join(name)))
    };
    Lock::is_taken(out) || runs.into_iter().any(running) || combinations()
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
            format!("{damaged} {runs} damaged or altered files; the report says which.")
        };
        let message = message.or_else(|| (state == "damaged").then(damage));
        Self { state, own, message }
    }

    /// The same of a run folder, or a sweep, of which these summaries are not as they were written.
    pub fn altered(self, summaries: &str) -> Self {
        let reason = || format!("{summaries}: damaged or altered, the checksum does not match.");
        let message = self.message.or_else(|| Some(reason()));
        Self {
            state: if self.state == "finished" { "damaged" } else { self.state },
            message,
            ..self
        }
    }

    /// Of a run folder that is not there any more.
    pub fn deleted() -> Self {
        let message = Some("The folder of this run is gone.".to_owned());
        Self { state: "deleted", own: false, message }
    }

    /// Of a run folder, or a sweep, whose scenario cannot be understood.
    pub fn unreadable(run: &Path) -> Self {
        let reason = format!(
            "{} cannot be read: it is damaged, not a scenario, or has too many runs.",
            file(run)
        );
        Self { state: "damaged", own: false, message: Some(reason) }
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
    /// What is swept, and in how many combinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<(Vec<String>, usize)>,
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

impl Listed {
    /// A run folder, or a sweep, of which nothing is known but when it was begun.
    fn unreadable(name: &str, run: &Path) -> Self {
        let begun = changed(&run.join(file(run)));
        Self {
            name: name.to_owned(),
            status: Status::unreadable(run),
            general: None,
            sweep: None,
            best: None,
            seconds: None,
            begun,
            done: 0,
            total: 0,
            changed: begun,
        }
    }
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

/// Whether the summary of a run folder is not as it was written.
pub fn is_altered(root: &Root, run: &Path) -> bool {
    outcome(root, run).is_none()
}

/// The best scheme and the time, by `summary.json`; nothing if that is not as it was written.
fn outcome(root: &Root, run: &Path) -> Option<(Option<Best>, Option<f64>)> {
    let path = run.join("summary.json");
    let Some(text) = root.read(&path, MOST_SUMMARY) else {
        // One that is there, and short enough, is not text.
        let whole = |data: fs::Metadata| data.is_file() && data.len() <= MOST_SUMMARY;
        return (!fs::symlink_metadata(&path).is_ok_and(whole)).then_some((None, None));
    };
    let summary = folder::parse_summary(&path, text.as_bytes()).ok()?;
    let competing = summary.schemes.iter().filter(|scheme| !scheme.reference);
    let accuracies = competing.filter_map(|scheme| Some((scheme, scheme.test_accuracy?)));
    let best = accuracies.max_by(|(_, one), (_, two)| one.mean.total_cmp(&two.mean));
    let seconds = summary
        .schemes
        .iter()
        .filter_map(|scheme| scheme.seconds.map(|seconds| seconds.mean * scheme.seeds as f64));
    let best =
        best.map(|(scheme, Spread { mean, std })| Best { name: scheme.name.clone(), mean, std });
    Some((best, Some(seconds.sum::<f64>()).filter(|sum| *sum > 0.0)))
}

/// All runs, the latest first.
pub fn list(root: &Root, children: &Children) -> Vec<Listed> {
    let mut names = root.folders(root.path());
    let begun = |name: &String| {
        let file = |file: &str| changed(&root.path().join(name).join(file));
        file(ScenarioFile::FILE).max(file(fedcote_sim::sweep::FILE))
    };
    names.sort_by_cached_key(|name| std::cmp::Reverse(begun(name)));
    names.truncate(MOST_RUNS);
    let mut listed: Vec<Listed> =
        names.iter().filter_map(|name| one(root, name, children)).collect();
    listed.sort_by(|a, b| (b.changed, &a.name).cmp(&(a.changed, &b.name)));
    listed
}

fn one(root: &Root, name: &str, children: &Children) -> Option<Listed> {
    if let Some(sweep) = root.sweep(name) {
        return Some(swept(root, name, &sweep, children));
    }
    let run = root.run(name)?;
    let listed = Listed::unreadable(name, &run);
    let Some(general) = general(root, &run) else { return Some(listed) };
    let far = Far::of(root, &run, &general);
    let status = Status::of(name, Lock::is_taken(&run), &far.states, children);
    let (status, (best, seconds)) = match outcome(root, &run) {
        Some(outcome) => (status, outcome),
        None => (status.altered("summary.json"), (None, None)),
    };
    let changed = listed.begun.max(far.changed);
    let Far { done, total, .. } = far;
    Some(Listed { status, general: Some(general), best, seconds, done, total, changed, ..listed })
}

fn swept(root: &Root, name: &str, sweep: &Path, children: &Children) -> Listed {
    let mut listed = Listed::unreadable(name, sweep);
    let Ok((scenario, points)) = sweeps::points(root, sweep) else { return listed };
    let mut states = Vec::new();
    let (mut seconds, mut altered) = (0.0, Vec::new());
    for (point, far) in scenario.sweep.points.iter().zip(points) {
        (listed.done, listed.total) = (listed.done + far.done, listed.total + far.total);
        listed.changed = listed.changed.max(far.changed);
        states.extend(far.states);
        let outcome = outcome(root, &sweep.join(&point.name));
        if outcome.is_none() {
            altered.push(format!("{}/summary.json", point.name));
        }
        seconds += outcome.and_then(|(_, seconds)| seconds).unwrap_or(0.0);
    }
    let status = Status::of(name, Lock::is_taken(sweep), &states, children);
    listed.status = if altered.is_empty() { status } else { status.altered(&altered.join(", ")) };
    listed.seconds = Some(seconds).filter(|seconds| *seconds > 0.0);
    let keys = scenario.sweep.axes.iter().map(|axis| axis.key.clone()).collect();
    listed.sweep = Some((keys, scenario.sweep.points.len()));
    listed.general = Some(scenario.general);
    listed
}

/// How far the runs of a comparison are.
pub struct Far {
    /// Rounds played.
    pub done: u64,
    /// Rounds to be played.
    pub total: u64,
    /// Each run's state.
    pub states: Vec<State>,
    /// Seconds since 1970 of the last change.
    pub changed: u64,
    /// The same of the runs that have ended.
    pub ended: u64,
}

impl Far {
    /// Of a run folder, or one that is not there yet, whose scenario begins like this.
    pub fn of(root: &Root, run: &Path, general: &General) -> Self {
        let mut far = Self { done: 0, total: 0, states: Vec::new(), changed: 0, ended: 0 };
        for id in general.runs() {
            let changed = changed(&id.folder(run).join("metrics.jsonl"));
            far.changed = far.changed.max(changed);
            let Standing { state, round, .. } = standing(root, run, id);
            far.ended = far.ended.max(if state.has_ended() { changed } else { 0 });
            far.done += u64::from(if state.has_ended() { general.rounds } else { round });
            far.total += u64::from(general.rounds);
            far.states.push(state);
        }
        far
    }
}

pub(crate) fn changed(path: &Path) -> u64 {
    let time = fs::symlink_metadata(path).and_then(|data| data.modified()).ok();
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}
