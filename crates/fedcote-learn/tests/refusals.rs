//! Damaged data files and impossible settings are refused, each with a line that says where.

use std::{fs, io::Write, path::Path};

use fedcote_learn::{
    Error,
    data::{DataSpec, Dataset, SetKind, Shape, cifar10, idx, load},
};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

/// An IDX file with these dimensions and values.
fn file(dimensions: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dimensions.len() as u8];
    bytes.extend(dimensions.iter().flat_map(|size| size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const NAMES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// Four small files: three training and two test images of 2 × 2.
fn contents() -> [Vec<u8>; 4] {
    [
        file(&[3, 2, 2], &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110]),
        file(&[3], &[1, 7, 1]),
        file(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]),
        file(&[2], &[7, 1]),
    ]
}

fn load_idx(contents: &[Vec<u8>; 4], suffix: &str) -> Result<Dataset, Error> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in NAMES.iter().zip(contents) {
        fs::write(folder.path().join(format!("{name}{suffix}")), bytes).unwrap();
    }
    idx::load(folder.path())
}

/// The refusal, without the folder's name.
fn refusal(result: Result<Dataset, Error>) -> String {
    let text = result.unwrap_err().to_string();
    assert!(!text.contains('\n'));
    match text.split_once(": ") {
        Some((path, reason)) => format!("{}: {reason}", path.rsplit('/').next().unwrap()),
        None => text,
    }
}

#[test]
fn idx_files_plain_or_gzipped() {
    let plain = load_idx(&contents(), "").unwrap();
    let zipped = load_idx(&contents().map(|bytes| gzip(&bytes)), ".gz").unwrap();
    // Compressed under a plain name happens too.
    let disguised = load_idx(&contents().map(|bytes| gzip(&bytes)), "").unwrap();
    for data in [plain, zipped, disguised] {
        assert_eq!(data.train.shape, Shape { height: 2, width: 2, channels: 1 });
        assert_eq!((data.train.classes, &data.train.labels[..]), (2, &[0, 1, 0][..]));
        assert_eq!(
            (&data.test.labels[..], &data.test.images[4..]),
            (&[1, 0][..], &[5, 6, 7, 8][..])
        );
        // The training bytes are 0, 10, …, 110: mean 55, variance 100 · 143/12.
        let standard = data.train.standards[0];
        assert!((standard.mean - 55.0 / 255.0).abs() < 1e-12);
        assert!((standard.deviation - (100.0_f64 * 143.0 / 12.0).sqrt() / 255.0).abs() < 1e-12);
        let (mut inputs, mut labels) = ([0.0; 4], [9]);
        data.train.gather(&[1], &mut inputs, &mut labels);
        for (input, byte) in inputs.iter().zip([40.0, 50.0, 60.0, 70.0]) {
            let exact = (byte / 255.0 - standard.mean) / standard.deviation;
            assert!((f64::from(*input) - exact).abs() < 1e-6);
        }
    }
}

