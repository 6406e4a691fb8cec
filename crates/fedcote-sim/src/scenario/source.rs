//! The text of a scenario with its overrides, and where in it a mistake stands.

use fedcote_support::suggestion;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::Error;

/// A scenario's text, read but not yet understood.
#[derive(Clone)]
pub struct Source {
    name: String,
    text: String,
    overrides: Vec<String>,
    /// Keys of a sweep, and how its values are written here.
    swept: Vec<(String, String)>,
    /// The text's keys with the overrides in place.
    pub table: Table,
}

impl Source {
    /// Reads the text and puts the overrides (`a.b=value`) in place.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, Error> {
        let table: Table = toml::from_str(text).map_err(|error| Error::Scenario {
            place: match error.span() {
                Some(span) => format!("{name}:{}", line_at(text, span.start)),
                None => name.to_owned(),
            },
            reason: error.message().to_owned(),
        })?;
        let mut source = Self {
            name: name.to_owned(),
            text: text.to_owned(),
            overrides: Vec::new(),
            swept: Vec::new(),
            table,
        };
        for assignment in overrides {
            source.set(assignment)?;
        }
        Ok(source)
    }

    fn set(&mut self, assignment: &str) -> Result<(), Error> {
        let wrong = |reason: &str| Error::Scenario {
            place: format!("--set {assignment}"),
            reason: reason.to_owned(),
        };
        let (path, value) = assignment
            .split_once('=')
            .ok_or_else(|| wrong("expected key=value, such as training.rate=0.1"))?;
        let (path, value) = (path.trim(), value.trim());
        let keys: Vec<&str> = path.split('.').collect();
        if keys.iter().any(|key| key.is_empty()) {
            return Err(wrong("a key is empty; write it as in training.rate=0.1"));
        }
        // What is not a TOML value is meant as a string: `data.partition=iid` needs no quotes.
        let value = match format!("value = {value}").parse::<Table>() {
            Ok(mut table) if table.len() == 1 => table.remove("value").expect("the only key"),
            _ => Value::String(value.to_owned()),
        };
        self.put(&keys, value).map_err(|reason| wrong(&reason))?;
        self.overrides.push(path.to_owned());
        Ok(())
    }

    fn put(&mut self, keys: &[&str], value: Value) -> Result<(), String> {
        let mut table = &mut self.table;
        for key in &keys[..keys.len() - 1] {
            table = table
                .entry(*key)
                .or_insert_with(|| Value::Table(Table::new()))
                .as_table_mut()
                .ok_or_else(|| format!("`{key}` is a value, not a table"))?;
        }
        table.insert(keys[keys.len() - 1].to_owned(), value);
        Ok(())
    }

    /// The same with these values of a sweep in place.
    pub fn at(&self, settings: &[(String, Value)]) -> Result<Self, Error> {
        let mut point = self.clone();
        for (path, value) in settings {
            let keys: Vec<&str> = path.split('.').collect();
            point.swept.push((path.clone(), value.to_string()));
            let put = match keys.iter().any(|key| key.is_empty()) {
                true => Err("a key is empty; write it as in training.rate".to_owned()),
                false => point.put(&keys, value.clone()),
            };
            put.map_err(|reason| point.wrong(path, &reason))?;
            point.overrides.push(path.clone());
        }
        Ok(point)
    }

    /// Understands a table that stood at `prefix` (empty for the top level); `also` are keys of the same table that
    /// are read apart.
    pub fn read<T: DeserializeOwned>(
        &self,
        prefix: &str,
        table: Table,
        also: &[&str],
    ) -> Result<T, Error> {
        serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
            let inner = error.path().to_string();
            let message = error.inner().message().to_owned();
            let mut path = match (prefix, inner.as_str()) {
                (prefix, ".") => prefix.to_owned(),
                ("", inner) => inner.to_owned(),
                (prefix, inner) => format!("{prefix}.{inner}"),
            };
            let quoted = backticked(&message);
            if message.starts_with("unknown field") {
                let wrong = quoted.first().copied().unwrap_or_default();
                if path != wrong && !path.ends_with(&format!(".{wrong}")) {
                    path = join(&path, wrong);
                }
                let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
                let also = if parent == prefix { also } else { &[] };
                return self.unknown_key(parent, wrong, &[&quoted[1..], also].concat());
            }
            self.wrong(&path, &reason(&message))
        })
    }

    /// Whether an override sets this key, or a part of it.
    pub fn overrides(&self, path: &str) -> bool {
        let inside = |rest: &str| rest.is_empty() || rest.starts_with('.');
        self.overrides.iter().any(|set| set.strip_prefix(path).is_some_and(inside))
    }

    /// The error for an unknown key.
    pub fn unknown_key(&self, parent: &str, key: &str, known: &[&str]) -> Error {
        let path = join(parent, key);
        if parent == "network" && super::server::MOVED.contains(&key) {
            let place = self.place(&path);
            // An override says itself which key it is.
            let said = if place == format!("--set {path}") { "" } else { &format!("{path} ") };
            return Error::Scenario { reason: format!("{said}is now server.{key}"), place };
        }
        let remedy = match super::elsewhere(key) {
            Some(place) => format!("; did you mean `{place}`?"),
            None => suggestion(key, known),
        };
        let place = self.place(&path);
        // An override says itself which key it is.
        let said = place == format!("--set {path}") || place.starts_with("sweep ");
        let key = if said { String::new() } else { format!(" `{path}`") };
        Error::Scenario { place, reason: format!("unknown key{key}{remedy}") }
    }

    /// The error for the value of a key, given by its dotted path.
    pub fn wrong(&self, path: &str, reason: &str) -> Error {
        let place = self.place(path);
        let said = path.is_empty()
            || place == format!("--set {path}")
            || self
                .swept
                .iter()
                .any(|(key, value)| path == key && place == format!("sweep {key}={value}"))
            || path.strip_prefix("sweep.").is_some_and(|key| place == format!("--sweep {key}"));
        let reason = if said { reason.to_owned() } else { format!("{path}: {reason}") };
        Error::Scenario { place, reason }
    }

    /// Where a key stands: the override that set it, or file and line.
    fn place(&self, path: &str) -> String {
        let set = |at: &&String| {
            path.strip_prefix(at.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if let Some(at) = self.overrides.iter().rev().find(set) {
            if let Some((key, value)) = self.swept.iter().find(|(key, _)| key == at) {
                return format!("sweep {key}={value}");
            }
            return match at.strip_prefix("sweep.") {
                Some(key) => format!("--sweep {key}"),
                None => format!("--set {at}"),
            };
        }
        match self.line_of(path) {
            Some(line) => format!("{}:{line}", self.name),
            None => self.name.clone(),
        }
    }

    fn line_of(&self, path: &str) -> Option<usize> {
        let document = DeTable::parse(&self.text).ok()?;
        let mut table = document.get_ref();
        let mut found = None;
        for key in path.split('.') {
            let key = key.split('[').next().unwrap_or(key);
            let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == key) else {
                break;
            };
            found = Some(line_at(&self.text, name.span().start));
            match Spanned::get_ref(value) {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        found
    }
}

fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

fn backticked(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

/// Why a value was refused, from what its reader said.
pub fn reason(message: &str) -> String {
    match backticked(message).split_first() {
        Some((wrong, known)) if message.starts_with("unknown variant") => {
            format!("`{wrong}` is not known{}", suggestion(wrong, known))
        }
        _ => plain(message),
    }
}

/// What a reader of text found and wanted, in the words of the person who wrote it: "invalid type: floating point
/// `1.5`, expected u32" is "1.5 is not a whole number". Text before and after is kept.
pub fn plain(message: &str) -> String {
    let read = || {
        let starts = ["invalid type: ", "invalid value: ", "invalid length "];
        let (at, kind) =
            starts.iter().find_map(|start| Some((message.find(start)?, start.trim_end())))?;
        let (found, wanted) = message[at + kind.len() + 1..].split_once(", expected ")?;
        let (wanted, after) = match wanted.find(" at line ") {
            Some(end) => wanted.split_at(end),
            None => (wanted, ""),
        };
        let length = format!("a list of {found}");
        let found = match found.split_once(' ') {
            _ if kind == "invalid length" => &length,
            _ if found == "sequence" => "a list",
            _ if found == "map" => "a table",
            Some(("floating", rest)) => rest.trim_start_matches("point ").trim_matches('`'),
            Some(("integer" | "boolean", value)) => value.trim_matches('`'),
            Some(("string", text)) => text,
            _ => found,
        };
        let wanted = match wanted {
            "u32" if kind == "invalid value:" => "a whole number from 0 to 4294967295",
            "u64" | "usize" if kind == "invalid value:" => "a whole number of 0 or more",
            "u32" | "u64" | "usize" => "a whole number",
            "f64" => "a number",
            "a boolean" => "true or false",
            "a string" | "string or map" | "path string" => "text",
            "a sequence" => "a list",
            "a tuple of size 2" | "an array of length 2" => "a list of two numbers",
            "a map" => "a table",
            other if other.starts_with("struct ") => "a table",
            other => other,
        };
        Some(format!("{}{found} is not {wanted}{after}", &message[..at]))
    };
    read().unwrap_or_else(|| message.to_owned())
}
