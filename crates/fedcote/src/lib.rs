//! Client selection probabilities for federated learning over unreliable networks.
#![deny(missing_docs)]

pub mod random;
