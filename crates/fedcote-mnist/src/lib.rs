//! The MNIST data set, embedded: the four original files, compressed without loss.
//!
//! `assets/PROVENANCE.md` says where they come from and under which terms.
//!
//! ```
//! let labels = fedcote_mnist::TEST_LABELS.bytes();
//! assert_eq!(labels[..8], [0, 0, 8, 1, 0, 0, 39, 16]); // IDX: bytes in one dimension, 10,000 of them
//! assert_eq!(labels[8..12], [7, 2, 1, 0]); // the first labels
//! ```
#![deny(missing_docs)]

use ruzstd::decoding::FrameDecoder;

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

macro_rules! asset {
    ($name:literal) => {
        include_bytes!(concat!("../assets/", $name, ".zst")) as &[u8]
    };
}

/// One of the four original files. Images are mostly zeros: the lengths of runs of zeros and of other bytes, in turn,
/// are kept apart from the other bytes.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// The name of the original.
    pub name: &'static str,
    runs: Option<&'static [u8]>,
    rest: &'static [u8],
}

/// 60,000 images of 28×28 pixels.
pub const TRAIN_IMAGES: File = File {
    name: "train-images-idx3-ubyte",
    runs: Some(asset!("train-images-idx3-ubyte.runs")),
    rest: asset!("train-images-idx3-ubyte.rest"),
};
/// The labels of the training images.
pub const TRAIN_LABELS: File =
    File { name: "train-labels-idx1-ubyte", runs: None, rest: asset!("train-labels-idx1-ubyte") };
/// 10,000 images of 28×28 pixels.
pub const TEST_IMAGES: File = File {
    name: "t10k-images-idx3-ubyte",
    runs: Some(asset!("t10k-images-idx3-ubyte.runs")),
    rest: asset!("t10k-images-idx3-ubyte.rest"),
};
/// The labels of the test images.
pub const TEST_LABELS: File =
    File { name: "t10k-labels-idx1-ubyte", runs: None, rest: asset!("t10k-labels-idx1-ubyte") };

impl File {
    /// The original file, in IDX format.
    ///
    /// # Panics
    ///
    /// When the embedded bytes fail their checksum: the program's binary is damaged.
    pub fn bytes(&self) -> Vec<u8> {
        let (rest, runs) = rayon::join(|| expand(self.rest), || self.runs.map(expand).transpose());
        let bytes = rest.and_then(|rest| match runs? {
            Some(runs) => weave(&runs, &rest),
            None => Ok(rest),
        });
        bytes.expect("the embedded MNIST files are intact")
    }
}

/// Zeros and other bytes, in runs of these lengths.
fn weave(runs: &[u8], rest: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(runs.iter().map(|&run| usize::from(run)).sum());
    let mut rest = rest;
    for pair in runs.chunks(2) {
        bytes.resize(bytes.len() + usize::from(pair[0]), 0);
        let others = usize::from(pair.get(1).copied().unwrap_or(0));
        let (run, after) = rest.split_at_checked(others).ok_or("runs and bytes do not match")?;
        bytes.extend_from_slice(run);
        rest = after;
    }
    if rest.is_empty() { Ok(bytes) } else { Err("runs and bytes do not match".into()) }
}

/// The contents of one zstd frame, checked against its length and checksum.
fn expand(compressed: &[u8]) -> Result<Vec<u8>, String> {
    let mut decoder = FrameDecoder::new();
    decoder.init(compressed).map_err(|error| error.to_string())?;
    let mut bytes = Vec::with_capacity(decoder.content_size() as usize);
    decoder.decode_all_to_vec(compressed, &mut bytes).map_err(|error| error.to_string())?;
    if decoder.get_checksum_from_data() != decoder.get_calculated_checksum() {
        return Err("the checksum does not match".into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fedcote-learn` compares the published MD5 sums of all files.
    #[test]
    fn files_have_the_published_sizes() {
        for (file, size) in [
            (TRAIN_IMAGES, 47_040_016),
            (TRAIN_LABELS, 60_008),
            (TEST_IMAGES, 7_840_016),
            (TEST_LABELS, 10_008),
        ] {
            assert_eq!(file.bytes().len(), size, "{}", file.name);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let mut broken = TRAIN_LABELS.rest.to_vec();
        let middle = broken.len() / 2;
        broken[middle] ^= 4;
        assert!(expand(&broken).is_err());
    }

    #[test]
    fn runs_that_do_not_match_are_noticed() {
        assert_eq!(weave(&[2, 1, 1], &[7]), Ok(vec![0, 0, 7, 0]));
        assert!(weave(&[2, 1], &[]).is_err());
        assert!(weave(&[2, 1], &[7, 8]).is_err());
    }
}
