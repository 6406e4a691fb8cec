//! Why something here was refused.

use std::path::PathBuf;

use fedcote::SettingError;

/// Why a setting, a file or a request was refused. Each message is one line: what, where, what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting has a value that cannot work.
    #[error(transparent)]
    Setting(SettingError),
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] fedcote_support::WriteError),
    /// A file's contents are not what they should be.
    #[error("{}: at byte {offset}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the (decompressed) contents.
        offset: u64,
        /// What was found, and what was expected.
        reason: String,
    },
}

impl Error {
    pub(crate) fn setting(key: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting(SettingError::new(key, reason))
    }

    pub(crate) fn file(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::File { path: path.into(), reason: reason.to_string() }
    }

    pub(crate) fn malformed(
        path: impl Into<PathBuf>,
        offset: u64,
        reason: impl Into<String>,
    ) -> Self {
        Self::Malformed { path: path.into(), offset, reason: reason.into() }
    }
}
