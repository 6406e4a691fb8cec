//! Power-of-Choice (Cho, Wang and Joshi, "Towards Understanding Biased Client Selection in Federated
//! Learning", AISTATS 2022).
//!
//! d candidates are drawn without replacement in proportion to p; of these the K with the highest loss of
//! the global model on their own data are asked.

use fedcote::random::Purpose;
use rand::RngExt;

use crate::Error;
use crate::part::{Count, RoundContext, Selection, State};
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `selection = "power-of-choice"`.
    pub struct PowerOfChoiceSettings {
        /// Candidates d, at most N; by default 1.5 K.
        candidates: Option<u64> = None, in 1..;
    }
}

/// The candidates with the highest loss.
pub struct PowerOfChoice {
    /// Candidates d, at most N; by default 1.5 K.
    pub candidates: Option<u64>,
}

impl Selection for PowerOfChoice {
    fn draw(&mut self, context: &RoundContext, redraw: u32) -> Result<Vec<Count>, Error> {
        let world = context.world;
        let weights = context.federation.weights();
        let wanted = world.draws();
        let candidates = self.candidates.unwrap_or(wanted + wanted / 2).max(wanted);
        let key = world.key(Purpose::Selection).round(context.round).attempt(redraw);
        // The d smallest of Exp(1)/p are a draw without replacement in proportion to p.
        let mut stream = key.stream();
        let arrivals = weights
            .iter()
            .map(|weight| -(1.0 - stream.random::<f64>()).ln() / weight)
            .collect::<Vec<_>>();
        let candidates = largest(arrivals.iter().map(|arrival| -arrival), candidates);
        let losses = world.task.losses(context.global, &candidates)?;
        Ok(chosen(&candidates, &losses, wanted))
    }
}

impl State for PowerOfChoice {}

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

    #[test]
    fn a_loss_that_is_no_number_counts_as_high() {
        assert_eq!(largest([1.0, f64::NAN, 2.0].into_iter(), 2), [1, 2]);
    }
}
