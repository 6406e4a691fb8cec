//! What can be wrong with a request.

use fedcote_support::readable;
use thiserror::Error;

/// The largest number of draws per round, `K`.
pub const MAX_SELECTED: u64 = 1_000_000_000;

/// Why a request was refused. Each displays as one line: what, where, what to do.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// One client's description is wrong.
    #[error("client {client:?}: {field} {problem}")]
    Client {
        /// The client's id.
        client: String,
        /// Which part of its description.
        field: &'static str,
        /// What is wrong with it, and what is legal.
        problem: String,
    },
    /// There is no client.
    #[error("clients: there must be at least one client")]
    NoClients,
    /// There is no label class.
    #[error("labels: there must be at least one label class")]
    NoClasses,
    /// Two arrays that belong together differ in length.
    #[error("{what}: expected {expected} values, found {found}")]
    Length {
        /// Which array.
        what: &'static str,
        /// The length that fits.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// The number of draws is out of range.
    #[error("selected: must be from 1 to 1000000000, is {0}")]
    Selected(u64),
    /// A parameter is out of its range.
    #[error("{name}: must be {legal}, is {}", readable(*value))]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is legal.
        legal: &'static str,
        /// What was given.
        value: f64,
    },
    /// One entry of a vector of probabilities is not one.
    #[error("{what}: entry {index} must be from 0 to 1, is {}", readable(*value))]
    Probability {
        /// Which vector.
        what: &'static str,
        /// Which entry, from zero.
        index: usize,
        /// What was given.
        value: f64,
    },
    /// Selection probabilities do not sum to one.
    #[error("selection: must sum to 1 within 1e-6, sums to {}", readable(*.0))]
    SelectionSum(f64),
    /// An order of clients is not one.
    #[error("order: must name each of the {0} clients exactly once")]
    Order(usize),
    /// No such choice.
    #[error("{what}: must be one of {known}, is {found:?}")]
    Name {
        /// What was to be chosen.
        what: &'static str,
        /// What was asked for.
        found: String,
        /// What there is.
        known: &'static str,
    },
    /// There is no client of this number.
    #[error("there is no client {0}")]
    NoSuchClient(u32),
    /// Something is asked about a selection before there is one.
    #[error("{0}: call select first")]
    NotSelectedYet(&'static str),
    /// Something is told that only another estimator listens to.
    #[error("{call}: needs estimator \"{needed}\", this one is \"{found}\"")]
    Estimator {
        /// What was called.
        call: &'static str,
        /// The estimator that it is for.
        needed: &'static str,
        /// The estimator that there is.
        found: &'static str,
    },
    /// Nobody that may be selected can ever arrive.
    #[error("failure: no eligible client can ever arrive (every failure probability is 1)")]
    NobodyArrives,
    /// The threshold leaves nobody.
    #[error(
        "threshold: every client's failure probability is above {0}; raise the threshold or allow label coverage"
    )]
    NobodyEligible(f64),
}

/// A setting that a program refuses: which one, and why. All crates of FedCote report settings with it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {reason}")]
pub struct SettingError {
    /// The dotted path that the user typed, such as `training.rate`.
    pub key: String,
    /// What is wrong with the value, and what would be right.
    pub reason: String,
}

impl SettingError {
    /// The setting of this key is refused for this reason.
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }

    /// The same error when the key is in this table.
    pub fn within(self, table: &str) -> Self {
        Self { key: format!("{table}.{}", self.key), reason: self.reason }
    }
}

/// Checks the number of draws.
pub(crate) fn check_selected(selected: u64) -> Result<(), Error> {
    if (1..=MAX_SELECTED).contains(&selected) { Ok(()) } else { Err(Error::Selected(selected)) }
}

/// Checks that `found` values were given where `expected` belong.
pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// Checks that every entry is a probability.
pub(crate) fn check_probabilities(what: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !(0.0..=1.0).contains(value)) {
        None => Ok(()),
        Some(index) => Err(Error::Probability { what, index, value: values[index] }),
    }
}
