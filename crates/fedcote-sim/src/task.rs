//! What is learnt: the [`Task`] that the engine trains without knowing its model, data or trainer.
//!
//! A task holds the clients' data and knows how to train on it. Whatever a scheme asks of local training is data,
//! too: a [`Job`] says which client trains, for how many steps, from where, and which [`Correction`] its gradients
//! get. All jobs of a round reach the task at once, so that it may spread them over threads, put them into one batch
//! on a GPU, or send them to other machines; or as many as it says.

use std::borrow::Cow;
use std::sync::Arc;

use fedcote::random::Key;
pub use fedcote_learn::models::Parameter;

use crate::Error;
use crate::own::OwnSchemes;

/// What a federation learns: models over one flat slice of parameters, and clients that train them.
///
/// Results must depend on the arguments alone, never on the order or number of threads.
pub trait Task: Send + Sync {
    /// Names, shapes and offsets of the parameters: contiguous, in order, covering the whole slice.
    fn parameters(&self) -> &[Parameter];

    /// How many samples of each class each client has.
    fn label_counts(&self) -> LabelCounts;

    /// The model that training starts from, for the stream of this key.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    fn initial(&self, key: Key) -> Result<Vec<f32>, Error>;

    /// Trains jobs of a round: sets `model` and `finite` of each.
    ///
    /// # Errors
    ///
    /// When training itself fails, as opposed to leading to numbers that are not finite.
    fn train(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error>;

    /// How many jobs it trains at the same time: more of them in one call only cost memory.
    fn jobs_at_once(&self) -> usize {
        usize::MAX
    }

    /// The mean loss of a model on the data of each of these clients.
    ///
    /// # Errors
    ///
    /// When the task cannot tell.
    fn losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error>;

    /// The root of the mean squared loss of a model over the samples of each of these clients. A task that knows no losses
    /// of single samples has the mean loss in its place.
    ///
    /// # Errors
    ///
    /// When the task cannot tell.
    fn rms_losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        self.losses(model, clients)
    }

    /// How good a model is, on all training data or on the test data.
    ///
    /// # Errors
    ///
    /// When the evaluation fails.
    fn evaluate(&self, model: &[f32], on_training_data: bool) -> Result<Scores, Error>;

    /// The name of the instruction set that it computes with, for the record: between different ones the last digits
    /// may differ.
    fn instructions(&self) -> &'static str {
        fedcote_learn::Path::best().name()
    }

    /// The number of parameters.
    fn len(&self) -> usize {
        self.parameters().last().map_or(0, |last| last.offset + last.len())
    }

    /// Whether there is nothing to learn.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Named numbers that say how good a model is. `accuracy` (a share of 1) and `loss` are the ones that tables and
/// figures know.
pub type Scores = Vec<(String, f64)>;

/// How many samples of each class each client has.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelCounts {
    /// The number of classes.
    pub classes: usize,
    /// Clients × classes, one client after the other.
    pub counts: Vec<f64>,
}

/// The local training of one client in one round.
#[derive(Debug)]
pub struct Job<'a> {
    /// The client.
    pub client: u32,
    /// The round, from 1.
    pub round: u32,
    /// The number of local steps, E.
    pub steps: u32,
    /// Samples per mini-batch; a client that has fewer uses all it has.
    pub batch: usize,
    /// The step size γ.
    pub rate: f32,
    /// The key of the mini-batches' random numbers.
    pub key: Key,
    /// What is added to each gradient.
    pub correction: Correction<'a>,
    /// The model to start from, if it is not the global one.
    pub start: Option<&'a [f32]>,
    /// Result: the trained model.
    pub model: Vec<f32>,
    /// Result: whether every loss and every parameter is a finite number. A model that is not counts as a failed
    /// upload.
    pub finite: bool,
}

/// What a scheme adds to the gradient of every local step: Σ factor · vector + μ (w − w̄), w being the current local
/// model and w̄ the global one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Correction<'a> {
    /// Factors and vectors of model size (control variates).
    pub linear: Vec<(f32, Cow<'a, [f32]>)>,
    /// The coefficient μ of the proximal term.
    pub proximal: f32,
}

impl<'a> Correction<'a> {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.linear.is_empty() && self.proximal == 0.0
    }

    /// Both corrections together.
    #[must_use]
    pub fn and(mut self, other: Correction<'a>) -> Self {
        self.linear.extend(other.linear);
        self.proximal += other.proximal;
        self
    }

    /// Adds the correction to a gradient at `weights`.
    pub fn apply(&self, weights: &[f32], global: &[f32], gradient: &mut [f32]) {
        for (factor, vector) in &self.linear {
            crate::vector::add(gradient, *factor, vector);
        }
        if self.proximal != 0.0 {
            for ((gradient, weight), global) in gradient.iter_mut().zip(weights).zip(global) {
                *gradient += self.proximal * (weight - global);
            }
        }
    }
}

/// Where the tasks of a comparison come from: one for each seed.
pub trait Tasks: Send + Sync {
    /// The task of a seed.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    fn task(&self, seed: u64) -> Result<Arc<dyn Task>, Error>;

    /// Schemes with parts of their own, if there are any.
    fn schemes(&self) -> Option<Arc<dyn OwnSchemes>> {
        None
    }

    /// What tells this task from another one, for `config.toml`: an interrupted run goes on only with the same
    /// identity. `None` for a task that the scenario describes in full.
    fn identity(&self) -> Option<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_add_up_as_by_hand() {
        let (one, two) = ([1.0, 2.0], [10.0, 20.0]);
        let linear = Correction { linear: vec![(0.5, one.as_slice().into())], proximal: 0.0 };
        let proximal = Correction { linear: vec![(-1.0, two.as_slice().into())], proximal: 2.0 };
        assert!(Correction::default().is_empty() && !linear.is_empty() && !proximal.is_empty());
        let mut gradient = [1.0, 1.0];
        // 1 + 0.5·1 − 10 + 2·(3 − 1) and 1 + 0.5·2 − 20 + 2·(0 − 1)
        linear.and(proximal).apply(&[3.0, 0.0], &[1.0, 1.0], &mut gradient);
        assert_eq!(gradient, [-4.5, -20.0]);
    }
}
