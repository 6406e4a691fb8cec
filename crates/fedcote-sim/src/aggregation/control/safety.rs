//! When corrections of the drift may be sent, from what the server sees.
//!
//! A correction is constant over a client's local steps: it presumes that the client's gradient hardly changes on the way.
//! Worse, it holds the client near the global model, where the curvature h of its own loss may be so high that single steps
//! overshoot (γ h > 2); without a correction the client would leave that place. Whether that is so shows when corrections
//! are sent, so they are sent from the beginning, and watched. Two energies, in units of the loss (nats, for
//! cross-entropy), decide:
//!
//! - the *change* ‖u_i − u_i'‖²/(E_i γ) of a corrected update since the client's last one; it counts as 0.3 nat at
//!   most if it is below 0.08 of ‖u_i‖²/(E_i γ), for then the correction was right, however long it is. When the median of
//!   the last twenty is above 0.5 nat, corrections end: the server goes back to the last calm model (at most 0.25 nat), or to
//!   that at which corrections began, and forgets what it remembers of the clients;
//! - the *gain* ‖u_i‖²/(E_i γ) of an uncorrected update: to first order what a client gains on its own data in a round.
//!   When the median of the last forty is below 0.3 nat, corrections begin a second time. When they end again, they end for
//!   good.
//!
//! After a step size at most half of that at which corrections ended, it all begins again.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// Changes that the median is taken over: few, so that corrections end soon.
const CHANGES: usize = 20;

/// Gains that the median is taken over.
const GAINS: usize = 40;

/// Corrections begin a second time when the median gain is below this.
const OPEN: f64 = 0.3;

/// A model is calm while the median change is at most this.
const CALM: f64 = 0.25;

/// Corrections end when the median change is above this.
const SHUT: f64 = 0.5;

/// A change of at most this share of the update's own energy does not end corrections.
const SMALL: f64 = 0.08;

/// What such a change counts as at most: neither calm nor unstable.
const STEADY: f64 = 0.3;

/// Whether corrections are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Gate {
    /// Yes, for the first time.
    #[default]
    Open,
    /// Not at present.
    Closed,
    /// Yes, for the second time.
    Reopened,
    /// No more.
    Shut,
}

/// What follows from a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing new.
    Stay,
    /// The model before this round's step is calm.
    Calm,
    /// Back to the calm model.
    Back,
}

/// Decides whether corrections are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Safety {
    gate: Gate,
    /// The latest energies, oldest first.
    recent: VecDeque<f64>,
    /// Clients of which a corrected update arrived since corrections began.
    since: BTreeSet<u32>,
    /// The step size in force, or at which corrections ended.
    rate: f64,
}