#[test]
fn damaged_idx_files() {
    let with = |which: usize, bytes: Vec<u8>| {
        let mut files = contents();
        files[which] = bytes;
        refusal(load_idx(&files, ""))
    };
    let [images, labels, ..] = contents();
    assert_eq!(
        with(0, vec![]),
        "train-images-idx3-ubyte: at byte 0: the file is empty; an IDX file was expected"
    );
    assert_eq!(
        with(0, images[..3].to_vec()),
        "train-images-idx3-ubyte: at byte 3: the file ends within its header"
    );
    assert_eq!(
        with(0, images[..9].to_vec()),
        "train-images-idx3-ubyte: at byte 9: the file ends within its header"
    );
    assert_eq!(
        with(0, images[..27].to_vec()),
        "train-images-idx3-ubyte: at byte 27: the file ends; its header promises 28 bytes"
    );
    assert_eq!(
        with(0, [&images[..], &[0]].concat()),
        "train-images-idx3-ubyte: at byte 28: the file goes on after the last value its header promises"
    );
    assert_eq!(
        with(1, [&[0, 0, 13, 1], &labels[4..]].concat()),
        "train-labels-idx1-ubyte: at byte 0: magic number 0x00000d01 is not that of an IDX file of bytes \
         (0x00000801 to 0x00000804)"
    );
    assert_eq!(
        with(0, file(&[u32::MAX, u32::MAX, u32::MAX], &[])),
        "train-images-idx3-ubyte: at byte 4: dimensions [4294967295, 4294967295, 4294967295] are more than 2^34 \
         values; the header is damaged"
    );
    assert_eq!(
        with(0, file(&[0, 2, 2], &[])),
        "train-images-idx3-ubyte: at byte 4: dimensions [0, 2, 2] hold no sample"
    );
    assert_eq!(
        with(3, file(&[2], &[7, 3])),
        "t10k-labels-idx1-ubyte: at byte 9: label 3 does not occur among the training labels"
    );
    assert!(
        with(1, file(&[2], &[1, 7]))
            .starts_with("train-labels-idx1-ubyte: at byte 4: 2 labels, but ")
    );
    assert_eq!(
        with(2, file(&[2, 2, 3], &[0; 12])),
        "t10k-images-idx3-ubyte: at byte 8: images are [2, 3]; the training images are [2, 2]"
    );
    assert!(
        with(0, labels.clone()).starts_with("train-images-idx3-ubyte: at byte 3: 1 dimensions; ")
    );
    assert!(
        with(1, images.clone()).starts_with("train-labels-idx1-ubyte: at byte 3: 3 dimensions; ")
    );
    // A compressed file that was cut short.
    let mut half = gzip(&images);
    half.truncate(half.len() / 2);
    assert!(with(0, half).starts_with("train-images-idx3-ubyte: "));
    assert!(with(1, file(&[3], &[4, 4, 4])).contains("at least two classes"));
}

/// A megabyte that expands to a gigabyte used to be expanded to its end.
#[test]
fn a_compressed_file_cannot_fill_the_memory() {
    let mut bytes = vec![0, 0, 8, 3];
    bytes.extend([80_u32 << 20, 1, 1].iter().flat_map(|size| size.to_be_bytes()));
    bytes.resize(80 << 20, 0);
    let bomb = gzip(&bytes);
    assert!(bomb.len() < 200_000);
    let error = idx::read(Path::new("bomb.gz"), &bomb[..]).unwrap_err().to_string();
    assert!(error.starts_with("bomb.gz: expands to more than 200 times its size"), "{error}");
}

#[test]
fn missing_and_ambiguous_idx_files() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        refusal(idx::load(folder.path()))
            .ends_with("no file named like train-images-idx…-ubyte, plain or .gz")
    );
    for (name, bytes) in NAMES.iter().zip(contents()) {
        fs::write(folder.path().join(format!("emnist-{name}")), &bytes).unwrap();
        fs::write(folder.path().join(format!("emnist-{name}.gz")), gzip(&bytes)).unwrap();
    }
    // A file beside its own compressed form is no ambiguity.
    assert!(idx::load(folder.path()).is_ok());
    fs::write(folder.path().join(NAMES[2]), b"").unwrap();
    assert!(refusal(idx::load(folder.path())).contains("keep one set a folder"));
    assert!(
        idx::load(Path::new("/nowhere/at/all"))
            .unwrap_err()
            .to_string()
            .starts_with("/nowhere/at/all: ")
    );
}

/// Records of CIFAR-10 with these labels; pixel p of plane c has byte p + 50 c.
fn records(labels: &[u8]) -> Vec<u8> {
    let planes = (0..3).flat_map(|plane| (0..1024).map(move |pixel| (pixel + 50 * plane) as u8));
    labels.iter().flat_map(|&label| std::iter::once(label).chain(planes.clone())).collect()
}

fn load_cifar10(last: &[u8]) -> Result<Dataset, Error> {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("cifar-10-batches-bin");
    fs::create_dir(&below).unwrap();
    for (label, name) in (0..).zip(cifar10::FILES) {
        fs::write(below.join(name), records(&[label, 9])).unwrap();
    }
    fs::write(below.join(cifar10::FILES[4]), last).unwrap();
    cifar10::load(folder.path())
}

