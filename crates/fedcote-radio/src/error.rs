//! What can be wrong with a network.

use std::path::PathBuf;

use fedcote_support::suggestion;

/// A value of the configuration that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("network.{key}: {reason}")]
pub struct ConfigError {
    /// Dotted path below `network`, for example `standards.mine.bandwidth_hz`.
    pub key: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl ConfigError {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }

    /// An unknown name, with the nearest known one, or all of them.
    pub(crate) fn unknown(key: impl Into<String>, what: &str, name: &str, known: &[&str]) -> Self {
        Self::new(key, format!("unknown {what} `{name}`{}", suggestion(name, known)))
    }
}

/// Why a network could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
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
    /// A trace file could not be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The trace file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
