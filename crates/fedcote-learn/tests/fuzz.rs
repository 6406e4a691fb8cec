//! Fuzz targets for the readers of data files, without a special tool chain: sound files are cut, stretched, overwritten and
//! flipped at random, and the readers must answer without a panic.
//!
//! A short form runs with the tests; `cargo xtask fuzz 1000000` runs each target that often.

use std::io::Write;
use std::path::Path;

use fedcote::random::{Key, Purpose, Stream};
use fedcote_learn::data::{Shape, Split, Standard, cifar10, idx};
use rand::RngExt;

/// How often a target runs: `FEDCOTE_FUZZ_RUNS`, or a few thousand times.
fn runs() -> u64 {
    std::env::var("FEDCOTE_FUZZ_RUNS").map_or(3000, |runs| runs.parse().expect("a number of runs"))
}

/// One to four changes of the kinds that break readers.
fn mutate(bytes: &mut Vec<u8>, stream: &mut Stream) {
    for _ in 0..stream.random_range(1..=4) {
        let at = stream.random_range(0..=bytes.len());
        match stream.random_range(0..6) {
            0 => bytes.truncate(at),
            1 => bytes.splice(at..at, (0..stream.random_range(1..20)).map(|_| 0)).for_each(drop),
            2 if at < bytes.len() => bytes[at] ^= 1 << stream.random_range(0..8),
            // Headers stand at the beginning, so most numbers are written there.
            3 if bytes.len() >= 16 => {
                let value =
                    [0, 1, 0x7fff_ffff, u32::MAX, stream.random()][stream.random_range(0..5)];
                let at = 4 * stream.random_range(0..4);
                bytes[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
            }
            4 if at < bytes.len() => bytes[at] = stream.random(),
            _ => {
                let end = stream.random_range(at..=bytes.len());
                bytes.drain(at..end);
            }
        }
    }
}

fn fuzz(copy: u32, seeds: &[Vec<u8>], target: impl Fn(&[u8])) {
    for run in 0..runs() {
        let mut stream = Key::new(run, Purpose::Test).copy(copy).stream();
        let mut bytes = seeds[stream.random_range(0..seeds.len())].clone();
        mutate(&mut bytes, &mut stream);
        target(&bytes);
    }
}

#[test]
fn idx_files() {
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2];
    images.extend(0..12);
    let labels = vec![0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 2];
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&images).unwrap();
    let seeds = [images, labels, packed.finish().unwrap()];
    fuzz(1, &seeds, |bytes| {
        if let Ok(file) = idx::read(Path::new("fuzzed"), bytes) {
            assert_eq!(file.values.len(), file.dimensions.iter().product::<usize>());
        }
    });
}

#[test]
fn cifar10_files() {
    let record = |label: u8| std::iter::once(label).chain((0..3072).map(|i| i as u8));
    let seeds = [record(3).collect(), record(0).chain(record(9)).collect()];
    fuzz(2, &seeds, |bytes| {
        let mut split = Split {
            images: Vec::new(),
            labels: Vec::new(),
            shape: Shape { height: 32, width: 32, channels: 3 },
            classes: 10,
            standards: vec![Standard::new(0.5, 0.25); 3],
        };
        if cifar10::append(Path::new("fuzzed"), bytes, &mut split).is_ok() {
            assert_eq!(split.images.len(), 3072 * split.labels.len());
            assert!(split.labels.iter().all(|&label| label < 10));
        }
    });
}
