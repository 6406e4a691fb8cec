//! What a client does in a round: a few steps of mini-batch gradient descent.

use fedcote::random::{Key, Stream};
use rand::RngExt;

use crate::{
    data::Split,
    models::{Batch, Model, Workspace},
};

/// How a client trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalSettings {
    /// The number of steps, the paper's E.
    pub steps: usize,
    /// Samples a mini-batch; a client with fewer uses all it has.
    pub batch: usize,
    /// The step size.
    pub rate: f32,
}

/// What came of a client's training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalOutcome {
    /// The mean loss over the steps, each before its step was taken.
    pub loss: f64,
    /// Whether every loss and every weight is a finite number.
    pub finite: bool,
}

/// Buffers for local training, reused from client to client.
pub struct Trainer {
    inputs: Vec<f32>,
    labels: Vec<u8>,
    gradient: Vec<f32>,
    /// Positions in the client's list of samples, in the order of the draws so far.
    order: Vec<u32>,
    chosen: Vec<u32>,
    workspace: Workspace,
}

impl Trainer {
    /// Buffers for mini-batches of up to this many samples.
    pub fn new(model: &dyn Model, batch: usize) -> Self {
        Self {
            inputs: vec![0.0; batch * model.inputs()],
            labels: vec![0; batch],
            gradient: vec![0.0; model.len()],
            order: Vec::new(),
            chosen: Vec::with_capacity(batch),
            workspace: model.workspace(batch),
        }
    }

    /// Draws a mini-batch without replacement: the first steps of a Fisher–Yates shuffle, which is fair
    /// whatever order earlier draws left.
    fn draw(&mut self, samples: &[u32], batch: usize, stream: &mut Stream) {
        self.chosen.clear();
        if samples.len() <= batch {
            self.chosen.extend_from_slice(samples);
            return;
        }
        for place in 0..batch {
            let other = stream.random_range(place as u32..samples.len() as u32);
            self.order.swap(place, other as usize);
            self.chosen.push(samples[self.order[place] as usize]);
        }
    }
}

/// Trains the weights in place on a client's samples, w ← w − rate · g, with a fresh mini-batch each step.
///
/// `adjust` sees the weights and may change the gradient before the step is taken (a proximal term, a control
/// variate). Mini-batches come from the stream of `key`.
///
/// # Panics
///
/// Without samples, with a batch of zero or above the trainer's, or with weights that are not the model's.
#[allow(clippy::too_many_arguments)] // each is one thing the caller decides
pub fn local(
    model: &dyn Model,
    weights: &mut [f32],
    split: &Split,
    samples: &[u32],
    settings: &LocalSettings,
    key: Key,
    adjust: &mut dyn FnMut(&[f32], &mut [f32]),
    trainer: &mut Trainer,
) -> LocalOutcome {
    assert!(!samples.is_empty() && settings.batch > 0, "a client trains on at least one sample");
    let size = settings.batch.min(samples.len());
    let mut stream = key.stream();
    trainer.order.clear();
    trainer.order.extend(0..samples.len() as u32);
    let background = split.background();
    let mut sum = 0.0;
    for _ in 0..settings.steps {
        trainer.draw(samples, settings.batch, &mut stream);
        let inputs = &mut trainer.inputs[..size * model.inputs()];
        let labels = &mut trainer.labels[..size];
        split.gather(&trainer.chosen, inputs, labels);
        let batch = Batch { inputs, labels, background };
        let loss =
            model.loss_and_gradient(weights, &batch, &mut trainer.gradient, &mut trainer.workspace);
        adjust(weights, &mut trainer.gradient);
        for (weight, slope) in weights.iter_mut().zip(&trainer.gradient) {
            *weight -= settings.rate * slope;
        }
        sum += f64::from(loss);
    }
    let loss = if settings.steps == 0 { 0.0 } else { sum / settings.steps as f64 };
    let finite = loss.is_finite() && weights.iter().all(|weight| weight.is_finite());
    LocalOutcome { loss, finite }
}
