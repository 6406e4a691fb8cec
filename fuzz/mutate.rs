//! Fuzzing without a special tool chain: sound inputs are cut, stretched, flipped, spliced and sprinkled with the words and
//! numbers that break readers, and the target must answer without a panic. Included by the tests that have targets.
//!
//! A short form with fixed seeds runs with the tests; `cargo xtask fuzz 1000000` runs each target that often.

/// Numbers that break readers, whatever the format.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e400",
    "5e-324",
    "-0.0",
    "nan",
    "inf",
    "NaN",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "0.1",
    "\"\"",
    "[]",
];

/// How often a target runs: `FEDCOTE_FUZZ_RUNS`, or a few thousand times.
pub fn runs() -> u64 {
    std::env::var("FEDCOTE_FUZZ_RUNS").map_or(3000, |runs| runs.parse().expect("a number of runs"))
}

/// Runs a target on mutations of the seeds; `words` are those that mean something in the format.
pub fn fuzz(seeds: &[&[u8]], words: &[&str], mut target: impl FnMut(&[u8])) {
    for run in 0..runs() {
        let mut chance = Chance(run);
        let mut bytes = chance.one(seeds).to_vec();
        for _ in 0..1 + chance.below(6) {
            mutate(&mut bytes, seeds, words, &mut chance);
        }
        let _shown = Shown(run, &bytes);
        target(&bytes);
    }
}

fn mutate(bytes: &mut Vec<u8>, seeds: &[&[u8]], words: &[&str], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let end = (at + chance.below(24)).min(bytes.len());
    match chance.below(10) {
        0 => bytes.truncate(at),
        1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        2 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
        3 => drop(bytes.drain(at..end)),
        4 => bytes.splice(at..at, (0..chance.below(20)).map(|_| 0)).for_each(drop),
        5 => {
            let piece = bytes[at..end].to_vec();
            let place = chance.below(bytes.len() + 1);
            bytes.splice(place..place, piece).for_each(drop);
        }
        6 => {
            let other = *chance.one(seeds);
            let from = chance.below(other.len() + 1);
            let to = (from + chance.below(64)).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied()).for_each(drop);
        }
        7 if !words.is_empty() => {
            let word = *chance.one(words);
            bytes.splice(at..end, word.bytes()).for_each(drop);
        }
        _ => {
            // A number in the place of another, which most often leaves a text that can be read.
            let start = (at..bytes.len()).find(|&place| bytes[place].is_ascii_digit());
            let Some(start) = start else { return };
            let inside = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
            let length = bytes[start..].iter().take_while(|byte| inside(byte)).count();
            let number = *chance.one(&NUMBERS);
            bytes.splice(start..start + length, number.bytes()).for_each(drop);
        }
    }
}

/// Shows the input of a target that panics.
struct Shown<'a>(u64, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run {}: {:?}", self.0, String::from_utf8_lossy(self.1));
        }
    }
}

/// Random numbers: SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
