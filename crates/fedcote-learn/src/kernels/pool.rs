//! What follows a convolution in a plain network: bias, ReLU, and the maximum of 2×2 pixels.
//!
//! A row or column left over at the edge of an odd size is dropped. Of equal pixels the first counts. Adding the bias
//! and ReLU keep the order of pixels, so the maximum is taken first and the rest done once.

use super::{
    plane::Plane,
    simd::{Simd, dispatch},
};

/// No pixel has a slope: ReLU is closed.
const CLOSED: u32 = 4;

/// How images lie in a buffer, in floats: one from the next, the first pixel, one row from the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub image: usize,
    pub origin: usize,
    pub row: usize,
}

impl Layout {
    /// Padded images.
    pub fn padded(plane: Plane) -> Self {
        Self { image: plane.padded(), origin: plane.origin(), row: plane.row() }
    }

    /// Images without a border, one every `image` floats.
    pub fn dense(plane: Plane, image: usize) -> Self {
        Self { image, origin: 0, row: plane.width * plane.channels }
    }
}

/// What pooling makes of a plane.
pub(crate) fn pooled(plane: Plane) -> Plane {
    Plane { height: plane.height / 2, width: plane.width / 2, ..plane }
}

dispatch! {
    /// y = max(0, bias + the largest of each 2×2 pixels of z), for dense images z of that plane; `choices` remembers
    /// which one it was.
    fn forward(
        plane: Plane,
        z: &[f32],
        bias: &[f32],
        layout: Layout,
        y: &mut [f32],
        choices: &mut [u32],
    ) = forward_with
}

dispatch! {
    /// Slopes at the pooled pixels to slopes at the pixels they came from (padded), and their sum to that of the bias.
    fn backward(
        plane: Plane,
        layout: Layout,
        slopes: &[f32],
        choices: &[u32],
        dz: &mut [f32],
        of_bias: &mut [f32],
    ) = backward_with
}

// Generic only so that they are compiled for each instruction set: the compiler makes vectors of the loops.
#[inline(always)]
unsafe fn forward_with<S: Simd>(
    plane: Plane,
    z: &[f32],
    bias: &[f32],
    layout: Layout,
    y: &mut [f32],
    choices: &mut [u32],
) {
    let (small, n) = (pooled(plane), plane.channels);
    let bias = &bias[..n];
    let images = z.chunks_exact(plane.dense()).zip(choices.chunks_exact_mut(small.dense()));
    for (image, (z, choices)) in images.enumerate() {
        for (pixel, choices) in choices.chunks_exact_mut(n).enumerate() {
            let (row, column) = (pixel / small.width, pixel % small.width);
            let corner = 2 * (row * plane.width + column) * n;
            let below = corner + plane.width * n;
            let (a, b) = (&z[corner..][..n], &z[corner + n..][..n]);
            let (c, d) = (&z[below..][..n], &z[below + n..][..n]);
            let at = image * layout.image + layout.origin + row * layout.row + column * n;
            let y = &mut y[at..][..n];
            for k in 0..n {
                let (upper, first) = if b[k] > a[k] { (b[k], 1) } else { (a[k], 0) };
                let (lower, second) = if d[k] > c[k] { (d[k], 3) } else { (c[k], 2) };
                let (most, which) = if lower > upper { (lower, second) } else { (upper, first) };
                let value = most + bias[k];
                let open = value > 0.0;
                y[k] = if open { value } else { 0.0 };
                choices[k] = if open { which } else { CLOSED };
            }
        }
    }
}

#[inline(always)]
unsafe fn backward_with<S: Simd>(
    plane: Plane,
    layout: Layout,
    slopes: &[f32],
    choices: &[u32],
    dz: &mut [f32],
    of_bias: &mut [f32],
) {
    let (small, n) = (pooled(plane), plane.channels);
    let of_bias = &mut of_bias[..n];
    let images = dz.chunks_exact_mut(plane.padded()).zip(choices.chunks_exact(small.dense()));
    for (image, (dz, choices)) in images.enumerate() {
        for (pixel, choices) in choices.chunks_exact(n).enumerate() {
            let (row, column) = (pixel / small.width, pixel % small.width);
            let at = image * layout.image + layout.origin + row * layout.row + column * n;
            let slopes = &slopes[at..][..n];
            for k in 0..n {
                of_bias[k] += if choices[k] == CLOSED { 0.0 } else { slopes[k] };
            }
            let corner = plane.origin() + 2 * row * plane.row() + 2 * column * n;
            let places = [corner, corner + n, corner + plane.row(), corner + plane.row() + n];
            for (which, place) in places.into_iter().enumerate() {
                let dz = &mut dz[place..][..n];
                for k in 0..n {
                    dz[k] = if choices[k] == which as u32 { slopes[k] } else { 0.0 };
                }
            }
        }
    }
}
