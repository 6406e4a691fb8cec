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
        ($name, include_bytes!(concat!("../../assets/", $name, ".zst")) as &[u8])
    };
}

/// The four files, compressed: training images and labels, test images and labels.
const FILES: [(&str, &[u8]); 4] = [
    asset!("train-images-idx3-ubyte"),
    asset!("train-labels-idx1-ubyte"),
    asset!("t10k-images-idx3-ubyte"),
    asset!("t10k-labels-idx1-ubyte"),
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
        || file(FILES[0]),
        || Ok::<_, Error>((file(FILES[1])?, file(FILES[2])?, file(FILES[3])?)),
    );
    let (train_labels, test_images, test_labels) = small?;
    // The usual constants, so that results compare with published ones.
    let standards = Some(vec![Standard::new(0.1307, 0.3081)]);
    idx::dataset("mnist", large?, train_labels, test_images, test_labels, standards)
}

fn file((name, compressed): (&str, &[u8])) -> Result<idx::File, Error> {
    let path = Path::new(name);
    let bytes = expand(compressed).map_err(|reason| Error::file(path, reason))?;
    idx::read(path, &bytes[..])
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
        for ((name, compressed), digest) in FILES.into_iter().zip(published) {
            assert_eq!(md5(&expand(compressed).unwrap()), digest, "{name}");
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let mut broken = FILES[1].1.to_vec();
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
        assert!((standard.mean - 0.1307).abs() < 5e-5 && (standard.deviation - 0.3081).abs() < 5e-5);
    }
}
