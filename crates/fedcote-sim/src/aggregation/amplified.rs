//! Amplified FedAvg (Wang and Ji, "A Unified Analysis of Federated Learning with Arbitrary Client Participation", NeurIPS 2022): what a whole
//! period of participation came to is amplified.
//!
//! w̄ ← w̄ + mean_A (w_i − w̄); after every P-th round w̄ ← z + γ (w̄ − z), z ← w̄, z being the model after the last amplification (at first the initial one).
//! Rounds in which nobody arrives count towards P. The paper has P = 500, one cycle of its clients, and γ = 10 with very short steps.

use super::mean::{shares, step};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;
use crate::vector::scale_from;

parameters! {
    /// Parameters of `aggregation = "amplified"` and `"amplified-scaffold"`.
    pub struct AmplifiedSettings {
        /// The rounds P after which the progress is amplified: a period of the clients' participation.
        every: u32 = 20, in 1..;
        /// The factor γ.
        amplification: f64 = 1.5, in 0.0..=1e30;
    }
}

/// The model after the last amplification.
#[derive(Debug, Clone, Default)]
pub(super) struct Anchor(pub(super) Vec<f32>);

impl Anchor {
    /// Takes the initial model as the first anchor.
    pub(super) fn begin(&mut self, global: &[f32]) {
        if self.0.is_empty() {
            self.0 = global.to_vec();
        }
    }

    /// Amplifies after every P-th round; says whether this was one.
    pub(super) fn amplify(
        &mut self,
        settings: &AmplifiedSettings,
        round: u32,
        global: &mut [f32],
    ) -> bool {
        let due = round.is_multiple_of(settings.every);
        if due {
            scale_from(&self.0, global, settings.amplification);
            self.0.copy_from_slice(global);
        }
        due
    }

    pub(super) fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put("amplified.anchor", &self.0);
    }

    pub(super) fn restore(
        &mut self,
        saved: &mut Saved<'_>,
        parameters: usize,
    ) -> Result<(), String> {
        let begun = saved.tensors.get("amplified.anchor").is_some_and(|anchor| !anchor.is_empty());
        self.0 = saved.take("amplified.anchor", if begun { parameters } else { 0 })?;
        Ok(())
    }
}

/// The mean of what arrived, amplified once a period.
pub struct Amplified {
    settings: AmplifiedSettings,
    anchor: Anchor,
    parameters: usize,
}

impl Amplified {
    /// At its beginning.
    pub fn new(settings: &AmplifiedSettings, parameters: usize) -> Self {
        Self { settings: settings.clone(), anchor: Anchor::default(), parameters }
    }
}

impl Aggregation for Amplified {
    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        self.anchor.begin(global);
        let shares = shares(arrivals, |_| 1.0);
        step(arrivals, &shares, 1.0, global);
        self.anchor.amplify(&self.settings, context.round, global);
        Ok(shares)
    }
}

impl State for Amplified {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.anchor.save(saved);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.anchor.restore(saved, self.parameters)
    }
}
