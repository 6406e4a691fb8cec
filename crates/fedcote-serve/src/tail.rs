//! Reads a run folder along while it grows and puts what is new into a log.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fedcote_plot::theme;
use fedcote_sim::comparison::RunId;
use fedcote_sim::folder::{self, Clients, Finished, Lock, News, ScenarioFile, State};
use fedcote_sim::scenario::General;
use serde_json::json;

use crate::children::Children;
use crate::log::Log;
use crate::root::Root;
use crate::runs::{self, Status};

/// How often the folder is looked at; also the rate of events.
const EVERY: Duration = Duration::from_millis(250);
/// Looks at the lock, which tells whether a run is under way, come at every so many.
const LOCK_EVERY: u64 = 4;
/// The log is kept so long after the last browser went, so that one that comes back goes on.
const KEPT: u64 = 120;
/// A log larger than this is no longer added to; the report shows such runs.
const MOST_BYTES: usize = 96 << 20;
/// The most bytes read at a time, of all metrics and of `clients.json`.
const MOST_READ: u64 = 4 << 20;
const MOST_CLIENTS: u64 = 16 << 20;

/// Starts to read along. It ends when nobody has held the log for a while.
pub fn follow(root: Root, name: String, children: Arc<Children>, log: Arc<Log>) {
    let mut tail = Tail {
        path: root.path().join(&name),
        root,
        name,
        children,
        general: None,
        runs: HashMap::new(),
        status: None,
        look: 0,
        full: false,
    };
    tokio::spawn(async move {
        let mut idle = 0;
        let mut more = true;
        while idle < KEPT {
            if !more {
                tokio::time::sleep(EVERY).await;
            }
            // Only ours and the map's weak one are left: nobody watches.
            if Arc::strong_count(&log) == 1 && !more {
                idle += 1;
                continue;
            }
            idle = 0;
            let shared = Arc::clone(&log);
            let look = tokio::task::spawn_blocking(move || {
                let more = tail.look(&shared);
                (tail, more)
            });
            match look.await {
                Ok((same, again)) => (tail, more) = (same, again),
                Err(_) => break,
            }
        }
    });
}

/// A run folder that is read along.
struct Tail {
    root: Root,
    name: String,
    path: PathBuf,
    children: Arc<Children>,
    general: Option<General>,
    runs: HashMap<RunId, Run>,
    status: Option<Status>,
    look: u64,
    full: bool,
}

/// How far one run of the folder was read.
#[derive(Default)]
struct Run {
    metrics: folder::Tail,
    clients: bool,
    /// Whether it says that it has ended.
    ended: bool,
    /// Whether it was read to its end.
    read: bool,
    /// Whether its rounds are not those that it ended with.
    altered: bool,
    /// Its state when it was last looked at.
    state: Option<State>,
}

