//! F3AST's selection (Ribero, Vikalo and de Veciana, "Federated Learning Under Intermittent Client Availability and Time-Varying
//! Communication Constraints", IEEE JSTSP 2023): of those who are there, the ones that were chosen most rarely for their weight.
//!
//! The K available clients with the largest p_i²/r_i² are asked, all if there are fewer; then r_i ← (1 − β) r_i + β [i was asked] for every client. Rates start at
//! min(1, K/N); equals by number.

use super::power_of_choice::largest;
use crate::Error;
use crate::aggregation::Rates;
use crate::part::{Arrival, Count, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `selection = "f3ast"`.
    pub struct F3astSelectionSettings {
        /// The weight β of a round in the smoothed rates.
        smoothing: f64 = 0.001, in 0.0..=1.0;
        /// At most so many clients a round; by default K.
        most: Option<u64> = None, in 1..;
    }
}

/// Those who were asked most rarely for their weight.
pub struct F3ast {
    settings: F3astSelectionSettings,
    rates: Rates,
    /// Who was asked in the current round.
    asked: Vec<u32>,
}

impl F3ast {
    pub(super) fn new(settings: &F3astSelectionSettings) -> Self {
        Self { settings: settings.clone(), rates: Rates::default(), asked: Vec::new() }
    }
}

impl Selection for F3ast {
    fn draw(&mut self, context: &RoundContext, _redraw: u32) -> Result<Vec<Count>, Error> {
        let weights = context.federation.weights();
        let most = self.settings.most.unwrap_or(context.world.draws());
        let rates = self.rates.of(weights.len(), most);
        let there: Vec<u32> =
            (0..).zip(context.available).filter(|(_, there)| **there).map(|(c, _)| c).collect();
        let score = |&client: &u32| (weights[client as usize] / rates[client as usize]).powi(2);
        let chosen = largest(there.iter().map(score), most);
        self.asked = chosen.into_iter().map(|at| there[at as usize]).collect();
        self.asked.sort_unstable();
        Ok(self.asked.iter().map(|&client| (client, 1)).collect())
    }

    fn received(&mut self, _context: &RoundContext, _arrivals: &[Arrival]) {
        let asked = std::mem::take(&mut self.asked);
        self.rates.advance(self.settings.smoothing, asked.into_iter());
    }
}

impl State for F3ast {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put_value("f3ast.selected", &self.rates.0);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.rates.0 = saved.get_value("f3ast.selected")?;
        Ok(())
    }
}
