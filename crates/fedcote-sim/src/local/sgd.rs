//! Plain mini-batch SGD: E steps of w ← w − γ ∇F_i(w; ξ).

use fedcote_learn::train::{self, LocalOutcome, Trainer};

use crate::part::{LocalUpdate, Scene};

/// Plain mini-batch SGD.
pub struct Sgd;

impl LocalUpdate for Sgd {
    fn update(
        &self,
        scene: &Scene,
        client: u32,
        model: &mut [f32],
        trainer: &mut Trainer,
    ) -> LocalOutcome {
        run(scene, client, model, trainer, &mut |_, _| {})
    }
}

/// E steps with a hook that may add to the gradient, given the current model.
pub(super) fn run(
    scene: &Scene,
    client: u32,
    model: &mut [f32],
    trainer: &mut Trainer,
    adjust: &mut dyn FnMut(&[f32], &mut [f32]),
) -> LocalOutcome {
    let world = scene.world;
    let (settings, key) = world.local_settings(scene.round, client);
    let samples = world.partition.client(client as usize);
    train::local(&*world.model, model, &world.data.train, samples, &settings, key, adjust, trainer)
}
