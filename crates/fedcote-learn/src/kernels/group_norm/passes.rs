//! Passes over an image: what is done to every vector, and the sums that come out.

use crate::kernels::{plane::Plane, simd::Simd};

/// Floats in a strip.
pub(super) const STRIP: usize = 64;
/// Vectors of a strip that are held at a time.
pub(super) const HELD: usize = 4;

/// One pass over an image: `vector` is called for each vector of a strip in turn.
pub(super) trait Pass<S> {
    /// Before the vectors whose first channel is `channel` (modulo the strip).
    unsafe fn begin(&mut self, channel: usize);
    /// The `v`-th vector held, at these offsets of the dense and of the padded image.
    unsafe fn vector(&mut self, v: usize, dense: usize, padded: usize);
    /// After them.
    unsafe fn end(&mut self, channel: usize);
}

/// Takes a pass over an image.
#[inline(always)]
pub(super) unsafe fn sweep<S: Simd, T: Pass<S>>(plane: Plane, pass: &mut T) {
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
pub(super) fn repeat(channels: usize, value: impl Fn(usize) -> f32) -> [f32; STRIP] {
    std::array::from_fn(|i| value(i % channels))
}

/// Adds up a strip's sums by channel.
#[inline(always)]
pub(super) fn fold(channels: usize, strip: &[f32; STRIP], channel: usize) -> f64 {
    (channel..STRIP).step_by(channels).map(|i| f64::from(strip[i])).sum()
}

#[inline(always)]
pub(super) unsafe fn held<S: Simd>(from: &[f32; STRIP], channel: usize) -> [S; HELD] {
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
pub(super) unsafe fn put<S: Simd>(vectors: [S; HELD], to: &mut [f32; STRIP], channel: usize) {
    // SAFETY: as for `held`.
    unsafe {
        for v in 0..HELD {
            vectors[v].store(to.as_mut_ptr().add(channel + v * S::LANES));
        }
    }
}

/// Σz.
pub(super) struct Sum<S> {
    pub z: *const f32,
    pub sum: [S; HELD],
    pub sums: [f32; STRIP],
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
pub(super) struct Squares<S> {
    pub z: *const f32,
    pub mean: [f32; STRIP],
    pub mean_here: [S; HELD],
    pub sum: [S; HELD],
    pub sums: [f32; STRIP],
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
pub(super) struct Normalise<S> {
    pub z: *const f32,
    pub shortcut: Option<*const f32>,
    pub y: *mut f32,
    pub factor: [f32; STRIP],
    pub term: [f32; STRIP],
    pub factor_here: [S; HELD],
    pub term_here: [S; HELD],
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
pub(super) struct Gate<S> {
    pub z: *const f32,
    pub y: *const f32,
    pub slope: *mut f32,
    pub mean: [f32; STRIP],
    pub mean_here: [S; HELD],
    pub sum: [S; HELD],
    pub moment: [S; HELD],
    pub sums: [f32; STRIP],
    pub moments: [f32; STRIP],
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
pub(super) struct Slope<S> {
    pub z: *const f32,
    pub slope: *const f32,
    pub dz: *mut f32,
    pub of_slope: [f32; STRIP],
    pub of_value: [f32; STRIP],
    pub term: [f32; STRIP],
    pub of_slope_here: [S; HELD],
    pub of_value_here: [S; HELD],
    pub term_here: [S; HELD],
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
