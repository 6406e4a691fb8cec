//! Runs started from the page: each a process of its own, told to stop by the end of its standard input.
//!
//! That way the page costs a run nothing, a run survives the page's troubles only as long as it takes to save, and
//! no signal can reach a wrong process.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The exit status of a `fedcote run` that was interrupted and saved: it did not fail.
pub const INTERRUPTED: u8 = 3;

/// So many runs started from the page at once; each uses every core.
pub const AT_ONCE: usize = 4;

/// A run that is asked to stop has so long to finish its round and save; then its process is ended. Files are replaced
/// as a whole, so that it is resumed from its last checkpoint.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });
/// How often to see whether a process that has said its last has ended.
const LOOK: Duration = Duration::from_millis(20);
/// The system takes no longer than this to end a process.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// The runs that were started here.
#[derive(Debug, Default)]
pub struct Children {
    program: Vec<OsString>,
    known: Mutex<HashMap<String, Child>>,
    started: AtomicU64,
    ended: Condvar,
}

#[derive(Debug)]
struct Child {
    /// Open as long as the run may go on.
    input: Option<ChildStdin>,
    /// There until it has ended: while it is, its number is no other process's.
    process: Option<std::process::Child>,
    /// Which of the processes of this run it is.
    number: u64,
    /// Whether it was ended because it did not stop.
    ended: bool,
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
        // It has no page, and needs no token.
        command.env_remove("FEDCOTE_TOKEN");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C in the terminal is for the page, which then closes the inputs.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process =
            command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let (input, errors) = (process.stdin.take(), process.stderr.take());
        let state = State { running: true, message: None };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let child = Child { input, process: Some(process), number, ended: false, state };
        known.insert(name.to_owned(), child);
        drop(known);
        let (children, name) = (Arc::clone(self), name.to_owned());
        std::thread::spawn(move || {
            let last = errors.map(last_line).unwrap_or_default();
            let (status, ended) = children.wait(&name);
            let message = match status {
                _ if ended => Some(format!(
                    "it did not stop within {} s and was ended; resume goes on from its last checkpoint",
                    PATIENCE.as_secs()
                )),
                Ok(status) if status.success() => None,
                // Stopped as asked; what it printed is advice for a terminal.
                Ok(status) if status.code() == Some(INTERRUPTED.into()) => None,
                Ok(status) if last.is_empty() => Some(format!("the run ended with {status}")),
                Ok(_) => Some(last.trim_start_matches("fedcote: ").to_owned()),
                Err(error) => Some(error.to_string()),
            };
            let mut known = children.known.lock().expect("no panic while held");
            let state = State { running: false, message };
            known.insert(name, Child { input: None, process: None, number, ended, state });
            drop(known);
            children.ended.notify_all();
        });
        Ok(())
    }

    /// How the process of a run ended, and whether it was ended from here.
    fn wait(&self, name: &str) -> (std::io::Result<ExitStatus>, bool) {
        loop {
            let mut known = self.known.lock().expect("no panic while held");
            let Some(child) = known.get_mut(name) else {
                return (Err(std::io::ErrorKind::NotFound.into()), false);
            };
            let looked = child.process.as_mut().map_or(Ok(None), std::process::Child::try_wait);
            match looked {
                Ok(Some(status)) => return (Ok(status), child.ended),
                Err(error) => return (Err(error), child.ended),
                Ok(None) => {}
            }
            drop(known);
            std::thread::sleep(LOOK);
        }
    }

    /// Asks a run to finish its round, save and stop; one that does not is ended. False when it was not started here.
    pub fn stop(self: &Arc<Self>, name: &str) -> bool {
        let mut known = self.known.lock().expect("no panic while held");
        let Some(child) = known.get_mut(name).filter(|child| child.state.running) else {
            return false;
        };
        let asked = child.input.take().is_some();
        let (children, name, number) = (Arc::clone(self), name.to_owned(), child.number);
        drop(known);
        if asked {
            std::thread::spawn(move || {
                children.end(PATIENCE, |known, at| known == name && at == number)
            });
        }
        true
    }

    /// Asks all runs to stop, gives them so long to save, and ends those that do not. Returns how many these were.
    pub fn stop_all(&self, patience: Duration) -> usize {
        let mut known = self.known.lock().expect("no panic while held");
        known.values_mut().for_each(|child| child.input = None);
        drop(known);
        self.end(patience, |_, _| true)
    }

    /// Waits for those of these runs that are running, and ends them when they take longer; returns how many it ended.
    fn end(&self, patience: Duration, meant: impl Fn(&str, u64) -> bool) -> usize {
        let there = |known: &HashMap<String, Child>| {
            known.iter().any(|(name, child)| child.state.running && meant(name, child.number))
        };
        let known = self.known.lock().expect("no panic while held");
        let waited = self.ended.wait_timeout_while(known, patience, |known| there(known));
        let mut known = waited.expect("no panic while held").0;
        let mut ended = 0;
        for (name, child) in known.iter_mut() {
            if child.state.running
                && meant(name, child.number)
                && let Some(process) = &mut child.process
            {
                child.ended = process.kill().is_ok();
                ended += usize::from(child.ended);
            }
        }
        // Nothing is left behind, as far as the system ends what it is told to.
        let _ = self.ended.wait_timeout_while(known, ENDS_WITHIN, |known| there(known));
        ended
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
    use super::*;

    /// An interruption used to be told by the words of the command.
    #[test]
    fn an_interruption_is_told_by_its_status() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fedcote");
        for (status, told) in [(0, None), (3, None), (1, Some("interrupted; resume with: x"))] {
            let script =
                format!("echo 'fedcote: interrupted; resume with: x' >&2\nexit {status}\n");
            std::fs::write(&program, script).unwrap();
            let children = Children::new(vec!["/bin/sh".into(), program.clone().into()]);
            children.resume("run", folder.path()).unwrap();
            assert_eq!(children.stop_all(Duration::from_secs(60)), 0);
            assert_eq!(children.state("run").unwrap().message.as_deref(), told, "{status}");
        }
    }

    /// A run with four thousand million local steps could not be stopped from the page, and outlived the page.
    #[test]
    fn a_run_that_does_not_stop_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fedcote");
        // It heeds neither the end of its input nor a signal that can be caught.
        std::fs::write(
            &program,
            "trap '' TERM INT HUP\nwhile :; do sleep 1 </dev/null 2>/dev/null; done\n",
        )
        .unwrap();
        let children = Children::new(vec!["/bin/sh".into(), program.clone().into()]);
        children.resume("run", folder.path()).unwrap();
        assert!(children.stop("run") && children.stop("run"));
        while children.state("run").unwrap().running {
            std::thread::sleep(LOOK);
        }
        let message = children.state("run").unwrap().message.unwrap();
        assert!(message.contains("was ended; resume goes on"), "{message}");
        assert!(!children.stop("run"));
        children.resume("run", folder.path()).unwrap();
        assert_eq!(children.stop_all(Duration::from_millis(50)), 1);
        assert!(!children.state("run").unwrap().running);
    }
}
