//! What can go wrong in a simulation, each with what to do about it.

use std::path::{Path, PathBuf};

/// An error of the simulator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A scenario file, a preset's name or an override is wrong.
    #[error("{place}: {reason}")]
    Scenario {
        /// File and line, or the override that is at fault.
        place: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// A setting is wrong.
    #[error(transparent)]
    Setting(#[from] fedcote::SettingError),
    /// A run folder cannot be used as asked.
    #[error("{}: {reason}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A file of a run folder does not hold what it should.
    #[error("{}{}: {reason}", path.display(), line.map_or(String::new(), |line| format!(":{line}")))]
    Damaged {
        /// Which.
        path: PathBuf,
        /// The line, from 1, where the format has lines.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// Reading or writing failed.
    #[error("{}: {source}{}", path.display(), fedcote_support::remedy(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The selection mathematics refused.
    #[error(transparent)]
    Selection(#[from] fedcote::Error),
    /// The network refused.
    #[error(transparent)]
    Network(#[from] fedcote_radio::Error),
    /// Data, partition or model refused.
    #[error(transparent)]
    Learning(#[from] fedcote_learn::Error),
    /// The task, a user's own perhaps, failed.
    #[error("{}the task {reason}", at(*round, *client))]
    Task {
        /// The round; 0 before the first, or where the task was not told.
        round: u32,
        /// The client whose training failed, if it was one.
        client: Option<u32>,
        /// What went wrong, as the end of a sentence that begins with "the task".
        reason: String,
    },
    /// A scheme of the user's own failed.
    #[error("{}the scheme `{scheme}` {reason}", at(*round, *client))]
    Scheme {
        /// The round; 0 before the first.
        round: u32,
        /// The client whose correction failed, if it was one.
        client: Option<u32>,
        /// The scheme.
        scheme: String,
        /// What went wrong, as the end of a sentence that begins with the scheme.
        reason: String,
    },
    /// What was computed elsewhere failed.
    #[error("{reason}")]
    Remote {
        /// What went wrong, and where.
        reason: String,
        /// Whether the request was at fault rather than the work.
        request: bool,
    },
    /// Nobody's upload can arrive.
    #[error(
        "round {round}: no client can get through, now or later; lower the failure probabilities, or raise those of `network.availability`"
    )]
    NobodyCanArrive {
        /// The round.
        round: u32,
    },
    /// No upload that is a number arrived in very many attempts.
    #[error(
        "round {round}: in {attempts} attempts every upload was lost or not finite; lower failure \
         probabilities or the number of hostile clients, or select more clients per round"
    )]
    NothingArrives {
        /// The round.
        round: u32,
        /// How often the uploads were tried.
        attempts: u32,
    },
}

/// Where a task failed, as the beginning of a line.
fn at(round: u32, client: Option<u32>) -> String {
    match (round, client) {
        (0, _) => String::new(),
        (_, None) => format!("round {round}: "),
        (_, Some(client)) => format!("round {round}, client {client}: "),
    }
}

impl From<fedcote_support::WriteError> for Error {
    fn from(fedcote_support::WriteError { path, source }: fedcote_support::WriteError) -> Self {
        Self::Io { path, source }
    }
}

impl Error {
    /// Wraps what the system said about a path.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// A run folder cannot be used, for this reason.
    pub fn folder(path: &Path, reason: impl Into<String>) -> Self {
        Self::Folder { path: path.to_owned(), reason: reason.into() }
    }

    /// The same with the round in which it happened, if it does not say.
    #[must_use]
    pub(crate) fn in_round(self, now: u32) -> Self {
        match self {
            Self::Task { round: 0, client, reason } => Self::Task { round: now, client, reason },
            other => other,
        }
    }

    /// What was computed elsewhere failed, for this reason.
    pub fn remote(reason: impl Into<String>) -> Self {
        Self::Remote { reason: reason.into(), request: false }
    }

    /// Whether the request was at fault rather than the work.
    pub fn is_request(&self) -> bool {
        !matches!(
            self,
            Self::Io { .. }
                | Self::Remote { request: false, .. }
                | Self::Task { .. }
                | Self::Scheme { .. }
                | Self::NobodyCanArrive { .. }
                | Self::NothingArrives { .. }
                | Self::Learning(fedcote_learn::Error::Write(_))
        )
    }
}