impl Safety {
    /// Whether corrections are sent.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.gate, Gate::Open | Gate::Reopened)
    }

    /// A round with this step size begins.
    pub(super) fn begin(&mut self, rate: f64) {
        if self.is_open() {
            self.rate = rate;
        } else if rate <= self.rate / 2.0 {
            *self = Self { rate, ..Self::default() };
        }
    }

    /// An update without a correction has this gain.
    pub(super) fn gained(&mut self, gain: f64) {
        if self.gate == Gate::Closed {
            self.push(gain);
        }
    }

    /// A corrected update of this energy arrived, which differs from what was remembered by the other.
    pub(super) fn corrected(&mut self, client: u32, gain: f64, change: f64) {
        // The first correction of a client changes its update by its own effect.
        if !self.since.insert(client) {
            let small = change <= SMALL * gain;
            self.push(if small { change.min(STEADY) } else { change });
        }
    }

    fn push(&mut self, energy: f64) {
        self.recent.push_back(energy);
        if self.recent.len() > self.window() {
            self.recent.pop_front();
        }
    }

    fn window(&self) -> usize {
        if self.is_open() { CHANGES } else { GAINS }
    }

    /// The median of the latest energies: changes while corrections are sent, gains while none are.
    pub(super) fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = self.window() / 2;
        (sorted.len() == 2 * middle).then(|| (sorted[middle - 1] + sorted[middle]) / 2.0)
    }

    /// Decides after a round's arrivals.
    pub(super) fn decide(&mut self) -> Verdict {
        let Some(median) = self.median() else { return Verdict::Stay };
        let (gate, verdict) = match self.gate {
            Gate::Open if median > SHUT => (Gate::Closed, Verdict::Back),
            Gate::Closed if median < OPEN => (Gate::Reopened, Verdict::Stay),
            Gate::Reopened if median > SHUT => (Gate::Shut, Verdict::Back),
            Gate::Open | Gate::Reopened if median <= CALM => return Verdict::Calm,
            _ => return Verdict::Stay,
        };
        *self = Self { gate, rate: self.rate, ..Self::default() };
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_shuts_opens_and_begins_again_as_described() {
        let mut safety = Safety::default();
        safety.begin(0.05);
        assert!(safety.is_open());
        // The first corrected update says nothing.
        safety.corrected(7, 1.0, 100.0);
        for seen in 1..=19 {
            safety.corrected(7, 1.0, 0.2);
            assert_eq!(safety.decide(), Verdict::Stay, "{seen}");
        }
        safety.corrected(7, 1.0, 0.2);
        assert_eq!(safety.decide(), Verdict::Calm);
        // Between calm and unstable nothing is decided; of ten in twenty the median is (0.2 + 3)/2.
        for _ in 0..9 {
            safety.corrected(7, 1.0, 3.0);
            assert_ne!(safety.decide(), Verdict::Back);
        }
        safety.corrected(7, 1.0, 3.0);
        assert_eq!((safety.decide(), safety.is_open()), (Verdict::Back, false));
        // Forty arrivals of 0.9 nat, then calm ones: half of the window is below when twenty have come; the median is
        // (0.2 + 0.9)/2 then, and 0.2 one later.
        for gain in [[0.9; 40].as_slice(), &[0.2; 20]].concat() {
            safety.gained(gain);
            assert_eq!((safety.decide(), safety.is_open()), (Verdict::Stay, false));
        }
        safety.gained(0.2);
        assert_eq!((safety.decide(), safety.is_open()), (Verdict::Stay, true));
        for seen in 0..=20 {
            assert_eq!((safety.decide(), safety.is_open()), (Verdict::Stay, true), "{seen}");
            safety.corrected(7, 1.0, 0.6);
        }
        assert_eq!((safety.decide(), safety.gate), (Verdict::Back, Gate::Shut));
        for _ in 0..100 {
            safety.gained(0.1);
            assert_eq!((safety.decide(), safety.is_open()), (Verdict::Stay, false), "for good");
        }
    }

    /// Long updates that hardly change are no sign of trouble, whatever their change is in nats: rotated MNIST, on which
    /// corrections ended in vain.
    #[test]
    fn a_change_that_is_small_beside_the_update_does_not_end_corrections() {
        let seen = |gain| {
            let mut safety = Safety::default();
            (0..=20).for_each(|_| safety.corrected(1, gain, 0.6));
            safety.decide()
        };
        assert_eq!((seen(7.4), seen(7.6)), (Verdict::Back, Verdict::Stay));
    }

    /// Step sizes that change in every round must not keep corrections up that are not safe.
    #[test]
    fn another_trial_needs_half_the_step_size() {
        let mut safety = Safety::default();
        for round in 0..=20 {
            safety.begin(0.1 - 0.002 * f64::from(round));
            safety.corrected(1, 1.0, 0.6);
        }
        assert_eq!((safety.decide(), safety.is_open()), (Verdict::Back, false));
        safety.begin(0.1);
        safety.begin(0.031);
        assert!(!safety.is_open());
        safety.begin(0.03);
        assert!(safety.is_open());
    }
}
