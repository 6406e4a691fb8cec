//! Whether corrections of the drift are stable, from what the server sees.
//!
//! A correction holds a client near the global model, where the curvature h of its own loss may be so high that single
//! local steps overshoot (γ h > 2); without a correction the client would leave that place. The gradients measured there
//! change from visit to visit by more than they are worth. The energy of that change, ‖u_new − u_old‖²/(E γ), is a loss:
//! the one that the steps would gain if the change were real. With cross-entropy it is in nats. While its mean is below
//! one nat, corrections are sent in full; when it is above, they are halved, and below a fifth switched off for good.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The mean energy, in units of the loss, above which corrections are unstable.
const BOUND: f64 = 1.0;

/// Arrivals that the mean is taken over.
const ARRIVALS: u32 = 20;

/// Below this coefficient corrections are not worth sending.
const LEAST: f64 = 0.2;

/// The coefficient λ of the corrections, and what it is decided from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Safety {
    coefficient: f64,
    /// Clients whose update was measured with the present coefficient.
    measured: BTreeSet<u32>,
    /// Changes seen with the present coefficient.
    count: u32,
    /// Their mean energy.
    energy: f64,
}

impl Default for Safety {
    fn default() -> Self {
        Self { coefficient: 1.0, measured: BTreeSet::new(), count: 0, energy: 0.0 }
    }
}

impl Safety {
    /// The coefficient λ.
    pub(crate) fn coefficient(&self) -> f64 {
        self.coefficient
    }

    /// An arrival's update differs from the remembered one by this energy.
    pub(crate) fn observe(&mut self, client: u32, energy: f64) {
        // A change of the coefficient changes updates, too.
        if self.measured.contains(&client) {
            self.count = self.count.saturating_add(1);
            self.energy += (energy - self.energy) / f64::from(self.count.min(ARRIVALS));
        }
    }

    /// The client's update is measured with the present coefficient.
    pub(crate) fn visited(&mut self, client: u32) {
        self.measured.insert(client);
    }

    /// Decides for the next round.
    pub(crate) fn decide(&mut self) {
        if self.count >= ARRIVALS && self.energy > BOUND && self.coefficient > 0.0 {
            let half = self.coefficient / 2.0;
            let coefficient = if half < LEAST { 0.0 } else { half };
            *self = Self { coefficient, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty changes of one energy, after a first visit.
    fn visits(safety: &mut Safety, energy: f64) {
        safety.visited(3);
        for _ in 0..ARRIVALS {
            safety.observe(3, energy);
            safety.decide();
        }
    }

    #[test]
    fn a_calm_run_keeps_its_corrections_and_a_wild_one_loses_them_by_halves() {
        let mut safety = Safety::default();
        visits(&mut safety, 0.9);
        assert_eq!(safety.coefficient(), 1.0);
        // The mean over the last twenty passes one nat when 0.9 + (1.3 − 0.9)(1 − 0.95^n) does: in six steps.
        for _ in 0..5 {
            safety.observe(3, 1.3);
            safety.decide();
        }
        assert_eq!(safety.coefficient(), 1.0);
        safety.observe(3, 1.3);
        safety.decide();
        assert_eq!(safety.coefficient(), 0.5);
        // What was measured with another coefficient says nothing.
        safety.observe(3, 100.0);
        safety.decide();
        assert_eq!((safety.coefficient(), safety.count), (0.5, 0));
        visits(&mut safety, 1.1);
        assert_eq!(safety.coefficient(), 0.25);
        visits(&mut safety, 1.1);
        assert_eq!(safety.coefficient(), 0.0);
        visits(&mut safety, 0.0);
        assert_eq!(safety.coefficient(), 0.0, "for good");
    }
}
