//! Products of dense layers: a mini-batch of rows against a matrix in [`Panels`].
//!
//! Rows lie [`stride`] floats apart. A panel is taken in pieces that stay in the first-level cache while all samples
//! pass by. Unlike [`super::sparse`], nothing is skipped: for inputs of which most differ from zero.

use super::{
    block::{Outer, Rows, Tap, outer, rows},
    simd::{Simd, dispatch},
    sparse::{PANEL, Panels},
};

/// Rows of a panel that are taken at a time: 16 KiB.
const PIECE: usize = 128;

/// Floats between rows of that many columns: one cache line more than they take, because a power of two would send
/// the same columns of all samples to the same few places of the cache.
pub(crate) fn stride(columns: usize) -> usize {
    Panels::padded(columns) + 16
}

dispatch! {
    /// Adds x · matrix to y, row by row.
    fn product(samples: usize, x: &[f32], matrix: &Panels, y: &mut [f32]) = product_with
}

dispatch! {
    /// matrix = xᵀ · y, over all samples.
    fn outer_product(samples: usize, x: &[f32], y: &[f32], matrix: &mut Panels) = outer_product_with
}

#[inline(always)]
unsafe fn product_with<S: Simd>(samples: usize, x: &[f32], matrix: &Panels, y: &mut [f32]) {
    let (depth, columns) = matrix.size();
    let (x_stride, y_stride) = (stride(depth), stride(columns));
    assert!(x.len() >= samples * x_stride && y.len() >= samples * y_stride);
    for (panel, values) in matrix.values().chunks_exact(depth * PANEL).enumerate() {
        for first in (0..depth).step_by(PIECE) {
            // SAFETY: rows of `x` have `depth` floats and `samples` of them are there; so are rows of `y`, with all
            // columns of all panels; the piece ends within the panel.
            unsafe {
                rows::<S>(Rows {
                    x: x.as_ptr().add(first),
                    x_stride,
                    w: values.as_ptr().add(first * PANEL),
                    taps: &[Tap { input: 0, weight: 0 }],
                    depth: PIECE.min(depth - first),
                    y: y.as_mut_ptr().add(panel * PANEL),
                    y_stride,
                    outputs: PANEL,
                    pixels: samples,
                    add: true,
                });
            }
        }
    }
}

#[inline(always)]
unsafe fn outer_product_with<S: Simd>(samples: usize, x: &[f32], y: &[f32], matrix: &mut Panels) {
    let (depth, columns) = matrix.size();
    let (x_stride, y_stride) = (stride(depth), stride(columns));
    assert!(x.len() >= samples * x_stride && y.len() >= samples * y_stride);
    matrix.values_mut().fill(0.0);
    for (panel, values) in matrix.values_mut().chunks_exact_mut(depth * PANEL).enumerate() {
        // SAFETY: as for `product_with`; a panel has `depth` rows of PANEL floats.
        unsafe {
            outer::<S>(Outer {
                x: x.as_ptr(),
                x_stride,
                x_line: 0,
                y: y.as_ptr().add(panel * PANEL),
                y_stride,
                y_line: 0,
                lines: 1,
                pixels: samples,
                sum: values.as_mut_ptr(),
                depth,
                outputs: PANEL,
            });
        }
    }
}
