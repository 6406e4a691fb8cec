//! Failure probabilities from retransmissions: ARQ and HARQ statistics.
//!
//! An upload makes up to M + 1 transmissions within its deadline, each of which fails with probability q on its own, and is lost
//! when all do: ε = q^(M+1). Every transmission is an observation of q, which is Beta(a, b) distributed with forgetting as in
//! [`beta`](super::beta), and the posterior mean of ε is
//!
//! ```text
//! Π_{j=0}^{M} (a + j) / (a + b + j)
//! ```
//!
//! A client never observed has the prior for its uploads, not for its transmissions: q = prior^(1/(M+1)).
//!
//! ```
//! use fedcote::estimate::Retransmissions;
//!
//! // Four transmissions at most, half of which fail: an upload in sixteen is lost.
//! let mut estimator = Retransmissions::new(1, 3, 1.0, 0.5, 2.0)?;
//! for _ in 0..200 {
//!     estimator.observe_transmissions(0, 1, true);
//! }
//! assert!((estimator.failure(0) - 1.0 / 16.0).abs() < 0.01);
//! # Ok::<(), fedcote::Error>(())
//! ```

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{Beta, check, check_prior};
use crate::Error;

/// The most retransmissions of an upload.
const MOST: u32 = 1000;

/// The largest estimate, however many transmissions have failed.
const LARGEST: f64 = 1.0 - 1e-6;

/// Estimates from retransmissions; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Retransmissions {
    retransmissions: u32,
    transmissions: Beta,
    /// Whose transmissions were told in this round, before what became of the upload.
    told: Vec<bool>,
}

impl Retransmissions {
    /// At most so many retransmissions of an upload; no client observed yet.
    ///
    /// # Errors
    /// When a parameter lies outside its range; see [`EstimatorKind`](super::EstimatorKind).
    pub fn new(
        clients: usize,
        retransmissions: u32,
        retention: f64,
        prior: f64,
        strength: f64,
    ) -> Result<Self, Error> {
        let valid = retransmissions <= MOST;
        check("retransmissions", retransmissions.into(), valid, "from 0 to 1000")?;
        check_prior(prior)?;
        let one = prior.powf(1.0 / (f64::from(retransmissions) + 1.0));
        let transmissions = Beta::new(clients, retention, one, strength)?;
        Ok(Self { retransmissions, transmissions, told: vec![false; clients] })
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.transmissions.clients()
    }

    /// Makes room for clients that joined, none of them observed yet; never forgets any.
    pub fn grow(&mut self, clients: usize) {
        self.transmissions.grow(clients);
        self.told.resize(self.clients(), false);
    }

    /// Forgets what was observed of a client; panics when there is no such client.
    pub fn forget(&mut self, client: usize) {
        self.transmissions.forget(client);
        self.told[client] = false;
    }

    /// Whether the parts of a restored state fit together.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self) -> bool {
        self.retransmissions <= MOST
            && self.transmissions.fits()
            && self.told.len() == self.transmissions.clients()
    }

    /// Takes note of the transmissions of an upload in the current round: how many failed, and whether a last one got through.
    /// Panics when there is no such client.
    pub fn observe_transmissions(&mut self, client: usize, failed: u32, arrived: bool) {
        for _ in 0..failed.min(self.retransmissions + 1) {
            self.transmissions.observe(client, false);
        }
        if arrived {
            self.transmissions.observe(client, true);
        }
        self.told[client] = true;
    }

    /// Takes note of one upload in the current round. If nobody told its transmissions, all of a lost one have failed, and one that
    /// arrived is taken to have needed one. Panics when there is no such client.
    pub fn observe(&mut self, client: usize, arrived: bool) {
        if !std::mem::take(&mut self.told[client]) {
            let failed = if arrived { 0 } else { self.retransmissions + 1 };
            self.observe_transmissions(client, failed, arrived);
            self.told[client] = false;
        }
    }

    /// Ends the current round.
    pub fn tick(&mut self) {
        self.transmissions.tick();
        self.told.fill(false);
    }

    /// The estimated failure probability of a client; panics when there is no such client.
    pub fn failure(&self, client: usize) -> f64 {
        let (a, b) = self.transmissions.posterior(client);
        let factors =
            (0..=self.retransmissions).map(|j| (a + f64::from(j)) / (a + b + f64::from(j)));
        factors.product::<f64>().min(LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E q³ of Beta(a, b) by quadrature.
    #[test]
    fn the_estimate_is_the_mean_of_a_power() {
        let mut estimator = Retransmissions::new(1, 2, 1.0, 0.5, 2.0).unwrap();
        estimator.observe_transmissions(0, 2, true);
        estimator.observe(0, true); // the same upload
        estimator.observe_transmissions(0, 3, false);
        let one = 0.5f64.powf(1.0 / 3.0);
        let (a, b) = (2.0 * one + 5.0, 2.0 * (1.0 - one) + 1.0);
        let steps = 200_000;
        let (mut mass, mut mean) = (0.0, 0.0);
        for step in 0..steps {
            let q = (f64::from(step) + 0.5) / f64::from(steps);
            let density = q.powf(a - 1.0) * (1.0 - q).powf(b - 1.0);
            mass += density;
            mean += density * q.powi(3);
        }
        assert!((estimator.failure(0) - mean / mass).abs() < 1e-6, "{}", estimator.failure(0));
    }

    #[test]
    fn without_retransmissions_it_is_beta() {
        let mut ours = Retransmissions::new(2, 0, 0.9, 0.5, 2.0).unwrap();
        let mut beta = Beta::new(2, 0.9, 0.5, 2.0).unwrap();
        for round in 0..50 {
            ours.observe(0, round % 3 == 0);
            beta.observe(0, round % 3 == 0);
            ours.tick();
            beta.tick();
            assert!((ours.failure(0) - beta.failure(0)).abs() < 1e-15);
        }
    }
}
