//! How a round is played: how clients are drawn, and how their uploads travel.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// How `K` clients are drawn from the selection probabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Draws {
    /// One by one, with replacement, as in the paper.
    #[default]
    Independent,
    /// `K` evenly spaced points with one random offset, on the clients ordered by label.
    Systematic,
}

/// What one upload carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Uploads {
    /// Every draw of a client is an upload of its own, as in the paper.
    #[default]
    PerDraw,
    /// All draws of a client share one upload, which arrives or fails as a whole.
    PerClient,
}
