//! `config.toml`: what one run depends on, and in which key two of them differ.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use crate::Error;
use crate::scenario::{ClockConfig, Scenario};

/// What one run depends on: the scenario cut down to its scheme and seed, the scheme written out with all its
/// parameters, so that a run by another definition of a named scheme is told from this one.
pub(super) fn run_config(
    scenario: &Scenario,
    task: Option<&str>,
    scheme: &str,
    seed: u64,
) -> Result<Table, Error> {
    let mut scenario = scenario.clone();
    scenario.general.schemes = vec![scheme.to_owned()];
    scenario.general.seeds = vec![seed];
    scenario.schemes = scenario.schemes.resolved(scheme)?;
    let mut config = scenario.to_table();
    // What a run is compared with changes nothing in it.
    config.remove("against");
    config.insert("version".into(), Value::String(env!("CARGO_PKG_VERSION").to_owned()));
    // It is in the place of data and model, whatever the scenario says about them.
    if let Some(task) = task {
        config.insert("task".into(), Value::String(task.to_owned()));
        config.remove("data");
        config.remove("model");
    }
    Ok(config)
}

/// Keys that may differ between the runs of a folder: they change no number.
const INDIFFERENT: [&str; 3] = ["checkpoint_every", "target_accuracy", "task.folder"];

/// Keys with a path, given from the scenario's folder or from the root.
const PATHS: [&str; 2] = ["data.path", "network.file"];

/// Whether two paths may be the same, one of them given from a folder that is not known.
fn same_place(one: &str, two: &str) -> bool {
    let plain = |path: &str| -> PathBuf {
        Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
    };
    let (one, two) = (plain(one), plain(two));
    (one.is_relative() && two.ends_with(&one)) || (two.is_relative() && one.ends_with(&two))
}

fn default_clock() -> Value {
    Value::try_from(ClockConfig::default()).expect("plain values")
}

/// The first key in which a configuration on disk differs from the one wanted.
pub(super) fn difference(found: &Table, wanted: &Table) -> Option<String> {
    fn differing(path: &str, found: &Table, wanted: &Table) -> Option<String> {
        let keys = wanted.keys().chain(found.keys().filter(|key| !wanted.contains_key(*key)));
        for key in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match (found.get(key), wanted.get(key)) {
                (Some(Value::Table(found)), Some(Value::Table(wanted))) => {
                    if let Some(key) = differing(&path, found, wanted) {
                        return Some(key);
                    }
                }
                // Early versions did not write it.
                (None, Some(Value::Boolean(false))) if path == "portable" => {}
                (None, Some(clock)) if path == "clock" && *clock == default_clock() => {}
                (found, wanted) if found == wanted || INDIFFERENT.contains(&path.as_str()) => {}
                (Some(Value::String(found)), Some(Value::String(wanted)))
                    if PATHS.contains(&path.as_str()) && same_place(found, wanted) => {}
                _ => return Some(path),
            }
        }
        None
    }
    differing("", found, wanted)
}