impl Tail {
    /// Adds what is new to the log; true when there is more to read at once.
    fn look(&mut self, log: &Log) -> bool {
        let mut events = Vec::new();
        let general = runs::general(&self.root, &self.path);
        if let Some(general) = general.filter(|general| self.general.as_ref() != Some(general)) {
            let styles: Vec<_> = theme::styles(&general.schemes)
                .into_iter()
                .map(|style| json!([style.colour(), style.dash()]))
                .collect();
            let begun = runs::changed(&self.path.join(ScenarioFile::FILE));
            let text = self.root.read(&self.path.join(ScenarioFile::FILE), runs::MOST_SCENARIO);
            let file = ScenarioFile::parse(&text.unwrap_or_default());
            let remembers: Vec<bool> =
                general.schemes.iter().map(|scheme| file.keeps_updates(scheme)).collect();
            let data = json!({
                "general": general, "styles": styles, "remembers": remembers, "begun": begun,
            });
            events.push(("scenario", data.to_string()));
            self.general = Some(general);
        }
        let there = self.root.plain_file(&self.path.join(ScenarioFile::FILE));
        if !there || self.general.is_none() {
            let status = if there { Status::unreadable(&self.path) } else { Status::deleted() };
            if self.status.as_ref() != Some(&status) {
                events.push(("status", json!(status).to_string()));
                self.status = Some(status);
            }
            log.add(events);
            return false;
        }
        let Some(general) = self.general.clone() else { return false };
        let mut more = false;
        let mut budget = MOST_READ;
        for id in general.runs() {
            let folder = id.folder(&self.path);
            let key = format!("{}/{}", id.scheme, id.seed);
            let run = self.runs.entry(id).or_default();
            if !run.clients
                && let Some(text) = clients(&self.root, &folder)
            {
                run.clients = true;
                events.push(("clients", format!("{{\"run\":{},\"clients\":{text}}}", json!(key))));
            }
            run.ended = folder.join(Finished::FILE).exists();
            run.read &= run.ended;
            if run.read || self.full {
                continue;
            }
            if budget == 0 {
                more = true;
                continue;
            }
            let news = self.root.open_file(&folder.join("metrics.jsonl"));
            if let Ok(news) = news.and_then(|file| run.metrics.look(&file, budget)) {
                budget = budget.saturating_sub(news.bytes);
                // An ended run is read once, to its end.
                run.read = run.ended && !news.more;
                more |= news.more;
                events.extend(events_of(news, &key));
                let sum = run.metrics.checksum();
                if run.read && !run.altered && is_altered(&self.root, &folder, &sum) {
                    run.altered = true;
                    let text = format!(
                        "{key}/metrics.jsonl is damaged or was altered: its checksum does not match"
                    );
                    events.push(("notice", json!({ "text": text }).to_string()));
                }
            }
        }
        let status = self.look.is_multiple_of(LOCK_EVERY) || !events.is_empty();
        self.look += 1;
        if status && !more {
            let taken = Lock::is_taken(&self.path);
            let state = |id: RunId| {
                let run = self.runs.entry(id.clone()).or_default();
                // A run that has ended stays so.
                let known = run.state.filter(|state| run.ended && state.has_ended());
                let look = || runs::standing(&self.root, &self.path, id).state;
                let state = *run.state.insert(known.unwrap_or_else(look));
                if run.altered { State::Damaged } else { state }
            };
            let states: Vec<State> = general.runs().into_iter().map(state).collect();
            let status = Status::of(&self.name, taken, &states, &self.children);
            if self.status.as_ref() != Some(&status) {
                events.push(("status", json!(status).to_string()));
                self.status = Some(status);
            }
        }
        log.add(events);
        if !self.full && log.bytes() > MOST_BYTES {
            self.full = true;
            let text = "This run is too large to show round by round; the report shows all of it.";
            log.add([("notice", json!({ "text": text }).to_string())]);
        }
        more
    }
}

/// The text of `clients.json` on one line.
fn clients(root: &Root, folder: &Path) -> Option<String> {
    let path = folder.join(Clients::FILE);
    let text = root.read(&path, MOST_CLIENTS)?;
    let clients = Clients::parse(&path, text.as_bytes()).ok()?;
    serde_json::to_string(&clients).ok()
}

/// No `finished.json` is longer.
const MOST_FINISHED: u64 = 1 << 20;

/// Whether a finished run had another checksum of its rounds when it ended.
fn is_altered(root: &Root, folder: &Path, sum: &str) -> bool {
    let text = root.read(&folder.join(Finished::FILE), MOST_FINISHED);
    let finished = text.and_then(|text| Finished::parse(text.as_bytes()).ok());
    finished.is_some_and(|finished| finished.metrics_checksum != sum)
}

/// What is new of a run, as events.
fn events_of(news: News, key: &str) -> Vec<(&'static str, String)> {
    let run = json!(key);
    let mut events = Vec::new();
    if let Some(round) = news.cut {
        events.push(("cut", format!("{{\"run\":{run},\"round\":{round}}}")));
    }
    // Not too long each: a browser shows progress while it reads a long run.
    for lines in news.lines.chunks(200) {
        events.push(("rounds", format!("{{\"run\":{run},\"rounds\":[{}]}}", lines.join(","))));
    }
    if news.diverged_at.is_some() {
        events.push(("diverged", format!("{{\"run\":{run}}}")));
    }
    if let Some((line, reason)) = news.damaged {
        let text = format!("{key}/metrics.jsonl:{line}: {reason}");
        events.push(("notice", json!({ "text": text }).to_string()));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_become_events_of_their_run() {
        let news = News {
            cut: Some(2),
            lines: vec!["{\"round\":3}".into(), "{\"round\":4}".into()],
            diverged_at: Some(5),
            damaged: Some((7, "expected \"value\"".into())),
            ..News::default()
        };
        let wanted = [
            ("cut", r#"{"run":"fedavg/1","round":2}"#),
            ("rounds", r#"{"run":"fedavg/1","rounds":[{"round":3},{"round":4}]}"#),
            ("diverged", r#"{"run":"fedavg/1"}"#),
            ("notice", r#"{"text":"fedavg/1/metrics.jsonl:7: expected \"value\""}"#),
        ];
        let events = events_of(news, "fedavg/1");
        let events: Vec<_> = events.iter().map(|(kind, data)| (*kind, data.as_str())).collect();
        assert_eq!(events, wanted);
    }
}
