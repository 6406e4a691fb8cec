//! CIFAR-10 in its official binary layout.
//!
//! Six files, `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`, of records of 3,073 bytes: the
//! label, then 32 × 32 values of red, of green, of blue. We keep pixels together instead (channels last).

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use fedcote_support::{WriteError, write};
use flate2::read::MultiGzDecoder;

use super::{Dataset, Shape, Split, Standard, md5::md5};
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
pub fn load(asked: &Path) -> Result<Dataset, Error> {
    let below = asked.join("cifar-10-batches-bin");
    let folder = if below.is_dir() { below } else { asked.to_path_buf() };
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
            let bytes = fs::read(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    let get = format!("fedcote data fetch cifar10 --into {}", asked.display());
                    Error::file(&path, format!("no such file; get it with `{get}`"))
                }
                _ => Error::file(&path, error),
            })?;
            append(&path, &bytes, &mut split)?;
        }
        Ok::<_, Error>(split)
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

/// Where the archive's authors publish it.
pub const ARCHIVE: &str = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
/// Its checksum, from the same page.
pub const ARCHIVE_MD5: &str = "c32a1d4ab5d03f1284b67883e8d87530";

/// Writes the six files of the official archive into a folder, made if need be, each whole or not at all.
///
/// Nothing else in the archive is looked at, so no name in it decides where something is written.
pub fn unpack(archive: &Path, bytes: &[u8], folder: &Path) -> Result<(), Error> {
    let found = md5(bytes);
    if found != ARCHIVE_MD5 {
        let reason =
            format!("md5 {found}; the official archive has {ARCHIVE_MD5}: download it again");
        return Err(Error::file(archive, reason));
    }
    let members = members(archive, MultiGzDecoder::new(bytes))?;
    fs::create_dir_all(folder).map_err(|source| WriteError { path: folder.into(), source })?;
    for (name, contents) in members {
        write(&folder.join(name), &contents)?;
    }
    Ok(())
}

/// The six files in a tar archive.
fn members(archive: &Path, mut tar: impl Read) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let mut found = Vec::new();
    let mut header = [0; 512];
    let mut offset = 0_u64;
    while found.len() < FILES.len() {
        tar.read_exact(&mut header)
            .map_err(|error| Error::malformed(archive, offset, error.to_string()))?;
        offset += 512;
        let text = |range: std::ops::Range<usize>| {
            let field = &header[range];
            let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).trim().to_owned()
        };
        let size = u64::from_str_radix(&text(124..136), 8).ok().filter(|&size| size <= (1 << 30));
        let Some(size) = size else {
            let reason =
                format!("no header of a file; {} of {} files found", found.len(), FILES.len());
            return Err(Error::malformed(archive, offset - 512, reason));
        };
        let mut contents = Vec::new();
        let padded = size.next_multiple_of(512);
        (&mut tar)
            .take(padded)
            .read_to_end(&mut contents)
            .map_err(|error| Error::malformed(archive, offset, error.to_string()))?;
        if (contents.len() as u64) < padded {
            return Err(Error::malformed(archive, offset, "the archive ends within a file"));
        }
        contents.truncate(size as usize);
        offset += padded;
        let path = text(0..100);
        if let Some(name) = FILES.into_iter().find(|name| path.rsplit('/').next() == Some(name)) {
            found.push((name, contents));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive as `tar` writes it, with these names and contents.
    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, contents) in files {
            let mut header = [0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
            bytes.extend(header);
            bytes.extend(*contents);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.extend([0; 1024]);
        bytes
    }

    #[test]
    fn the_six_files_are_found_and_nothing_else() {
        let names: Vec<String> =
            FILES.iter().map(|name| format!("cifar-10-batches-bin/{name}")).collect();
        let mut files: Vec<(&str, &[u8])> =
            vec![("cifar-10-batches-bin/", b""), ("../readme.html", b"x")];
        files.extend(names.iter().map(|name| (name.as_str(), name.as_bytes())));
        let found = members(Path::new("a"), &tar(&files)[..]).unwrap();
        let expected: Vec<_> =
            FILES.into_iter().zip(names.iter().map(|name| name.as_bytes().to_vec())).collect();
        assert_eq!(found, expected);
        let refusal = |bytes: &[u8]| members(Path::new("a"), bytes).unwrap_err().to_string();
        assert_eq!(
            refusal(&tar(&files[..7])),
            "a: at byte 6656: no header of a file; 5 of 6 files found"
        );
        assert_eq!(
            refusal(&tar(&files)[..5200]),
            "a: at byte 5120: the archive ends within a file"
        );
        assert!(refusal(b"short").starts_with("a: at byte 0: "));
    }

    #[test]
    fn another_archive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = unpack(Path::new("a.tar.gz"), b"abc", folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("a.tar.gz: md5 900150983cd24fb0d6963f7d28e17f72; "), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
