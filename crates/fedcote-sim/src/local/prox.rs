//! FedProx (Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020).
//!
//! A client minimises F_i(w) + μ/2 ‖w − w̄‖²: the gradient gains μ (w − w̄).

use crate::part::{LocalUpdate, RoundContext, State};
use crate::scheme::settings::parameters;
use crate::task::Correction;

parameters! {
    /// Parameters of `local = "prox"`.
    pub struct ProxSettings {
        /// The coefficient μ of the proximal term.
        mu: f64 = 0.01, in 0.0..=1e30;
    }
}

/// SGD with a proximal term.
pub struct Prox {
    /// The coefficient μ.
    pub mu: f32,
}

impl LocalUpdate for Prox {
    fn correction(&self, _context: &RoundContext, _client: u32) -> Correction<'_> {
        Correction { linear: Vec::new(), proximal: self.mu }
    }
}

impl State for Prox {}
