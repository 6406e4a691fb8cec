//! Losses, accuracies and gradients over whole sets of samples.
//!
//! Samples are taken in chunks of fixed size, chunks go to threads, and their results are added in order: the
//! number of threads changes no bit.

use rayon::prelude::*;

use crate::{
    data::Split,
    models::{Batch, Model, Workspace, sample_losses},
};

/// Samples a chunk: a mini-batch's worth, which stays in a core's cache.
const CHUNK: usize = 128;

/// How good a model is on a set.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The mean cross-entropy.
    pub loss: f64,
    /// The share of samples whose label has the highest logit.
    pub accuracy: f64,
    /// The same for the samples of each class.
    pub per_class: Vec<ClassEvaluation>,
}

/// How good a model is on the samples of one class. Without samples, loss and accuracy are zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClassEvaluation {
    /// The number of samples.
    pub samples: u64,
    /// The mean cross-entropy.
    pub loss: f64,
    /// The share of samples whose label has the highest logit.
    pub accuracy: f64,
}

/// Loss and accuracy over all samples of a split, on all threads.
pub fn evaluate(model: &dyn Model, weights: &[f32], split: &Split) -> Evaluation {
    let chunks = split.len().div_ceil(CHUNK);
    let sums: Vec<Vec<Tally>> = (0..chunks)
        .into_par_iter()
        .map_init(
            || Reader::new(model),
            |reader, chunk| {
                let samples = (chunk * CHUNK) as u32..((chunk + 1) * CHUNK).min(split.len()) as u32;
                reader.tally(model, weights, split, samples)
            },
        )
        .collect();
    let mut classes = vec![Tally::default(); split.classes];
    for tally in sums {
        classes.iter_mut().zip(tally).for_each(|(sum, part)| sum.add(part));
    }
    let mut all = Tally::default();
    classes.iter().for_each(|&class| all.add(class));
    let ClassEvaluation { loss, accuracy, .. } = all.mean();
    Evaluation { loss, accuracy, per_class: classes.iter().map(Tally::mean).collect() }
}

/// The mean loss over these samples, on all threads. Zero without samples.
pub fn loss_over(model: &dyn Model, weights: &[f32], split: &Split, samples: &[u32]) -> f64 {
    let sums: Vec<f64> = samples
        .par_chunks(CHUNK)
        .map_init(
            || Reader::new(model),
            |reader, samples| {
                let tally = reader.tally(model, weights, split, samples.iter().copied());
                tally.iter().map(|class| class.loss).sum::<f64>()
            },
        )
        .collect();
    if samples.is_empty() { 0.0 } else { sums.iter().sum::<f64>() / samples.len() as f64 }
}

/// The root of the mean squared loss over these samples, on all threads. Zero without samples.
pub fn rms_loss_over(model: &dyn Model, weights: &[f32], split: &Split, samples: &[u32]) -> f64 {
    let sums: Vec<f64> = samples
        .par_chunks(CHUNK)
        .map_init(
            || Reader::new(model),
            |reader, samples| {
                let tally = reader.tally(model, weights, split, samples.iter().copied());
                tally.iter().map(|class| class.squares).sum::<f64>()
            },
        )
        .collect();
    if samples.is_empty() { 0.0 } else { (sums.iter().sum::<f64>() / samples.len() as f64).sqrt() }
}

/// The mean loss over these samples and its gradient, on all threads. Zero without samples.
pub fn gradient_over(
    model: &dyn Model,
    weights: &[f32],
    split: &Split,
    samples: &[u32],
) -> (f64, Vec<f32>) {
    // A group's chunks are added up on one thread, so that memory holds few gradients; which chunks make a
    // group depends on the number of samples alone.
    let group = CHUNK * samples.len().div_ceil(CHUNK).div_ceil(32).max(4);
    let sums: Vec<(f64, Vec<f64>)> = samples
        .par_chunks(group)
        .map_init(
            || (Reader::new(model), vec![0.0; model.len()]),
            |(reader, gradient), samples| {
                let (mut loss, mut sum) = (0.0, vec![0.0; model.len()]);
                for chunk in samples.chunks(CHUNK) {
                    reader.gather(model, split, chunk.iter().copied());
                    let count = chunk.len() as f64;
                    let batch = reader.gathered.batch(model, split);
                    let mean =
                        model.loss_and_gradient(weights, &batch, gradient, &mut reader.workspace);
                    loss += f64::from(mean) * count;
                    sum.iter_mut()
                        .zip(&*gradient)
                        .for_each(|(sum, &part)| *sum += f64::from(part) * count);
                }
                (loss, sum)
            },
        )
        .collect();
    let mut loss = 0.0;
    let mut gradient = vec![0.0; model.len()];
    for (part, slopes) in sums {
        loss += part;
        gradient.iter_mut().zip(slopes).for_each(|(sum, part)| *sum += part);
    }
    let count = samples.len().max(1) as f64;
    (loss / count, gradient.iter().map(|&sum: &f64| (sum / count) as f32).collect())
}

/// Sums over the samples of a class.
#[derive(Clone, Copy, Default)]
struct Tally {
    samples: u64,
    correct: u64,
    loss: f64,
    squares: f64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.correct += other.correct;
        self.loss += other.loss;
        self.squares += other.squares;
    }

    fn mean(&self) -> ClassEvaluation {
        let count = self.samples.max(1) as f64;
        ClassEvaluation {
            samples: self.samples,
            loss: self.loss / count,
            accuracy: self.correct as f64 / count,
        }
    }
}

/// One thread's buffers.
struct Reader {
    gathered: Gathered,
    workspace: Workspace,
}

struct Gathered {
    samples: Vec<u32>,
    inputs: Vec<f32>,
    labels: Vec<u8>,
}

impl Gathered {
    fn batch(&self, model: &dyn Model, split: &Split) -> Batch<'_> {
        let count = self.samples.len();
        Batch {
            inputs: &self.inputs[..count * model.inputs()],
            labels: &self.labels[..count],
            background: split.background(),
        }
    }
}

impl Reader {
    fn new(model: &dyn Model) -> Self {
        let gathered = Gathered {
            samples: Vec::with_capacity(CHUNK),
            inputs: vec![0.0; CHUNK * model.inputs()],
            labels: vec![0; CHUNK],
        };
        Self { gathered, workspace: model.workspace(CHUNK) }
    }

    fn gather(&mut self, model: &dyn Model, split: &Split, samples: impl Iterator<Item = u32>) {
        let Gathered { samples: chosen, inputs, labels } = &mut self.gathered;
        chosen.clear();
        chosen.extend(samples);
        let count = chosen.len();
        split.gather(chosen, &mut inputs[..count * model.inputs()], &mut labels[..count]);
    }

    fn tally(
        &mut self,
        model: &dyn Model,
        weights: &[f32],
        split: &Split,
        samples: impl Iterator<Item = u32>,
    ) -> Vec<Tally> {
        self.gather(model, split, samples);
        let batch = self.gathered.batch(model, split);
        let logits = model.logits(weights, &batch, &mut self.workspace);
        let mut classes = vec![Tally::default(); split.classes];
        for ((loss, best), &label) in
            sample_losses(logits, batch.labels, split.classes).zip(batch.labels)
        {
            let class = &mut classes[usize::from(label)];
            class.samples += 1;
            class.correct += u64::from(best == usize::from(label));
            class.loss += f64::from(loss);
            class.squares += f64::from(loss).powi(2);
        }
        classes
    }
}
