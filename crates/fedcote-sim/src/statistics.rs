//! Whether a difference between schemes is more than chance.
//!
//! All schemes of a comparison meet the same networks, data and mini-batches, seed by seed, so their differences are
//! paired: with `d_s` the value of a scheme minus that of another at seed `s`, of `n` seeds, the mean difference is known
//! to within
//!
//! ```text
//! t(0.975, n − 1) · sd(d) / √n ,
//! ```
//!
//! with Student's t (W. S. Gosset, "The probable error of a mean", Biometrika 6, 1908). What all schemes of a seed have
//! in common, such as a hard network, cancels. Where the interval contains 0, the two are not separable.

use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};

use crate::summary::{RunSummary, SchemeSummary, Spread};

/// The probability with which an interval contains the true mean difference.
pub const CONFIDENCE: f64 = 0.95;

/// Which values of a measure are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// High ones.
    Higher,
    /// Low ones.
    Lower,
    /// There is no better.
    Neither,
}

/// Something that a run comes to, and in which schemes are compared.
pub struct Measure {
    /// Its name in `summary.json`.
    pub name: &'static str,
    /// The same in words.
    pub words: &'static str,
    /// Whether it is a share, written in percent.
    pub percent: bool,
    /// Which values are good.
    pub better: Better,
    /// The value of a run.
    pub of: fn(&RunSummary) -> Option<f64>,
    /// Mean and deviation of a scheme.
    pub over: fn(&SchemeSummary) -> Option<Spread>,
}

macro_rules! measures {
    ($($name:ident, $words:literal, $percent:literal, $better:ident;)*) => {
        /// What schemes are compared in, the most telling first. What else a task reports comes under its own name.
        pub const MEASURES: &[Measure] = &[$(Measure {
            name: stringify!($name),
            words: $words,
            percent: $percent,
            better: Better::$better,
            of: |run| run.$name,
            over: |scheme| scheme.$name,
        }),*];
    };
}

measures! {
    tail_accuracy, "test accuracy over the tail", true, Higher;
    test_accuracy, "test accuracy after the last round", true, Higher;
    tail_spread, "swing of the accuracy in the tail", true, Lower;
    train_loss, "training loss after the last round", false, Lower;
    test_loss, "test loss after the last round", false, Lower;
    rounds_to, "rounds to the target accuracy", false, Lower;
    seconds_to, "simulated seconds to the target accuracy", false, Lower;
    bytes_to, "bytes up and down to the target accuracy", false, Lower;
    joules_to, "joules to the target accuracy", false, Lower;
    arrivals, "uploads that arrive per round", false, Neither;
    label_divergence_wanted, "label χ², expected", false, Lower;
    label_divergence_realised, "label χ², realised", false, Lower;
}

/// A scheme minus the one that it is compared with, over the seeds that both have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The mean difference.
    pub mean: f64,
    /// The lower end of the 95 % interval of the mean; absent with one seed, which says nothing about chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Seeds at which the scheme's value is the higher one.
    pub above: usize,
    /// Seeds at which it is the lower one.
    pub below: usize,
    /// Seeds that both have.
    pub seeds: usize,
    /// Whether the interval leaves out 0.
    pub separable: bool,
}

impl Difference {
    /// Of paired differences; nothing if there are none.
    ///
    /// ```
    /// use fedcote_sim::statistics::Difference;
    ///
    /// // Mean 0.02, deviation 0.01, t(0.975, 2) = 4.303: 0.02 ± 4.303 · 0.01 / √3.
    /// let found = Difference::of(&[0.01, 0.02, 0.03]).expect("there are three");
    /// assert!((found.high.unwrap() - 0.04484).abs() < 1e-5);
    /// assert!(!found.separable && found.above == 3);
    /// ```
    pub fn of(differences: &[f64]) -> Option<Self> {
        let Spread { mean, std } = Spread::of(differences)?;
        let seeds = differences.len();
        let interval = (seeds > 1).then(|| {
            let half = quantile(CONFIDENCE, seeds - 1) * std / (seeds as f64).sqrt();
            (mean - half, mean + half)
        });
        let (low, high) = interval.unzip();
        Some(Self {
            mean,
            low,
            high,
            above: differences.iter().filter(|&&difference| difference > 0.0).count(),
            below: differences.iter().filter(|&&difference| difference < 0.0).count(),
            seeds,
            separable: interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0),
        })
    }

    /// One value minus another at every seed that has both.
    fn between(one: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> Option<Self> {
        let pairs = one.iter().filter_map(|(seed, value)| Some(value - other.get(seed)?));
        Self::of(&pairs.collect::<Vec<_>>())
    }
}

