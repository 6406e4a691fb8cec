use std::path::PathBuf;

/// What can go wrong with run folders and figures. Each is one line that names the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file that should be there is not.
    #[error("{}: {reason}", path.display())]
    Missing {
        /// Which.
        path: PathBuf,
        /// What was expected, and what to do.
        reason: String,
    },
    /// A file does not hold what it should.
    #[error("{}{}: {reason}", path.display(), line.map_or(String::new(), |line| format!(":{line}")))]
    Damaged {
        /// Which.
        path: PathBuf,
        /// The line, from 1, where the format has lines.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// A figure could not become an image.
    #[error("figure \"{title}\": {reason}")]
    Image {
        /// The figure's title.
        title: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// Whether the request was wrong (a folder that is not a run, a damaged file), not the work.
    pub fn is_request(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Damaged { .. })
    }
}
