//! Figures, tables and the HTML report of federated learning runs.
//!
//! A chart is a [`panel::Panel`], panels make a figure ([`panel::figure`]), a
//! figure is an [`svg::Svg`]; a table becomes Markdown, LaTeX, CSV, JSON or HTML.
//!
//! ```
//! use fedcote_plot::bars::Bars;
//! use fedcote_plot::panel::figure;
//!
//! let bars = Bars::new("Arrivals", &["0", "1", "2"]).series("fedcote", &[0.1, 0.4, 0.5]);
//! let svg = figure("Arrivals per round", &[&bars], 1, 480.0);
//! assert!(svg.document().starts_with("<svg"));
//! ```
#![deny(missing_docs)]

pub mod axis;
pub mod bars;
mod day;
pub mod dots;
mod error;
pub mod folder;
pub mod font;
pub mod heat;
pub mod lines;
pub mod map;
pub mod panel;
#[cfg(feature = "png")]
mod png;
pub mod report;
pub mod scatter;
pub mod svg;
pub mod tables;
pub mod theme;

pub use day::date;
pub use error::Error;
#[cfg(feature = "png")]
pub use png::png;
