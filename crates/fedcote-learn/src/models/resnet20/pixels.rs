//! What happens between the stages and behind the last one: shortcuts over halved planes, and pooling.

use crate::kernels::plane::Plane;

/// The stage whose activations have this shape.
pub(super) fn stage(plane: Plane) -> usize {
    (plane.channels / 32).min(2)
}

/// Every second pixel, with channels of zeros behind; both padded.
pub(super) fn subsample(from: Plane, x: &[f32], to: Plane, y: &mut [f32]) {
    for (x, y) in x.chunks_exact(from.padded()).zip(y.chunks_exact_mut(to.padded())) {
        for row in 0..to.height {
            let x = &x[from.origin() + 2 * row * from.row()..];
            let y = &mut y[to.origin() + row * to.row()..][..to.width * to.channels];
            for (column, y) in y.chunks_exact_mut(to.channels).enumerate() {
                let (copied, rest) = y.split_at_mut(from.channels);
                copied.copy_from_slice(&x[2 * column * from.channels..][..from.channels]);
                rest.fill(0.0);
            }
        }
    }
}

/// The adjoint of [`subsample`]: adds slopes back to every second pixel; both dense.
pub(super) fn scatter(from: Plane, slope: &[f32], to: Plane, sum: &mut [f32]) {
    let images = slope.chunks_exact(from.dense()).zip(sum.chunks_exact_mut(to.dense()));
    for (slope, sum) in images {
        for (pixel, slope) in slope.chunks_exact(from.channels).enumerate() {
            let (row, column) = (pixel / from.width, pixel % from.width);
            let at = 2 * (row * to.width + column) * to.channels;
            let sum = &mut sum[at..at + to.channels];
            sum.iter_mut().zip(slope).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// The mean over pixels of padded images.
pub(super) fn pool(plane: Plane, y: &[f32], features: &mut [f32]) {
    let scale = 1.0 / (plane.height * plane.width) as f32;
    let images = y.chunks_exact(plane.padded()).zip(features.chunks_exact_mut(plane.channels));
    for (y, features) in images {
        features.fill(0.0);
        for row in 0..plane.height {
            let pixels = &y[plane.origin() + row * plane.row()..][..plane.width * plane.channels];
            for pixel in pixels.chunks_exact(plane.channels) {
                features.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
            }
        }
        features.iter_mut().for_each(|sum| *sum *= scale);
    }
}

/// The adjoint of [`pool`], to dense images.
pub(super) fn spread(plane: Plane, pooled: &mut [f32], slope: &mut [f32]) {
    let scale = 1.0 / (plane.height * plane.width) as f32;
    pooled.iter_mut().for_each(|value| *value *= scale);
    let images = pooled.chunks_exact(plane.channels).zip(slope.chunks_exact_mut(plane.dense()));
    for (pooled, slope) in images {
        for pixel in slope.chunks_exact_mut(plane.channels) {
            pixel.copy_from_slice(pooled);
        }
    }
}
