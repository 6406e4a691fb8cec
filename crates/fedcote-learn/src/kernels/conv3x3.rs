//! 3×3 convolution with padding 1, channels last, computed directly.
//!
//! y[i][j][o] = Σ_{a,b,c} x[s·i + a − 1][s·j + b − 1][c] · w[a][b][c][o]
//!
//! for stride s and weights `[3][3][in][out]`. Inputs are padded, outputs dense (see [`Plane`]); the gradient at
//! the output comes padded, because the input gradient convolves it in turn.

use super::{
    block::{Outer, Rows, Tap, outer, rows},
    plane::Plane,
    simd::{Simd, dispatch},
};

/// The shape of a convolution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convolution {
    pub input: Plane,
    pub outputs: usize,
    pub stride: usize,
}

impl Convolution {
    /// The shape of its output.
    pub fn output(self) -> Plane {
        self.input.convolved(self.stride, self.outputs)
    }

    /// The number of weights.
    pub fn weights(self) -> usize {
        9 * self.input.channels * self.outputs
    }
}

/// Weights `[3][3][in][out]` as `[3][3][out][in]`, for [`input_gradient`].
pub(crate) fn transpose(c: Convolution, weights: &[f32], transposed: &mut [f32]) {
    let (inputs, size) = (c.input.channels, c.input.channels * c.outputs);
    for (from, to) in weights.chunks_exact(size).zip(transposed.chunks_exact_mut(size)) {
        for (i, row) in from.chunks_exact(c.outputs).enumerate() {
            for (o, &value) in row.iter().enumerate() {
                to[o * inputs + i] = value;
            }
        }
    }
}

dispatch! {
    /// The outputs (dense) of each image (padded). The number of outputs is a multiple of 16.
    fn forward(c: Convolution, x: &[f32], weights: &[f32], y: &mut [f32]) = forward_with
}

dispatch! {
    /// The gradient at the inputs (dense), from that at the outputs (padded) and the transposed weights. The
    /// number of inputs is a multiple of 16.
    fn input_gradient(c: Convolution, dy: &[f32], transposed: &[f32], dx: &mut [f32])
        = input_gradient_with
}

dispatch! {
    /// Adds the gradient of the weights, from inputs and gradient at the outputs (both padded). The number of
    /// outputs is a multiple of 16.
    fn weight_gradient(c: Convolution, x: &[f32], dy: &[f32], gradient: &mut [f32])
        = weight_gradient_with
}

#[inline(always)]
unsafe fn forward_with<S: Simd>(c: Convolution, x: &[f32], weights: &[f32], y: &mut [f32]) {
    let (input, output) = (c.input, c.output());
    assert!(c.outputs.is_multiple_of(16) && weights.len() == c.weights());
    assert!(
        x.len().is_multiple_of(input.padded())
            && y.len() == x.len() / input.padded() * output.dense()
    );
    // The three pixels of a window's row are neighbours in memory, and so are their weights: three long taps.
    let depth = 3 * input.channels;
    let taps = [0, 1, 2].map(|a| Tap { input: a * input.row(), weight: a * depth * c.outputs });
    for (x, y) in x.chunks_exact(input.padded()).zip(y.chunks_exact_mut(output.dense())) {
        for i in 0..output.height {
            // SAFETY: window row a of output row i is row s·i + a of the padded input, at most height + 1; likewise
            // for columns. The dense output has `height` rows of `width` pixels of `outputs` floats.
            unsafe {
                rows::<S>(Rows {
                    x: x.as_ptr().add(c.stride * i * input.row()),
                    x_stride: c.stride * input.channels,
                    w: weights.as_ptr(),
                    taps: &taps,
                    depth,
                    y: y.as_mut_ptr().add(i * output.width * c.outputs),
                    y_stride: c.outputs,
                    outputs: c.outputs,
                    pixels: output.width,
                    add: false,
                });
            }
        }
    }
}

#[inline(always)]
unsafe fn input_gradient_with<S: Simd>(
    c: Convolution,
    dy: &[f32],
    transposed: &[f32],
    dx: &mut [f32],
) {
    let (input, output, s) = (c.input, c.output(), c.stride);
    assert!(input.channels.is_multiple_of(16) && transposed.len() == c.weights());
    assert!(
        dy.len().is_multiple_of(output.padded())
            && dx.len() == dy.len() / output.padded() * input.dense()
    );
    let size = input.channels * c.outputs;
    for (dy, dx) in dy.chunks_exact(output.padded()).zip(dx.chunks_exact_mut(input.dense())) {
        // Input pixels that leave the same remainders on division by the stride meet the same weights: pixel
        // s·i + r belongs to window row a of output i + (r + 1 − a)/s, where that is whole.
        for (row, column) in (0..s).flat_map(|row| (0..s).map(move |column| (row, column))) {
            let mut taps = [Tap { input: 0, weight: 0 }; 9];
            let mut count = 0;
            for (a, b) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))) {
                // One stride and one border are added, so that nothing is negative.
                let (up, left) = (row + 1 + s - a, column + 1 + s - b);
                if up.is_multiple_of(s) && left.is_multiple_of(s) {
                    taps[count] = Tap {
                        input: up / s * output.row() + left / s * c.outputs,
                        weight: (3 * a + b) * size,
                    };
                    count += 1;
                }
            }
            let pixels = (input.width + s - 1 - column) / s;
            for i in 0..(input.height + s - 1 - row) / s {
                // SAFETY: `up / s` is at most 2 and i + 2 at most the output's height + 1 (its lower border), since
                // s·i + row < input height; likewise for columns. The outputs are pixels of the dense input.
                unsafe {
                    rows::<S>(Rows {
                        x: dy.as_ptr().add(i * output.row()),
                        x_stride: c.outputs,
                        w: transposed.as_ptr(),
                        taps: &taps[..count],
                        depth: c.outputs,
                        y: dx
                            .as_mut_ptr()
                            .add(((s * i + row) * input.width + column) * input.channels),
                        y_stride: s * input.channels,
                        outputs: input.channels,
                        pixels,
                        add: false,
                    });
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
    gradient: &mut [f32],
) {
    let (input, output) = (c.input, c.output());
    assert!(c.outputs.is_multiple_of(16) && gradient.len() == c.weights());
    assert!(
        x.len().is_multiple_of(input.padded())
            && dy.len() == x.len() / input.padded() * output.padded()
    );
    let depth = 3 * input.channels;
    for (x, dy) in x.chunks_exact(input.padded()).zip(dy.chunks_exact(output.padded())) {
        for (a, gradient) in gradient.chunks_exact_mut(depth * c.outputs).enumerate() {
            // SAFETY: as for `forward_with`; the gradient at the outputs starts at its interior.
            unsafe {
                outer::<S>(Outer {
                    x: x.as_ptr().add(a * input.row()),
                    x_stride: c.stride * input.channels,
                    x_line: c.stride * input.row(),
                    y: dy.as_ptr().add(output.origin()),
                    y_stride: c.outputs,
                    y_line: output.row(),
                    lines: output.height,
                    pixels: output.width,
                    sum: gradient.as_mut_ptr(),
                    depth,
                    outputs: c.outputs,
                });
            }
        }
    }
}
