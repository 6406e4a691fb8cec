//! What can go wrong before the page is there.

use std::path::PathBuf;

/// Why the page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of runs cannot be used.
    #[error("{}: {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("--listen {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The token is no use.
    #[error("{0}")]
    Token(&'static str),
    /// The system refused something.
    #[error("{0}")]
    System(String),
}

impl Error {
    /// Whether the request was at fault rather than the work.
    pub fn is_request(&self) -> bool {
        !matches!(self, Self::System(_))
    }
}
