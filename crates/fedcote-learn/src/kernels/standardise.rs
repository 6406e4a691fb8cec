//! Bytes to floats.

use super::simd::{Simd, dispatch};

/// Asks for these bytes to be brought into the cache while other work goes on: samples of a mini-batch lie anywhere.
pub(crate) fn expect(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing that could be seen; every x86-64 CPU has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

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
