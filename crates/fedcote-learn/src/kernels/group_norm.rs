//! Group normalisation with what surrounds it in a residual network.
//!
//! Forward: y = max(0, γ (z − μ_g)/σ_g + β + shortcut), with mean μ_g and deviation σ_g = √(variance + 10⁻⁵) over all
//! pixels and channels of a group (Y. Wu and K. He, *Group Normalization*, ECCV 2018). Backward: with δ the slope
//! behind the ReLU, n the values of a group and ẑ = (z − μ)/σ,
//! dz = (γδ − Σγδ/n − ẑ Σγδẑ/n)/σ, dγ = Σδẑ, dβ = Σδ.
//!
//! An image is swept in strips of 64 floats, a multiple of every number of channels here, so that a vector meets
//! the same channels in every strip and per-channel values stay in registers.

use super::{
    plane::Plane,
    simd::{Simd, dispatch},
};

/// Floats in a strip.
const STRIP: usize = 64;
/// Vectors of a strip that are held at a time.
const HELD: usize = 4;
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

/// One pass over an image: `vector` is called for each vector of a strip in turn.
trait Pass<S> {
    /// Before the vectors whose first channel is `channel` (modulo the strip).
    unsafe fn begin(&mut self, channel: usize);
    /// The `v`-th vector held, at these offsets of the dense and of the padded image.
    unsafe fn vector(&mut self, v: usize, dense: usize, padded: usize);
    /// After them.
    unsafe fn end(&mut self, channel: usize);
}

/// Takes a pass over an image.
#[inline(always)]
unsafe fn sweep<S: Simd, T: Pass<S>>(plane: Plane, pass: &mut T) {
    let width = plane.width * plane.channels;
    // SAFETY: offsets stay within rows, whose width is a multiple of 16 floats; the caller vouches for the pass.
    unsafe {
        for channel in (0..STRIP).step_by(HELD * S::LANES) {
            pass.begin(channel);
            for row in 0..plane.height {
                let (dense, padded) = (row * width, plane.origin() + row * plane.row());
                // The strips of a row start where the last row's ended, modulo the channels: rows hold whole pixels,
                // and a strip whole pixels too, so the channel of a vector is its offset in the row.
                let mut at = channel;
                while at + HELD * S::LANES <= width {
                    for v in 0..HELD {
                        let offset = at + v * S::LANES;
                        pass.vector(v, dense + offset, padded + offset);
                    }
                    at += STRIP;
                }
                for v in 0..HELD {
                    let offset = at + v * S::LANES;
                    if offset < width {
                        pass.vector(v, dense + offset, padded + offset);
                    }
                }
            }
            pass.end(channel);
        }
    }
}

/// Repeats per-channel values over a strip.
#[inline(always)]
fn repeat(channels: usize, value: impl Fn(usize) -> f32) -> [f32; STRIP] {
    std::array::from_fn(|i| value(i % channels))
}

/// Adds up a strip's sums by channel.
#[inline(always)]
fn fold(channels: usize, strip: &[f32; STRIP], channel: usize) -> f64 {
    (channel..STRIP).step_by(channels).map(|i| f64::from(strip[i])).sum()
}

#[inline(always)]
unsafe fn held<S: Simd>(from: &[f32; STRIP], channel: usize) -> [S; HELD] {
    // SAFETY: `channel` is a multiple of HELD · LANES below STRIP.
    unsafe {
        let mut vectors = [S::splat(0.0); HELD];
        for v in 0..HELD {
            vectors[v] = S::load(from.as_ptr().add(channel + v * S::LANES));
        }
        vectors
    }
}

#[inline(always)]
unsafe fn put<S: Simd>(vectors: [S; HELD], to: &mut [f32; STRIP], channel: usize) {
    // SAFETY: as for `held`.
    unsafe {
        for v in 0..HELD {
            vectors[v].store(to.as_mut_ptr().add(channel + v * S::LANES));
        }
    }
}

/// Σz.
struct Sum<S> {
    z: *const f32,
    sum: [S; HELD],
    sums: [f32; STRIP],
}

impl<S: Simd> Pass<S> for Sum<S> {
    #[inline(always)]
    unsafe fn begin(&mut self, _: usize) {
        // SAFETY, here and in the other passes: `sweep` gives offsets inside the image, whose buffers the
        // functions below checked.
        self.sum = unsafe { [S::splat(0.0); HELD] };
    }
    #[inline(always)]
    unsafe fn vector(&mut self, v: usize, dense: usize, _: usize) {
        self.sum[v] = unsafe { self.sum[v].add(S::load(self.z.add(dense))) };
    }
    #[inline(always)]
    unsafe fn end(&mut self, channel: usize) {
        unsafe { put(self.sum, &mut self.sums, channel) };
    }
}

