//! What a client does between receiving the global model and sending its own.

mod prox;
mod scaffold;
mod sgd;

pub use prox::Prox;
pub use scaffold::Scaffold;
pub use sgd::Sgd;

use crate::part::LocalUpdate;
use crate::scheme::{LocalKind, Scheme};

/// The local update of a scheme, for a model of this many parameters.
pub fn build(scheme: &Scheme, parameters: usize) -> Box<dyn LocalUpdate> {
    match scheme.local {
        LocalKind::Sgd => Box::new(Sgd),
        LocalKind::Prox => Box::new(Prox { mu: scheme.config.mu.unwrap_or(0.01) as f32 }),
        LocalKind::Scaffold => Box::new(Scaffold::new(scheme.config.control, parameters)),
    }
}
