//! A sliding window over the last rounds.
//!
//! With n uploads of a client in the last `rounds` rounds, f of which failed, and a prior worth `strength`
//! observations,
//!
//! ```text
//! failure = (f + strength · prior) / (n + strength) .
//! ```
//!
//! The window moves for all clients alike. It is one log of the last rounds' observations, so a tick costs
//! what it drops from the log, and memory is that of the observations in the window.

use std::collections::VecDeque;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{check, check_prior, check_strength};
use crate::Error;

/// A sliding window over the last rounds; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Window {
    rounds: u32,
    prior: f64,
    strength: f64,
    observed: Vec<u32>,
    failed: Vec<u32>,
    /// The observations of each round in the window, the current round last.
    log: VecDeque<Vec<(u32, bool)>>,
}

impl Window {
    /// A window of so many rounds, no client observed yet.
    ///
    /// # Errors
    /// When a parameter lies outside its range; see [`EstimatorKind`](super::EstimatorKind).
    pub fn new(clients: usize, rounds: u32, prior: f64, strength: f64) -> Result<Self, Error> {
        check("rounds", rounds.into(), rounds > 0, "at least 1")?;
        check_prior(prior)?;
        check_strength(strength)?;
        let (observed, failed) = (vec![0; clients], vec![0; clients]);
        Ok(Self { rounds, prior, strength, observed, failed, log: VecDeque::from([Vec::new()]) })
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.observed.len()
    }

    /// Makes room for clients that joined, none of them observed yet; never forgets any.
    pub fn grow(&mut self, clients: usize) {
        let clients = clients.max(self.clients());
        self.observed.resize(clients, 0);
        self.failed.resize(clients, 0);
    }

    /// Forgets what was observed of a client; panics when there is no such client.
    pub fn forget(&mut self, client: usize) {
        (self.observed[client], self.failed[client]) = (0, 0);
        for round in &mut self.log {
            round.retain(|&(other, _)| other as usize != client);
        }
    }

    /// Whether the parts of a restored state fit together: the counts are those of the log.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self) -> bool {
        let Ok(mut counted) = Self::new(self.clients(), self.rounds, self.prior, self.strength)
        else {
            return false;
        };
        for &(client, arrived) in self.log.iter().flatten() {
            if client as usize >= self.clients() {
                return false;
            }
            counted.observe(client as usize, arrived);
        }
        let rounds = 1..=self.rounds as usize;
        rounds.contains(&self.log.len())
            && counted.observed == self.observed
            && counted.failed == self.failed
    }

    /// Takes note of one upload in the current round; panics when there is no such client.
    pub fn observe(&mut self, client: usize, arrived: bool) {
        self.observed[client] += 1;
        self.failed[client] += u32::from(!arrived);
        if let Some(round) = self.log.back_mut() {
            round.push((client as u32, arrived));
        }
    }

    /// Ends the current round.
    pub fn tick(&mut self) {
        self.log.push_back(Vec::new());
        if self.log.len() > self.rounds as usize {
            for (client, arrived) in self.log.pop_front().unwrap_or_default() {
                self.observed[client as usize] -= 1;
                self.failed[client as usize] -= u32::from(!arrived);
            }
        }
    }

    /// The estimated failure probability of a client; panics when there is no such client.
    pub fn failure(&self, client: usize) -> f64 {
        (f64::from(self.failed[client]) + self.strength * self.prior)
            / (f64::from(self.observed[client]) + self.strength)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_by_hand() {
        let mut window = Window::new(2, 3, 0.25, 4.0).unwrap();
        window.observe(0, false);
        window.observe(0, false);
        window.tick();
        window.observe(0, true);
        assert_eq!(window.failure(0), (2.0 + 1.0) / (3.0 + 4.0));
        window.tick();
        window.observe(0, false);
        assert_eq!(window.failure(0), (3.0 + 1.0) / (4.0 + 4.0));
        window.tick(); // the first round's two failures leave
        assert_eq!(window.failure(0), (1.0 + 1.0) / (2.0 + 4.0));
        window.tick();
        window.tick(); // and the rest
        assert_eq!(window.failure(0), 0.25);
        assert_eq!(window.failure(1), 0.25);
    }
}
