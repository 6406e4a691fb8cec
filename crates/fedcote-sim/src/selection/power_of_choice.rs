//! Power-of-Choice (Cho, Wang and Joshi, "Towards Understanding Biased Client Selection in Federated
//! Learning", AISTATS 2022).
//!
//! d candidates are drawn without replacement in proportion to p; of these the K with the highest loss of
//! the global model on their own data are asked. The paper writes F_i(w_i^{r−1,E}), the loss of the client's own last local model
//! (`loss = "own"`): a client that has not trained yet then takes the global model, and one whose upload is lost has trained.

use fedcote::random::{Purpose, Stream};
use rand::RngExt;

use crate::Error;
use crate::part::{Arrival, Asked, Count, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::scheme::settings::{choices, parameters};
use crate::slab::Slab;

choices! {
    /// The loss by which candidates are chosen.
    #[derive(Copy, Eq)]
    pub enum LossKind in "loss" {
        /// Of the global model on the client's data.
        "global" => Global,
        /// Of the model that the client trained last, arrived or not, on its own data. Lost clients train, too.
        "own" => Own,
    }
}

parameters! {
    /// Parameters of `selection = "power-of-choice"`.
    pub struct PowerOfChoiceSettings {
        /// Candidates d, at most N; by default 1.5 K.
        candidates: Option<u64> = None, in 1..;
        /// The loss by which candidates are chosen.
        loss: LossKind = LossKind::Global;
    }
}

/// The candidates with the highest loss.
pub struct PowerOfChoice {
    settings: PowerOfChoiceSettings,
    /// The models that clients trained last.
    own: Slab,
    /// The candidates of the last draw.
    asked: Vec<u32>,
}

impl PowerOfChoice {
    pub(super) fn new(settings: &PowerOfChoiceSettings, parameters: usize) -> Self {
        Self { settings: settings.clone(), own: Slab::new(parameters), asked: Vec::new() }
    }

    fn losses(&self, context: &RoundContext, candidates: &[u32]) -> Result<Vec<f64>, Error> {
        let task = &context.world.task;
        if self.settings.loss == LossKind::Global {
            return task.losses(context.global, candidates);
        }
        let mut losses = Vec::with_capacity(candidates.len());
        for &client in candidates {
            let model = self.own.get(client).unwrap_or(context.global);
            losses.extend(task.losses(model, &[client])?);
        }
        Ok(losses)
    }

    fn keep(&mut self, trained: &[Arrival]) {
        if self.settings.loss == LossKind::Own {
            for client in trained {
                self.own.row(client.client).copy_from_slice(&client.model);
            }
        }
    }
}

impl Selection for PowerOfChoice {
    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        let world = context.world;
        let weights = context.federation.weights();
        let wanted = world.draws();
        let candidates = self.settings.candidates.unwrap_or(wanted + wanted / 2).max(wanted);
        let key = world.key(Purpose::Selection).round(context.round).attempt(redraw);
        let candidates = drawn(weights, candidates, &mut key.stream());
        let losses = self.losses(context, &candidates)?;
        let chosen = chosen(&candidates, &losses, wanted);
        self.asked = candidates;
        Ok(chosen)
    }

    fn asked(&self) -> Asked<'_> {
        Asked { clients: &self.asked, of_global: self.settings.loss == LossKind::Global }
    }

    fn received(&mut self, _context: &RoundContext, arrivals: &[Arrival]) {
        self.keep(arrivals);
    }

    fn reads_models(&self) -> bool {
        true
    }

    fn uses_lost(&self) -> bool {
        self.settings.loss == LossKind::Own
    }

    fn lost(&mut self, _context: &RoundContext, lost: &[Arrival]) {
        self.keep(lost);
    }
}

impl State for PowerOfChoice {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        if self.settings.loss == LossKind::Own {
            self.own.save("power-of-choice.own", saved);
        }
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        match self.settings.loss {
            LossKind::Own => self.own.restore("power-of-choice.own", saved),
            LossKind::Global => Ok(()),
        }
    }
}

/// Clients drawn without replacement in proportion to their weights: the smallest of Exp(1)/p.
fn drawn(weights: &[f64], wanted: u64, stream: &mut Stream) -> Vec<u32> {
    let arrival = |weight: &f64| -(1.0 - stream.random::<f64>()).ln() / weight;
    let arrivals: Vec<f64> = weights.iter().map(arrival).collect();
    largest(arrivals.iter().map(|arrival| -arrival), wanted)
}

/// The `wanted` candidates with the highest loss, once each.
fn chosen(candidates: &[u32], losses: &[f64], wanted: u64) -> Vec<Count> {
    let mut chosen: Vec<Count> = largest(losses.iter().copied(), wanted)
        .into_iter()
        .map(|at| (candidates[at as usize], 1))
        .collect();
    chosen.sort_unstable();
    chosen
}

/// The indices of the largest values, largest first, lower index first among equals; NaN counts as largest.
pub(super) fn largest(values: impl Iterator<Item = f64>, wanted: u64) -> Vec<u32> {
    let mut order: Vec<(f64, u32)> = values
        .enumerate()
        .map(|(at, value)| (if value.is_nan() { f64::INFINITY } else { value }, at as u32))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    order.truncate(wanted.min(order.len() as u64) as usize);
    order.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_losses_are_chosen() {
        assert_eq!(chosen(&[4, 2, 9], &[0.1, 0.7, 0.5], 2), [(2, 1), (9, 1)]);
        assert_eq!(chosen(&[4, 2], &[0.1, 0.7], 5), [(2, 1), (4, 1)]);
    }

    /// One after the other, each in proportion to the weights of those left: i then j has p_i p_j / (1 − p_i).
    #[test]
    fn candidates_are_drawn_in_proportion_to_the_weights_of_those_left() {
        let weights = [0.5, 0.3, 0.15, 0.05];
        let draws = 40_000;
        let mut counts = [[0u32; 4]; 4];
        for attempt in 0..draws {
            let mut stream = fedcote::random::Key::new(5, Purpose::Test).attempt(attempt).stream();
            let pair = drawn(&weights, 2, &mut stream);
            counts[pair[0] as usize][pair[1] as usize] += 1;
        }
        for (i, row) in counts.iter().enumerate() {
            for (j, &count) in row.iter().enumerate() {
                let chance =
                    if i == j { 0.0 } else { weights[i] * weights[j] / (1.0 - weights[i]) };
                let share = f64::from(count) / f64::from(draws);
                let error = (chance * (1.0 - chance) / f64::from(draws)).sqrt();
                assert!((share - chance).abs() <= 4.0 * error, "{i} {j}: {share} and {chance}");
            }
        }
    }

    #[test]
    fn a_loss_that_is_no_number_counts_as_high() {
        assert_eq!(largest([1.0, f64::NAN, 2.0].into_iter(), 2), [1, 2]);
    }
}
