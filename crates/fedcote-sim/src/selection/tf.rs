//! TF-Aggregation's selection (Salehi and Hossain, "Federated Learning in Unreliable and
//! Resource-Constrained Cellular Wireless Networks", 2021).
//!
//! The probabilities that minimise the variance of unbiased aggregation are s_i ∝ √(p_i / (1 − ε_i)), over
//! the clients with ε_i ≤ ε_th.

use fedcote::Draws;

use super::drawing::Drawing;
use crate::Error;
use crate::part::{Count, Probabilities, RoundContext, Selection, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `selection = "tf-aggregation"`.
    pub struct TfSettings {
        /// How clients are drawn from selection probabilities.
        draws: Draws = Draws::Independent;
        /// Clients that fail more often are left out.
        threshold: f64 = 0.85, in 0.0..=1.0;
    }
}

/// Draws that minimise the variance of unbiased aggregation.
pub struct Tf {
    threshold: f64,
    drawing: Drawing,
}

impl Tf {
    pub(super) fn new(settings: &TfSettings, drawing: Drawing) -> Self {
        Self { threshold: settings.threshold, drawing }
    }
}

/// s ∝ √(p/(1−ε)) over ε ≤ ε_th, or nothing when nobody is below the threshold.
fn probabilities(weights: &[f64], failure: &[f64], threshold: f64) -> Option<Vec<f64>> {
    let share = |(&weight, &failure): (&f64, &f64)| {
        if failure <= threshold && failure < 1.0 { (weight / (1.0 - failure)).sqrt() } else { 0.0 }
    };
    let mut selection: Vec<f64> = weights.iter().zip(failure).map(share).collect();
    let total: f64 = selection.iter().sum();
    (total > 0.0).then(|| {
        selection.iter_mut().for_each(|share| *share /= total);
        selection
    })
}

impl Selection for Tf {
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        if self.drawing.stale(context) {
            let federation = context.federation;
            let (weights, failure) = (federation.weights(), federation.failure());
            // When everyone is above the threshold, leaving them all out would leave nobody to ask.
            let selection = probabilities(weights, failure, self.threshold)
                .or_else(|| probabilities(weights, failure, 1.0))
                .unwrap_or_else(|| weights.to_vec());
            self.drawing.set(context, selection, weights.to_vec())?;
        }
        Ok(())
    }

    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        self.drawing.draw(context, redraw)
    }

    fn probabilities(&self) -> Option<Probabilities<'_>> {
        self.drawing.probabilities()
    }
}

impl State for Tf {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_as_by_hand() {
        // √(0.5/0.5) = 1, √(0.25/1) = 0.5, the third is above the threshold.
        let selection = probabilities(&[0.5, 0.25, 0.25], &[0.5, 0.0, 0.9], 0.85).unwrap();
        assert_eq!(selection, [1.0 / 1.5, 0.5 / 1.5, 0.0]);
        assert_eq!(probabilities(&[1.0], &[0.9], 0.85), None);
        assert_eq!(probabilities(&[1.0], &[1.0], 1.0), None);
    }
}
