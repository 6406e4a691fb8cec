//! Group normalisation with what surrounds it in a residual network.
//!
//! Forward: y = max(0, γ (z − μ_g)/σ_g + β + shortcut), with mean μ_g and deviation σ_g = √(variance + 10⁻⁵) over all
//! pixels and channels of a group (Y. Wu and K. He, *Group Normalization*, ECCV 2018). Backward: with δ the slope
//! behind the ReLU, n the values of a group and ẑ = (z − μ)/σ,
//! dz = (γδ − Σγδ/n − ẑ Σγδẑ/n)/σ, dγ = Σδẑ, dβ = Σδ.
//!
//! An image is swept in strips of 64 floats, a multiple of every number of channels here, so that a vector meets
//! the same channels in every strip and per-channel values stay in registers.

mod passes;

use super::{
    plane::Plane,
    simd::{Simd, dispatch},
};
use passes::{Gate, HELD, Normalise, STRIP, Slope, Squares, Sum, fold, repeat, sweep};

/// Added to the variance.
pub(crate) const EPSILON: f64 = 1e-5;

/// The statistics of each group of each image: mean, then 1/deviation.
pub(crate) type Moments = [f32; 2];

dispatch! {
    /// y (padded) of each image z (dense). With `residual`, what is in y before is the shortcut or `shortcut`,
    /// padded like y, is. Channels are 16, 32 or 64.
    fn forward(
        plane: Plane,
        z: &[f32],
        scale: &[f32],
        shift: &[f32],
        shortcut: Shortcut,
        moments: &mut [Moments],
        y: &mut [f32],
    ) = forward_with
}

dispatch! {
    /// dz (padded) from the slope at y (dense), which is replaced by δ; adds to the gradients of γ and β.
    fn backward(
        plane: Plane,
        z: &[f32],
        scale: &[f32],
        moments: &[Moments],
        y: &[f32],
        slope: &mut [f32],
        of_scale: &mut [f32],
        of_shift: &mut [f32],
        dz: &mut [f32],
    ) = backward_with
}

/// What is added before the ReLU.
#[derive(Clone, Copy)]
pub(crate) enum Shortcut<'a> {
    /// Nothing.
    None,
    /// These images, padded like the output.
    From(&'a [f32]),
    /// What the output holds already.
    InPlace,
}

