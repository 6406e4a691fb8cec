//! FedAvg's selection (McMahan et al., AISTATS 2017, in the form of Li et al., ICLR 2020): K draws with
//! replacement, s = p.

use fedcote::Draws;

use super::drawing::Drawing;
use crate::Error;
use crate::part::{Count, Probabilities, RoundContext, Selection, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `selection = "weights"`.
    pub struct WeightsSettings {
        /// How clients are drawn from selection probabilities.
        draws: Draws = Draws::Independent;
    }
}

/// Draws in proportion to the weights.
pub struct Weights(Drawing);

impl Weights {
    pub(super) fn new(drawing: Drawing) -> Self {
        Self(drawing)
    }
}

impl Selection for Weights {
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        if self.0.stale(context) {
            let weights = context.federation.weights();
            self.0.set(context, among_known(context, weights), weights.to_vec())?;
        }
        Ok(())
    }

    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        self.0.draw(context, redraw)
    }

    fn probabilities(&self) -> Option<Probabilities<'_>> {
        self.0.probabilities()
    }
}

impl State for Weights {}

/// The weights, as far as the server knows only of those who are there.
fn among_known(context: &RoundContext, weights: &[f64]) -> Vec<f64> {
    let known = context.world.network.availability().is_some_and(|found| found.is_known_now());
    if !known || !context.available.contains(&true) {
        return weights.to_vec();
    }
    let there = |(weight, there): (&f64, &bool)| if *there { *weight } else { 0.0 };
    let there: Vec<f64> = weights.iter().zip(context.available).map(there).collect();
    let total: f64 = there.iter().sum();
    there.into_iter().map(|weight| weight / total).collect()
}
