//! Why an artefact was not made.

use std::fmt;

/// Why an artefact was not made. Each displays as one line: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of [`Options`](crate::Options) has a value that cannot work, or that would have no effect.
    #[error("{name}: {reason}")]
    Option {
        /// The field.
        name: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// The request was wrong in another way.
    #[error("{0}")]
    Request(String),
    /// The work failed.
    #[error("{0}")]
    Work(String),
    /// Nothing may be computed, and what is wanted is not stored.
    #[error("{0}")]
    NotStored(String),
    /// The simulator refused or failed.
    #[error(transparent)]
    Simulation(#[from] fedcote_sim::Error),
}

impl Error {
    /// Whether the request was at fault rather than the work.
    pub fn is_request(&self) -> bool {
        match self {
            Self::Option { .. } | Self::Request(_) => true,
            Self::Work(_) | Self::NotStored(_) => false,
            Self::Simulation(error) => error.is_request(),
        }
    }

    pub(crate) fn option(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Option { name, reason: reason.into() }
    }

    pub(crate) fn request(reason: impl fmt::Display) -> Self {
        Self::Request(reason.to_string())
    }

    pub(crate) fn work(reason: impl fmt::Display) -> Self {
        Self::Work(reason.to_string())
    }
}
