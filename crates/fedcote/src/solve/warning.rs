//! What a user should know about a result: data, which displays as one line each.

use std::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Something about a result that deserves attention.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(Serialize, Deserialize),
    serde(tag = "kind", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Warning {
    /// The threshold had excluded every holder of a label; its most reliable holders were taken back.
    LabelRestored {
        /// The label.
        label: usize,
        /// The ids of the clients taken back.
        clients: Vec<String>,
        /// Arrivals per round lost to them, against giving their draws to the other clients.
        arrivals_lost: f64,
    },
    /// The threshold excludes every holder of a label, and label coverage is off.
    LabelLost {
        /// The label.
        label: usize,
    },
    /// Every holder of a label has failure probability 1.
    LabelUnreachable {
        /// The label.
        label: usize,
    },
    /// Clients that can never arrive are selected; the server redraws when only such are drawn.
    NeverArrives {
        /// The probability that a draw goes to one of them.
        selection: f64,
        /// How many clients they are.
        clients: usize,
    },
    /// Label counts differ no more than chance explains, so the selection is by weight.
    Homogeneous {
        /// Probability of differences at least as large among clients with equal label distributions.
        p_value: f64,
    },
    /// The problem is too large for the exact model of systematic draws or of one upload per client, so the appearance
    /// is that of independent draws with an upload each; see [`crate::appearance::Model`].
    ClosedForm,
    /// The problem is too large for the exact model of clients that fail together: they are taken to fail on their own; see
    /// [`crate::appearance::Model`].
    GroupsIgnored,
    /// The solver stopped before its tolerance.
    NotConverged {
        /// The optimality that was reached.
        residual: f64,
    },
}

/// Ids that are listed before the rest is counted.
const LISTED: usize = 5;

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LabelRestored { label, clients, arrivals_lost } => {
                let (noun, verb) =
                    if clients.len() == 1 { ("client", "is") } else { ("clients", "are") };
                write!(formatter, "label {label}: no holder is within the threshold; {noun} ")?;
                for (index, client) in clients.iter().take(LISTED).enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{client}")?;
                }
                if clients.len() > LISTED {
                    write!(formatter, " and {} more", clients.len() - LISTED)?;
                }
                write!(
                    formatter,
                    " {verb} selected all the same, which costs {arrivals_lost:.2} arrivals per round"
                )
            }
            Self::LabelLost { label } => write!(
                formatter,
                "label {label}: no holder is within the threshold, so it is lost; allow label coverage or raise the threshold"
            ),
            Self::LabelUnreachable { label } => {
                write!(
                    formatter,
                    "label {label}: every holder has failure probability 1, no client can deliver it"
                )
            }
            Self::NeverArrives { selection, clients } => write!(
                formatter,
                "{clients} selected {} can never arrive ({:.3} % of the draws); the server redraws when only such are drawn",
                if *clients == 1 { "client" } else { "clients" },
                100.0 * selection
            ),
            Self::Homogeneous { p_value } => write!(
                formatter,
                "label counts differ no more than chance explains (p = {p_value:.3}), so clients are selected by weight"
            ),
            Self::ClosedForm => write!(
                formatter,
                "too large for the exact model of these draws and uploads: appearances are those of independent draws with an upload each, which differ from systematic ones when draws are few"
            ),
            Self::GroupsIgnored => write!(
                formatter,
                "too large for the exact model of clients that fail together: they are taken to fail on their own"
            ),
            Self::NotConverged { residual } => {
                write!(
                    formatter,
                    "the solver stopped at optimality {residual:.1e}, before its tolerance"
                )
            }
        }
    }
}
