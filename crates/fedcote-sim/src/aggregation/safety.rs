//! Whether corrections of the drift are stable, from what the server sees.
//!
//! A correction holds a client near the global model, where the curvature h of its own loss may be so high that single
//! local steps overshoot (γ h > 2); without a correction the client would leave that place. The gradients measured there
//! change from visit to visit by more than they are worth. The energy of that change, ‖u_new − u_old‖²/(E γ), is a loss:
//! twice what the steps would gain if the change were real. With cross-entropy it is in nats. When the median of the last
//! forty is above one nat, corrections end for good, and the server goes on as plain memory.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The energy, in units of the loss, above which corrections are unstable.
const BOUND: f64 = 1.0;

/// Arrivals that the median is taken over.
const ARRIVALS: usize = 40;

/// Whether corrections are sent, and what that is decided from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Safety {
    /// The latest energies, oldest first.
    recent: VecDeque<f64>,
    ended: bool,
}

impl Safety {
    /// Whether corrections have ended.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// An arrival's update differs from the remembered one by this energy.
    pub(crate) fn observe(&mut self, energy: f64) {
        if self.recent.len() == ARRIVALS {
            self.recent.pop_front();
        }
        self.recent.push_back(energy);
    }

    /// Decides for the next round.
    pub(crate) fn decide(&mut self) {
        if self.recent.len() == ARRIVALS && !self.ended {
            let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
            sorted.sort_by(f64::total_cmp);
            let median = (sorted[ARRIVALS / 2 - 1] + sorted[ARRIVALS / 2]) / 2.0;
            self.ended = median > BOUND;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_end_for_good_when_the_median_is_above_one_nat() {
        let mut safety = Safety::default();
        let mut see = |energy: f64| {
            safety.observe(energy);
            safety.decide();
            safety.ended()
        };
        // Too few to tell, and then nineteen large ones among forty.
        assert!((0..20).all(|_| !see(0.9)));
        assert!((0..19).all(|_| !see(50.0)));
        assert!(!see(0.95));
        // The fortieth and forty-first have half of the window above: (0.9 + 50)/2.
        assert!(see(50.0));
        assert!((0..100).all(|_| see(0.0)), "for good");
    }
}
