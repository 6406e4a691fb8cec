//! One place that draws: figures, tables and the report of federated learning runs.
//!
//! Typed data in, text out: a chart is a [`panel::Panel`], panels make a figure ([`panel::figure`]), a
//! figure is an [`svg::Svg`]; a table becomes Markdown, LaTeX, CSV, JSON or HTML.
#![deny(missing_docs)]

pub mod axis;
pub mod bars;
pub mod dots;
mod error;
pub mod folder;
pub mod font;
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

pub use error::Error;
#[cfg(feature = "png")]
pub use png::png;
