//! FedProx (Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020).
//!
//! A client minimises F_i(w) + μ/2 ‖w − w̄‖²: the gradient gains μ (w − w̄).

use crate::part::{LocalUpdate, RoundContext, State};
use crate::task::Correction;

/// SGD with a proximal term.
pub struct Prox {
    /// The coefficient μ; 0.01 by default.
    pub mu: f32,
}

impl LocalUpdate for Prox {
    fn correction(&self, _context: &RoundContext, _client: u32) -> Correction<'_> {
        Correction { linear: Vec::new(), proximal: self.mu }
    }
}

impl State for Prox {}
