//! The network between the clients of a federation and its server: failure probabilities, uploads, positions.
//!
//! A [`NetworkConfig`] describes a network, a [`Network`] answers three questions about it: with what
//! probability does each client's upload fail in a round ([`Network::failures`]), does this very attempt
//! arrive ([`Network::arrives`]), and where is everybody ([`Network::positions`]). The defaults are the
//! cell of the FedCote paper: 4G, 5G and Wi-Fi clients inside and outside a building.
//!
//! ```
//! use fedcote::random::{Key, Purpose};
//! use fedcote_radio::{Network, NetworkConfig};
//!
//! let config = NetworkConfig { outdoor_excess_loss_db: 22.0, ..Default::default() };
//! let network = Network::new(&config, 20, 23_860, 1, ".".as_ref())?;
//! assert_eq!(network.rate_bps(), 7_635_200.0);
//!
//! let mut failures = Vec::new();
//! network.failures(0, &mut failures);
//! let key = Key::new(1, Purpose::Upload).client(19);
//! println!("client 20 fails with probability {:.3}", failures[19]);
//! println!("its first upload arrives: {}", network.arrives(0, 19, key));
//! # Ok::<(), fedcote_radio::Error>(())
//! ```
//!
//! Everything is a function of the configuration, the seed, the round and the client: any round can be
//! asked for directly, in any order, on any number of threads, with the same bits.
#![deny(missing_docs)]

mod availability;
mod check;
mod config;
mod error;
mod fading;
mod geometry;
mod groups;
pub mod import;
mod link;
mod mobility;
mod network;
mod radio;
mod standard;
mod stragglers;
mod trace;

pub use availability::{
    Availability, AvailabilityConfig, Chance, FlgoMode, Known, Labels, Pattern, Presence, Recipe,
};
pub use config::{
    AfterTrace, ComputeTime, GroupConfig, Kind, Mobility, NetworkConfig, PerClient, StationConfig,
    Stragglers,
};
pub use error::Error;
pub use fading::Rayleigh;
pub use geometry::{Area, Point};
pub use link::{LinkBudget, outage};
pub use network::{Layout, Network, Place, Source, Upload};
pub use standard::{PRESETS, ShadowingRange, Standard, StandardConfig};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