impl Difference {
    /// The interval in brackets; in points, when it is of shares.
    pub fn interval(&self, percent: bool) -> Option<String> {
        let (low, high) = self.low.zip(self.high)?;
        Some(format!("[{}, {}]", signed(low, percent), signed(high, percent)))
    }

    /// The mean difference; in points, when it is of shares.
    pub fn signed(&self, percent: bool) -> String {
        signed(self.mean, percent)
    }

    /// At how many seeds the scheme's value is the higher one, and whether that may be chance.
    pub fn signs(&self) -> String {
        let Self { above, seeds, separable, .. } = self;
        let chance = match (separable, seeds) {
            (true, _) => "",
            (false, 1) => "; one seed: not separable from chance",
            (false, _) => "; not separable",
        };
        format!("higher at {above} of {seeds}{chance}")
    }
}

fn signed(value: f64, percent: bool) -> String {
    match percent {
        true => format!("{:+.2}", 100.0 * value),
        false if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) => format!("{value:+.1e}"),
        false if value.abs() >= 100.0 => format!("{value:+.0}"),
        false => format!("{value:+.4}"),
    }
}

/// What can be said about which scheme is the better one, in a sentence; nothing for fewer than two that compete.
pub fn verdict(schemes: &[SchemeSummary]) -> Option<String> {
    let competing = || schemes.iter().filter(|scheme| !scheme.reference && scheme.diverged == 0);
    let of = |scheme: &SchemeSummary| scheme.tail_accuracy.map(|tail| tail.mean);
    let seeds = competing().filter(|scheme| of(scheme).is_some()).map(|scheme| scheme.seeds);
    let (count, seeds) = (seeds.clone().count(), seeds.max().unwrap_or(0));
    if count < 2 {
        return None;
    }
    if seeds == 1 {
        return Some("One seed: which scheme is better cannot be told from chance; run several, such as --seeds 1-5.".into());
    }
    let mut lead: Vec<&SchemeSummary> = competing()
        .filter(|scheme| scheme.leads.iter().any(|name| name == "tail_accuracy"))
        .collect();
    lead.sort_by(|one, two| of(two).partial_cmp(&of(one)).unwrap_or(std::cmp::Ordering::Equal));
    let name = |scheme: &&SchemeSummary| {
        format!("{} ({:.2} %)", scheme.name, 100.0 * of(scheme).unwrap_or(f64::NAN))
    };
    let names: Vec<String> = lead.iter().map(name).collect();
    Some(match names.as_slice() {
        [] => format!("Over the tail the schemes are not separable with {seeds} seeds."),
        [one] => {
            format!("Over the tail {one} is separably above every other scheme that competes.")
        }
        [..] => format!(
            "Over the tail no scheme is separably above {}, which are not separable from each other.",
            names.join(", ")
        ),
    })
}

/// The `t` that Student's distribution with so many degrees of freedom exceeds in size with probability `1 − confidence`.
///
/// For whole degrees of freedom ν the probability of `|T| ≤ t` is a finite sum in `θ = atan(t/√ν)`
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4), which grows with θ and is solved by bisection.
pub fn quantile(confidence: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // To neighbouring numbers.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return (freedom as f64).sqrt() * low.tan();
        }
        if within(middle, freedom) < confidence { low = middle } else { high = middle }
    }
}

