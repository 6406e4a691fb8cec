//! Exponential forgetting by a client's own uploads.
//!
//! After each of its uploads (S. W. Roberts, Technometrics 1, 1959),
//!
//! ```text
//! failure ← failure + rate · ([the upload failed] − failure) ,
//! ```
//!
//! starting from the prior. A client that is not asked keeps its estimate however long that lasts.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{check, check_prior};
use crate::Error;

/// The largest estimate: rounding alone would let the mean of failures only reach 1.
const LARGEST: f64 = 1.0 - 1e-6;

/// Exponential forgetting; see the [module](self).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Exponential {
    rate: f64,
    prior: f64,
    failure: Vec<f64>,
}

impl Exponential {
    /// Weight `rate` for the newest observation, no client observed yet.
    ///
    /// # Errors
    /// When a parameter lies outside its range; see [`EstimatorKind`](super::EstimatorKind).
    pub fn new(clients: usize, rate: f64, prior: f64) -> Result<Self, Error> {
        check("rate", rate, rate > 0.0 && rate <= 1.0, "a number in (0, 1]")?;
        check_prior(prior)?;
        Ok(Self { rate, prior, failure: vec![prior; clients] })
    }

    /// Whether the parts of a restored state fit together.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self) -> bool {
        Self::new(0, self.rate, self.prior).is_ok()
            && self.failure.iter().all(|failure| (0.0..=1.0).contains(failure))
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.failure.len()
    }

    /// Makes room for clients that joined, none of them observed yet; never forgets any.
    pub fn grow(&mut self, clients: usize) {
        self.failure.resize(clients.max(self.clients()), self.prior);
    }

    /// Forgets what was observed of a client; panics when there is no such client.
    pub fn forget(&mut self, client: usize) {
        self.failure[client] = self.prior;
    }

    /// Takes note of one upload; panics when there is no such client.
    pub fn observe(&mut self, client: usize, arrived: bool) {
        let outcome = if arrived { 0.0 } else { 1.0 };
        let failure = &mut self.failure[client];
        *failure = (*failure + self.rate * (outcome - *failure)).min(LARGEST);
    }

    /// The estimated failure probability of a client; panics when there is no such client.
    pub fn failure(&self, client: usize) -> f64 {
        self.failure[client]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_geometric() {
        // Unrolled: (1−r)^3 prior + r (1−r) for the failure in the middle of three uploads.
        let (rate, prior) = (0.25, 0.5);
        let mut exponential = Exponential::new(1, rate, prior).unwrap();
        for arrived in [true, false, true] {
            exponential.observe(0, arrived);
        }
        let expected = 0.75f64.powi(3) * prior + 0.25 * 0.75;
        assert!((exponential.failure(0) - expected).abs() < 1e-15);
    }
}
