//! MNIST, embedded. `assets/PROVENANCE.md` says where the files come from.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use ruzstd::decoding::FrameDecoder;

use super::{Dataset, Standard, idx};
use crate::Error;

macro_rules! asset {
    ($name:literal) => {
        include_bytes!(concat!("../../assets/", $name, ".zst")) as &[u8]
    };
}

/// A file, compressed. Images are mostly zeros: the lengths of runs of zeros and of other bytes, in turn, are
/// kept apart from the other bytes.
struct Asset {
    name: &'static str,
    runs: Option<&'static [u8]>,
    rest: &'static [u8],
}

/// Training images and labels, test images and labels.
const FILES: [Asset; 4] = [
    Asset {
        name: "train-images-idx3-ubyte",
        runs: Some(asset!("train-images-idx3-ubyte.runs")),
        rest: asset!("train-images-idx3-ubyte.rest"),
    },
    Asset { name: "train-labels-idx1-ubyte", runs: None, rest: asset!("train-labels-idx1-ubyte") },
    Asset {
        name: "t10k-images-idx3-ubyte",
        runs: Some(asset!("t10k-images-idx3-ubyte.runs")),
        rest: asset!("t10k-images-idx3-ubyte.rest"),
    },
    Asset { name: "t10k-labels-idx1-ubyte", runs: None, rest: asset!("t10k-labels-idx1-ubyte") },
];

/// The data set, decoded the first time it is asked for.
pub(super) fn load() -> Arc<Dataset> {
    static MNIST: OnceLock<Arc<Dataset>> = OnceLock::new();
    // The files are compiled in, and a test decodes them: failing here means a corrupt binary.
    let decoded = || decode().map(Arc::new).expect("the embedded MNIST files are intact");
    MNIST.get_or_init(decoded).clone()
}

fn decode() -> Result<Dataset, Error> {
    let (large, small) = rayon::join(
        || FILES[0].read(),
        || Ok::<_, Error>((FILES[1].read()?, FILES[2].read()?, FILES[3].read()?)),
    );
    let (train_labels, test_images, test_labels) = small?;
    // The usual constants, so that results compare with published ones.
    let standards = Some(vec![Standard::new(0.1307, 0.3081)]);
    idx::dataset("mnist", large?, train_labels, test_images, test_labels, standards)
}

impl Asset {
    fn read(&self) -> Result<idx::File, Error> {
        let path = Path::new(self.name);
        let bytes = self.bytes().map_err(|reason| Error::file(path, reason))?;
        idx::read(path, &bytes[..])
    }

    /// The original file.
    fn bytes(&self) -> Result<Vec<u8>, String> {
        let (rest, runs) = rayon::join(|| expand(self.rest), || self.runs.map(expand).transpose());
        match runs? {
            Some(runs) => weave(&runs, &rest?),
            None => rest,
        }
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
    use crate::data::md5::md5;

    /// The checksums of the original files, as published with the data set.
    #[test]
    fn embedded_files_are_the_originals() {
        let published = [
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ];
        for (file, digest) in FILES.iter().zip(published) {
            assert_eq!(md5(&file.bytes().unwrap()), digest, "{}", file.name);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let mut broken = FILES[1].rest.to_vec();
        let middle = broken.len() / 2;
        broken[middle] ^= 4;
        assert!(expand(&broken).is_err());
    }

    #[test]
    fn classes_have_their_published_sizes() {
        let data = load();
        let mut sizes = [0; 10];
        data.train.labels.iter().for_each(|&label| sizes[usize::from(label)] += 1);
        assert_eq!(sizes, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
        let standard = &Standard::measure(&data.train.images, 1)[0];
        assert!(
            (standard.mean - 0.1307).abs() < 5e-5 && (standard.deviation - 0.3081).abs() < 5e-5
        );
    }
}
