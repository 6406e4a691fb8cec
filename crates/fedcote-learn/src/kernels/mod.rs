//! Numerical kernels: the only module with `unsafe` code.
#![allow(unsafe_code)]

pub(crate) mod dense;
