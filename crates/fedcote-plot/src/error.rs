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
    /// A run folder could not be read.
    #[error(transparent)]
    Folder(#[from] fedcote_sim::Error),
    /// A file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
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
        match self {
            Self::Missing { .. } => true,
            Self::Folder(error) => error.is_request(),
            Self::File { .. } | Self::Image { .. } => false,
        }
    }
}
