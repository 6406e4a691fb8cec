//! Reads a run folder along while it grows and puts what is new into a log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fedcote_plot::theme;
use serde::Deserialize;
use serde_json::json;

use crate::children::Children;
use crate::log::Log;
use crate::root::Root;
use crate::runs::{General, Status};

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
        runs: BTreeMap::new(),
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
    runs: BTreeMap<(String, u64), Run>,
    status: Option<Status>,
    look: u64,
    full: bool,
}

/// How far one run of the folder was read.
#[derive(Default)]
struct Run {
    bytes: u64,
    round: u32,
    clients: bool,
    ended: bool,
    read: bool,
}

/// What must be right in a line of `metrics.jsonl`.
#[derive(Deserialize)]
struct Line {
    round: u32,
    #[serde(default, rename = "selected")]
    _selected: Vec<(u32, u32)>,
    #[serde(default, rename = "arrived")]
    _arrived: Vec<(u32, u32)>,
    #[serde(default, rename = "test_accuracy")]
    _test_accuracy: Option<f64>,
}

impl Tail {
    /// Adds what is new to the log; true when there is more to read at once.
    fn look(&mut self, log: &Log) -> bool {
        let mut events = Vec::new();
        let general = General::read(&self.root, &self.path);
        if let Some(general) = general.filter(|general| self.general.as_ref() != Some(general)) {
            let styles: Vec<_> = theme::styles(&general.schemes)
                .into_iter()
                .map(|style| json!([style.colour(), style.dash()]))
                .collect();
            events.push(("scenario", json!({ "general": general, "styles": styles }).to_string()));
            self.general = Some(general);
        }
        let Some(general) = self.general.clone() else { return false };
        let mut more = false;
        let mut budget = MOST_READ;
        for (scheme, seed) in general.runs() {
            let folder = self.path.join(scheme).join(seed.to_string());
            let run = self.runs.entry((scheme.to_owned(), seed)).or_default();
            let key = format!("{scheme}/{seed}");
            if !run.clients
                && let Some(text) = clients(&self.root, &folder)
            {
                run.clients = true;
                events.push(("clients", format!("{{\"run\":{},\"clients\":{text}}}", json!(key))));
            }
            run.ended = folder.join("finished.json").exists();
            run.read &= run.ended;
            if run.read || self.full {
                continue;
            }
            if budget == 0 {
                more = true;
            } else {
                let before = run.bytes;
                if let Some(new) = new_lines(&self.root, &folder.join("metrics.jsonl"), run, budget)
                {
                    budget = budget.saturating_sub(run.bytes.saturating_sub(before));
                    // An ended run is read once, to its end.
                    run.read = run.ended && budget > 0;
                    more |= budget == 0;
                    events.extend(new.events(&key));
                }
            }
        }
        let status = self.look.is_multiple_of(LOCK_EVERY) || !events.is_empty();
        self.look += 1;
        if status && !more {
            let ended = |run: (&str, u64)| self.runs[&(run.0.to_owned(), run.1)].ended;
            let finished = general.runs().all(ended);
            let status = Status::of(&self.path, &self.name, finished, &self.children);
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
    let text = root.read(&folder.join("clients.json"), MOST_CLIENTS)?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    value.is_object().then(|| value.to_string())
}

/// What a metrics file has beyond the last look.
struct New {
    /// It was cut back to this round, or begun anew.
    cut: Option<u32>,
    /// Lines, each a checked JSON object.
    lines: Vec<String>,
    diverged: bool,
    damaged: Option<u32>,
}

impl New {
    fn events(self, key: &str) -> Vec<(&'static str, String)> {
        let run = json!(key);
        let mut events = Vec::new();
        if let Some(round) = self.cut {
            events.push(("cut", format!("{{\"run\":{run},\"round\":{round}}}")));
        }
        // Not too long each: a browser shows progress while it reads a long run.
        for lines in self.lines.chunks(200) {
            events.push(("rounds", format!("{{\"run\":{run},\"rounds\":[{}]}}", lines.join(","))));
        }
        if self.diverged {
            events.push(("diverged", format!("{{\"run\":{run}}}")));
        }
        if let Some(round) = self.damaged {
            let text = format!("{key}: metrics.jsonl is damaged after round {round}");
            events.push(("notice", json!({ "text": text }).to_string()));
        }
        events
    }
}

fn new_lines(root: &Root, path: &Path, run: &mut Run, most: u64) -> Option<New> {
    if !root.plain_file(path) {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut new = New { cut: None, lines: Vec::new(), diverged: false, damaged: None };
    if length < run.bytes {
        // An interrupted run goes on from its checkpoint: what is kept is read again, only the rest is news.
        new.cut = Some(kept_round(&file)?);
        (run.round, run.bytes) = (new.cut?, length);
    }
    file.seek(SeekFrom::Start(run.bytes)).ok()?;
    let mut reader = BufReader::new(file);
    let mut line = String::new();
    let begun = run.bytes;
    while run.bytes - begun < most {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(read) if read > 0 && line.ends_with('\n') => {
                let text = line.trim();
                match serde_json::from_str::<Line>(text) {
                    Ok(parsed) if parsed.round > run.round => {
                        run.round = parsed.round;
                        new.lines.push(text.to_owned());
                    }
                    Ok(parsed) => {
                        // Begun anew and grown past the old length between two looks.
                        new.lines.clear();
                        new.cut = Some(parsed.round.saturating_sub(1));
                        run.round = parsed.round;
                        new.lines.push(text.to_owned());
                    }
                    Err(_) if text.contains("\"diverged_at\"") => new.diverged = true,
                    Err(_) => new.damaged = Some(run.round),
                }
                run.bytes += read as u64;
            }
            // The end, or a line that is being written.
            _ => break,
        }
    }
    Some(new)
}

/// The number of the last whole line's round.
fn kept_round(file: &File) -> Option<u32> {
    let mut last = 0;
    for line in BufReader::new(file).lines() {
        match serde_json::from_str::<Line>(&line.ok()?) {
            Ok(line) => last = line.round,
            Err(_) => break,
        }
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(round: u32) -> String {
        format!("{{\"round\":{round},\"selected\":[[0,1]],\"arrived\":[]}}\n")
    }

    fn rounds(new: &New) -> Vec<u32> {
        new.lines.iter().map(|text| serde_json::from_str::<Line>(text).unwrap().round).collect()
    }

    #[test]
    fn lines_come_once_and_whole_and_a_cut_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let path = root.path().join("metrics.jsonl");
        let mut run = Run::default();
        let mut look = |text: &str| {
            fs::write(&path, text).unwrap();
            new_lines(&root, &path, &mut run, MOST_READ).unwrap()
        };
        let three: String = (1..=3).map(line).collect();
        let new = look(&(three.clone() + "{\"round\":4,"));
        assert_eq!((rounds(&new), new.cut), (vec![1, 2, 3], None));
        let new = look(&(three.clone() + &line(4)));
        assert_eq!((rounds(&new), new.cut), (vec![4], None));
        // Resumed from a checkpoint at round 2.
        let two: String = (1..=2).map(line).collect();
        let new = look(&two);
        assert_eq!((rounds(&new), new.cut), (vec![], Some(2)));
        let new = look(&(two + &line(3) + "{\"diverged_at\":4}\n"));
        assert_eq!((rounds(&new), new.cut, new.diverged), (vec![3], None, true));
        // Damaged lines are told, not shown.
        let new =
            look(&((1..=3).map(line).collect::<String>() + "{\"diverged_at\":4}\n<script>\n"));
        assert_eq!((rounds(&new), new.damaged), (vec![], Some(3)));
    }

    #[test]
    fn a_run_cut_back_and_grown_between_two_looks_has_no_gap() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let path = root.path().join("metrics.jsonl");
        let mut run = Run::default();
        fs::write(&path, (1..=4).map(line).collect::<String>()).unwrap();
        new_lines(&root, &path, &mut run, MOST_READ).unwrap();
        // Played again the lines are the same; one more is news.
        fs::write(&path, (1..=5).map(line).collect::<String>()).unwrap();
        let new = new_lines(&root, &path, &mut run, MOST_READ).unwrap();
        assert_eq!((rounds(&new), new.cut), (vec![5], None));
        // Begun anew, with a first line as long as all that was read.
        let first = format!("{:width$}\n", line(1).trim_end(), width = run.bytes as usize - 1);
        fs::write(&path, first.clone() + &line(2) + &line(3)).unwrap();
        let new = new_lines(&root, &path, &mut run, MOST_READ).unwrap();
        assert_eq!((rounds(&new), new.cut), (vec![2, 3], Some(1)));
        let mut run = Run { bytes: first.len() as u64, ..Run::default() };
        fs::write(&path, first + &line(0)).unwrap();
        let new = new_lines(&root, &path, &mut run, MOST_READ).unwrap();
        assert_eq!(new.cut, Some(0), "a round that cannot be");
    }
}