#[inline(always)]
unsafe fn forward_with<S: Simd>(
    plane: Plane,
    z: &[f32],
    scale: &[f32],
    shift: &[f32],
    shortcut: Shortcut,
    moments: &mut [Moments],
    y: &mut [f32],
) {
    let channels = plane.channels;
    let images = z.len() / plane.dense();
    let groups = moments.len() / images;
    assert!(STRIP.is_multiple_of(channels) && channels.is_multiple_of(16));
    assert!(z.len() == images * plane.dense() && y.len() == images * plane.padded());
    assert!(moments.len() == images * groups && channels.is_multiple_of(groups));
    assert!(scale.len() == channels && shift.len() == channels);
    let each = channels / groups;
    let count = (plane.height * plane.width * each) as f64;
    for image in 0..images {
        let z = z[image * plane.dense()..].as_ptr();
        let y = y[image * plane.padded()..].as_mut_ptr();
        let shortcut = match shortcut {
            Shortcut::None => None,
            Shortcut::InPlace => Some(y.cast_const()),
            Shortcut::From(images) => {
                let here = &images[image * plane.padded()..][..plane.padded()];
                Some(here.as_ptr())
            }
        };
        let moments = &mut moments[image * groups..][..groups];
        // SAFETY: the CPU has the instruction set of `S`; lengths were checked above.
        unsafe {
            let none = [S::splat(0.0); HELD];
            let mut sum = Sum { z, sum: none, sums: [0.0; STRIP] };
            sweep::<S, _>(plane, &mut sum);
            for (group, moments) in moments.iter_mut().enumerate() {
                let channels_here = group * each..(group + 1) * each;
                let total: f64 = channels_here.map(|c| fold(channels, &sum.sums, c)).sum();
                moments[0] = (total / count) as f32;
            }
            let mean = repeat(channels, |c| moments[c / each][0]);
            let mut squares = Squares { z, mean, mean_here: none, sum: none, sums: [0.0; STRIP] };
            sweep::<S, _>(plane, &mut squares);
            for (group, moments) in moments.iter_mut().enumerate() {
                let channels_here = group * each..(group + 1) * each;
                let total: f64 = channels_here.map(|c| fold(channels, &squares.sums, c)).sum();
                moments[1] = (1.0 / (total / count + EPSILON).sqrt()) as f32;
            }
            let factor = repeat(channels, |c| scale[c] * moments[c / each][1]);
            let term = repeat(channels, |c| {
                let [mean, inverse] = moments[c / each];
                shift[c] - mean * scale[c] * inverse
            });
            let mut normalise =
                Normalise { z, shortcut, y, factor, term, factor_here: none, term_here: none };
            sweep::<S, _>(plane, &mut normalise);
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn backward_with<S: Simd>(
    plane: Plane,
    z: &[f32],
    scale: &[f32],
    moments: &[Moments],
    y: &[f32],
    slope: &mut [f32],
    of_scale: &mut [f32],
    of_shift: &mut [f32],
    dz: &mut [f32],
) {
    let channels = plane.channels;
    let images = z.len() / plane.dense();
    let groups = moments.len() / images;
    assert!(STRIP.is_multiple_of(channels) && channels.is_multiple_of(16));
    assert!(z.len() == images * plane.dense() && slope.len() == z.len());
    assert!(y.len() == images * plane.padded() && dz.len() == y.len());
    assert!(moments.len() == images * groups && channels.is_multiple_of(groups));
    assert!(scale.len() == channels && of_scale.len() == channels && of_shift.len() == channels);
    let each = channels / groups;
    let count = (plane.height * plane.width * each) as f64;
    for image in 0..images {
        let z = z[image * plane.dense()..].as_ptr();
        let slope = slope[image * plane.dense()..].as_mut_ptr();
        let y = y[image * plane.padded()..].as_ptr();
        let dz = dz[image * plane.padded()..].as_mut_ptr();
        let moments = &moments[image * groups..][..groups];
        let mean = repeat(channels, |c| moments[c / each][0]);
        // SAFETY: the CPU has the instruction set of `S`; lengths were checked above.
        unsafe {
            let none = [S::splat(0.0); HELD];
            let mut gate = Gate {
                z,
                y,
                slope,
                mean,
                mean_here: none,
                sum: none,
                moment: none,
                sums: [0.0; STRIP],
                moments: [0.0; STRIP],
            };
            sweep::<S, _>(plane, &mut gate);
            // By channel: Σδ and Σδẑ; by group: the same weighted by γ, divided by n.
            let (mut of_value, mut term) = ([0.0; STRIP], [0.0; STRIP]);
            for (group, &[mean, inverse]) in moments.iter().enumerate() {
                let (mut total, mut moment) = (0.0, 0.0);
                for c in group * each..(group + 1) * each {
                    let sum = fold(channels, &gate.sums, c);
                    let product = fold(channels, &gate.moments, c) * f64::from(inverse);
                    of_shift[c] += sum as f32;
                    of_scale[c] += product as f32;
                    total += sum * f64::from(scale[c]);
                    moment += product * f64::from(scale[c]);
                }
                let inverse = f64::from(inverse);
                let factor = -inverse * inverse * moment / count;
                let constant = -inverse * total / count - factor * f64::from(mean);
                for c in group * each..(group + 1) * each {
                    for i in (c..STRIP).step_by(channels) {
                        of_value[i] = factor as f32;
                        term[i] = constant as f32;
                    }
                }
            }
            let of_slope = repeat(channels, |c| scale[c] * moments[c / each][1]);
            let mut pass = Slope {
                z,
                slope: slope.cast_const(),
                dz,
                of_slope,
                of_value,
                term,
                of_slope_here: none,
                of_value_here: none,
                term_here: none,
            };
            sweep::<S, _>(plane, &mut pass);
        }
    }
}
