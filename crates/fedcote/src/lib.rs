//! Client selection probabilities for federated learning over unreliable networks.
#![deny(missing_docs)]

pub mod draw;
mod error;
pub mod estimate;
pub mod random;
mod special;

pub use error::Error;
