//! Client selection probabilities for federated learning over unreliable networks.
#![deny(missing_docs)]

pub mod appearance;
pub mod bound;
mod chunks;
pub mod divergence;
pub mod draw;
pub mod enumeration;
mod error;
pub mod estimate;
pub mod federation;
pub mod freshness;
pub mod invert;
pub mod matched;
pub mod newton;
mod pair;
pub mod privacy;
mod procedure;
pub mod random;
pub mod solve;
mod special;
pub mod target;

pub use error::{Error, MAX_DRAWS, SettingError};
pub use federation::{Federation, FederationSpec};
pub use procedure::{Draws, Uploads};
pub use solve::{Evaluation, Method, Options, Solution, Warning, evaluate, evaluate_for, select};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
