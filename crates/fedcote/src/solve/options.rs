//! What to solve for, and how.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::{Draws, Uploads};

/// How to find the selection.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(Serialize, Deserialize),
    serde(tag = "name", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Method {
    /// The optimal appearance by a convex problem, then the selection that leads to it.
    Exact {
        /// How much more labels matter than weights, `κ > 0`. Default 1000.
        kappa: f64,
        /// The price of a failed draw, `ρ ≥ 0`. Default 0: unbiased when everybody is eligible.
        efficiency: f64,
    },
    /// Algorithm 2 of the paper: projected gradient descent on the label divergence alone.
    Gradient {
        /// Solve for this many draws instead (the paper's FedCote-II). Default: the number asked for.
        k_apx: Option<u64>,
        /// Largest number of steps. Default 2000.
        max_steps: usize,
        /// Projected gradient at which to stop. Default 1e-10.
        tolerance: f64,
    },
}

impl Method {
    /// The exact method with its defaults.
    pub const EXACT: Self = Self::Exact { kappa: 1000.0, efficiency: 0.0 };

    /// The gradient method with its defaults.
    pub const GRADIENT: Self = Self::gradient(None);

    /// The gradient method with its default limits, solving for `k_apx` draws if given.
    pub const fn gradient(k_apx: Option<u64>) -> Self {
        Self::Gradient { k_apx, max_steps: 2000, tolerance: 1e-10 }
    }

    /// `exact` or `gradient`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact { .. } => "exact",
            Self::Gradient { .. } => "gradient",
        }
    }
}

/// What the selection probabilities are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Aim {
    /// For a server that averages what arrives: the labels of that average are those of all data.
    #[default]
    Appearance,
    /// For a server that keeps every client's latest update and averages all of them with the weights
    /// [`Solution::target`](crate::Solution::target): labels are right whoever arrives, and the selection keeps the
    /// updates from growing old, with probabilities proportional to `target / √(1 − failure)`.
    Freshness,
}

impl std::str::FromStr for Aim {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "appearance" => Ok(Self::Appearance),
            "freshness" => Ok(Self::Freshness),
            _ => {
                let known = "appearance, freshness";
                Err(Error::Name { what: "aim", found: name.to_owned(), known })
            }
        }
    }
}

/// What [`select`](crate::select()) should do.
///
/// ```
/// use fedcote::{Aim, Draws, Options};
///
/// let options = Options::new().with_aim(Aim::Freshness).with_draws(Draws::Systematic);
/// assert_eq!(options.threshold, 0.85); // all else as by default
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
#[non_exhaustive]
pub struct Options {
    /// The method. Default: exact.
    pub method: Method,
    /// Clients with a failure probability above it are excluded; from 0 to 1. Default 0.85.
    pub threshold: f64,
    /// Whether a label whose holders are all excluded gets its most reliable holders back. Default true.
    pub coverage: bool,
    /// How clients will be drawn. Default: independently. The gradient method descends for the default procedure, as in
    /// the paper, whatever the procedure; what it reports is the appearance under the procedure.
    pub draws: Draws,
    /// What an upload carries. Default: one draw.
    pub uploads: Uploads,
    /// What the probabilities are for. Default: appearance.
    pub aim: Aim,
    /// The part of the draws that goes to all clients by weight, excluded ones too, so that failure probabilities that are
    /// estimated go on being observed; from 0 to 1. Default 0.
    pub exploration: f64,
}

impl Options {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            method: Method::EXACT,
            threshold: 0.85,
            coverage: true,
            draws: Draws::Independent,
            uploads: Uploads::PerDraw,
            aim: Aim::Appearance,
            exploration: 0.0,
        }
    }

    /// With this method.
    pub const fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// With this threshold on failure probabilities.
    pub const fn with_threshold(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }

    /// With or without label coverage.
    pub const fn with_coverage(self, coverage: bool) -> Self {
        Self { coverage, ..self }
    }

    /// With this manner of drawing.
    pub const fn with_draws(self, draws: Draws) -> Self {
        Self { draws, ..self }
    }

    /// With these uploads.
    pub const fn with_uploads(self, uploads: Uploads) -> Self {
        Self { uploads, ..self }
    }

    /// With this aim.
    pub const fn with_aim(self, aim: Aim) -> Self {
        Self { aim, ..self }
    }

    /// With this exploration.
    pub const fn with_exploration(self, exploration: f64) -> Self {
        Self { exploration, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