/// Σ(z − μ)².
struct Squares<S> {
    z: *const f32,
    mean: [f32; STRIP],
    mean_here: [S; HELD],
    sum: [S; HELD],
    sums: [f32; STRIP],
}

impl<S: Simd> Pass<S> for Squares<S> {
    #[inline(always)]
    unsafe fn begin(&mut self, channel: usize) {
        unsafe {
            self.mean_here = held(&self.mean, channel);
            self.sum = [S::splat(0.0); HELD];
        }
    }
    #[inline(always)]
    unsafe fn vector(&mut self, v: usize, dense: usize, _: usize) {
        unsafe {
            let centred = S::load(self.z.add(dense)).sub(self.mean_here[v]);
            self.sum[v] = centred.fma(centred, self.sum[v]);
        }
    }
    #[inline(always)]
    unsafe fn end(&mut self, channel: usize) {
        unsafe { put(self.sum, &mut self.sums, channel) };
    }
}

/// y = max(0, factor · z + term + shortcut).
struct Normalise<S> {
    z: *const f32,
    shortcut: Option<*const f32>,
    y: *mut f32,
    factor: [f32; STRIP],
    term: [f32; STRIP],
    factor_here: [S; HELD],
    term_here: [S; HELD],
}

impl<S: Simd> Pass<S> for Normalise<S> {
    #[inline(always)]
    unsafe fn begin(&mut self, channel: usize) {
        unsafe {
            self.factor_here = held(&self.factor, channel);
            self.term_here = held(&self.term, channel);
        }
    }
    #[inline(always)]
    unsafe fn vector(&mut self, v: usize, dense: usize, padded: usize) {
        unsafe {
            let mut value = S::load(self.z.add(dense)).fma(self.factor_here[v], self.term_here[v]);
            if let Some(shortcut) = self.shortcut {
                value = value.add(S::load(shortcut.add(padded)));
            }
            value.relu().store(self.y.add(padded));
        }
    }
    #[inline(always)]
    unsafe fn end(&mut self, _: usize) {}
}

/// δ = slope where y > 0; Σδ and Σδ(z − μ).
struct Gate<S> {
    z: *const f32,
    y: *const f32,
    slope: *mut f32,
    mean: [f32; STRIP],
    mean_here: [S; HELD],
    sum: [S; HELD],
    moment: [S; HELD],
    sums: [f32; STRIP],
    moments: [f32; STRIP],
}

impl<S: Simd> Pass<S> for Gate<S> {
    #[inline(always)]
    unsafe fn begin(&mut self, channel: usize) {
        unsafe {
            self.mean_here = held(&self.mean, channel);
            self.sum = [S::splat(0.0); HELD];
            self.moment = [S::splat(0.0); HELD];
        }
    }
    #[inline(always)]
    unsafe fn vector(&mut self, v: usize, dense: usize, padded: usize) {
        unsafe {
            let slope = S::load(self.slope.add(dense)).gated(S::load(self.y.add(padded)));
            slope.store(self.slope.add(dense));
            let centred = S::load(self.z.add(dense)).sub(self.mean_here[v]);
            self.sum[v] = self.sum[v].add(slope);
            self.moment[v] = slope.fma(centred, self.moment[v]);
        }
    }
    #[inline(always)]
    unsafe fn end(&mut self, channel: usize) {
        unsafe {
            put(self.sum, &mut self.sums, channel);
            put(self.moment, &mut self.moments, channel);
        }
    }
}

/// dz = of_slope · δ + of_centred · (z − μ) + term.
struct Slope<S> {
    z: *const f32,
    slope: *const f32,
    dz: *mut f32,
    of_slope: [f32; STRIP],
    of_value: [f32; STRIP],
    term: [f32; STRIP],
    of_slope_here: [S; HELD],
    of_value_here: [S; HELD],
    term_here: [S; HELD],
}

impl<S: Simd> Pass<S> for Slope<S> {
    #[inline(always)]
    unsafe fn begin(&mut self, channel: usize) {
        unsafe {
            self.of_slope_here = held(&self.of_slope, channel);
            self.of_value_here = held(&self.of_value, channel);
            self.term_here = held(&self.term, channel);
        }
    }
    #[inline(always)]
    unsafe fn vector(&mut self, v: usize, dense: usize, padded: usize) {
        unsafe {
            let z = S::load(self.z.add(dense));
            let value = z.fma(self.of_value_here[v], self.term_here[v]);
            let slope = S::load(self.slope.add(dense));
            slope.fma(self.of_slope_here[v], value).store(self.dz.add(padded));
        }
    }
    #[inline(always)]
    unsafe fn end(&mut self, _: usize) {}
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
