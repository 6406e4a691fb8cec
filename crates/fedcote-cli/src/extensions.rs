//! What the program around the command provides.

use std::ffi::OsString;

use fedcote_sim::{Scenario, Tasks};

use crate::error::Error;

/// What a host program, such as a Python interpreter, adds to the command. The bare binary adds nothing.
#[derive(Default)]
pub struct Extensions {
    /// The words that start this command as a process of its own; none for the program itself.
    pub program: Vec<OsString>,
    /// Makes the tasks of a scenario that has `[task] python`.
    pub tasks: Option<MakeTasks>,
}

/// Makes the tasks of a scenario.
pub type MakeTasks = Box<dyn Fn(&Scenario) -> Result<Box<dyn Tasks>, fedcote_sim::Error>>;

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

    /// What starts this command as a process of its own.
    pub(crate) fn program(&self) -> Result<Vec<OsString>, Error> {
        match self.extensions.program.as_slice() {
            [] => Ok(vec![std::env::current_exe().map_err(Error::work)?.into()]),
            words => Ok(words.to_vec()),
        }
    }
}
