//! When corrections of the drift may be sent, from what the server sees.
//!
//! A correction is constant over a client's local steps: it presumes that the client's gradient hardly changes on the way.
//! Worse, it holds the client near the global model, where the curvature h of its own loss may be so high that single steps
//! overshoot (γ h > 2); without a correction the client would leave that place. Two energies, in units of the loss (nats, for
//! cross-entropy), tell:
//!
//! - the *gain* ‖u_i‖²/(E_i γ) of an uncorrected update: to first order what a client gains on its own data in a round.
//!   The gate opens, and corrections begin, when the median of the last forty is below 0.3 nat;
//! - the *change* ‖u_i − u_i'‖²/(E_i γ) of a corrected update since the client's last one. When the median of the last forty
//!   is above 0.5 nat, training has become unstable: corrections end, and the server goes back to the last calm model (median
//!   at most 0.25 nat), with remembered updates no longer than they were without corrections.
//!
//! Before and after, no corrections are sent. Another step size begins it all again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// Arrivals that the median is taken over.
const ARRIVALS: usize = 40;

/// Corrections begin when the median gain is below this.
const OPEN: f64 = 0.3;

/// A model is calm while the median change is at most this.
const CALM: f64 = 0.25;

/// Corrections end when the median change is above this.
const SHUT: f64 = 0.5;

/// Whether corrections are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Gate {
    /// Not yet.
    #[default]
    Closed,
    /// Yes.
    Open,
    /// No more.
    Shut,
}

/// What follows from a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing new.
    Stay,
    /// The model before this round's step is calm.
    Calm,
    /// Back to the calm model, and to remembered updates as long as without corrections.
    Back,
}

/// Decides whether corrections are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Safety {
    gate: Gate,
    /// The latest energies, oldest first.
    recent: VecDeque<f64>,
    /// Clients heard since the gate opened.
    since: BTreeSet<u32>,
    /// The length of each remembered update, per unit of step length, when it was last measured without a correction.
    lengths: BTreeMap<u32, f64>,
    /// The step size in force.
    rate: f64,
}

impl Safety {
    /// Whether corrections are sent.
    pub(crate) fn is_open(&self) -> bool {
        self.gate == Gate::Open
    }

    /// A round with this step size begins.
    pub(crate) fn begin(&mut self, rate: f64) {
        if self.rate != rate {
            let lengths = std::mem::take(&mut self.lengths);
            *self = Self { rate, lengths, ..Self::default() };
        }
    }

    /// An update without a correction has this gain.
    pub(crate) fn gained(&mut self, gain: f64) {
        if self.gate == Gate::Closed {
            self.push(gain);
        }
    }

    /// A row of the memory has this length per unit of step length, measured without a correction.
    pub(crate) fn remember(&mut self, row: u32, length: f64) {
        self.lengths.insert(row, length);
    }

    /// A corrected update arrived, which differs from what was remembered by this energy.
    pub(crate) fn corrected(&mut self, client: u32, change: f64) {
        // The first correction of a client changes its update by its own effect.
        if !self.since.insert(client) {
            self.push(change);
        }
    }

    fn push(&mut self, energy: f64) {
        if self.recent.len() == ARRIVALS {
            self.recent.pop_front();
        }
        self.recent.push_back(energy);
    }

    /// The median of the latest energies: gains while no corrections are sent, changes while they are.
    pub(crate) fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        (sorted.len() == ARRIVALS).then(|| (sorted[ARRIVALS / 2 - 1] + sorted[ARRIVALS / 2]) / 2.0)
    }

    /// Decides after a round's arrivals.
    pub(crate) fn decide(&mut self) -> Verdict {
        let Some(median) = self.median() else { return Verdict::Stay };
        match self.gate {
            Gate::Closed if median < OPEN => {
                self.gate = Gate::Open;
                self.recent.clear();
                self.since.clear();
                Verdict::Calm
            }
            Gate::Open if median > SHUT => {
                self.gate = Gate::Shut;
                self.recent.clear();
                Verdict::Back
            }
            Gate::Open if median <= CALM => Verdict::Calm,
            _ => Verdict::Stay,
        }
    }

    /// What to scale a remembered update by when corrections end, `length` being its length per unit of step length.
    pub(crate) fn shortening(&self, row: u32, length: f64) -> f64 {
        match self.lengths.get(&row) {
            Some(&before) if length > before => before / length,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_opens_shuts_and_begins_again_as_described() {
        let mut safety = Safety::default();
        safety.begin(0.05);
        safety.remember(7, 2.0);
        // Forty arrivals of 0.9 nat, then calm ones: half of the window is below when twenty have come; the median is
        // (0.2 + 0.9)/2 then, and 0.2 one later.
        for _ in 0..40 {
            safety.gained(0.9);
            assert_eq!(safety.decide(), Verdict::Stay);
        }
        for _ in 0..20 {
            safety.gained(0.2);
            assert_eq!(safety.decide(), Verdict::Stay);
        }
        safety.gained(0.2);
        assert_eq!((safety.decide(), safety.is_open()), (Verdict::Calm, true));
        // The first corrected update says nothing.
        safety.corrected(7, 100.0);
        for seen in 1..=39 {
            safety.corrected(7, 0.2);
            assert_eq!(safety.decide(), Verdict::Stay, "{seen}");
        }
        safety.corrected(7, 0.2);
        assert_eq!(safety.decide(), Verdict::Calm);
        for _ in 0..19 {
            safety.corrected(7, 3.0);
            assert_ne!(safety.decide(), Verdict::Back);
        }
        safety.corrected(7, 3.0);
        assert_eq!((safety.decide(), safety.is_open()), (Verdict::Back, false));
        assert_eq!((safety.shortening(7, 4.0), safety.shortening(7, 1.0)), (0.5, 1.0));
        assert_eq!(safety.shortening(8, 9.0), 1.0);
        for _ in 0..100 {
            safety.gained(0.1);
            assert_eq!((safety.decide(), safety.is_open()), (Verdict::Stay, false), "for good");
        }
        safety.begin(0.05);
        assert_eq!(safety.gate, Gate::Shut);
        safety.begin(0.005);
        assert_eq!(safety.gate, Gate::Closed);
    }
}
