//! Data and training for federated learning: data sets, partitions, models, local training, evaluation.
//!
//! A model's parameters are one flat `[f32]` with a table of names and shapes; images stay bytes until a
//! mini-batch is gathered; inputs are channels last (NHWC). Every function is deterministic in its
//! arguments: the number of threads never changes a bit of a result.
//!
//! ```
//! use fedcote::random::{Key, Purpose};
//! use fedcote_learn::data::{DataSpec, SetKind, load};
//! use fedcote_learn::models::{ModelSpec, build};
//! use fedcote_learn::train::{LocalSettings, Trainer, local};
//! use fedcote_learn::{evaluate, partition};
//!
//! let spec = DataSpec { set: SetKind::Synthetic, samples: Some(500), ..DataSpec::default() };
//! let data = load(&spec, ".".as_ref())?;
//! let clients = partition(&spec, &data.train.labels, data.train.classes, 5, 1)?;
//!
//! // One client trains; the result is evaluated on the test set.
//! let model = build(&ModelSpec::default(), data.train.shape, data.train.classes)?;
//! let mut weights = model.initialise(Key::new(1, Purpose::Model));
//! let before = evaluate(&*model, &weights, &data.test).loss;
//! let settings = LocalSettings { steps: 20, batch: 32, rate: 0.05 };
//! let (key, mut trainer) = (Key::new(1, Purpose::Batch), Trainer::new(&*model, 32));
//! let samples = clients.client(0);
//! local(&*model, &mut weights, &data.train, samples, &settings, key, &mut |_, _| (), &mut trainer);
//! assert!(evaluate(&*model, &weights, &data.test).loss < before);
//! # Ok::<(), fedcote_learn::Error>(())
//! ```
#![deny(missing_docs)]

mod augment;
pub mod checkpoint;
pub mod data;
mod error;
mod evaluate;
mod kernels;
pub mod models;
mod partition;
pub mod train;

pub use augment::Augmentation;
pub use error::Error;
pub use evaluate::{
    ClassEvaluation, Evaluation, evaluate, gradient_over, loss_over, rms_loss_over,
};
pub use kernels::Path;
pub use partition::{Partition, partition};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
