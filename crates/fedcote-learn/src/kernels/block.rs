//! The two inner kernels of every convolution: blocks of a matrix product held in registers.
//!
//! * [`rows`]: y[p] += Σ_k x[p][k] · w[k], the pixels p of a row (or the tiles of a Winograd transform) against
//!   all output channels;
//! * [`outer`]: g[k] += Σ_p x[p][k] · y[p], the same with input channels k in place of pixels.
//!
//! A block is `P` scalars × `V` vectors of output channels; each step loads `V` vectors and `P` scalars for
//! `P·V` multiply-adds. AVX2 has 16 registers (6 × 2 = 12 sums, 2 vectors, 1 scalar), AVX-512 has 32.

use super::simd::Simd;

/// Where one term of a product begins, relative to the block: in the input, and in the weights.
#[derive(Clone, Copy)]
pub(super) struct Tap {
    pub input: usize,
    pub weight: usize,
}

/// The arguments of [`rows`]: pointers with their strides, in floats.
#[derive(Clone, Copy)]
pub(super) struct Rows<'t> {
    /// The first scalar of the first pixel, and the distance between pixels.
    pub x: *const f32,
    pub x_stride: usize,
    /// The weights, `depth` × `outputs` for each tap.
    pub w: *const f32,
    pub taps: &'t [Tap],
    pub depth: usize,
    /// The outputs of the first pixel, and the distance between pixels.
    pub y: *mut f32,
    pub y_stride: usize,
    pub outputs: usize,
    pub pixels: usize,
    /// Whether to add to what is in `y`.
    pub add: bool,
}

/// y[p][·] = (y[p][·] +) Σ_taps Σ_k x[p][k] w[k][·].
///
/// # Safety
///
/// The CPU has the instruction set of `S`; everything that `Rows` describes lies in memory that the caller may
/// read, and `y` in memory that it may write and that overlaps no input; `outputs` is a multiple of `LANES`.
#[inline(always)]
pub(super) unsafe fn rows<S: Simd>(a: Rows) {
    // SAFETY: the caller's promise.
    unsafe {
        if S::LANES == 16 {
            if a.outputs.is_multiple_of(2 * S::LANES) {
                columns::<S, 12, 2>(a);
            } else {
                columns::<S, 12, 1>(a);
            }
        } else if a.outputs.is_multiple_of(2 * S::LANES) {
            columns::<S, 6, 2>(a);
        } else {
            columns::<S, 6, 1>(a);
        }
    }
}

#[inline(always)]
unsafe fn columns<S: Simd, const P: usize, const V: usize>(a: Rows) {
    // SAFETY: the blocks cover `pixels` × `outputs` exactly.
    unsafe {
        let mut column = 0;
        while column < a.outputs {
            let mut p = 0;
            while p + P <= a.pixels {
                rows_block::<S, P, V>(a, p, column);
                p += P;
            }
            while p + 4 <= a.pixels {
                rows_block::<S, 4, V>(a, p, column);
                p += 4;
            }
            while p < a.pixels {
                rows_block::<S, 1, V>(a, p, column);
                p += 1;
            }
            column += V * S::LANES;
        }
    }
}

#[inline(always)]
unsafe fn rows_block<S: Simd, const P: usize, const V: usize>(a: Rows, p: usize, column: usize) {
    // SAFETY: pixels p..p+P and outputs column..column+V·LANES are within what the caller describes.
    unsafe {
        let y = a.y.add(p * a.y_stride + column);
        let mut sum = [[S::splat(0.0); V]; P];
        if a.add {
            for i in 0..P {
                for v in 0..V {
                    sum[i][v] = S::load(y.add(i * a.y_stride + v * S::LANES));
                }
            }
        }
        for tap in a.taps {
            let x = a.x.add(p * a.x_stride + tap.input);
            let mut w = a.w.add(tap.weight + column);
            for k in 0..a.depth {
                let mut vector = [S::splat(0.0); V];
                for v in 0..V {
                    vector[v] = S::load(w.add(v * S::LANES));
                }
                for i in 0..P {
                    let scalar = S::splat(*x.add(i * a.x_stride + k));
                    for v in 0..V {
                        sum[i][v] = scalar.fma(vector[v], sum[i][v]);
                    }
                }
                w = w.wrapping_add(a.outputs);
            }
        }
        for i in 0..P {
            for v in 0..V {
                sum[i][v].store(y.add(i * a.y_stride + v * S::LANES));
            }
        }
    }
}

/// The arguments of [`outer`]: `lines` lines of `pixels` pixels each.
#[derive(Clone, Copy)]
pub(super) struct Outer {
    pub x: *const f32,
    pub x_stride: usize,
    pub x_line: usize,
    pub y: *const f32,
    pub y_stride: usize,
    pub y_line: usize,
    pub lines: usize,
    pub pixels: usize,
    /// The sums, `depth` × `outputs`.
    pub sum: *mut f32,
    pub depth: usize,
    pub outputs: usize,
}

/// sum[k][·] += Σ_p x[p][k] y[p][·].
///
/// # Safety
///
/// As for [`rows`].
#[inline(always)]
pub(super) unsafe fn outer<S: Simd>(a: Outer) {
    // SAFETY: the caller's promise.
    unsafe {
        if S::LANES == 16 {
            if a.outputs.is_multiple_of(2 * S::LANES) {
                outer_columns::<S, 12, 2>(a);
            } else {
                outer_columns::<S, 12, 1>(a);
            }
        } else if a.outputs.is_multiple_of(2 * S::LANES) {
            outer_columns::<S, 6, 2>(a);
        } else {
            outer_columns::<S, 6, 1>(a);
        }
    }
}

#[inline(always)]
unsafe fn outer_columns<S: Simd, const P: usize, const V: usize>(a: Outer) {
    // SAFETY: the blocks cover `depth` × `outputs` exactly.
    unsafe {
        let mut column = 0;
        while column < a.outputs {
            let mut k = 0;
            while k + P <= a.depth {
                outer_block::<S, P, V>(a, k, column);
                k += P;
            }
            while k + 4 <= a.depth {
                outer_block::<S, 4, V>(a, k, column);
                k += 4;
            }
            while k < a.depth {
                outer_block::<S, 1, V>(a, k, column);
                k += 1;
            }
            column += V * S::LANES;
        }
    }
}

#[inline(always)]
unsafe fn outer_block<S: Simd, const P: usize, const V: usize>(a: Outer, k: usize, column: usize) {
    // SAFETY: inputs k..k+P and outputs column..column+V·LANES are within what the caller describes.
    unsafe {
        let to = a.sum.add(k * a.outputs + column);
        let mut sum = [[S::splat(0.0); V]; P];
        for i in 0..P {
            for v in 0..V {
                sum[i][v] = S::load(to.add(i * a.outputs + v * S::LANES));
            }
        }
        for line in 0..a.lines {
            let mut x = a.x.add(line * a.x_line + k);
            let mut y = a.y.add(line * a.y_line + column);
            for _ in 0..a.pixels {
                let mut vector = [S::splat(0.0); V];
                for v in 0..V {
                    vector[v] = S::load(y.add(v * S::LANES));
                }
                for i in 0..P {
                    let scalar = S::splat(*x.add(i));
                    for v in 0..V {
                        sum[i][v] = scalar.fma(vector[v], sum[i][v]);
                    }
                }
                x = x.wrapping_add(a.x_stride);
                y = y.wrapping_add(a.y_stride);
            }
        }
        for i in 0..P {
            for v in 0..V {
                sum[i][v].store(to.add(i * a.outputs + v * S::LANES));
            }
        }
    }
}
