//! Random changes to the images of a mini-batch: a shift, and a mirror image.

use fedcote::random::Stream;
use rand::RngExt;

use crate::{Error, data::Shape};

/// What is done to each image before a training step; nothing by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Augmentation {
    /// The image is shifted by −crop … crop pixels in each direction, every shift equally likely; zeros come in. This is
    /// a random crop of the image with a border of that many zeros.
    pub crop: usize,
    /// The image is mirrored, left to right, with probability one half.
    pub flip: bool,
    /// All images of a mini-batch share one shift and one decision to mirror.
    pub together: bool,
}

impl Augmentation {
    /// Refuses what leaves nothing of an image, and what does nothing.
    pub fn check(&self, shape: Shape) -> Result<(), Error> {
        let Shape { height, width, .. } = shape;
        if self.crop > 0 && self.crop >= height.min(width) {
            let reason = format!("{} pixels leave nothing of {height}×{width}", self.crop);
            return Err(Error::setting("training.crop", reason));
        }
        if self.together && self.crop == 0 && !self.flip {
            let reason = "has no effect without training.crop or training.flip";
            return Err(Error::setting("training.augment_batch", reason));
        }
        Ok(())
    }

    /// Changes standardised images in place; `image` is room for one.
    pub(crate) fn apply(
        &self,
        shape: Shape,
        inputs: &mut [f32],
        stream: &mut Stream,
        image: &mut Vec<f32>,
    ) {
        if self.crop == 0 && !self.flip {
            return;
        }
        let shared = self.together.then(|| self.draw(stream));
        for input in inputs.chunks_exact_mut(shape.len()) {
            let change = shared.unwrap_or_else(|| self.draw(stream));
            image.clear();
            image.extend_from_slice(input);
            change.write(shape, image, input);
        }
    }

    fn draw(&self, stream: &mut Stream) -> Change {
        // Below the size of an image, which is far below 2³¹.
        let crop = self.crop as i32;
        let mut shift = || if crop == 0 { 0 } else { stream.random_range(-crop..=crop) as isize };
        Change { down: shift(), right: shift(), mirror: self.flip && stream.random() }
    }
}

/// Pixel (i, j) becomes pixel (i + down, j + right) of the image, zero outside; then left and right change places.
#[derive(Clone, Copy)]
struct Change {
    down: isize,
    right: isize,
    mirror: bool,
}

impl Change {
    fn write(self, shape: Shape, from: &[f32], to: &mut [f32]) {
        let Shape { height, width, channels } = shape;
        for (i, row) in to.chunks_exact_mut(width * channels).enumerate() {
            let source = i.wrapping_add_signed(self.down);
            if source >= height {
                row.fill(0.0);
                continue;
            }
            let source = &from[source * width * channels..][..width * channels];
            for (j, pixel) in row.chunks_exact_mut(channels).enumerate() {
                let j = if self.mirror { width - 1 - j } else { j };
                match j.wrapping_add_signed(self.right) {
                    column if column < width => {
                        pixel.copy_from_slice(&source[column * channels..][..channels]);
                    }
                    _ => pixel.fill(0.0),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fedcote::random::{Key, Purpose};

    use super::*;

    const SHAPE: Shape = Shape { height: 3, width: 4, channels: 2 };

    /// A pixel's place, a hundred for the second channel, and a thousand an image, none of them zero.
    fn images(count: usize) -> Vec<f32> {
        let value = |i: usize| {
            let (image, pixel, channel) = (i / 24, i % 24 / 2, i % 2);
            (1000 * image + 100 * channel + pixel + 1) as f32
        };
        (0..count * SHAPE.len()).map(value).collect()
    }

    #[test]
    fn a_shift_and_a_mirror_image_are_their_definition() {
        let image = images(1);
        let at = |i: isize, j: isize, k: usize| {
            let inside = (0..3).contains(&i) && (0..4).contains(&j);
            if inside { image[((i * 4 + j) * 2) as usize + k] } else { 0.0 }
        };
        for (down, right) in (-2..=2).flat_map(|down| (-2..=2).map(move |right| (down, right))) {
            for mirror in [false, true] {
                let mut found = vec![f32::NAN; image.len()];
                Change { down, right, mirror }.write(SHAPE, &image, &mut found);
                for (i, j, k) in (0..24).map(|n| (n / 8, n % 8 / 2, n % 2)) {
                    let column = if mirror { 3 - j } else { j } as isize;
                    let expected = at(i as isize + down, column + right, k);
                    assert_eq!(found[(i * 4 + j) * 2 + k], expected, "{down} {right} {mirror}");
                }
            }
        }
    }

    #[test]
    fn every_change_is_equally_likely_and_channels_stay_together() {
        let augmentation = Augmentation { crop: 1, flip: true, together: false };
        let (mut stream, mut room) = (Key::new(1, Purpose::Test).stream(), Vec::new());
        let mut inputs = images(9000);
        let before = inputs.clone();
        augmentation.apply(SHAPE, &mut inputs, &mut stream, &mut room);
        let mut seen = std::collections::BTreeMap::<Vec<u32>, u32>::new();
        for (image, (found, original)) in inputs.chunks(24).zip(before.chunks(24)).enumerate() {
            for pixel in found.chunks(2) {
                assert!(pixel[0] == 0.0 && pixel[1] == 0.0 || pixel[1] == pixel[0] + 100.0);
            }
            assert!(found.iter().all(|value| *value == 0.0 || original.contains(value)));
            let own =
                |value: &f32| if *value == 0.0 { 0 } else { *value as u32 - 1000 * image as u32 };
            *seen.entry(found.iter().map(own).collect()).or_default() += 1;
        }
        // Nine shifts, mirrored or not: 500 each, with a deviation of 21.7.
        assert_eq!(seen.len(), 18);
        assert!(seen.values().all(|count| (400..600).contains(count)), "{:?}", seen.values());
    }

    #[test]
    fn a_batch_that_goes_together_has_one_change() {
        let augmentation = Augmentation { crop: 2, flip: true, together: true };
        let (mut stream, mut room) = (Key::new(3, Purpose::Test).stream(), Vec::new());
        let mut inputs = images(7);
        augmentation.apply(SHAPE, &mut inputs, &mut stream, &mut room);
        let first = inputs[..24].to_vec();
        assert_ne!(first, images(1));
        for (image, found) in inputs.chunks(24).enumerate() {
            let moved =
                |value: &f32| if *value == 0.0 { 0.0 } else { *value + 1000.0 * image as f32 };
            assert_eq!(found, first.iter().map(moved).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_leaves_nothing_or_does_nothing_is_refused() {
        let refused = |crop, flip, together| {
            Augmentation { crop, flip, together }.check(SHAPE).map_err(|error| error.to_string())
        };
        assert_eq!(refused(2, false, true), Ok(()));
        assert!(refused(3, true, false).unwrap_err().contains("3 pixels leave nothing of 3×4"));
        assert!(refused(0, false, true).unwrap_err().contains("training.augment_batch"));
    }
}