#[test]
fn cifar10_files() {
    let data = load_cifar10(&records(&[4])).unwrap();
    assert_eq!(data.train.labels, [0, 9, 1, 9, 2, 9, 3, 9, 4]);
    assert_eq!(data.test.labels, [5, 9]);
    // Channels last: pixel 2 of the second sample.
    assert_eq!(data.train.images[3072 + 6..3072 + 9], [2, 52, 102]);
    let (mut inputs, mut labels) = (vec![0.0; 3072], [0]);
    data.train.gather(&[1], &mut inputs, &mut labels);
    for (input, (byte, mean, deviation)) in inputs[6..9].iter().zip([
        (2.0, 0.4914, 0.2470),
        (52.0, 0.4822, 0.2435),
        (102.0, 0.4465, 0.2616),
    ]) {
        assert!((f64::from(*input) - (byte / 255.0 - mean) / deviation).abs() < 1e-5);
    }
    let refused = |bytes: &[u8]| refusal(load_cifar10(bytes));
    assert_eq!(
        refused(&[]),
        "data_batch_5.bin: at byte 0: the file is empty; records of 3073 bytes were expected"
    );
    assert_eq!(
        refused(&records(&[1, 2])[..6_145]),
        "data_batch_5.bin: at byte 3073: the last record has 3072 of 3073 bytes"
    );
    assert_eq!(
        refused(&records(&[1, 10])),
        "data_batch_5.bin: at byte 3073: label 10; labels are 0 to 9"
    );
    assert_eq!(
        refused(&vec![0; 3_073 * 10_000 + 1]),
        "data_batch_5.bin: at byte 30730000: the file goes on after 10000 records"
    );
    assert!(
        cifar10::load(Path::new("/nowhere"))
            .unwrap_err()
            .to_string()
            .starts_with("/nowhere/data_batch_1.bin: ")
    );
}

proptest! {
    /// Whatever bytes come, the readers answer; and what they accept has the size its header says.
    #[test]
    fn readers_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        start in prop_oneof![
            Just(vec![]),
            Just(vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 5]),
            Just(vec![0, 0, 8, 1, 0, 0, 0]),
            Just(vec![0x1f, 0x8b, 8, 0]),
        ],
    ) {
        bytes.splice(0..0, start);
        if let Ok(file) = idx::read(Path::new("x"), &bytes[..]) {
            prop_assert_eq!(file.values.len(), file.dimensions.iter().product::<usize>());
        }
        let mut split = load_cifar10(&records(&[1])).unwrap().train;
        prop_assert!(cifar10::append(Path::new("x"), &bytes, &mut split).is_err());
    }
}

#[test]
fn settings_are_refused_by_key() {
    let reason = |change: &dyn Fn(&mut DataSpec)| {
        let mut spec = DataSpec::default();
        change(&mut spec);
        match load(&spec, Path::new(".")) {
            Err(Error::Setting(error)) => error.key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(&|spec| spec.set = SetKind::Idx), "data.path");
    assert_eq!(reason(&|spec| spec.path = Some("x".into())), "data.path");
    assert_eq!(reason(&|spec| spec.unbalance = Some(1.0)), "data.unbalance");
    assert_eq!(reason(&|spec| spec.unbalance = Some(f64::NAN)), "data.unbalance");
    assert_eq!(reason(&|spec| spec.concentration = Some(0.5)), "data.concentration");
    assert_eq!(reason(&|spec| spec.shards_per_client = Some(2)), "data.shards_per_client");
    assert_eq!(reason(&|spec| spec.samples = Some(9)), "data.samples");
    assert_eq!(reason(&|spec| spec.noise = Some(9.0)), "data.noise");
    let synthetic = |change: &dyn Fn(&mut DataSpec)| {
        reason(&|spec| {
            spec.set = SetKind::Synthetic;
            change(spec);
        })
    };
    assert_eq!(synthetic(&|spec| spec.samples = Some(9)), "data.samples");
    assert_eq!(synthetic(&|spec| spec.classes = Some(300)), "data.classes");
    assert_eq!(synthetic(&|spec| spec.features = Some(usize::MAX)), "data.features");
    assert_eq!(synthetic(&|spec| spec.noise = Some(-1.0)), "data.noise");
}
