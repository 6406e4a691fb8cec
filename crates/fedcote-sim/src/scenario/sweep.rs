//! `[sweep]`: keys of a scenario with several values each, a grid of settings.

use toml::{Table, Value};

use super::Scenario;
use super::source::Source;
use crate::Error;

/// Keys with several values, and the scenario of every combination.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sweep {
    /// The keys, each with its values, in the order of the table.
    pub axes: Vec<Axis>,
    /// All combinations; the last key changes fastest.
    pub points: Vec<Point>,
}

/// A key and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The key's dotted path.
    pub key: String,
    /// What it is set to in turn.
    pub values: Vec<Value>,
}

/// One combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The name of its folder.
    pub name: String,
    /// The keys and their values.
    pub settings: Vec<(String, Value)>,
    /// The scenario with these.
    pub scenario: Scenario,
}

/// Grids larger than this are a mistake.
const MOST_POINTS: usize = 10_000;

/// Keys that a comparison has several of already, or that change nothing.
const OTHERS: [&str; 4] = ["seeds", "schemes", "against", "checkpoint_every"];

impl Sweep {
    /// Whether nothing is swept.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// The grid of the table `[sweep]`, which is taken out of the source; nothing without one.
    pub(super) fn take(source: &mut Source) -> Result<Vec<Axis>, Error> {
        let mut axes = Vec::new();
        match source.table.remove("sweep") {
            None => return Ok(axes),
            Some(Value::Table(table)) => flatten("", table, &mut axes),
            Some(_) => return Err(source.wrong("sweep", "must be a table: write [sweep]")),
        }
        for Axis { key, values } in &axes {
            let place = format!("sweep.{key}");
            let wrong = |reason: &str| Err(source.wrong(&place, reason));
            if OTHERS.contains(&key.as_str()) {
                return wrong("is no setting to sweep: name what there is of it in the scenario");
            }
            if source.overrides(key) {
                return wrong(&format!("--set {key} is given, too; leave one of them out"));
            }
            if values.is_empty() {
                return wrong("must be a list of values, as in [0, 10, 20]");
            }
            if let Some(twice) = super::check::repeated(values) {
                return wrong(&format!("{twice} is listed twice"));
            }
        }
        let points = axes.iter().try_fold(1usize, |all, axis| all.checked_mul(axis.values.len()));
        if points.is_none_or(|points| points > MOST_POINTS) {
            let reason = format!("more than {MOST_POINTS} combinations of values");
            return Err(source.wrong("sweep", &reason));
        }
        Ok(axes)
    }

    /// All combinations of the values, each with the name of its folder.
    pub(super) fn combinations(axes: &[Axis]) -> Vec<(String, Vec<(String, Value)>)> {
        let mut all: Vec<Vec<(String, Value)>> = vec![Vec::new()];
        for Axis { key, values } in axes {
            let longer = |start: &Vec<(String, Value)>| -> Vec<_> {
                let with = |value: &Value| [&start[..], &[(key.clone(), value.clone())]].concat();
                values.iter().map(with).collect()
            };
            all = all.iter().flat_map(longer).collect();
        }
        let short = |key: &str| {
            let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
            let same = axes.iter().filter(|axis| last(&axis.key) == last(key)).count();
            if same > 1 { key.to_owned() } else { last(key) }
        };
        let mut named: Vec<(String, Vec<(String, Value)>)> = Vec::new();
        for settings in all {
            let words: Vec<String> = settings
                .iter()
                .map(|(key, value)| format!("{}={}", short(key), plain(value)))
                .collect();
            let plain = words.join(",");
            let mut name = plain.clone();
            let mut number = 1;
            // Values that differ only in what no file name can have.
            while named.iter().any(|(other, _)| *other == name) {
                number += 1;
                name = format!("{plain}~{number}");
            }
            named.push((name, settings));
        }
        named
    }

    /// The table of a scenario file.
    pub(super) fn to_table(&self) -> Table {
        let list = |axis: &Axis| (axis.key.clone(), Value::Array(axis.values.clone()));
        self.axes.iter().map(list).collect()
    }
}

/// `KEY=V1,V2,…` as an override of the scenario's table `[sweep]`.
pub fn assignment(text: &str) -> Result<String, String> {
    let wrong = || format!("--sweep {text}: expected KEY=V1,V2,…, such as training.rate=0.05,0.1");
    let (key, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<String> =
        split(values).into_iter().map(|value| value.trim().to_owned()).collect();
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    // What is not a TOML value is meant as a string: `data.partition=iid,shards` needs no quotes.
    let word = |value: &String| match format!("value = {value}").parse::<toml::Table>() {
        Ok(table) if table.len() == 1 => value.clone(),
        _ => toml::Value::String(value.clone()).to_string(),
    };
    let values: Vec<String> = values.iter().map(word).collect();
    Ok(format!("sweep.{}=[{}]", key.trim(), values.join(", ")))
}

/// The parts between commas, but for those in brackets or quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Keys may be written whole, in quotes, or as tables: TOML's dots.
fn flatten(path: &str, table: Table, axes: &mut Vec<Axis>) {
    for (key, value) in table {
        let key = if path.is_empty() { key } else { format!("{path}.{key}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, axes),
            // Written in two ways, the later counts: what the command line adds is below what the file has.
            other => {
                axes.retain(|axis| axis.key != key);
                // What is no list is refused above.
                let values = if let Value::Array(values) = other { values } else { Vec::new() };
                axes.push(Axis { key, values });
            }
        }
    }
}

/// A value as a part of a file name, and in tables.
pub fn plain(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let allowed = |letter: char| letter.is_alphanumeric() || "._+-".contains(letter);
    let words: Vec<&str> =
        text.split(|letter| !allowed(letter)).filter(|w| !w.is_empty()).collect();
    let mut name = words.join("-");
    name.truncate(name.floor_char_boundary(60));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_by_commas_outside_of_brackets_and_quotes() {
        for (text, expected) in [
            ("network.loss=0,10,20", "sweep.network.loss=[0, 10, 20]"),
            ("data.partition=iid,shards", r#"sweep.data.partition=["iid", "shards"]"#),
            ("training.local_steps=5,[1,9]", "sweep.training.local_steps=[5, [1,9]]"),
            (r#"a="x,y",'z'"#, r#"sweep.a=["x,y", 'z']"#),
        ] {
            assert_eq!(assignment(text).unwrap(), expected);
        }
        for wrong in ["rounds", "=1,2", "rounds=", "rounds=1,,2"] {
            assert!(assignment(wrong).unwrap_err().contains("expected KEY=V1,V2"), "{wrong}");
        }
    }
}
