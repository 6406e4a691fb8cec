//! Every client, there or not (FedPBC, whose clients train in every round, connected or not).

use fedcote::divergence::label_divergence;

use crate::Error;
use crate::part::{Count, Probabilities, RoundContext, Selection, State};

/// Every client once.
#[derive(Default)]
pub struct Everyone {
    selection: Vec<f64>,
    weights: Vec<f64>,
    label_divergence: f64,
}

impl Selection for Everyone {
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        let federation = context.federation;
        self.selection = vec![1.0 / federation.len() as f64; federation.len()];
        self.weights = federation.weights().to_vec();
        self.label_divergence = label_divergence(federation, &self.weights);
        Ok(())
    }

    fn draw(&mut self, context: &RoundContext, _redraw: u32) -> Result<Vec<Count>, Error> {
        Ok((0..context.federation.len() as u32).map(|client| (client, 1)).collect())
    }

    fn probabilities(&self) -> Option<Probabilities<'_>> {
        (!self.selection.is_empty()).then_some(Probabilities {
            selection: &self.selection,
            appearance: &self.weights,
            target: &self.weights,
            label_divergence: self.label_divergence,
            draws: self.selection.len() as u64,
        })
    }
}

impl State for Everyone {}
