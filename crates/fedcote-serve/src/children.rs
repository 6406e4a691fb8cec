//! Runs started from the page: each a process of its own, told to stop by the end of its standard input.
//!
//! That way the page costs a run nothing, a run survives the page's troubles only as long as it takes to save, and
//! no signal can reach a wrong process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The exit status of a `fedcote run` that was interrupted and saved: it did not fail.
pub const INTERRUPTED: u8 = 3;

/// So many runs started from the page at once; each uses every core.
pub const AT_ONCE: usize = 4;

/// The runs that were started here.
#[derive(Debug, Default)]
pub struct Children {
    program: Vec<OsString>,
    known: Mutex<HashMap<String, Child>>,
    ended: Condvar,
}

#[derive(Debug)]
struct Child {
    /// Open as long as the run may go on.
    input: Option<ChildStdin>,
    state: State,
}

/// How a run that was started here stands.
#[derive(Debug, Clone)]
pub struct State {
    /// Whether its process is there.
    pub running: bool,
    /// Why it failed.
    pub message: Option<String>,
}

impl Children {
    /// Runs of this program: its path, and the words before all others.
    pub fn new(program: Vec<OsString>) -> Arc<Self> {
        Arc::new(Self { program, ..Self::default() })
    }

    /// How the run of this name stands, if it was started here.
    pub fn state(&self, name: &str) -> Option<State> {
        Some(self.known.lock().expect("no panic while held").get(name)?.state.clone())
    }

    /// Goes on with a run, or begins it: `fedcote run --resume --out FOLDER`, by the scenario of the folder.
    pub fn resume(self: &Arc<Self>, name: &str, out: &Path) -> Result<(), String> {
        let mut known = self.known.lock().expect("no panic while held");
        let running = known.values().filter(|child| child.state.running).count();
        if known.get(name).is_some_and(|child| child.state.running) {
            return Err("it is running already".into());
        }
        if running >= AT_ONCE {
            return Err(format!("{AT_ONCE} runs are under way; stop one or wait"));
        }
        let (program, words) = self.program.split_first().ok_or("there is no program to run")?;
        let mut command = Command::new(program);
        command
            .args(words)
            .args(["run", "--json", "--stop-with-input", "--resume", "--out"])
            .arg(out);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C in the terminal is for the page, which then closes the inputs.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process =
            command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let (input, errors) = (process.stdin.take(), process.stderr.take());
        let state = State { running: true, message: None };
        known.insert(name.to_owned(), Child { input, state });
        drop(known);
        let (children, name) = (Arc::clone(self), name.to_owned());
        std::thread::spawn(move || {
            let last = errors.map(last_line).unwrap_or_default();
            let status = process.wait();
            let message = match status {
                Ok(status) if status.success() => None,
                // Stopped as asked; what it printed is advice for a terminal.
                Ok(status) if status.code() == Some(INTERRUPTED.into()) => None,
                Ok(status) if last.is_empty() => Some(format!("the run ended with {status}")),
                Ok(_) => Some(last.trim_start_matches("fedcote: ").to_owned()),
                Err(error) => Some(error.to_string()),
            };
            let mut known = children.known.lock().expect("no panic while held");
            let state = State { running: false, message };
            known.insert(name, Child { input: None, state });
            drop(known);
            children.ended.notify_all();
        });
        Ok(())
    }

    /// Asks a run to finish its round, save and stop. False when it was not started here.
    pub fn stop(&self, name: &str) -> bool {
        let mut known = self.known.lock().expect("no panic while held");
        let child = known.get_mut(name).filter(|child| child.state.running);
        child.is_some_and(|child| {
            child.input = None;
            true
        })
    }

    /// Asks all runs to stop, and gives them so long to save. Returns how many are still there.
    pub fn stop_all(&self, patience: Duration) -> usize {
        let mut known = self.known.lock().expect("no panic while held");
        known.values_mut().for_each(|child| child.input = None);
        let running = |known: &mut HashMap<String, Child>| {
            known.values().filter(|child| child.state.running).count()
        };
        let waited = self.ended.wait_timeout_while(known, patience, |known| running(known) > 0);
        running(&mut waited.expect("no panic while held").0)
    }
}

/// The last line that a program wrote, of bounded length.
fn last_line(errors: impl Read) -> String {
    let mut last = String::new();
    let mut lines = BufReader::new(errors);
    let mut line = Vec::new();
    // Read to the end whatever comes, lest the program wait for us.
    while lines.by_ref().take(4096).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            last = text.trim().to_owned();
        }
        line.clear();
    }
    last
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// An interruption used to be told by the words of the command.
    #[test]
    fn an_interruption_is_told_by_its_status() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fedcote");
        for (status, told) in [(0, None), (3, None), (1, Some("interrupted; resume with: x"))] {
            let script = format!(
                "#!/bin/sh\necho 'fedcote: interrupted; resume with: x' >&2\nexit {status}\n"
            );
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            let children = Children::new(vec![program.clone().into()]);
            children.resume("run", folder.path()).unwrap();
            assert_eq!(children.stop_all(Duration::from_secs(60)), 0);
            assert_eq!(children.state("run").unwrap().message.as_deref(), told, "{status}");
        }
    }
}
