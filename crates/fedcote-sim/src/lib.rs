//! Federated learning under transmission failure: rounds, schemes, scenarios, run folders.
//!
//! A [`Scenario`] describes a comparison; [`compare`](comparison::compare) runs it. A scheme is three
//! [parts](part), each one file; one round is [`Engine::step`].
#![deny(missing_docs)]

pub mod aggregation;
pub mod comparison;
mod engine;
mod error;
pub mod folder;
#[cfg(test)]
mod fuzz;
pub mod hostile;
pub mod local;
pub mod part;
mod play;
mod report;
pub mod saved;
pub mod scenario;
pub mod scheme;
pub mod selection;
pub mod slab;
mod stage;
pub mod summary;
pub mod vector;
mod world;

pub use engine::{Engine, Outcome};
pub use error::Error;
pub use report::RoundReport;
pub use scenario::Scenario;
pub use world::World;

/// The code of the guides, compiled and run.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/guide/rust.md")]
    struct Rust;
    #[doc = include_str!("../../../docs/guide/network.md")]
    struct Network;
}
