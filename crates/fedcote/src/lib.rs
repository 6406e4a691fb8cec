//! Client selection for federated learning over networks that lose uploads.
//!
//! When clients fail with different probabilities, the average of what arrives no longer has the label mix of the data.
//! Given how many samples of each label every client holds and how often its uploads fail, this crate finds selection
//! probabilities that make it right again. It does no I/O, reads no clock and has no global randomness: same seed, same bits,
//! whatever the number of threads.
//!
//! # Once
//!
//! ```
//! use fedcote::{Federation, Options, evaluate, select};
//!
//! // Three clients, two labels; the only holder of label 1 fails most of the time.
//! let federation = Federation::new([[100.0, 0.0], [100.0, 0.0], [0.0, 200.0]], [0.1, 0.2, 0.7])?;
//!
//! // Drawing 10 clients per round by weight, as FedAvg does, label 1 is under-represented …
//! let by_weight = evaluate(&federation, 10, federation.weights())?;
//! assert!(by_weight.label_divergence > 0.1);
//!
//! // … with these probabilities it is not. `optimality` certifies that none are better.
//! let solution = select(&federation, 10, &Options::new())?;
//! assert!(solution.label_divergence < 1e-9 && solution.optimality < 1e-9);
//! assert!(solution.selection[2] > 0.7);
//! # Ok::<(), fedcote::Error>(())
//! ```
//!
//! # Round after round
//!
//! [`Selector`] is for a running federation: clients come and go, failure probabilities are estimated from who answered, and the
//! whole state can be saved and restored.
//!
//! ```
//! use fedcote::{Options, Selector};
//!
//! let mut selector = Selector::new(7, Default::default(), Options::new())?;
//! let phone = selector.join();
//! let tablet = selector.join();
//! selector.set_labels(phone, &[100.0, 0.0])?;
//! selector.set_labels(tablet, &[0.0, 100.0])?;
//! for _round in 0..20 {
//!     for (client, _count) in selector.select(&[phone, tablet], 4)? {
//!         let arrived = client == phone; // ask the network
//!         selector.observe(client, arrived)?;
//!     }
//! }
//! assert!(selector.failure(tablet)? > selector.failure(phone)?);
//! # Ok::<(), fedcote::Error>(())
//! ```
//!
//! # Where things are
//!
//! | | |
//! |---|---|
//! | [`Federation`] | clients, label counts and failure probabilities, checked |
//! | [`Groups`] | clients that fail together, with their access point or cell |
//! | [`select()`], [`Options`], [`Solution`] | selection probabilities for one moment |
//! | [`evaluate`], [`evaluate_for`] | what given probabilities lead to |
//! | [`Selector`] | selection for a running federation |
//! | [`draw`] | drawing clients from probabilities |
//! | [`estimate`] | failure probabilities from arrivals and silences |
//! | [`matched`] | aggregation weights that fit the labels of those who arrived |
//! | [`privacy`] | label counts that say little about any one sample; ε of releases with Gaussian noise |
//! | [`appearance`], [`divergence`], [`bound`] | the theory behind it |
//! | [`random`], [`rand`] | random numbers named by what they are for |
//!
//! # Features
//!
//! Both on by default: `rayon` (all cores for large federations; the results are the same without) and `serde` (options, solutions,
//! estimators and [`Selector`] can be saved and restored).
#![deny(missing_docs)]

pub mod appearance;
pub mod bound;
mod chunks;
pub mod divergence;
pub mod draw;
#[doc(hidden)] // an oracle: for tests, and for the paper's account of its cost
pub mod enumeration;
mod error;
pub mod estimate;
mod federation;
mod freshness;
mod groups;
#[doc(hidden)] // for tests and the paper's limit of many draws
pub mod invert;
pub mod matched;
mod newton;
mod pair;
pub mod privacy;
mod procedure;
pub mod random;
mod selector;
mod solve;
mod special;
mod target;

pub use error::{Error, MAX_SELECTED, SettingError};
pub use federation::{Federation, FederationSpec};
pub use groups::Groups;
pub use procedure::{Draws, Uploads};
/// The crate whose generators [`draw`] and [`privacy`] take.
pub use rand;
pub use selector::{Latest, Selector};
pub use solve::{
    Aim, Evaluation, MAX_EFFICIENCY, Method, Options, Solution, Warning, eligible, evaluate,
    evaluate_for, select, select_from, select_or_all,
};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
