//! The Rust part of the Python package `fedcote`: thin, one file per Python name.
//!
//! Arrays come in as NumPy views and go out as NumPy arrays; ids, defaults and friendly results are the business of
//! `python/fedcote`, which also holds the documentation. Long calls release the interpreter.
// PyO3's macros expand to the unsafe entry points that CPython calls; by hand there is one borrow, in
// `task.rs`, which says why it is sound.
#![allow(unsafe_code)]

mod aggregate;
mod command;
mod data;
mod network;
mod privacy;
mod remote;
mod scheme;
mod select;
mod selector;
mod simulate;
mod task;
mod threads;

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// What the library refuses is a `ValueError` with the library's text.
fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pyo3::pymodule]
mod _fedcote {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::aggregate::{weighted_sum_f32, weighted_sum_f64};
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::data::{mnist, partition};
    #[pymodule_export]
    use crate::network::{Network, outage};
    #[pymodule_export]
    use crate::privacy::{gaussian_epsilon, protect};
    #[pymodule_export]
    use crate::remote::stretch;
    #[pymodule_export]
    use crate::scheme::draw;
    #[pymodule_export]
    use crate::select::{appearance, evaluate, select};
    #[pymodule_export]
    use crate::selector::Core;
    #[pymodule_export]
    use crate::simulate::{figures, planned, rounds, simulate, write_report};
    #[pymodule_export]
    use crate::task::batches;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::threads::remember();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