/// The probability of `|T| ≤ √ν tan θ`.
fn within(angle: f64, freedom: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    // 1 + ½ cos² + ½·¾ cos⁴ + … for even ν, 1 + ⅔ cos² + ⅔·⅘ cos⁴ + … for odd ν: ⌊ν/2⌋ terms.
    let odd = freedom % 2;
    let (mut term, mut sum) = (1.0, 0.0);
    for at in 0..freedom / 2 {
        sum += term;
        term *= cosine * cosine * (2 * at + 1 + odd) as f64 / (2 * at + 2 + odd) as f64;
    }
    if odd == 0 { sine * sum } else { (angle + sine * cosine * sum) / FRAC_PI_2 }
}

/// A scheme's name, whether it is a reference that does not compete, and its runs by seed.
pub type Runs<'a> = (&'a str, bool, Vec<(u64, RunSummary)>);

/// Sums up the runs of all schemes and compares them with the scheme `against`, and with each other.
pub fn summaries(all: &[Runs], against: Option<&str>) -> Vec<SchemeSummary> {
    let against = all.iter().position(|(name, ..)| Some(*name) == against);
    let sum_up = |(name, reference, runs): &Runs| {
        let runs: Vec<RunSummary> = runs.iter().map(|(_, run)| run.clone()).collect();
        SchemeSummary::of(name, *reference, &runs)
    };
    let mut found: Vec<SchemeSummary> = all.iter().map(sum_up).collect();
    for Measure { name, better, of, .. } in MEASURES {
        let values: Vec<_> = all.iter().map(|(_, _, runs)| by_seed(runs, of)).collect();
        differ(&mut found, name, &values, against);
        for (at, leads) in leaders(all, &values, *better).into_iter().enumerate() {
            if leads {
                found[at].leads.push((*name).to_owned());
            }
        }
    }
    let names = all.iter().flat_map(|(_, _, runs)| runs).flat_map(|(_, run)| run.scores.keys());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let tail = |run: &RunSummary| run.scores.get(name).and_then(|score| score.tail);
        let values: Vec<_> = all.iter().map(|(_, _, runs)| by_seed(runs, tail)).collect();
        differ(&mut found, &format!("scores.{name}"), &values, against);
    }
    found
}

/// The values of the runs that have ended.
fn by_seed(
    runs: &[(u64, RunSummary)],
    of: impl Fn(&RunSummary) -> Option<f64>,
) -> BTreeMap<u64, f64> {
    let ended = runs.iter().filter(|(_, run)| run.seconds.is_some());
    ended.filter_map(|(seed, run)| Some((*seed, of(run)?))).collect()
}

/// Notes the differences of all others from the scheme `against`.
fn differ(
    found: &mut [SchemeSummary],
    name: &str,
    values: &[BTreeMap<u64, f64>],
    against: Option<usize>,
) {
    let Some(against) = against else { return };
    for (at, scheme) in found.iter_mut().enumerate().filter(|(at, _)| *at != against) {
        if let Some(difference) = Difference::between(&values[at], &values[against]) {
            scheme.differences.insert(name.to_owned(), difference);
        }
    }
}

/// Which schemes are those that no other is separably better than, when there are some that are not. Schemes compete that have
/// a value at each of several seeds; references do not.
fn leaders(all: &[Runs], values: &[BTreeMap<u64, f64>], better: Better) -> Vec<bool> {
    let most = values.iter().map(BTreeMap::len).max().unwrap_or(0);
    let competes = |at: usize| {
        let diverged = all[at].2.iter().any(|(_, run)| run.diverged_at.is_some());
        most > 1 && values[at].len() == most && !all[at].1 && !diverged
    };
    let competitors: Vec<usize> = (0..all.len()).filter(|&at| competes(at)).collect();
    let beats = |one: usize, other: usize| match Difference::between(&values[one], &values[other]) {
        Some(Difference { separable: true, mean, .. }) => match better {
            Better::Higher => mean > 0.0,
            Better::Lower => mean < 0.0,
            Better::Neither => false,
        },
        _ => false,
    };
    let leads = |at: usize| !competitors.iter().any(|&other| beats(other, at));
    let lead: Vec<usize> = competitors.iter().copied().filter(|&at| leads(at)).collect();
    (0..all.len()).map(|at| lead.len() < competitors.len() && lead.contains(&at)).collect()
}

#[cfg(test)]
mod tests;
