//! Federated learning under transmission failure: rounds, schemes, scenarios, run folders.
//!
//! A [`Scenario`] describes a comparison; [`compare`](comparison::compare) runs it. A scheme is three
//! [parts](part), each one file; one round is [`Engine::step`].
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use fedcote_sim::comparison::{Control, Event, RunId, Shard, compare};
//! use fedcote_sim::{Classifications, Scenario};
//!
//! let overrides = ["rounds=3", "data.set=synthetic", "data.samples=400", "seeds=[1]"];
//! let scenario = Scenario::load("quickstart", &overrides.map(String::from))?;
//! let stop = AtomicBool::new(false);
//! let control =
//!     Control { threads: 1, remote: None, resume: false, shard: Shard::ALL, stop: &stop, command: "example".into(), tensorboard: false };
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("runs");
//! let tasks = Classifications::load(&scenario)?;
//! let summary = compare(&scenario, &tasks, &out, &control, &|_: &RunId, _: Event| ())?;
//! assert_eq!(summary.expect("not interrupted").schemes[0].name, "fedavg");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

pub mod aggregation;
mod classification;
pub mod clock;
pub mod comparison;
mod context;
mod engine;
mod error;
pub mod folder;
#[cfg(test)]
mod fuzz;
pub mod hostile;
pub mod local;
pub mod own;
pub mod part;
mod plan;
mod play;
mod privacy;
pub mod remote;
mod report;
mod runner;
pub mod saved;
pub mod scenario;
pub mod scheme;
pub mod selection;
pub mod slab;
pub mod statistics;
pub mod stretch;
pub mod summary;
pub mod sweep;
pub mod task;
pub mod tensorboard;
pub mod vector;
pub mod worker;
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
