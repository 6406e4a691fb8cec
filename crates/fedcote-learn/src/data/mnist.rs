//! MNIST, from the crate that embeds it.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use fedcote_mnist::{File, TEST_IMAGES, TEST_LABELS, TRAIN_IMAGES, TRAIN_LABELS};

use super::{Dataset, Standard, idx};
use crate::Error;

/// The data set, decoded the first time it is asked for.
pub(super) fn load() -> Arc<Dataset> {
    static MNIST: OnceLock<Arc<Dataset>> = OnceLock::new();
    // The files are compiled in, and a test decodes them: failing here means a corrupt binary.
    let decoded = || decode().map(Arc::new).expect("the embedded MNIST files are intact");
    MNIST.get_or_init(decoded).clone()
}

fn decode() -> Result<Dataset, Error> {
    let read = |file: File| idx::read(Path::new(file.name), &file.bytes()[..]);
    let (large, small) = rayon::join(
        || read(TRAIN_IMAGES),
        || Ok::<_, Error>((read(TRAIN_LABELS)?, read(TEST_IMAGES)?, read(TEST_LABELS)?)),
    );
    let (train_labels, test_images, test_labels) = small?;
    // The usual constants, so that results compare with published ones.
    let standards = Some(vec![Standard::new(0.1307, 0.3081)]);
    idx::dataset("mnist", large?, train_labels, test_images, test_labels, standards)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::md5::md5;

    /// The checksums of the original files, as published with the data set.
    #[test]
    fn embedded_files_are_the_originals() {
        for (file, digest) in [
            (TRAIN_IMAGES, "6bbc9ace898e44ae57da46a324031adb"),
            (TRAIN_LABELS, "a25bea736e30d166cdddb491f175f624"),
            (TEST_IMAGES, "2646ac647ad5339dbf082846283269ea"),
            (TEST_LABELS, "27ae3e4e09519cfbb04c329615203637"),
        ] {
            assert_eq!(md5(&file.bytes()), digest, "{}", file.name);
        }
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
