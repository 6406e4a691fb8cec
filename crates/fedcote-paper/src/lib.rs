//! Reproduces the tables and figures of the FedCote paper: our numbers, the paper's, the difference; and comparisons
//! that are not in the paper.
//!
//! [`Options`] says what to make, [`Options::plan`] finds the runs that it needs, [`Plan::make`] executes those that are
//! missing and writes one Markdown page per artefact, with tables as LaTeX, CSV and JSON and figures as SVG and PNG.
//! Runs are kept in the output folder and shared between artefacts.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use fedcote_paper::Options;
//! use fedcote_sim::comparison::{Event, RunId};
//!
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().to_owned();
//! let options = Options { artefacts: vec!["table-8".into()], out, ..Options::default() };
//! let plan = options.plan()?;
//! assert_eq!(plan.missing(), 0); // This table is computed without any run.
//! let made = plan.make(&AtomicBool::new(false), None, &|_: &RunId, _: Event| ())?;
//! let table = &made.expect("not interrupted")[0];
//! assert!(table.page.ends_with("calibrated/table-8.md"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod artefact;
mod beyond;
mod calibrate;
mod curves;
mod document;
mod error;
mod estimators;
mod gradients;
mod grids;
mod heterogeneity;
mod list;
mod numbers;
mod options;
mod placement;
mod plan;
mod readings;
mod request;
mod rivals;
mod runs;
mod selection;
mod settings;
mod tables;
mod theorem;
mod theory;
mod uploads;
mod variant;

pub use error::Error;
pub use fedcote_sim::comparison::Shard;
pub use list::{List, Listed};
pub use options::{Options, names};
pub use plan::{Made, Plan, Watch};
pub use variant::{Network, Task};
