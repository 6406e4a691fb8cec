//! Floats at a multiple of a cache line, so that no vector straddles two lines.

use std::ops::{Deref, DerefMut};

/// A slice of floats that starts at a multiple of 64 bytes.
pub(crate) struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

impl Buffer {
    /// That many zeros.
    pub fn zeros(len: usize) -> Self {
        Self { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }
}

impl Deref for Buffer {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: the lines are sixteen floats each without gaps, and there are at least `len` floats.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as for `deref`; the lines are borrowed exclusively with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
