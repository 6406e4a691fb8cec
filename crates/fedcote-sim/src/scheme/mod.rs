//! A scheme is three parts: whom to ask, what a client does, what becomes of what arrived.
//!
//! Every baseline is a named combination of parts with its parameters. A scenario changes the
//! parameters of a named scheme, or mixes parts under a new name:
//!
//! ```toml
//! [scheme.fedcote]
//! draws = "systematic"
//!
//! [scheme.mine]
//! base = "fedcote"
//! local = "prox"
//! aggregation = "yogi"
//! ```

mod named;
pub(crate) mod settings;

use std::collections::BTreeMap;

use fedcote::SettingError;
use toml::Table;

pub use crate::aggregation::AggregationKind;
pub use crate::local::LocalKind;
use crate::scenario::is_place;
pub use crate::selection::SelectionKind;
use named::named;
pub use named::{NAMED, Named};
pub use settings::{Parameter, Words};
use settings::{choices, value};

choices! {
    /// Which failures a scheme meets.
    #[derive(Copy, Eq)]
    pub enum FailureKind in "failures" {
        /// Those of the network.
        "network" => Network,
        /// None at all.
        "none" => None,
        /// Everyone fails with the mean probability of the network.
        "equalised" => Equalised,
    }
}

/// A scheme with everything decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheme {
    /// Its name in the scenario.
    pub name: String,
    /// Whom to ask.
    pub selection: SelectionKind,
    /// What a client does.
    pub local: LocalKind,
    /// What becomes of what arrived.
    pub aggregation: AggregationKind,
    /// Which failures it meets.
    pub failures: FailureKind,
    /// The user's own class that replaces parts, `module:Class`.
    pub python: Option<String>,
}

impl Scheme {
    /// What a table says, with defaults for the rest; keys that no part of the scheme reads are ignored.
    fn read(name: &str, table: &Table) -> Result<Self, SettingError> {
        let scheme = Self {
            name: name.to_owned(),
            selection: SelectionKind::read(table)?,
            local: LocalKind::read(table)?,
            aggregation: AggregationKind::read(table)?,
            failures: FailureKind::read(table)?,
            python: value(table, "python")?,
        };
        if let Some(place) = scheme.python.as_ref().filter(|place| !is_place(place)) {
            let reason = format!("must be \"module:Class\", is `{place}`");
            return Err(SettingError::new("python", reason));
        }
        // Updates of clients that started at different times have no common state that a correction could go by.
        let buffered = matches!(scheme.selection, SelectionKind::Buffered(_));
        if buffered && matches!(scheme.local, LocalKind::Scaffold(_)) {
            let reason = "control variates do not go with selection \"buffered\"";
            return Err(SettingError::new("local", reason));
        }
        if buffered
            && !matches!(scheme.aggregation, AggregationKind::Mean(_) | AggregationKind::Yogi(_))
        {
            let reason = "selection \"buffered\" goes with aggregation \"mean\" or \"yogi\"";
            return Err(SettingError::new("aggregation", reason));
        }
        // A scheme that draws without probabilities has no weights to make unbiased.
        if scheme.aggregation.needs_probabilities() && !scheme.selection.has_probabilities() {
            let word = scheme.aggregation.word();
            let reason = format!("aggregation \"{word}\" needs a selection by probabilities");
            return Err(SettingError::new("aggregation", reason));
        }
        Ok(scheme)
    }

    /// The whole scheme as a `[scheme.NAME]` table: its parts and all their parameters, defaults included.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        self.selection.write(&mut table);
        self.local.write(&mut table);
        self.aggregation.write(&mut table);
        self.failures.write(&mut table);
        if let Some(place) = &self.python {
            table.insert("python".to_owned(), place.clone().into());
        }
        table
    }

    /// Whether it is there to compare with, and does not compete: it meets other failures than the network has.
    pub fn is_reference(&self) -> bool {
        self.failures != FailureKind::Network
    }

    /// Refuses a key that no part of the scheme reads.
    fn check_read(&self, key: &str) -> Result<(), SettingError> {
        let table = self.table();
        let chosen = |(key, word): &(&str, &str)| {
            table.get(*key).and_then(toml::Value::as_str) == Some(*word)
        };
        let all = parameters();
        let same: Vec<&Parameter> = all.iter().filter(|parameter| parameter.key == key).collect();
        if same.iter().any(|parameter| parameter.given.iter().all(chosen)) {
            return Ok(());
        }
        let Some(first) = same.first() else {
            return Err(SettingError::new(key, "no part of a scheme has this key"));
        };
        let words: Vec<String> = same.iter().map(|p| format!("\"{}\"", p.given[0].1)).collect();
        let words = match words.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            _ => words.concat(),
        };
        let mut reader = format!("{} = {words}", first.given[0].0);
        for (key, word) in &first.given[1..] {
            reader += &format!(" with {key} = \"{word}\"");
        }
        Err(SettingError::new(key, format!("has no effect here: it belongs to {reader}")))
    }
}

