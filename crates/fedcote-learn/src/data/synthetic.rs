//! Gaussian classes of any size, for scale tests.
//!
//! The centre of a class is standard normal in every feature; a sample is its class's centre plus `noise`
//! times a standard normal. A value v is kept as the byte 128 + 32 v, rounded and clamped. Labels go round:
//! 0, 1, …, C − 1, 0, …. The set depends on nothing but the specification.

use fedcote::random::{Key, Purpose};
use rand::RngExt;
use rand_distr::StandardNormal;
use rayon::prelude::*;

use super::{DataSpec, Dataset, Split, Standard};
use crate::Error;

/// Samples that share a stream of random numbers.
const BLOCK: usize = 4096;

pub(super) fn generate(spec: &DataSpec) -> Result<Dataset, Error> {
    let (samples, features, classes, noise) = spec.synthetic();
    let key = Key::new(0, Purpose::Data);
    let mut stream = key.stream();
    let centres: Vec<f32> =
        (0..classes * features).map(|_| stream.sample(StandardNormal)).collect();
    let make = |key: Key, samples: usize| {
        let labels: Vec<u8> = (0..samples).map(|sample| (sample % classes) as u8).collect();
        let mut images = vec![0; samples * features];
        images.par_chunks_mut(BLOCK * features).enumerate().for_each(|(block, images)| {
            let mut stream = key.client(block as u64).stream();
            for (image, &label) in images.chunks_exact_mut(features).zip(&labels[block * BLOCK..]) {
                let centre = &centres[usize::from(label) * features..][..features];
                for (byte, &middle) in image.iter_mut().zip(centre) {
                    let value = middle + noise as f32 * stream.sample::<f32, _>(StandardNormal);
                    *byte = (128.0 + 32.0 * value).round() as u8; // `as` clamps
                }
            }
        });
        (images, labels)
    };
    let (images, labels) = make(key.attempt(1), samples);
    let standards = Standard::measure(&images, 1);
    let (shape, _) = spec.synthetic_shape();
    let train = Split { images, labels, shape, classes, standards };
    let (images, labels) = make(key.attempt(2), (samples / 5).clamp(classes, 10_000));
    let test = Split { images, labels, shape, classes, standards: train.standards.clone() };
    Ok(Dataset { name: "synthetic".into(), train, test })
}
