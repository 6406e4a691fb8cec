//! Bytes to floats.

use super::simd::{Simd, dispatch};

dispatch! {
    /// out = byte · scale + offset, in two roundings on every path.
    fn standardise(bytes: &[u8], scale: f32, offset: f32, out: &mut [f32]) = standardise_generic
}

// Generic only so that it is compiled for each instruction set: the compiler makes vectors of the loop.
#[inline(always)]
unsafe fn standardise_generic<S: Simd>(bytes: &[u8], scale: f32, offset: f32, out: &mut [f32]) {
    for (value, &byte) in out.iter_mut().zip(bytes) {
        *value = f32::from(byte) * scale + offset;
    }
}
