//! A sweep: a comparison for every combination of some settings, in one folder.
//!
//! `OUT/` holds `sweep.toml` (the scenario with its table `[sweep]`) and, when all is done, `sweep.json` ([`SweepSummary`])
//! and `sweep.csv`; every combination is the folder of a comparison in it ([`crate::folder`]), named after its settings.

use std::collections::BTreeMap;
use std::path::Path;

use fedcote_support::csv_field;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::comparison::{self, Control, Event, Listener, RunId, plan};
use crate::folder::{self, Lock, found};
use crate::scenario::{Point, Scenario};
use crate::summary::{SchemeSummary, Summary};
use crate::task::Tasks;

/// The name of the sweep's own file.
pub const FILE: &str = "sweep.toml";

/// Makes the tasks of a scenario.
pub type MakeTasks<'a> = &'a dyn Fn(&Scenario) -> Result<Box<dyn Tasks>, Error>;

/// What a sweep came to: `sweep.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepSummary {
    /// The keys that are swept.
    pub keys: Vec<String>,
    /// The combinations of their values, in order.
    pub points: Vec<PointSummary>,
    /// Runs that have not ended; absent when all have.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// What the user should know about the sweep as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The command that repeats it.
    pub command: String,
    /// The version that made it.
    pub version: String,
}

/// What the comparison with one combination of values came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PointSummary {
    /// The name of its folder.
    pub folder: String,
    /// The keys and their values.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// The scheme that the others' differences are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Rounds per run.
    pub rounds: u32,
    /// The schemes that have runs here, in the order of the scenario.
    pub schemes: Vec<SchemeSummary>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde wants it
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Whether a folder is that of a sweep.
pub fn is_sweep(out: &Path) -> bool {
    out.join(FILE).is_file()
}

/// The runs of all combinations.
pub fn runs(scenario: &Scenario) -> usize {
    scenario.sweep.points.iter().map(|point| plan(&point.scenario).len()).sum()
}

/// Executes the comparisons of all combinations, or this worker's part of their runs, and sums up what is there. `None`
/// means that it was interrupted, and can be resumed.
///
/// # Errors
///
/// As for [`comparison::compare`], and when the folder is another sweep's.
pub fn compare(
    scenario: &Scenario,
    tasks: MakeTasks,
    out: &Path,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Option<SweepSummary>, Error> {
    let points = &scenario.sweep.points;
    let mine = parts(points, control);
    let Some((first, _)) = mine.first() else {
        let reason = format!("this part is empty: the sweep has {} runs", runs(scenario));
        return Err(Error::Scenario { place: "--shard".to_owned(), reason });
    };
    fits(scenario, out, control)?;
    // What cannot work is refused before anything is written.
    let mut made = Some(tasks(&first.scenario)?);
    let _working = Lock::join(out, !control.shard.is_part())?;
    write(scenario, out, control)?;
    for (point, shard) in mine {
        let tasks = made.take().map_or_else(|| tasks(&point.scenario), Ok)?;
        // What another command has begun here is gone on with: the sweep's own file was looked at above.
        let control = Control { shard, command: control.command.clone(), ..*control };
        let named = Named { point: &point.name, listener };
        let folder = out.join(&point.name);
        if comparison::compare(&point.scenario, &*tasks, &folder, &control, &named)?.is_none() {
            return Ok(None);
        }
    }
    let _alone = Lock::wait(&out.join(".summary"))?;
    let summary = summarise(out)?;
    let text = serde_json::to_vec_pretty(&summary).expect("plain data");
    fedcote_support::write(&out.join("sweep.json"), &text)?;
    fedcote_support::write(&out.join("sweep.csv"), summary.to_csv().as_bytes())?;
    Ok(Some(summary))
}

/// The combinations in which a worker has runs, and which: all runs of the sweep are counted through.
fn parts<'a>(points: &'a [Point], control: &Control) -> Vec<(&'a Point, comparison::Shard)> {
    let mut before = 0;
    let mut mine = Vec::new();
    for point in points {
        let runs = plan(&point.scenario);
        let shard = control.shard.after(before);
        before += runs.len();
        if !shard.of(&runs).is_empty() {
            mine.push((point, shard));
        }
    }
    mine
}

/// Sees that the folder is empty, or has a sweep of the same keys, all of whose combinations this one has.
fn fits(scenario: &Scenario, out: &Path, control: &Control) -> Result<(), Error> {
    let path = out.join(FILE);
    if !path.is_file() {
        if !out.is_dir() || found(out)?.is_empty() {
            return Ok(());
        }
        let reason = "has the runs of a comparison, not of a sweep; choose another --out";
        return Err(Error::folder(out, reason));
    }
    if !control.resume && !control.shard.is_part() {
        let reason = "has a sweep already; add --resume to continue it, or choose another --out";
        return Err(Error::folder(out, reason));
    }
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let there = Scenario::parse(&path.to_string_lossy(), &text, &[], out)?;
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.sweep.points.iter().map(|point| point.name.clone()).collect()
    };
    let wanted = names(scenario);
    match names(&there).into_iter().find(|name| !wanted.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let reason = format!(
                "has `{name}`, which this sweep does not have; resume without a scenario (`fedcote run --resume --out \
                 DIR`) or with one that has it, or choose another --out"
            );
            Err(Error::folder(out, reason))
        }
    }
}

