//! What can be wrong with a network.

use std::path::PathBuf;

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

    /// A name that nobody knows, with the nearest one that somebody does, or all of them.
    pub(crate) fn unknown(key: impl Into<String>, what: &str, name: &str, known: &[&str]) -> Self {
        let near = |other: &&&str| strsim::damerau_levenshtein(name, other) <= 1 + name.len() / 3;
        let distance = |other: &&&str| strsim::damerau_levenshtein(name, other);
        let remedy = match known.iter().filter(near).min_by_key(distance) {
            Some(nearest) => format!("did you mean \"{nearest}\"?"),
            None => format!("known are {}", known.join(", ")),
        };
        Self::new(key, format!("unknown {what} \"{name}\"; {remedy}"))
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
