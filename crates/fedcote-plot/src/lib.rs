//! One place that draws: figures, tables and the report of federated learning runs.
//!
//! Typed data in, text out: a chart becomes an [`svg::Svg`], a table Markdown, LaTeX, CSV or JSON.
#![deny(missing_docs)]

pub mod font;
pub mod svg;
pub mod theme;
