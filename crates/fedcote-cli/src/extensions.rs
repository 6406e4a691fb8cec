//! What the program around the command provides.

use std::ffi::OsString;

use fedcote_sim::remote::Remote;
use fedcote_sim::{Classifications, Scenario, Tasks, own};

use crate::error::Error;

/// What a host program, such as a Python interpreter, adds to the command. The bare binary adds nothing.
#[derive(Default)]
pub struct Extensions {
    /// The words that start this command as a process of its own; none for the program itself.
    pub program: Vec<OsString>,
    /// Makes the tasks of a scenario with code in Python: `[task] python`, or a scheme with the key `python`.
    pub tasks: Option<MakeTasks>,
    /// Connects with a cluster of Ray.
    pub ray: Option<ConnectRay>,
}

/// Which cluster of Ray, and how to use it.
#[derive(Debug, Clone)]
pub struct Ray {
    /// The cluster's address; `None` for one that this machine belongs to.
    pub address: Option<String>,
    /// Processors that a run gets.
    pub cpus_per_run: usize,
    /// Rounds that a task computes; `None` for as many as between two checkpoints.
    pub rounds_per_task: Option<u32>,
}

/// Connects with a cluster of Ray.
pub type ConnectRay = Box<dyn Fn(&Ray) -> Result<Box<dyn Remote>, fedcote_sim::Error>>;

/// Makes the tasks of a scenario.
pub type MakeTasks =
    Box<dyn Fn(&Scenario) -> Result<Box<dyn Tasks>, fedcote_sim::Error> + Send + Sync>;

/// One call of the command.
pub(crate) struct Session<'a> {
    /// The command line without the program's name.
    pub(crate) words: Vec<String>,
    pub(crate) extensions: &'a Extensions,
}

impl Session<'_> {
    /// The command as typed, with the program's name in place of its path. It is written into files that others read:
    /// where the page is, and the token that it asks for, are no part of what repeats the work.
    pub(crate) fn command_line(&self) -> String {
        const PRIVATE: [&str; 4] = ["--token", "--token-file", "--listen", "--host"];
        let mut words = self.words.iter();
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            if word == "--" {
                kept.push(word);
                kept.extend(words);
                break;
            }
            let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
            match PRIVATE.contains(&flag) {
                // Its value is the next word, unless it is in this one.
                true if flag == word => drop(words.next()),
                true => {}
                false => kept.push(word),
            }
        }
        fedcote_support::command(kept)
    }

    /// The key of a scenario that names code in Python.
    fn python_key(&self, scenario: &Scenario) -> Option<String> {
        let own = |name: &&String| {
            scenario.schemes.resolve(name).is_ok_and(|scheme| scheme.python.is_some())
        };
        match scenario.general.schemes.iter().find(own) {
            _ if scenario.task.is_given() => Some("task.python".to_owned()),
            found => found.map(|name| format!("scheme.{name}.python")),
        }
    }

    /// Whether a scenario has code in Python.
    pub(crate) fn needs_python(&self, scenario: &Scenario) -> bool {
        self.python_key(scenario).is_some()
    }

    /// The tasks of a scenario.
    pub(crate) fn tasks(&self, scenario: &Scenario) -> Result<Box<dyn Tasks>, Error> {
        match (self.python_key(scenario), &self.extensions.tasks) {
            (None, _) => Ok(Box::new(Classifications::load(scenario)?)),
            (Some(_), Some(make)) => Ok(make(scenario)?),
            (Some(key), None) => Err(own::missing(key).into()),
        }
    }

    /// What starts this command as a process of its own.
    pub(crate) fn program(&self) -> Result<Vec<OsString>, Error> {
        match self.extensions.program.as_slice() {
            [] => Ok(vec![std::env::current_exe().map_err(Error::work)?.into()]),
            words => Ok(words.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The token used to be written into `scenario.toml`, `summary.json` and the report.
    #[test]
    fn the_recorded_command_has_no_token_and_no_address() {
        for (typed, recorded) in [
            ("run --serve --token secret-secret-secret x.toml", "fedcote run --serve x.toml"),
            ("run --token=secret-secret-secret --rounds 3", "fedcote run --rounds 3"),
            ("run --listen 0.0.0.0:1 --host=lab --token-file t --serve", "fedcote run --serve"),
            ("run --set rounds=3 -- --token", "fedcote run --set rounds=3 -- --token"),
            ("run --token", "fedcote run"),
        ] {
            let words = typed.split(' ').map(str::to_owned).collect();
            let session = Session { words, extensions: &Extensions::default() };
            assert_eq!(session.command_line(), recorded);
        }
    }
}
