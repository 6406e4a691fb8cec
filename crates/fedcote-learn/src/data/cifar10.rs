//! CIFAR-10 in its official binary layout.
//!
//! Six files, `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`, of records of 3,073 bytes: the
//! label, then 32 × 32 values of red, of green, of blue. We keep pixels together instead (channels last).

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Dataset, Shape, Split, Standard};
use crate::Error;

/// The files that hold training samples, and the one that tests.
pub const FILES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];

/// The shape of an image.
pub const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };

const PIXELS: usize = 32 * 32;
const RECORD: usize = 1 + 3 * PIXELS;
/// Records in each official file; a longer file is not one of them.
const RECORDS: usize = 10_000;

/// The data set in a folder, or in its sub-folder `cifar-10-batches-bin`.
pub fn load(folder: &Path) -> Result<Dataset, Error> {
    let below = folder.join("cifar-10-batches-bin");
    let folder = if below.is_dir() { below } else { folder.to_path_buf() };
    // Mean and deviation of the official training images.
    let standards = [(0.4914, 0.2470), (0.4822, 0.2435), (0.4465, 0.2616)];
    let standards: Vec<Standard> =
        standards.map(|(mean, deviation)| Standard::new(mean, deviation)).into();
    let split = |files: &[&str]| {
        let mut split = Split {
            images: Vec::new(),
            labels: Vec::new(),
            shape: SHAPE,
            classes: 10,
            standards: standards.clone(),
        };
        for file in files {
            let path: PathBuf = folder.join(file);
            let bytes = fs::read(&path).map_err(|error| Error::file(&path, error))?;
            append(&path, &bytes, &mut split)?;
        }
        Ok(split)
    };
    Ok(Dataset { name: "cifar10".into(), train: split(&FILES[..5])?, test: split(&FILES[5..])? })
}

/// Adds the records of one file to a split.
pub fn append(path: &Path, bytes: &[u8], split: &mut Split) -> Result<(), Error> {
    let refuse = |offset: usize, reason: String| Err(Error::malformed(path, offset as u64, reason));
    let whole = bytes.len() / RECORD * RECORD;
    if bytes.is_empty() {
        return refuse(0, format!("the file is empty; records of {RECORD} bytes were expected"));
    }
    if bytes.len() > RECORDS * RECORD {
        return refuse(RECORDS * RECORD, format!("the file goes on after {RECORDS} records"));
    }
    if whole < bytes.len() {
        return refuse(
            whole,
            format!("the last record has {} of {RECORD} bytes", bytes.len() - whole),
        );
    }
    split.images.reserve(bytes.len());
    for (at, record) in bytes.chunks_exact(RECORD).enumerate() {
        let (label, planes) = (record[0], &record[1..]);
        if label > 9 {
            return refuse(at * RECORD, format!("label {label}; labels are 0 to 9"));
        }
        split.labels.push(label);
        split.images.extend(
            (0..PIXELS).flat_map(|pixel| [0, 1, 2].map(|plane| planes[plane * PIXELS + pixel])),
        );
    }
    Ok(())
}
