//! Newt (Zhao et al., "Newt: A Client Selection Scheme for Federated Learning", 2021).
//!
//! The K clients with the largest e^(−p_i) ‖w_i − w̄‖ are asked, w_i being the last model the server received
//! from client i and w̄ the current global one. Clients never heard from come first, in an order drawn again
//! each round.

use fedcote::random::Purpose;
use rand::RngExt;

use super::power_of_choice::largest;
use crate::Error;
use crate::part::{Arrival, Count, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::slab::Slab;
use crate::vector::squared_distance;

/// The clients whose last model is farthest from the global one.
pub struct Newt {
    models: Slab,
}

impl Newt {
    /// Nobody heard from yet.
    pub fn new(parameters: usize) -> Self {
        Self { models: Slab::new(parameters) }
    }

    /// How much each client is wanted: infinite for those never heard from.
    fn scores(&self, weights: &[f64], global: &[f32]) -> Vec<f64> {
        let mut scores = vec![f64::INFINITY; weights.len()];
        for (client, model) in self.models.iter() {
            let client = client as usize;
            scores[client] = (-weights[client]).exp() * squared_distance(model, global).sqrt();
        }
        scores
    }
}

impl Selection for Newt {
    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        let world = context.world;
        let scores = self.scores(context.federation.weights(), context.global);
        let key = world.key(Purpose::Selection).round(context.round).attempt(redraw);
        let mut stream = key.stream();
        let shuffled: Vec<(f64, f64)> =
            scores.into_iter().map(|score| (score, stream.random())).collect();
        let unheard = shuffled.iter().filter(|(score, _)| score.is_infinite()).count() as u64;
        let new = shuffled.iter().map(|&(score, lot)| if score.is_infinite() { lot } else { -1.0 });
        let mut chosen = largest(new, unheard.min(world.draws()));
        let known = shuffled
            .iter()
            .map(|&(score, _)| if score.is_infinite() { f64::NEG_INFINITY } else { score });
        let left = world.draws() - chosen.len() as u64;
        chosen.extend(largest(known, left.min(shuffled.len() as u64 - unheard)));
        chosen.sort_unstable();
        Ok(chosen.into_iter().map(|client| (client, 1)).collect())
    }

    fn received(&mut self, _context: &RoundContext, arrivals: &[Arrival]) {
        for arrival in arrivals {
            self.models.row(arrival.client).copy_from_slice(&arrival.model);
        }
    }
}

impl State for Newt {
    fn memory(&self) -> usize {
        self.models.bytes()
    }

    fn save(&self, saved: &mut Saved) {
        self.models.save("newt.models", saved);
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), String> {
        self.models.restore("newt.models", saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_as_by_hand() {
        let mut newt = Newt::new(2);
        newt.models.row(0).copy_from_slice(&[3.0, 4.0]);
        newt.models.row(2).copy_from_slice(&[0.0, 1.0]);
        let scores = newt.scores(&[0.5, 0.3, 0.2], &[0.0, 0.0]);
        // e^−0.5 · 5 = 3.0327, never heard from, e^−0.2 · 1 = 0.8187
        assert!((scores[0] - 3.032_653_3).abs() < 1e-6, "{scores:?}");
        assert_eq!(scores[1], f64::INFINITY);
        assert!((scores[2] - 0.818_730_8).abs() < 1e-6, "{scores:?}");
    }
}
