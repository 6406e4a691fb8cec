//! Data sets: bytes in memory, standardised per channel when a mini-batch is gathered.
//!
//! ```
//! use fedcote_learn::data::{DataSpec, load};
//!
//! let data = load(&DataSpec::default(), std::path::Path::new("."))?;
//! assert_eq!((data.train.len(), data.test.len(), data.train.classes), (60_000, 10_000, 10));
//! # Ok::<(), fedcote_learn::Error>(())
//! ```

pub mod cifar10;
pub mod idx;
pub mod md5;
#[cfg(feature = "mnist")]
mod mnist;
mod rotate;
mod spec;
mod synthetic;

use std::{
    path::Path,
    sync::{Arc, LazyLock},
};

pub use rotate::rotate;
pub use spec::{DataSpec, PartitionKind, SetKind};

use crate::{
    Error,
    kernels::{
        self,
        standardise::{expect, standardise},
    },
};

/// Asked for once, because asking allocates.
static PATH: LazyLock<kernels::Path> = LazyLock::new(kernels::Path::best);

/// The shape of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Values a pixel; they are stored together (channels last).
    pub channels: usize,
}

impl Shape {
    /// The number of values a sample has.
    #[allow(clippy::len_without_is_empty)] // a sample is never empty
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Training and test samples.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What the set is called.
    pub name: String,
    /// What clients train on.
    pub train: Split,
    /// What the global model is judged by.
    pub test: Split,
}

/// Samples with their labels.
#[derive(Debug, Clone)]
pub struct Split {
    /// One byte a value, one sample after the other, channels last.
    pub images: Vec<u8>,
    /// One label per sample, each below `classes`.
    pub labels: Vec<u8>,
    /// The shape of a sample.
    pub shape: Shape,
    /// The number of classes.
    pub classes: usize,
    /// How each channel's bytes become inputs.
    pub standards: Vec<Standard>,
}

/// How a byte b becomes an input: (b/255 − mean)/deviation, computed as b · scale + offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standard {
    /// The mean of b/255.
    pub mean: f64,
    /// The standard deviation of b/255.
    pub deviation: f64,
    scale: f32,
    offset: f32,
}

impl Standard {
    /// The standard with this mean and deviation, both of b/255.
    pub fn new(mean: f64, deviation: f64) -> Self {
        let (scale, offset) = (1.0 / (255.0 * deviation), -mean / deviation);
        Self { mean, deviation, scale: scale as f32, offset: offset as f32 }
    }

    /// The standards of these images, one a channel. A constant channel has deviation 1.
    pub fn measure(images: &[u8], channels: usize) -> Vec<Self> {
        let mut counts = vec![[0_u64; 256]; channels];
        for pixel in images.chunks_exact(channels) {
            for (count, &byte) in counts.iter_mut().zip(pixel) {
                count[usize::from(byte)] += 1;
            }
        }
        counts.iter().map(Self::of_histogram).collect()
    }

    fn of_histogram(count: &[u64; 256]) -> Self {
        let moment = |power| -> f64 {
            let terms =
                count.iter().zip(0..).map(|(&n, byte)| n as f64 * f64::from(byte).powi(power));
            terms.sum()
        };
        let mean = moment(1) / moment(0);
        let variance = moment(2) / moment(0) - mean * mean;
        let deviation = if variance > 1e-9 { variance.sqrt() / 255.0 } else { 1.0 };
        Self::new(mean / 255.0, deviation)
    }

    fn apply(&self, byte: u8) -> f32 {
        f32::from(byte) * self.scale + self.offset
    }
}

/// How many samples ahead of its use an image is asked for.
const AHEAD: usize = 3;

impl Split {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// What a zero byte becomes, when that is the same in every channel; zero otherwise.
    pub fn background(&self) -> f32 {
        let black = self.standards[0].apply(0);
        if self.standards.iter().all(|standard| standard.apply(0) == black) { black } else { 0.0 }
    }

    /// Writes the standardised inputs and the labels of these samples.
    ///
    /// # Panics
    ///
    /// When a sample does not exist, or the buffers do not fit.
    pub fn gather(&self, samples: &[u32], inputs: &mut [f32], labels: &mut [u8]) {
        let size = self.shape.len();
        assert_eq!(inputs.len(), samples.len() * size);
        assert_eq!(labels.len(), samples.len());
        let ahead = samples.iter().skip(AHEAD).map(Some).chain(std::iter::repeat(None));
        for (((input, label), &sample), ahead) in
            inputs.chunks_exact_mut(size).zip(labels).zip(samples).zip(ahead)
        {
            if let Some(&ahead) = ahead {
                expect(&self.images[ahead as usize * size..][..size]);
            }
            let sample = sample as usize;
            let image = &self.images[sample * size..][..size];
            *label = self.labels[sample];
            if let [standard] = self.standards[..] {
                standardise(*PATH, image, standard.scale, standard.offset, input);
            } else {
                let channels = self.standards.len();
                for (pixel, bytes) in
                    input.chunks_exact_mut(channels).zip(image.chunks_exact(channels))
                {
                    for ((value, &byte), standard) in
                        pixel.iter_mut().zip(bytes).zip(&self.standards)
                    {
                        *value = standard.apply(byte);
                    }
                }
            }
        }
    }
}

/// The data set that a specification names. Relative paths start at `base`.
pub fn load(spec: &DataSpec, base: &Path) -> Result<Arc<Dataset>, Error> {
    spec.check()?;
    let folder = || base.join(spec.path.as_deref().unwrap_or(Path::new("")));
    match spec.set {
        #[cfg(feature = "mnist")]
        SetKind::Mnist => Ok(mnist::load()),
        #[cfg(not(feature = "mnist"))]
        SetKind::Mnist => Err(Error::setting(
            "data.set",
            "\"mnist\" is not part of this program; build it with the feature `mnist` of fedcote-learn, or choose \
             another set",
        )),
        SetKind::Cifar10 => cifar10::load(&folder()).map(Arc::new),
        SetKind::Idx => idx::load(&folder()).map(Arc::new),
        SetKind::Synthetic => synthetic::generate(spec).map(Arc::new),
    }
}
