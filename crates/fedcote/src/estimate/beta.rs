//! Beta–Bernoulli with forgetting.
//!
//! The failure probability of a client is Beta(a, b) distributed: a = strength · prior before any
//! observation, b = strength · (1 − prior). A failure adds 1 to a, an arrival 1 to b, and at the end of every round
//! what observations have added is multiplied by `retention` (the discount of West and Harrison, *Bayesian
//! Forecasting and Dynamic Models*, 1997). The estimate is the posterior mean a/(a + b); [`Beta::interval`] is
//! the equal-tailed credible interval. A client that is not asked returns to the prior, in estimate and in
//! uncertainty.
//!
//! ```
//! use fedcote::estimate::Beta;
//!
//! let mut beta = Beta::new(1, 1.0, 0.5, 2.0)?;
//! for arrived in [true, true, true, false] {
//!     beta.observe(0, arrived);
//! }
//! assert_eq!(beta.failure(0), 2.0 / 6.0);
//! let (low, high) = beta.interval(0, 0.9);
//! assert!((low - 0.0764).abs() < 1e-4 && (high - 0.6574).abs() < 1e-4); // Beta(2, 4)
//! # Ok::<(), fedcote::Error>(())
//! ```

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{check, check_prior, check_strength};
use crate::{Error, special};

/// Beta–Bernoulli with forgetting; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Beta {
    retention: f64,
    prior: f64,
    strength: f64,
    round: u32,
    /// Discounted failures and arrivals as they were in the round of the last observation.
    failed: Vec<f64>,
    arrived: Vec<f64>,
    last: Vec<u32>,
}

impl Beta {
    /// No client observed yet.
    ///
    /// # Errors
    /// When a parameter lies outside its range; see [`EstimatorKind`](super::EstimatorKind).
    pub fn new(clients: usize, retention: f64, prior: f64, strength: f64) -> Result<Self, Error> {
        let valid = retention > 0.0 && retention <= 1.0;
        check("retention", retention, valid, "a number in (0, 1]")?;
        check_prior(prior)?;
        check_strength(strength)?;
        let (failed, arrived, last) = (vec![0.0; clients], vec![0.0; clients], vec![0; clients]);
        Ok(Self { retention, prior, strength, round: 0, failed, arrived, last })
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.failed.len()
    }

    /// Makes room for clients that joined, none of them observed yet; never forgets any.
    pub fn grow(&mut self, clients: usize) {
        let clients = clients.max(self.clients());
        self.failed.resize(clients, 0.0);
        self.arrived.resize(clients, 0.0);
        self.last.resize(clients, self.round);
    }

    /// Forgets what was observed of a client; panics when there is no such client.
    pub fn forget(&mut self, client: usize) {
        (self.failed[client], self.arrived[client]) = (0.0, 0.0);
        self.last[client] = self.round;
    }

    /// Whether the parts of a restored state fit together.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self) -> bool {
        let Self { retention, prior, strength, .. } = *self;
        let clients = self.failed.len();
        let counts = self.failed.iter().chain(&self.arrived);
        Self::new(0, retention, prior, strength).is_ok()
            && self.arrived.len() == clients
            && self.last.len() == clients
            && self.round < u32::MAX
            && self.last.iter().all(|&last| last <= self.round)
            && counts.into_iter().all(|count| (0.0..f64::INFINITY).contains(count))
    }

    /// What is left by now of the evidence on a client: failures and arrivals.
    fn evidence(&self, client: usize) -> (f64, f64) {
        if self.failed[client] == 0.0 && self.arrived[client] == 0.0 {
            return (0.0, 0.0); // never observed: nothing to forget, and a power costs
        }
        let left = self.retention.powf(f64::from(self.round - self.last[client]));
        (self.failed[client] * left, self.arrived[client] * left)
    }

    /// Takes note of one upload in the current round; panics when there is no such client.
    pub fn observe(&mut self, client: usize, arrived: bool) {
        let (failures, arrivals) = self.evidence(client);
        self.failed[client] = failures + if arrived { 0.0 } else { 1.0 };
        self.arrived[client] = arrivals + if arrived { 1.0 } else { 0.0 };
        self.last[client] = self.round;
    }

    /// Ends the current round.
    pub fn tick(&mut self) {
        self.round += 1;
    }

    /// The parameters (a, b) of a client's posterior distribution; panics when there is no such client.
    pub fn posterior(&self, client: usize) -> (f64, f64) {
        let (failures, arrivals) = self.evidence(client);
        (failures + self.strength * self.prior, arrivals + self.strength * (1.0 - self.prior))
    }

    /// The estimated failure probability of a client; panics when there is no such client.
    pub fn failure(&self, client: usize) -> f64 {
        let (a, b) = self.posterior(client);
        a / (a + b)
    }

    /// The interval that holds a client's failure probability with posterior probability `level` (clamped to
    /// [0, 1]), with equal probability on either side of it; panics when there is no such client.
    pub fn interval(&self, client: usize, level: f64) -> (f64, f64) {
        let (a, b) = self.posterior(client);
        let tail = (1.0 - level.clamp(0.0, 1.0)) / 2.0;
        (special::beta_quantile(a, b, tail), special::beta_quantile(a, b, 1.0 - tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_fades_by_rounds() {
        // A failure, two rounds later an arrival, one more round: a = 0.5³ + 1, b = 0.5 + 3.
        let mut beta = Beta::new(2, 0.5, 0.25, 4.0).unwrap();
        beta.observe(0, false);
        beta.tick();
        beta.tick();
        beta.observe(0, true);
        beta.tick();
        assert_eq!(beta.posterior(0), (1.125, 3.5));
        assert_eq!(beta.failure(0), 1.125 / 4.625);
        (0..100).for_each(|_| beta.tick());
        assert!((beta.failure(0) - 0.25).abs() < 1e-15);
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        // Failure probabilities drawn from the prior itself: coverage is then exact, on average.
        use crate::random::{Key, Purpose};
        use rand::RngExt;
        let mut rng = Key::new(3, Purpose::Test).stream();
        let clients = 4000;
        let mut beta = Beta::new(clients, 1.0, 0.5, 2.0).unwrap();
        let mut covered = 0;
        for client in 0..clients {
            let failure: f64 = rng.random();
            (0..client % 30).for_each(|_| beta.observe(client, rng.random::<f64>() >= failure));
            let (low, high) = beta.interval(client, 0.8);
            covered += usize::from(low < failure && failure < high);
        }
        let share = covered as f64 / clients as f64;
        assert!((share - 0.8).abs() < 4.0 * (0.16 / clients as f64).sqrt(), "{share}");
    }
}
