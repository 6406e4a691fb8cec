//! Federated learning under transmission failure: rounds, schemes, scenarios, run folders.
//!
//! A [`Scenario`] describes a comparison; [`compare`](comparison::compare) runs it. A scheme is three
//! [parts](part), each one file; one round is [`Engine::step`].
#![deny(missing_docs)]

pub mod aggregation;
mod classification;
pub mod comparison;
mod context;
mod engine;
mod error;
pub mod folder;
#[cfg(test)]
mod fuzz;
pub mod hostile;
pub mod local;
pub mod part;
mod plan;
mod report;
mod runner;
pub mod saved;
pub mod scenario;
pub mod scheme;
pub mod selection;
pub mod slab;
pub mod summary;
pub mod task;
pub mod vector;
mod world;

pub use classification::{Classification, Classifications};
pub use engine::{Engine, Outcome};
pub use error::Error;
pub use report::RoundReport;
pub use scenario::Scenario;
pub use task::{Task, Tasks};
pub use world::World;

/// The code of the guides and of the README, compiled and run.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/guide/rust.md")]
    struct Rust;
    #[doc = include_str!("../../../docs/guide/network.md")]
    struct Network;
    #[doc = include_str!("../README.md")]
    struct Readme;
}
