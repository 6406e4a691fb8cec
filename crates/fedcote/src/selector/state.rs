//! What of a selector is saved.

#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Options;
use crate::error::Error;
use crate::estimate::{Estimator, EstimatorKind};
#[cfg(feature = "serde")]
use crate::groups::Groups;

/// Everything that the next selection depends on.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct State {
    pub seed: u64,
    pub options: Options,
    /// How the estimator was made, to compare with.
    pub kind: EstimatorKind,
    pub estimator: Estimator,
    /// Failure probabilities that the user knows, which replace estimates.
    pub known: Vec<Option<f64>>,
    pub classes: usize,
    /// Label counts, row after row; zeros for a client that has not told.
    pub counts: Vec<f64>,
    /// How often each group of clients that fail together is down.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub groups: Vec<f64>,
    /// The group of each client; clients beyond the end are in none.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub members: Vec<Option<u32>>,
    /// The current round, from 1; 0 before the first.
    pub round: u32,
    /// How often the current round was drawn again.
    pub attempt: u32,
}

impl State {
    pub fn new(seed: u64, kind: EstimatorKind, options: Options) -> Result<Self, Error> {
        let (estimator, known, counts) = (kind.estimator(0)?, Vec::new(), Vec::new());
        let (groups, members) = (Vec::new(), Vec::new());
        let (classes, round, attempt) = (0, 0, 0);
        Ok(Self {
            seed,
            options,
            kind,
            estimator,
            known,
            classes,
            counts,
            groups,
            members,
            round,
            attempt,
        })
    }

    /// Who fails together, of all clients.
    #[cfg(feature = "serde")]
    fn groups(&self) -> Result<Groups, Error> {
        let of = self.members.iter().map(|group| group.map(|group| group as usize));
        Groups::new(self.groups.clone(), of)
    }

    /// What is wrong with a restored state, if anything.
    #[cfg(feature = "serde")]
    fn problem(&self) -> Option<&'static str> {
        let clients = self.known.len();
        let sizes = self.estimator.clients() == clients
            && clients.checked_mul(self.classes) == Some(self.counts.len());
        let known = self.known.iter().flatten().all(|known| (0.0..=1.0).contains(known));
        if !sizes {
            Some("the numbers of clients disagree")
        } else if !known || !self.estimator.fits() {
            Some("the failure probabilities are damaged")
        } else if crate::federation::check_range(&self.counts).is_err() {
            Some("the label counts are damaged")
        } else if self.members.len() > clients || self.groups().is_err() {
            Some("the groups are damaged")
        } else {
            None
        }
    }
}

#[cfg(feature = "serde")]
impl Serialize for super::Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.state.serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> Deserialize<'de> for super::Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let state = State::deserialize(deserializer)?;
        match state.problem() {
            None => Ok(Self { state, latest: None }),
            Some(problem) => Err(de::Error::custom(problem)),
        }
    }
}
