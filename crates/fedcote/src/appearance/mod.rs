//! The effective appearance: the share each client has in the aggregate, on average, when uploads fail.

mod gram;
mod grouped;
mod independent;
mod model;
#[cfg(test)]
mod oracle;
mod per_client;
mod series;
mod systematic;

pub use grouped::Grouped;
pub use independent::{Independent, appearance, gradient};
pub(crate) use independent::{check, check_selection};
pub use model::Model;
pub use per_client::PerClient;
pub use systematic::Systematic;

use crate::error::Error;

/// How draws and uploads make the effective appearance of a selection.
///
/// The inversion ([`crate::invert`]) works for any such model.
pub trait AppearanceModel: Sync {
    /// Writes the appearance of every client for this selection into `out`.
    ///
    /// The selection is non-negative, sums to one up to rounding, and is as long as `out`.
    fn appearance(&self, selection: &[f64], out: &mut [f64]) -> Result<(), Error>;
}
