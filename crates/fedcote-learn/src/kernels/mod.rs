//! Numerical kernels: the only module with `unsafe` code.
//!
//! Vector kernels are written once and compiled for each instruction set (see [`simd`]); a [`Path`] says which
//! one to take.
#![allow(unsafe_code)]
// Blocks held in registers are arrays that are indexed by the same constant loops; iterators would hide that.
#![allow(clippy::needless_range_loop)]

mod block;
pub(crate) mod buffer;
mod compress;
pub(crate) mod conv3x3;
pub(crate) mod dense;
pub(crate) mod group_norm;
pub(crate) mod plane;
pub(crate) mod pool;
mod simd;
pub(crate) mod sparse;
pub(crate) mod standardise;
#[cfg(test)]
mod tests;
pub(crate) mod winograd;

pub use simd::Path;
