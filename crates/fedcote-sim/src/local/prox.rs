//! FedProx (Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020).
//!
//! A client minimises F_i(w) + μ/2 ‖w − w̄‖²: the gradient gains μ (w − w̄).

use fedcote_learn::train::{LocalOutcome, Trainer};

use super::sgd;
use crate::part::{LocalUpdate, Scene};
use crate::scheme::settings::parameters;

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
    fn update(
        &self,
        scene: &Scene,
        client: u32,
        model: &mut [f32],
        trainer: &mut Trainer,
    ) -> LocalOutcome {
        sgd::run(scene, client, model, trainer, &mut |weights, gradient| {
            for ((gradient, weight), global) in gradient.iter_mut().zip(weights).zip(scene.global) {
                *gradient += self.mu * (weight - global);
            }
        })
    }
}
