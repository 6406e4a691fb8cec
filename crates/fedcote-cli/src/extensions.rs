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
    /// The command as typed, with the program's name in place of its path.
    pub(crate) fn command_line(&self) -> String {
        fedcote_support::command(&self.words)
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
