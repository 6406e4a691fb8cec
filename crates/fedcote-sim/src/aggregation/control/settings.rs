//! Parameters of `aggregation = "control"`.

use serde::{Deserialize, Serialize};

use crate::scheme::settings::{choices, parameters};

choices! {
    /// What the server remembers.
    pub enum MemoryKind in "memory" {
        /// The latest update of each client: one vector of model size per client heard from.
        "clients" => Clients,
        /// One vector of model size per class, whatever the number of clients.
        "labels" => Labels(LabelSettings),
    }
}

choices! {
    /// How much of the correction is sent.
    #[derive(Copy, Eq)]
    pub enum CorrectionKind in "correction" {
        /// All of it while the server sees that it is safe, else none.
        "auto" => Auto,
        /// All of it, always: unstable with deep models.
        "full" => Full,
        /// None: plain memory.
        "none" => None,
    }
}

parameters! {
    /// Parameters of `aggregation = "control"`.
    pub struct ControlSettings {
        /// With `control` also "auto": max(1, 3φ^⅔), φ being the share of the weight that arrives.
        server_rate: ServerRate = ServerRate::Fixed(1.0), in 0.0..=1e30;
        /// What the server remembers.
        memory: MemoryKind = MemoryKind::Clients;
        /// How much of the correction is sent.
        correction: CorrectionKind = CorrectionKind::Auto;
    }
}

parameters! {
    /// Parameters of `memory = "labels"`.
    pub struct LabelSettings {
        /// The share μ of an arrival's error that is corrected.
        label_step: f64 = 0.5, in 0.0..=1.0;
    }
}

/// A step size on the server, or the word "auto".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number, or \"auto\"")]
pub enum ServerRate {
    /// This step size.
    Fixed(f64),
    /// One that follows the share of weight that arrives.
    Auto(Auto),
}

/// The word "auto".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// "auto".
    Auto,
}
