//! What a client does in a round: a few steps of mini-batch gradient descent.

use fedcote::random::{Key, Purpose, Stream};
use rand::RngExt;

use crate::{
    augment::Augmentation,
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
    order: Vec<u32>,
    chosen: Vec<u32>,
    workspace: Workspace,
    augmentation: Augmentation,
    image: Vec<f32>,
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
            augmentation: Augmentation::default(),
            image: Vec::new(),
        }
    }

    /// The same, with mini-batches that are shifted and mirrored.
    pub fn augmented(mut self, augmentation: Augmentation) -> Self {
        self.augmentation = augmentation;
        self
    }
}

/// Draws the mini-batches of a client, as positions in its list of samples.
#[derive(Debug)]
pub struct Sampler {
    /// Positions in the order that the draws so far left.
    order: Vec<u32>,
    stream: Stream,
}

impl Sampler {
    /// Mini-batches of this many samples, by the random numbers of a key's stream.
    pub fn new(samples: u32, stream: Stream) -> Self {
        Self::within(Vec::new(), samples, stream)
    }

    /// The same in a buffer that is there already.
    fn within(mut order: Vec<u32>, samples: u32, stream: Stream) -> Self {
        order.clear();
        order.extend(0..samples);
        Self { order, stream }
    }

    /// Draws a mini-batch without replacement: the first steps of a Fisher–Yates shuffle, which is fair
    /// whatever order earlier draws left. All samples in order if there are not more than `batch`.
    pub fn draw(&mut self, batch: usize) -> &[u32] {
        let samples = self.order.len();
        if samples <= batch {
            return &self.order;
        }
        for place in 0..batch {
            let other = self.stream.random_range(place as u32..samples as u32);
            self.order.swap(place, other as usize);
        }
        &self.order[..batch]
    }
}

/// Trains the weights in place on a client's samples, w ← w − rate · g, with a fresh mini-batch each step.
///
/// `adjust` sees the weights and may change the gradient before the step is taken (a proximal term, a control
/// variate). Mini-batches come from the stream of `key`; what augmentation draws has a stream of its own, so that it
/// changes no mini-batch.
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
    let order = std::mem::take(&mut trainer.order);
    let mut sampler = Sampler::within(order, samples.len() as u32, key.stream());
    let mut changes = key.purpose(Purpose::Augmentation).stream();
    let background = split.background();
    let mut sum = 0.0;
    for _ in 0..settings.steps {
        trainer.chosen.clear();
        trainer.chosen.extend(sampler.draw(settings.batch).iter().map(|&at| samples[at as usize]));
        let inputs = &mut trainer.inputs[..size * model.inputs()];
        let labels = &mut trainer.labels[..size];
        split.gather(&trainer.chosen, inputs, labels);
        trainer.augmentation.apply(split.shape, inputs, &mut changes, &mut trainer.image);
        let batch = Batch { inputs, labels, background };
        let loss =
            model.loss_and_gradient(weights, &batch, &mut trainer.gradient, &mut trainer.workspace);
        adjust(weights, &mut trainer.gradient);
        for (weight, slope) in weights.iter_mut().zip(&trainer.gradient) {
            *weight -= settings.rate * slope;
        }
        sum += f64::from(loss);
    }
    trainer.order = sampler.order;
    let loss = if settings.steps == 0 { 0.0 } else { sum / settings.steps as f64 };
    let finite = loss.is_finite() && weights.iter().all(|weight| weight.is_finite());
    LocalOutcome { loss, finite }
}
