//! `scenario.toml`: the resolved scenario of a comparison, and the command that began it.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

use serde::Deserialize;
use toml::{Table, Value};

use crate::Error;
use crate::scenario::{General, Scenario};
use crate::scheme::Schemes;

/// `scenario.toml` as it is in a folder. It is understood as far as it can be: other versions may know other keys.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioFile {
    /// All of it.
    pub text: String,
    /// The command that began the comparison.
    pub command: Option<String>,
    /// Rounds, clients, seeds, schemes; nothing if it is not a scenario.
    pub general: Option<General>,
    table: Table,
}

impl ScenarioFile {
    /// The file's name in the folder of a comparison.
    pub const FILE: &str = "scenario.toml";

    /// Reads the file in the folder of a comparison, if it is there.
    pub fn read(out: &Path) -> Result<Option<Self>, Error> {
        let path = out.join(Self::FILE);
        let read = |mut file: fs::File| {
            let mut text = String::new();
            file.read_to_string(&mut text).map(|_| text)
        };
        match super::open_plain(&path).and_then(read) {
            Ok(text) => Ok(Some(Self::parse(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(Error::Damaged { path, line: None, reason: "not UTF-8 text".into() })
            }
            Err(error) => Err(Error::io(&path)(error)),
        }
    }

    /// Understands the text.
    pub fn parse(text: &str) -> Self {
        let table: Table = text.parse().unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let command = first.strip_prefix("# ").map(str::to_owned);
        Self { command, general: general(&table), table, text: text.to_owned() }
    }

    /// The number at a dotted path, such as `network.cell_radius_m`.
    pub fn number(&self, path: &str) -> Option<f64> {
        let mut keys = path.split('.');
        let first = self.table.get(keys.next()?)?;
        match keys.try_fold(first, |value, key| value.get(key))? {
            Value::Float(number) => Some(*number),
            Value::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// Whether a scheme is there for reference only: it meets no failures of the network.
    pub fn is_reference(&self, scheme: &str) -> bool {
        self.schemes().resolve(scheme).is_ok_and(|scheme| scheme.is_reference())
    }

    /// Whether the server keeps every client's latest update under a scheme.
    pub fn keeps_updates(&self, scheme: &str) -> bool {
        self.schemes().resolve(scheme).is_ok_and(|scheme| scheme.aggregation.keeps_updates())
    }

    fn schemes(&self) -> Schemes {
        let scenario = Scenario::parse(Self::FILE, &self.text, &[], Path::new("."));
        scenario.map(|scenario| scenario.schemes).unwrap_or_default()
    }

    /// Writes the file: the scenario with absolute paths, below the command that began the comparison.
    pub fn write(out: &Path, scenario: &Scenario, command: &str) -> Result<(), Error> {
        // A comment is one line.
        let command = command.replace(char::is_control, " ");
        let text = format!("# {command}\n{}", scenario.clone().rooted()?.to_toml());
        Ok(fedcote_support::write(&out.join(Self::FILE), text.as_bytes())?)
    }
}

/// The keys at the top of a scenario, or of the `config.toml` of a run.
pub(super) fn general(table: &Table) -> Option<General> {
    let known = Table::try_from(General::default()).expect("plain values");
    let top = table.iter().filter(|(key, _)| known.contains_key(*key));
    let top: Table = top.map(|(key, value)| (key.clone(), value.clone())).collect();
    let general = General::deserialize(Value::Table(top)).ok()?;
    // A scheme's name is that of a folder, and leads nowhere else.
    let inside = |name: &String| {
        let mut parts = Path::new(name).components();
        matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
    };
    // Every scenario that is written says how many rounds it has.
    (table.contains_key("rounds") && general.schemes.iter().all(inside)).then_some(general)
}
