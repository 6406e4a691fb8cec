//! Which runs a comparison has, and which of them one of several workers plays.

use std::str::FromStr;

use crate::scenario::{General, Scenario};

/// Which run: a scheme and a seed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId {
    /// The scheme's name.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
}

/// All runs of a scenario: every scheme with every seed, seed by seed.
pub fn plan(scenario: &Scenario) -> Vec<RunId> {
    scenario.general.runs()
}

impl General {
    /// Every scheme with every seed, in the order in which the runs begin.
    pub fn runs(&self) -> Vec<RunId> {
        let of_seed = |&seed: &u64| {
            self.schemes.iter().map(move |scheme| RunId { scheme: scheme.clone(), seed })
        };
        self.seeds.iter().flat_map(of_seed).collect()
    }
}

/// The largest seed: the largest whole number of a scenario file.
pub const MAX_SEED: u64 = i64::MAX as u64;
/// Seeds that one command takes.
const MOST_SEEDS: u64 = 1000;

/// Seeds in the order given, none of them twice; written as in `1,3` or `1-5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |part: &str| part.parse().ok().filter(|seed| *seed <= MAX_SEED);
        let mut seeds = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Some(first), Some(last)) = (parse(first), parse(last)) else {
                return Err(format!(
                    "must be seeds from 0 to {MAX_SEED}, as in 1,3 or 1-5, is `{text}`"
                ));
            };
            if first > last {
                return Err(format!("{first}-{last} is not a range: it starts after its end"));
            }
            if last - first >= MOST_SEEDS - seeds.len() as u64 {
                return Err(format!("must be at most {MOST_SEEDS} seeds, is `{text}`"));
            }
            for seed in first..=last {
                if seeds.contains(&seed) {
                    return Err(format!("{seed} is given twice"));
                }
                seeds.push(seed);
            }
        }
        Ok(Self(seeds))
    }
}

/// One worker's part of all runs: number `part` of `parts`, written `I/N` with I from 1 to N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    parts: usize,
}

impl Shard {
    /// Everything.
    pub const ALL: Self = Self { part: 0, parts: 1 };

    /// The same worker's part of runs that are counted on from so many others.
    pub(crate) fn after(self, runs: usize) -> Self {
        let Self { part, parts } = self;
        Self { part: (part + parts - runs % parts) % parts, parts }
    }

    /// Whether other workers have a part, too.
    pub fn is_part(&self) -> bool {
        self.parts > 1
    }

    /// The items of this part: every N-th, so that each part has its share of every seed.
    pub fn of<'a, T>(&self, all: &'a [T]) -> Vec<&'a T> {
        all.iter().skip(self.part).step_by(self.parts).collect()
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::ALL
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.part + 1, self.parts)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected I/N with 1 <= I <= N, such as 2/8".to_owned();
        let (part, parts) = text.split_once('/').ok_or_else(wrong)?;
        let (part, parts): (usize, usize) =
            (part.parse().map_err(|_| wrong())?, parts.parse().map_err(|_| wrong())?);
        if part == 0 || part > parts { Err(wrong()) } else { Ok(Self { part: part - 1, parts }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_a_partition() {
        let all: Vec<u64> = (1..=11).collect();
        assert_eq!(Shard::ALL.of(&all).len(), 11);
        let mut found: Vec<u64> = Vec::new();
        for shard in ["1/3", "2/3", "3/3"] {
            let part = shard.parse::<Shard>().unwrap();
            assert_eq!(part.to_string(), shard);
            found.extend(part.of(&all));
        }
        found.sort_unstable();
        assert_eq!(found, all);
        // Counted on, the parts go on where they were.
        let (first, rest) = all.split_at(4);
        for shard in ["1/3", "2/3", "3/3"].map(|shard| shard.parse::<Shard>().unwrap()) {
            let counted: Vec<&u64> =
                shard.of(first).into_iter().chain(shard.after(4).of(rest)).collect();
            assert_eq!(counted, shard.of(&all));
        }
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_are_lists_and_ranges() {
        for (text, seeds) in
            [("7", vec![7]), ("1-3", vec![1, 2, 3]), ("4,1-2", vec![4, 1, 2]), ("0", vec![0])]
        {
            assert_eq!(text.parse(), Ok(Seeds(seeds)));
        }
        assert_eq!("1-1000".parse::<Seeds>().map(|seeds| seeds.0.len()), Ok(1000));
        for (text, reason) in [
            ("", "as in 1,3 or 1-5"),
            ("1,", "as in 1,3 or 1-5"),
            ("-1", "as in 1,3 or 1-5"),
            ("1.5", "as in 1,3 or 1-5"),
            ("18446744073709551614", "as in 1,3 or 1-5"),
            ("1-99999999999", "at most 1000"),
            ("1-1000,2000", "at most 1000"),
            ("0-9223372036854775807", "at most 1000"),
            ("3-1", "starts after its end"),
            ("1-3,2", "2 is given twice"),
        ] {
            let told = text.parse::<Seeds>().unwrap_err();
            assert!(told.contains(reason), "{text}: {told}");
        }
    }
}
