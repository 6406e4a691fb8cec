//! What a client and the evaluator compute: data sets, partitions, models, local training, evaluation.
//!
//! A model's parameters are one flat `[f32]` with a table of names and shapes; images stay bytes until a
//! mini-batch is gathered; inputs are channels last (NHWC). Every function is deterministic in its
//! arguments: the number of threads never changes a bit of a result.
#![deny(missing_docs)]

pub mod checkpoint;
pub mod data;
mod error;
mod evaluate;
mod kernels;
pub mod models;
mod partition;
pub mod train;

pub use error::Error;
pub use evaluate::{ClassEvaluation, Evaluation, evaluate, gradient_over, loss_over};
pub use kernels::Path;
pub use partition::{Partition, partition};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
