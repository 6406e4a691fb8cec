//! Folders of four IDX files, plain or gzipped: the layout of MNIST, Fashion-MNIST and EMNIST.
//!
//! An IDX file is two zero bytes, a type (8: unsigned bytes), the number of dimensions, each dimension as a
//! big-endian 32-bit number, and the values, last dimension fastest.

use std::{
    cell::Cell,
    fs,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    rc::Rc,
};

use flate2::read::MultiGzDecoder;

use super::{Dataset, Shape, Split, Standard};
use crate::Error;

/// The most values that a file may hold: sixteen times EMNIST, and small enough to fit in memory.
const MOST: u64 = 1 << 34;
/// Images shrink to a fifth, black ones to a hundredth. What expands further is made to fill the memory.
const MOST_EXPANSION: u64 = 200;
/// So much is expanded in any case.
const FREE: u64 = 64 << 20;
/// What is read before the expansion is looked at again.
const PIECE: u64 = 1 << 20;

/// An IDX file's contents.
#[derive(Debug, Clone)]
pub struct File {
    /// Where it came from.
    pub path: PathBuf,
    /// One to four dimensions.
    pub dimensions: Vec<usize>,
    /// The values.
    pub values: Vec<u8>,
}

/// Reads an IDX file of bytes to its end, decompressing it if it is gzipped.
pub fn read(path: &Path, reader: impl Read) -> Result<File, Error> {
    let mut reader = BufReader::new(reader);
    let mut start = Vec::new();
    let failed = |error: io::Error| Error::file(path, error);
    (&mut reader).take(2).read_to_end(&mut start).map_err(failed)?;
    let whole = start.chain(&mut reader);
    if start != [0x1f, 0x8b] {
        return parse(path, whole);
    }
    let packed = Rc::new(Cell::new(0));
    let counted = Counted { inner: whole, read: Rc::clone(&packed) };
    parse(path, Expanding { inner: MultiGzDecoder::new(counted), packed, expanded: 0 })
}

/// Counts what was read.
struct Counted<R> {
    inner: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// Ends with an error when a compressed file expands beyond all measure.
struct Expanding<R> {
    inner: R,
    packed: Rc<Cell<u64>>,
    expanded: u64,
}

impl<R: Read> Read for Expanding<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(PIECE as usize);
        let read = self.inner.read(&mut buffer[..most])?;
        self.expanded += read as u64;
        if self.expanded > FREE.max(MOST_EXPANSION * self.packed.get()) {
            let reason = format!(
                "expands to more than {MOST_EXPANSION} times its size; unpack it (gunzip) if it is what it should be"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(read)
    }
}

fn parse(path: &Path, mut reader: impl Read) -> Result<File, Error> {
    let refuse = |offset: u64, reason: String| Err(Error::malformed(path, offset, reason));
    let mut header = take(path, &mut reader, 4)?;
    if header.is_empty() {
        return refuse(0, "the file is empty; an IDX file was expected".into());
    }
    if header.len() < 4 {
        return refuse(header.len() as u64, "the file ends within its header".into());
    }
    if header[..3] != [0, 0, 8] || !(1..=4).contains(&header[3]) {
        let magic = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        return refuse(
            0,
            format!(
                "magic number {magic:#010x} is not that of an IDX file of bytes (0x00000801 to 0x00000804)"
            ),
        );
    }
    let count = usize::from(header[3]);
    header.extend(take(path, &mut reader, 4 * count as u64)?);
    let start = 4 + 4 * count as u64;
    if (header.len() as u64) < start {
        return refuse(header.len() as u64, "the file ends within its header".into());
    }
    let dimensions: Vec<usize> = header[4..]
        .chunks_exact(4)
        .map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
        .collect();
    let product =
        dimensions.iter().try_fold(1_u64, |product, &size| product.checked_mul(size as u64));
    let Some(expected) = product.filter(|&product| product <= MOST) else {
        return refuse(
            4,
            format!("dimensions {dimensions:?} are more than 2^34 values; the header is damaged"),
        );
    };
    if expected == 0 {
        return refuse(4, format!("dimensions {dimensions:?} hold no sample"));
    }
    // Reading to the end grows the buffer as bytes come: a lying header cannot make us reserve memory.
    let values = take(path, &mut reader, expected)?;
    if (values.len() as u64) < expected {
        let end = start + values.len() as u64;
        return refuse(
            end,
            format!("the file ends; its header promises {} bytes", start + expected),
        );
    }
    if !take(path, &mut reader, 1)?.is_empty() {
        return refuse(
            start + expected,
            "the file goes on after the last value its header promises".into(),
        );
    }
    Ok(File { path: path.into(), dimensions, values })
}

/// Up to this many bytes; fewer only at the end of the file.
fn take(path: &Path, reader: &mut impl Read, length: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).map_err(|error| Error::file(path, error))?;
    Ok(bytes)
}

/// The files of [`write`](fn@write): training images and labels, test images and labels.
pub const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// Writes a data set into a folder as four plain files; each appears whole or not at all.
pub fn write(folder: &Path, data: &Dataset) -> Result<(), Error> {
    let mut names = FILES.iter();
    for split in [&data.train, &data.test] {
        let Shape { height, width, channels } = split.shape;
        let mut images = vec![split.len(), height, width];
        if channels > 1 {
            images.push(channels);
        }
        for (dimensions, values) in [(images, &split.images), (vec![split.len()], &split.labels)] {
            let path = folder.join(names.next().expect("four files"));
            let mut bytes = vec![0, 0, 8, dimensions.len() as u8];
            bytes.extend(dimensions.iter().flat_map(|&size| (size as u32).to_be_bytes()));
            bytes.extend(values);
            fedcote_support::write(&path, &bytes)?;
        }
    }
    Ok(())
}

