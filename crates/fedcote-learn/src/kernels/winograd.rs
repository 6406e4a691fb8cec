//! 3×3 convolution with stride 1 and padding 1 by Winograd's minimal filtering F(4×4, 3×3).
//!
//! A tile of 4×4 outputs takes 36 multiplications a pair of channels instead of 144:
//! y = Aᵀ[(G w Gᵀ) ⊙ (Bᵀ x B)]A, with x the 6×6 inputs under the tile and the matrices of the points 0, ±1, ±2, ∞.
//! Channels turn the 36 products ⊙ into 36 matrix products over many tiles. The gradient of the weights is the
//! adjoint, Gᵀ[Σ (Bᵀ x B) ⊙ (A dy Aᵀ)]G, and that of the inputs the same convolution with the weights turned round.
//!
//! References: S. Winograd, *Arithmetic Complexity of Computations* (1980); A. Lavin and S. Gray, *Fast Algorithms
//! for Convolutional Neural Networks*, CVPR 2016.

mod transforms;

use super::{
    block::{Outer, Rows, Tap, outer, rows},
    conv3x3::Convolution,
    simd::{Simd, dispatch},
};
use transforms::{a, a_adjoint, b, g, g_adjoint};

/// Elements of a transformed tile.
const POINTS: usize = 36;

/// Floats between the points of a block of tiles: one cache line more than the tiles take, because a power of
/// two would send all points of a tile to the same few places of the cache.
fn point_stride(tiles: usize, channels: usize) -> usize {
    tiles * channels + 16
}

/// How many tiles are transformed at a time, so that a block stays in the second-level cache.
fn block_tiles(channels: usize) -> usize {
    if channels > 32 { 24 } else { 48 }
}

/// Floats of scratch that a convolution needs.
pub(crate) fn scratch(c: Convolution) -> usize {
    let widest = c.input.channels.max(c.outputs);
    2 * POINTS * point_stride(block_tiles(widest), widest)
}

/// The number of transformed weights, `[36][in][out]`.
pub(crate) fn transformed(c: Convolution) -> usize {
    POINTS * c.input.channels * c.outputs
}

dispatch! {
    /// The transformed weights G w Gᵀ of `[3][3][n]` weights; `turned` by half a turn for the input gradient.
    fn transform_weights(weights: &[f32], turned: bool, transformed: &mut [f32])
        = transform_weights_with
}

dispatch! {
    /// Adds Gᵀ u G to a gradient `[3][3][n]`, where u is what [`weight_gradient`] summed.
    fn finish_gradient(transformed: &[f32], gradient: &mut [f32]) = finish_gradient_with
}

dispatch! {
    /// The outputs (dense; added to what is there if `add`) of each image (padded), with transformed weights.
    /// Inputs and outputs are multiples of 16.
    fn forward(
        c: Convolution,
        x: &[f32],
        transformed: &[f32],
        y: &mut [f32],
        add: bool,
        scratch: &mut [f32],
    ) = forward_with
}

dispatch! {
    /// Adds the gradient of the transformed weights, from inputs and gradient at the outputs (both padded).
    fn weight_gradient(
        c: Convolution,
        x: &[f32],
        dy: &[f32],
        transformed: &mut [f32],
        scratch: &mut [f32],
    ) = weight_gradient_with
}

