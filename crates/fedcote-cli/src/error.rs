//! How a command ends when it does not succeed.

use std::fmt;

/// Why a command stopped. Printed as one line on standard error.
#[derive(Debug)]
pub enum Error {
    /// The request was wrong: a bad file, a bad flag. Exit status 2.
    Request(String),
    /// The request was right, the work failed. Exit status 1.
    Work(String),
    /// The work was interrupted and can be resumed. Exit status 3.
    Interrupted(String),
}

impl Error {
    /// The request was wrong for this reason.
    pub fn request(reason: impl fmt::Display) -> Self {
        Self::Request(reason.to_string())
    }

    /// The work failed for this reason.
    pub fn work(reason: impl fmt::Display) -> Self {
        Self::Work(reason.to_string())
    }

    /// The exit status that tells them apart.
    pub fn status(&self) -> u8 {
        match self {
            Self::Request(_) => 2,
            Self::Work(_) => 1,
            Self::Interrupted(_) => fedcote_serve::INTERRUPTED,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Request(reason) | Self::Work(reason) | Self::Interrupted(reason)) = self;
        // One line, whatever a library put into its message.
        let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        // Files and names may hold what a terminal takes for commands.
        formatter.write_str(&crate::output::visible(&line))
    }
}