/// The data set in a folder: training and test (`t10k` or `test`) images and labels.
pub fn load(folder: &Path) -> Result<Dataset, Error> {
    let names = list(folder)?;
    let file = |parts: &[&str], kind: &str| {
        let path = find(folder, &names, parts, kind)?;
        read(&path, fs::File::open(&path).map_err(|error| Error::file(&path, error))?)
    };
    let test = ["t10k", "test"];
    let (train_images, train_labels) = (file(&["train"], "images")?, file(&["train"], "labels")?);
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    dataset(&name, train_images, train_labels, file(&test, "images")?, file(&test, "labels")?, None)
}

fn list(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = fs::read_dir(folder).map_err(|error| Error::file(folder, error))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| Error::file(folder, error))?.file_name();
        names.extend(name.into_string());
    }
    names.sort();
    Ok(names)
}

/// The one file such as `train-images-idx3-ubyte`, perhaps with a prefix, a dot for a hyphen, or `.gz`.
fn find(folder: &Path, names: &[String], parts: &[&str], kind: &str) -> Result<PathBuf, Error> {
    let fits = |name: &&String| {
        let plain = name.strip_suffix(".gz").unwrap_or(name).replace('.', "-");
        let stem = plain
            .strip_suffix("-ubyte")
            .and_then(|stem| stem.strip_suffix(|c: char| c.is_ascii_digit()));
        let stem = stem.and_then(|stem| stem.strip_suffix("-idx"));
        stem.is_some_and(|stem| {
            parts.iter().any(|part| {
                let end = format!("{part}-{kind}");
                stem == end || stem.ends_with(&format!("-{end}"))
            })
        })
    };
    let mut found: Vec<&String> = names.iter().filter(fits).collect();
    // A file beside its own compressed form is one file.
    found.dedup_by(|later, earlier| later.strip_suffix(".gz") == Some(earlier));
    match found[..] {
        [name] => Ok(folder.join(name)),
        [] => Err(Error::file(
            folder,
            format!("no file named like {}-{kind}-idx…-ubyte, plain or .gz", parts.join("- or ")),
        )),
        [first, second, ..] => Err(Error::file(
            folder,
            format!("both {first} and {second} hold {kind}; keep one set a folder"),
        )),
    }
}

/// The data set of four files. Labels become 0, 1, 2, … in the order of their values.
pub(super) fn dataset(
    name: &str,
    train_images: File,
    train_labels: File,
    test_images: File,
    test_labels: File,
    standards: Option<Vec<Standard>>,
) -> Result<Dataset, Error> {
    let shape = shape(&train_images)?;
    if self::shape(&test_images)? != shape {
        let (found, expected) = (&test_images.dimensions[1..], &train_images.dimensions[1..]);
        let reason = format!("images are {found:?}; the training images are {expected:?}");
        return Err(Error::malformed(test_images.path, 8, reason));
    }
    let mut seen = [false; 256];
    train_labels.values.iter().for_each(|&label| seen[usize::from(label)] = true);
    let mut ranks = [None; 256];
    let mut classes = 0_usize;
    for value in (0..256).filter(|&value| seen[value]) {
        ranks[value] = Some(classes as u8);
        classes += 1;
    }
    let standards =
        standards.unwrap_or_else(|| Standard::measure(&train_images.values, shape.channels));
    let split = |images: File, labels: File, standards| {
        Ok::<_, Error>(Split {
            labels: relabel(labels, &images, &ranks)?,
            images: images.values,
            shape,
            classes,
            standards,
        })
    };
    let train = split(train_images, train_labels, standards.clone())?;
    if classes < 2 {
        return Err(Error::file(
            name,
            "all training labels are equal; at least two classes are needed",
        ));
    }
    Ok(Dataset { name: name.into(), train, test: split(test_images, test_labels, standards)? })
}

fn shape(images: &File) -> Result<Shape, Error> {
    match images.dimensions[..] {
        [_, height, width] => Ok(Shape { height, width, channels: 1 }),
        [_, height, width, channels] => Ok(Shape { height, width, channels }),
        _ => {
            let found = images.dimensions.len();
            let reason = format!(
                "{found} dimensions; images have 3 (count, height, width) or 4 (…, channels)"
            );
            Err(Error::malformed(&images.path, 3, reason))
        }
    }
}

fn relabel(labels: File, images: &File, ranks: &[Option<u8>; 256]) -> Result<Vec<u8>, Error> {
    let File { path, dimensions, values } = labels;
    let refuse = |offset, reason: String| Error::malformed(&path, offset, reason);
    if dimensions.len() != 1 {
        return Err(refuse(3, format!("{} dimensions; labels have 1", dimensions.len())));
    }
    if dimensions[0] != images.dimensions[0] {
        let (labels, samples) = (dimensions[0], images.dimensions[0]);
        let other = images.path.display();
        return Err(refuse(4, format!("{labels} labels, but {other} has {samples} images")));
    }
    let rank = |(at, &value): (usize, &u8)| {
        let unknown = || format!("label {value} does not occur among the training labels");
        ranks[usize::from(value)].ok_or_else(|| refuse(8 + at as u64, unknown()))
    };
    values.iter().enumerate().map(rank).collect()
}
