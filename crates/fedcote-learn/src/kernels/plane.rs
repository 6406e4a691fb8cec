//! How images lie in memory: channels last, with a border of zeros where a convolution reads.

/// The size of an image or activation, and the strides of its two layouts.
///
/// *Dense*: height × width × channels floats. *Padded*: the same with a border of one pixel on every side, and
/// height and width rounded up to multiples of four, so that 3×3 windows and Winograd tiles never leave the
/// buffer. The border is zero: it is never written after the buffer was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plane {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Plane {
    /// Floats of a dense image.
    pub fn dense(self) -> usize {
        self.height * self.width * self.channels
    }

    /// Floats between rows of a padded image.
    pub fn row(self) -> usize {
        (self.width.next_multiple_of(4) + 2) * self.channels
    }

    /// Floats of a padded image.
    pub fn padded(self) -> usize {
        (self.height.next_multiple_of(4) + 2) * self.row()
    }

    /// Where the first pixel is in a padded image.
    pub fn origin(self) -> usize {
        self.row() + self.channels
    }

    /// What a 3×3 convolution with padding 1 makes of it.
    pub fn convolved(self, stride: usize, channels: usize) -> Self {
        Self { height: self.height.div_ceil(stride), width: self.width.div_ceil(stride), channels }
    }

    /// Copies dense images into the interior of padded ones.
    pub fn pad(self, dense: &[f32], padded: &mut [f32]) {
        let width = self.width * self.channels;
        let images = dense.chunks_exact(self.dense()).zip(padded.chunks_exact_mut(self.padded()));
        for (from, to) in images {
            let rows = to[self.origin()..].chunks_mut(self.row());
            for (from, to) in from.chunks_exact(width).zip(rows) {
                to[..width].copy_from_slice(from);
            }
        }
    }
}