#[inline(always)]
unsafe fn transform_weights_with<S: Simd>(weights: &[f32], turned: bool, transformed: &mut [f32]) {
    let n = weights.len() / 9;
    assert!(weights.len() == 9 * n && transformed.len() == POINTS * n && n.is_multiple_of(16));
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: `at` + LANES ≤ n, and there are 9 n weights and 36 n transformed ones.
        unsafe {
            let mut half = [[S::splat(0.0); 3]; 6];
            for j in 0..3 {
                let mut column = [S::splat(0.0); 3];
                for i in 0..3 {
                    let tap = if turned { 8 - (3 * i + j) } else { 3 * i + j };
                    column[i] = S::load(weights.as_ptr().add(tap * n + at));
                }
                let column = g(column);
                for i in 0..6 {
                    half[i][j] = column[i];
                }
            }
            for i in 0..6 {
                let row = g(half[i]);
                for j in 0..6 {
                    row[j].store(transformed.as_mut_ptr().add((6 * i + j) * n + at));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn finish_gradient_with<S: Simd>(transformed: &[f32], gradient: &mut [f32]) {
    let n = gradient.len() / 9;
    assert!(gradient.len() == 9 * n && transformed.len() == POINTS * n && n.is_multiple_of(16));
    for at in (0..n).step_by(S::LANES) {
        // SAFETY: as for `transform_weights_with`.
        unsafe {
            let mut half = [[S::splat(0.0); 6]; 3];
            for j in 0..6 {
                let mut column = [S::splat(0.0); 6];
                for i in 0..6 {
                    column[i] = S::load(transformed.as_ptr().add((6 * i + j) * n + at));
                }
                let column = g_adjoint(column);
                for i in 0..3 {
                    half[i][j] = column[i];
                }
            }
            for i in 0..3 {
                let row = g_adjoint(half[i]);
                for j in 0..3 {
                    let to = gradient.as_mut_ptr().add((3 * i + j) * n + at);
                    row[j].add(S::load(to)).store(to);
                }
            }
        }
    }
}

/// A tile's place: image, and row and column of its first output.
struct Tiles {
    across: usize,
    each: usize,
}

impl Tiles {
    fn new(c: Convolution) -> Self {
        let across = c.input.width.div_ceil(4);
        Self { across, each: across * c.input.height.div_ceil(4) }
    }

    #[inline(always)]
    fn place(&self, tile: usize) -> (usize, usize, usize) {
        let (image, within) = (tile / self.each, tile % self.each);
        (image, 4 * (within / self.across), 4 * (within % self.across))
    }
}

/// Bᵀ x B of one tile for all channels; `x` is the corner of its 6×6 inputs.
#[inline(always)]
unsafe fn transform_input<S: Simd>(
    x: *const f32,
    row: usize,
    channels: usize,
    v: *mut f32,
    stride: usize,
) {
    for channel in (0..channels).step_by(S::LANES) {
        // SAFETY: the caller has 6×6 pixels of `channels` floats at `x`, and 36 points at `v`.
        unsafe {
            let mut half = [[S::splat(0.0); 6]; 6];
            for j in 0..6 {
                let mut column = [S::splat(0.0); 6];
                for i in 0..6 {
                    column[i] = S::load(x.add(i * row + j * channels + channel));
                }
                let column = b(column);
                for i in 0..6 {
                    half[i][j] = column[i];
                }
            }
            for i in 0..6 {
                let line = b(half[i]);
                for j in 0..6 {
                    line[j].store(v.add((6 * i + j) * stride + channel));
                }
            }
        }
    }
}

/// A dy Aᵀ of one tile for all channels; `dy` is the corner of its 4×4 slopes.
#[inline(always)]
unsafe fn transform_slope<S: Simd>(
    dy: *const f32,
    row: usize,
    channels: usize,
    v: *mut f32,
    stride: usize,
) {
    for channel in (0..channels).step_by(S::LANES) {
        // SAFETY: the caller has 4×4 pixels of `channels` floats at `dy`, and 36 points at `v`.
        unsafe {
            let mut half = [[S::splat(0.0); 4]; 6];
            for j in 0..4 {
                let mut column = [S::splat(0.0); 4];
                for i in 0..4 {
                    column[i] = S::load(dy.add(i * row + j * channels + channel));
                }
                let column = a_adjoint(column);
                for i in 0..6 {
                    half[i][j] = column[i];
                }
            }
            for i in 0..6 {
                let line = a_adjoint(half[i]);
                for j in 0..6 {
                    line[j].store(v.add((6 * i + j) * stride + channel));
                }
            }
        }
    }
}

/// Aᵀ m A of one tile for all channels, of which `high` × `wide` pixels are inside the image.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn transform_output<S: Simd>(
    m: *const f32,
    stride: usize,
    channels: usize,
    y: *mut f32,
    row: usize,
    high: usize,
    wide: usize,
    add: bool,
) {
    for channel in (0..channels).step_by(S::LANES) {
        // SAFETY: the caller has 36 points at `m`, and `high` × `wide` pixels at `y`.
        unsafe {
            let mut half = [[S::splat(0.0); 6]; 4];
            for j in 0..6 {
                let mut column = [S::splat(0.0); 6];
                for i in 0..6 {
                    column[i] = S::load(m.add((6 * i + j) * stride + channel));
                }
                let column = a(column);
                for i in 0..4 {
                    half[i][j] = column[i];
                }
            }
            for i in 0..4 {
                let line = a(half[i]);
                if i < high {
                    for j in 0..4 {
                        if j < wide {
                            let to = y.add(i * row + j * channels + channel);
                            let value = if add { line[j].add(S::load(to)) } else { line[j] };
                            value.store(to);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn forward_with<S: Simd>(
    c: Convolution,
    x: &[f32],
    transformed: &[f32],
    y: &mut [f32],
    add: bool,
    scratch: &mut [f32],
) {
    let (input, output) = (c.input, c.output());
    let images = x.len() / input.padded();
    let size = input.channels * c.outputs;
    assert!(c.stride == 1 && input.channels.is_multiple_of(16) && c.outputs.is_multiple_of(16));
    assert!(x.len() == images * input.padded() && y.len() == images * output.dense());
    assert!(transformed.len() == POINTS * size && scratch.len() >= self::scratch(c));
    let tiles = Tiles::new(c);
    let total = images * tiles.each;
    let block = block_tiles(input.channels.max(c.outputs));
    let (v_stride, m_stride) =
        (point_stride(block, input.channels), point_stride(block, c.outputs));
    let (v, m) = scratch.split_at_mut(POINTS * v_stride);
    let y_row = output.width * c.outputs;
    for first in (0..total).step_by(block) {
        let count = block.min(total - first);
        // SAFETY: a tile's corner is at most height − 1 rounded down to a multiple of four, and the padded image has
        // six rows from there, likewise columns; `scratch` holds 36 points of `block` tiles on either side; the
        // output's part of a tile is cut at the image's edge.
        unsafe {
            for t in 0..count {
                let (image, i, j) = tiles.place(first + t);
                let at = image * input.padded() + i * input.row() + j * input.channels;
                transform_input::<S>(
                    x.as_ptr().add(at),
                    input.row(),
                    input.channels,
                    v.as_mut_ptr().add(t * input.channels),
                    v_stride,
                );
            }
            for point in 0..POINTS {
                rows::<S>(Rows {
                    x: v.as_ptr().add(point * v_stride),
                    x_stride: input.channels,
                    w: transformed.as_ptr().add(point * size),
                    taps: &[Tap { input: 0, weight: 0 }],
                    depth: input.channels,
                    y: m.as_mut_ptr().add(point * m_stride),
                    y_stride: c.outputs,
                    outputs: c.outputs,
                    pixels: count,
                    add: false,
                });
            }
            for t in 0..count {
                let (image, i, j) = tiles.place(first + t);
                let at = image * output.dense() + i * y_row + j * c.outputs;
                let (high, wide) = (output.height - i, output.width - j);
                let y = y.as_mut_ptr().add(at);
                let m = m.as_ptr().add(t * c.outputs);
                if high >= 4 && wide >= 4 {
                    transform_output::<S>(m, m_stride, c.outputs, y, y_row, 4, 4, add);
                } else {
                    transform_output::<S>(m, m_stride, c.outputs, y, y_row, high, wide, add);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn weight_gradient_with<S: Simd>(
    c: Convolution,
    x: &[f32],
    dy: &[f32],
    transformed: &mut [f32],
    scratch: &mut [f32],
) {
    let (input, output) = (c.input, c.output());
    let images = x.len() / input.padded();
    let size = input.channels * c.outputs;
    assert!(c.stride == 1 && input.channels.is_multiple_of(16) && c.outputs.is_multiple_of(16));
    assert!(x.len() == images * input.padded() && dy.len() == images * output.padded());
    assert!(transformed.len() == POINTS * size && scratch.len() >= self::scratch(c));
    let tiles = Tiles::new(c);
    let total = images * tiles.each;
    let block = block_tiles(input.channels.max(c.outputs));
    let (v_stride, m_stride) =
        (point_stride(block, input.channels), point_stride(block, c.outputs));
    let (v, m) = scratch.split_at_mut(POINTS * v_stride);
    for first in (0..total).step_by(block) {
        let count = block.min(total - first);
        // SAFETY: as for `forward_with`; the padded gradient has four rows and columns from a tile's corner, zero
        // where they are outside the image.
        unsafe {
            for t in 0..count {
                let (image, i, j) = tiles.place(first + t);
                let at = image * input.padded() + i * input.row() + j * input.channels;
                transform_input::<S>(
                    x.as_ptr().add(at),
                    input.row(),
                    input.channels,
                    v.as_mut_ptr().add(t * input.channels),
                    v_stride,
                );
                let at =
                    image * output.padded() + output.origin() + i * output.row() + j * c.outputs;
                transform_slope::<S>(
                    dy.as_ptr().add(at),
                    output.row(),
                    c.outputs,
                    m.as_mut_ptr().add(t * c.outputs),
                    m_stride,
                );
            }
            for point in 0..POINTS {
                outer::<S>(Outer {
                    x: v.as_ptr().add(point * v_stride),
                    x_stride: input.channels,
                    x_line: 0,
                    y: m.as_ptr().add(point * m_stride),
                    y_stride: c.outputs,
                    y_line: 0,
                    lines: 1,
                    pixels: count,
                    sum: transformed.as_mut_ptr().add(point * size),
                    depth: input.channels,
                    outputs: c.outputs,
                });
            }
        }
    }
}
