//! Sound inputs made hostile.

use crate::torture::Chance;

/// Numbers and words that break readers, whatever the format.
const WORDS: [&str; 28] = [
    "0",
    "-1",
    "1e308",
    "1e400",
    "5e-324",
    "-0.0",
    "nan",
    "inf",
    "18446744073709551616",
    "9223372036854775807",
    "4294967295",
    "0x7fffffff",
    "1_000_000",
    "\"\"",
    "[]",
    "{}",
    "null",
    "true",
    "\u{1b}[2J",
    "\u{202e}",
    "=1+1",
    "../",
    "%2e%2e%2f",
    "\0",
    "\r\n",
    "[[[[[[[[[[[[[[[[",
    "<script>",
    "\u{feff}",
];

/// One to three changes, most often of numbers.
pub fn mutated(sample: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..1 + chance.below(3) {
        let at = chance.below(bytes.len() as u64 + 1) as usize;
        let end = (at + chance.below(20) as usize).min(bytes.len());
        match chance.below(12) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].repeat(1 + chance.below(40) as usize);
                bytes.splice(at..at, piece).for_each(drop);
            }
            5 => {
                let word = chance.one(&WORDS).bytes();
                bytes.splice(at..end, word).for_each(drop);
            }
            _ => {
                // A number in the place of another, which most often leaves what can be read.
                let start = (at..bytes.len()).find(|&place| bytes[place].is_ascii_digit());
                let Some(start) = start else { continue };
                let length =
                    bytes[start..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
                let word = chance.one(&WORDS[..18]).bytes();
                bytes.splice(start..start + length, word).for_each(drop);
            }
        }
    }
    bytes
}

/// One of the words.
pub fn word(chance: &mut Chance) -> &'static str {
    chance.one::<&str>(&WORDS)
}