/// All that a `[scheme.NAME]` table may say: the parts, then the parameters of each. A key is there once for each part that
/// reads it.
pub fn parameters() -> Vec<Parameter> {
    let part = |key, about: &str, kind, words| Parameter {
        key,
        about: about.to_owned(),
        kind,
        default: None,
        range: None,
        words,
        given: Vec::new(),
    };
    let base =
        "The named scheme to start from; by default the one of the same name, else `fedavg`.";
    let selection = "Whom to ask; by default as in the base, like all parts.";
    let mut all = vec![
        part("base", base, "String", &[]),
        part("selection", selection, "SelectionKind", SelectionKind::WORDS),
        part("local", "What a client does.", "LocalKind", LocalKind::WORDS),
        part(
            "aggregation",
            "What becomes of what arrived.",
            "AggregationKind",
            AggregationKind::WORDS,
        ),
        part("failures", "Which failures the scheme meets.", "FailureKind", FailureKind::WORDS),
        part(
            "python",
            "A class of your own, `\"module:Class\"`, that replaces parts.",
            "String",
            &[],
        ),
    ];
    all.extend(SelectionKind::parameters());
    all.extend(LocalKind::parameters());
    all.extend(AggregationKind::parameters());
    all
}

/// All keys that a `[scheme.NAME]` table may have.
pub(crate) fn keys() -> Vec<&'static str> {
    let mut keys = Vec::new();
    for parameter in parameters() {
        if !keys.contains(&parameter.key) {
            keys.push(parameter.key);
        }
    }
    keys
}

/// The `[scheme.*]` tables of a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schemes(BTreeMap<String, Table>);

impl Schemes {
    /// Adds a table.
    pub fn insert(&mut self, name: String, table: Table) {
        self.0.insert(name, table);
    }

    /// The tables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Table)> {
        self.0.iter()
    }

    /// Only the scheme of that name, with everything about it written out.
    pub fn resolved(&self, name: &str) -> Result<Self, SettingError> {
        Ok(Self([(name.to_owned(), self.resolve(name)?.table())].into()))
    }

    /// Decides everything about the scheme of that name.
    ///
    /// # Errors
    ///
    /// A scheme that neither a table describes nor a name stands for, an illegal value, a key that no part reads.
    pub fn resolve(&self, name: &str) -> Result<Scheme, SettingError> {
        let path = format!("scheme.{name}");
        if name.is_empty()
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            || name.starts_with(['.', '-'])
        {
            let reason = format!("`{name}`: use letters, digits, - and _ (it names a folder)");
            return Err(SettingError::new("schemes", reason));
        }
        // Its folder is beside these files.
        const TAKEN: [&str; 4] = ["scenario.toml", "summary.json", "summary.csv", "report.html"];
        if TAKEN.iter().any(|file| file.eq_ignore_ascii_case(name)) {
            let reason =
                format!("`{name}` is the name of a file of the run folder; choose another");
            return Err(SettingError::new("schemes", reason));
        }
        let Some(own) = self.0.get(name) else {
            let reason = || {
                format!("no scheme `{name}`{} (or describe it in a table [{path}])", known(name))
            };
            let table = named(name).ok_or_else(|| SettingError::new("schemes", reason()))?;
            return Scheme::read(name, &table);
        };
        let described = || {
            let mut table = match value::<String>(own, "base")? {
                Some(base) => named(&base).ok_or_else(|| {
                    let reason = format!("`{base}` is no named scheme{}", known(&base));
                    SettingError::new("base", reason)
                })?,
                None => named(name).unwrap_or_default(),
            };
            table.extend(own.clone());
            let scheme = Scheme::read(name, &table)?;
            own.keys().try_for_each(|key| scheme.check_read(key))?;
            Ok(scheme)
        };
        described().map_err(|error: SettingError| error.within(&path))
    }
}

fn known(wrong: &str) -> String {
    fedcote_support::suggestion(wrong, &NAMED.iter().map(|named| named.name).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