/// Writes the sweep's own file below the command that begins it: `fedcote run --resume --out OUT` goes on from there.
///
/// # Errors
///
/// When the file cannot be written.
pub fn begin(scenario: &Scenario, out: &Path, command: &str) -> Result<(), Error> {
    let command = command.replace(char::is_control, " ");
    let text = format!("# {command}\n{}", scenario.clone().rooted()?.to_toml());
    Ok(fedcote_support::write(&out.join(FILE), text.as_bytes())?)
}

/// Writes the sweep's own file anew below the command that began it.
fn write(scenario: &Scenario, out: &Path, control: &Control) -> Result<(), Error> {
    for old in ["sweep.json", "sweep.csv"] {
        // They would speak of fewer runs than there will be.
        match std::fs::remove_file(out.join(old)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&out.join(old))(error));
            }
            _ => {}
        }
    }
    begin(scenario, out, &command(out).unwrap_or_else(|| control.command.clone()))
}

/// The command that began the sweep.
fn command(out: &Path) -> Option<String> {
    let text = std::fs::read_to_string(out.join(FILE)).ok()?;
    text.lines().next()?.strip_prefix("# ").map(str::to_owned)
}

/// Sums up whatever runs a sweep's folder has, from its files alone.
///
/// # Errors
///
/// When it is no sweep's, or a file cannot be read or is damaged.
pub fn summarise(out: &Path) -> Result<SweepSummary, Error> {
    let path = out.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let scenario = Scenario::parse(&path.to_string_lossy(), &text, &[], out)?;
    let mut found = SweepSummary {
        keys: scenario.sweep.axes.iter().map(|axis| axis.key.clone()).collect(),
        command: command(out).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..SweepSummary::default()
    };
    for point in &scenario.sweep.points {
        let folder = out.join(&point.name);
        let summary = match folder.is_dir() {
            true => folder::summarise_ended(&folder)?,
            false => Summary { missing: plan(&point.scenario).len(), ..Summary::default() },
        };
        found.missing += summary.missing;
        for warning in summary.warnings {
            if !found.warnings.contains(&warning) {
                found.warnings.push(warning);
            }
        }
        let json = |value| serde_json::to_value(value).expect("plain data");
        let settings = point.settings.iter().map(|(key, value)| (key.clone(), json(value)));
        found.points.push(PointSummary {
            folder: point.name.clone(),
            settings: settings.collect(),
            against: summary.against,
            rounds: summary.rounds,
            schemes: summary.schemes,
        });
    }
    Ok(found)
}

impl PointSummary {
    /// The value of a key as text.
    pub fn word(&self, key: &str) -> String {
        match self.settings.get(key) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}

impl PointSummary {
    /// The same as a field of a CSV file; numbers, negative ones too, are no formulas.
    fn csv(&self, key: &str) -> String {
        match self.settings.get(key) {
            Some(serde_json::Value::Number(number)) => number.to_string(),
            _ => csv_field(&self.word(key)),
        }
    }
}

impl SweepSummary {
    /// All schemes, each once, in order.
    pub fn schemes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for scheme in self.points.iter().flat_map(|point| &point.schemes) {
            if !names.contains(&scheme.name.as_str()) {
                names.push(&scheme.name);
            }
        }
        names
    }

    /// A line per combination and scheme: the values of the keys, then the columns of `summary.csv`.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        for (at, point) in self.points.iter().enumerate() {
            let summary = Summary { schemes: point.schemes.clone(), ..Summary::default() };
            let csv = summary.to_csv();
            let mut lines = csv.lines();
            let header = lines.next().unwrap_or_default();
            if at == 0 {
                let keys: Vec<String> = self.keys.iter().map(|key| csv_field(key)).collect();
                out += &format!("{},{header}\n", keys.join(","));
            }
            let values: Vec<String> = self.keys.iter().map(|key| point.csv(key)).collect();
            for line in lines {
                out += &format!("{},{line}\n", values.join(","));
            }
        }
        out
    }
}

/// Tells of the runs of one combination under its name.
struct Named<'a> {
    point: &'a str,
    listener: &'a dyn Listener,
}

impl Listener for Named<'_> {
    fn event(&self, run: &RunId, event: Event) {
        let scheme = format!("{} {}", self.point, run.scheme);
        self.listener.event(&RunId { scheme, seed: run.seed }, event);
    }
}
