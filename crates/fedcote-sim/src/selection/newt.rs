//! Newt (Zhao et al., "Newt: A Client Selection Scheme for Federated Learning", 2021).
//!
//! The K clients with the largest e^(−p_i) ‖w_i − w̄‖ are asked, w_i being the last model the server received
//! from client i and w̄ the current global one. Clients never heard from come first, in an order drawn again
//! each round.
//!
//! The paper writes w_i^{r−1}, the local model of the round before; who did not train then has the difference 0
//! (`differences = "previous"`). Then the K clients of the first round, drawn at random, have the only differences above 0 in
//! every later one, and are asked for ever.

use fedcote::random::Purpose;
use rand::RngExt;

use super::power_of_choice::largest;
use crate::Error;
use crate::part::{Arrival, Count, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::scheme::settings::{choices, parameters};
use crate::slab::Slab;
use crate::vector::squared_distance;

choices! {
    /// Which local models Newt compares with the global one.
    #[derive(Copy, Eq)]
    pub enum DifferenceKind in "differences" {
        /// The last one that the server received from a client; clients never heard from come first.
        "heard" => Heard,
        /// That of the round before; who did not train in it has difference 0, so that those asked first are asked for ever.
        "previous" => Previous,
    }
}

parameters! {
    /// Parameters of `selection = "newt"`.
    pub struct NewtSettings {
        /// Which local models are compared with the global one.
        differences: DifferenceKind = DifferenceKind::Heard;
    }
}

/// The clients whose last model is farthest from the global one.
pub struct Newt {
    differences: DifferenceKind,
    models: Slab,
    /// Who was drawn last.
    drawn: Vec<u32>,
}

impl Newt {
    /// Nobody heard from yet.
    pub fn new(settings: &NewtSettings, parameters: usize) -> Self {
        let differences = settings.differences;
        Self { differences, models: Slab::new(parameters), drawn: Vec::new() }
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
        if self.differences == DifferenceKind::Previous {
            // Whoever trained in the round before has a difference above 0, nobody else has: by how much decides nothing, for
            // there are no more of them than are wanted.
            let trained = |(client, &(_, lot)): (usize, &(f64, f64))| {
                if self.drawn.contains(&(client as u32)) { 2.0 } else { lot }
            };
            let mut chosen = largest(shuffled.iter().enumerate().map(trained), world.draws());
            chosen.sort_unstable();
            self.drawn.clone_from(&chosen);
            return Ok(chosen.into_iter().map(|client| (client, 1)).collect());
        }
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
        if self.differences == DifferenceKind::Previous {
            return;
        }
        for arrival in arrivals {
            self.models.row(arrival.client).copy_from_slice(&arrival.model);
        }
    }

    fn reads_models(&self) -> bool {
        true
    }
}

impl State for Newt {
    fn memory(&self) -> usize {
        self.models.bytes()
    }

    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.models.save("newt.models", saved);
        if self.differences == DifferenceKind::Previous {
            saved.put_value("newt.drawn", &self.drawn);
        }
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        if self.differences == DifferenceKind::Previous {
            self.drawn = saved.get_value("newt.drawn")?;
        }
        self.models.restore("newt.models", saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_as_by_hand() {
        let mut newt = Newt::new(&NewtSettings::default(), 2);
        newt.models.row(0).copy_from_slice(&[3.0, 4.0]);
        newt.models.row(2).copy_from_slice(&[0.0, 1.0]);
        let scores = newt.scores(&[0.5, 0.3, 0.2], &[0.0, 0.0]);
        // e^−0.5 · 5 = 3.0327, never heard from, e^−0.2 · 1 = 0.8187
        assert!((scores[0] - 3.032_653_3).abs() < 1e-6, "{scores:?}");
        assert_eq!(scores[1], f64::INFINITY);
        assert!((scores[2] - 0.818_730_8).abs() < 1e-6, "{scores:?}");
    }
}
