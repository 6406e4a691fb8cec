//! The `fedcote` command inside a Python process.

use std::ffi::OsString;

use fedcote_cli::Extensions;
use pyo3::prelude::*;

/// Executes a command line, the program's name first, and returns the exit status; `program` are the words that start
/// the command as a process of its own.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    py.detach(|| fedcote_cli::main(arguments, &Extensions { program, ..Extensions::default() }))
}
