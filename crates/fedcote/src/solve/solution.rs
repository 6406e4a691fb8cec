//! What was found.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{Method, Warning};

/// Selection probabilities and what they lead to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Solution {
    /// The method that found them.
    pub method: Method,
    /// Draws per round, `K`.
    pub selected: u64,
    /// Selection probabilities, `s`.
    pub selection: Vec<f64>,
    /// Effective appearance, `β̄`. For freshness the target: the server averages all updates that it remembers.
    pub appearance: Vec<f64>,
    /// The appearance aimed at; for the gradient method, the one it found.
    pub target: Vec<f64>,
    /// Who may be selected.
    pub eligible: Vec<bool>,
    /// `χ²(ᾱ‖α_g)`.
    pub label_divergence: f64,
    /// `χ²(β̄‖p)`.
    pub weight_divergence: f64,
    /// `K Σ s (1 − ε)`: uploads per round that arrive on average.
    pub expected_arrivals: f64,
    /// The residual that certifies the optimum, before exploration. Exact: the largest violation of the optimality
    /// conditions of the target, or of `β̄(s) = β` if that is larger. Gradient: the projected gradient.
    pub optimality: f64,
    /// Multipliers of the exact method's target: a start for the next solve.
    pub multipliers: Vec<f64>,
    /// What deserves attention.
    pub warnings: Vec<Warning>,
}

/// What given selection probabilities lead to.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Evaluation {
    /// Draws per round, `K`.
    pub selected: u64,
    /// Effective appearance, `β̄`.
    pub appearance: Vec<f64>,
    /// `χ²(ᾱ‖α_g)`.
    pub label_divergence: f64,
    /// `χ²(β̄‖p)`.
    pub weight_divergence: f64,
    /// `K Σ s (1 − ε)`: uploads per round that arrive on average.
    pub expected_arrivals: f64,
    /// What deserves attention.
    pub warnings: Vec<Warning>,
}
