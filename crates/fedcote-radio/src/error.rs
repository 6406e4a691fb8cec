//! What can be wrong with a network.

use std::path::PathBuf;

use fedcote::SettingError;
use fedcote_support::suggestion;

/// The setting of this key of the `[network]` table, such as `standards.mine.bandwidth_hz`, is refused.
pub(crate) fn refused(key: impl Into<String>, reason: impl Into<String>) -> SettingError {
    SettingError::new(key, reason).within("network")
}

/// An unknown name, with the nearest known one, or all of them.
pub(crate) fn unknown(
    key: impl Into<String>,
    what: &str,
    name: &str,
    known: &[&str],
) -> SettingError {
    refused(key, format!("unknown {what} `{name}`{}", suggestion(name, known)))
}

/// Why a network could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A trace file is wrong.
    #[error("{}:{line}: {reason}", file.display())]
    Trace {
        /// The trace file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A trace of others is wrong.
    #[error("{}: {reason}", file.display())]
    Foreign {
        /// Its file.
        file: PathBuf,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// A trace file could not be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The trace file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
