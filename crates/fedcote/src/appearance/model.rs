//! The appearance model that belongs to a procedure: exact where that is affordable.
//!
//! | draws | uploads | model | exact up to |
//! |---|---|---|---|
//! | independent | per draw | [`Independent`], the closed form | always |
//! | systematic | either | [`Systematic`] | `K` ≤ `N`, or `N` × nodes ≤ 10⁷ |
//! | independent | per client | [`PerClient`] | `N` × nodes × points × (1 + 30/K) ≤ 2·10⁶ |
//!
//! For clients that fail together ([`crate::Groups`]) these are
//!
//! | draws | uploads | model | exact up to |
//! |---|---|---|---|
//! | independent | per draw | [`Grouped`] | groups × nodes × points ≤ 5·10⁴ |
//! | independent | per client | [`Grouped`] | see [`Grouped::work`]: of four groups with φ = 0.2, 453 clients for 10 draws, 332 for 100 |
//! | systematic | either | [`Systematic`] | groups × `N` × nodes ≤ 10⁷ |
//!
//! those in no group being one more.
//!
//! There are `⌊K/2⌋ + 1` nodes, or `16 (1 + log₂ K)` if that is less, and about twenty points. Larger problems take the
//! closed form instead, with groups that of clients that fail together, or, where that or systematic draws with groups are too much, the
//! model of clients that fail on their own; the result says so.
//!
//! **How wrong the closed form is where it takes over**, relative to the exact appearance (failures uniform between 0 and
//! 0.9, selection by weight, two of ten labels per client; `cargo run --release -p fedcote --example bias`):
//!
//! | model | N | K | largest error | mean error |
//! |---|---:|---:|---:|---:|
//! | independent, per client | 3205 | 10 | 0.05 % | 0.014 % |
//! | independent, per client | 1508 | 100 | 0.11 % | 0.031 % |
//! | independent, per client | 385 | 100,000 | 0.43 % | 0.112 % |
//! | systematic | 34,722 | 100,000 | 0.01 % | 0.003 % |
//!
//! So the closed form is as good as exact there. With systematic draws its error falls with `K` only, and would be 57 % for
//! single ones of a million clients with 10 draws; there the exact model is affordable.

use super::{AppearanceModel, Grouped, Independent, PerClient, Systematic};
use crate::error::Error;
use crate::federation::Federation;
use crate::invert::{Inversion, Limits, invert};
use crate::newton::invert_systematic;
use crate::{Draws, Uploads};

/// The largest cost of an exact evaluation for systematic draws of more draws than clients, about a second.
const SYSTEMATIC_WORK: f64 = 1e7;

/// The largest cost of an exact evaluation for one upload per client, some tenths of a second.
const PER_CLIENT_WORK: f64 = 2e6;

/// The largest cost of an exact evaluation for clients that fail together, some tenths of a second.
const GROUPED_WORK: f64 = 5e4;

/// An appearance model for any procedure.
#[derive(Debug, Clone, Copy)]
pub enum Model<'a> {
    /// Independent draws, one upload per draw; or the closed form in place of a model that would cost too much.
    Independent(Independent<'a>),
    /// Systematic draws.
    Systematic(Systematic<'a>),
    /// Independent draws, one upload per client.
    PerClient(PerClient<'a>),
    /// Independent draws, clients that fail together.
    Grouped(Grouped<'a>),
}

impl<'a> Model<'a> {
    /// The model of a procedure, and whether it is exact. `order` is used for systematic draws only.
    pub fn new(
        (kind, uploads): (Draws, Uploads),
        failure: &'a [f64],
        selected: u64,
        order: &'a [u32],
    ) -> (Self, bool) {
        let clients = failure.len();
        match (kind, uploads) {
            (Draws::Systematic, _)
                if selected <= clients as u64
                    || Systematic::work(clients, selected) <= SYSTEMATIC_WORK =>
            {
                (
                    Self::Systematic(Systematic {
                        failure,
                        selected,
                        order,
                        uploads,
                        groups: None,
                    }),
                    true,
                )
            }
            (Draws::Independent, Uploads::PerClient)
                if PerClient::work(clients, selected) <= PER_CLIENT_WORK =>
            {
                (Self::PerClient(PerClient { failure, selected }), true)
            }
            procedure => {
                let exact = procedure == (Draws::Independent, Uploads::PerDraw);
                (Self::Independent(Independent { failure, selected }), exact)
            }
        }
    }

    /// The model of a procedure for a federation, whose clients may fail together, and whether it is exact.
    pub fn of(
        federation: &'a Federation,
        procedure: (Draws, Uploads),
        selected: u64,
        order: &'a [u32],
    ) -> (Self, bool) {
        let failure = federation.failure();
        let (alone, exact) = Self::new(procedure, failure, selected, order);
        let Some(groups) = federation.groups() else { return (alone, exact) };
        let grouped = |uploads| {
            let model = Grouped { groups, failure, selected, uploads };
            (model.work() <= GROUPED_WORK).then_some(Self::Grouped(model))
        };
        let (model, closed) = match (procedure, alone) {
            ((Draws::Systematic, _), Self::Systematic(model)) => {
                let work = (groups.len() + 1) as f64 * Systematic::work(failure.len(), selected);
                let together = Self::Systematic(Systematic { groups: Some(groups), ..model });
                ((work <= SYSTEMATIC_WORK).then_some(together), None)
            }
            ((Draws::Systematic, _), _) => (None, grouped(Uploads::PerDraw)),
            ((Draws::Independent, uploads), _) => (grouped(uploads), grouped(Uploads::PerDraw)),
        };
        let exact = model.is_some();
        (model.or(closed).unwrap_or(alone), exact)
    }

    /// Solves `β̄(s) = target` from `start`; see [`crate::invert::invert`].
    pub fn invert(
        &self,
        target: &[f64],
        start: Vec<f64>,
        limits: Limits,
    ) -> Result<Inversion, Error> {
        match self {
            Self::Systematic(model) => invert_systematic(model, target, start, limits),
            _ => invert(self, target, start, limits),
        }
    }
}

impl AppearanceModel for Model<'_> {
    fn appearance(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error> {
        match self {
            Self::Independent(model) => model.appearance(selection, out),
            Self::Systematic(model) => model.appearance(selection, out),
            Self::PerClient(model) => model.appearance(selection, out),
            Self::Grouped(model) => model.appearance(selection, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_problems_take_the_closed_form_and_say_so() {
        let failure = vec![0.5; 100_000];
        let order: Vec<u32> = (0..100_000).collect();
        let exact = |kind, uploads, clients: usize, selected| {
            Model::new((kind, uploads), &failure[..clients], selected, &order[..clients]).1
        };
        use {Draws::*, Uploads::*};
        for (clients, selected) in [(20, 10), (1000, 100), (100_000, 100_000)] {
            assert!(exact(Independent, PerDraw, clients, selected));
        }
        for uploads in [PerDraw, PerClient] {
            assert!(exact(Systematic, uploads, 100_000, 100));
            assert!(exact(Systematic, uploads, 100_000, 100_000));
            assert!(!exact(Systematic, uploads, 100_000, 100_001));
        }
        assert!(exact(Independent, PerClient, 1000, 100));
        assert!(exact(Independent, PerClient, 100, 1_000_000));
        assert!(!exact(Independent, PerClient, 10_000, 100));
    }
}
