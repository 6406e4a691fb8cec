//! What a client does between receiving the global model and sending its own.

mod prox;
mod scaffold;
mod sgd;

pub use prox::{Prox, ProxSettings};
pub use scaffold::{AdvanceKind, ControlKind, Scaffold, ScaffoldSettings};
pub use sgd::Sgd;

use crate::part::LocalUpdate;
use crate::scheme::Scheme;
use crate::scheme::settings::choices;

choices! {
    /// What a client does.
    pub enum LocalKind in "local" {
        /// Plain mini-batch SGD.
        "sgd" => Sgd,
        /// With a proximal term towards the global model.
        "prox" => Prox(ProxSettings),
        /// With control variates.
        "scaffold" => Scaffold(ScaffoldSettings),
    }
}

/// The local update of a scheme, for a model of this many parameters.
pub fn build(scheme: &Scheme, parameters: usize) -> Box<dyn LocalUpdate> {
    match &scheme.local {
        LocalKind::Sgd => Box::new(Sgd),
        LocalKind::Prox(settings) => Box::new(Prox { mu: settings.mu as f32 }),
        LocalKind::Scaffold(settings) => Box::new(Scaffold::new(settings, parameters)),
    }
}
