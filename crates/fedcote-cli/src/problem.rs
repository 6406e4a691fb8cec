//! Reading a selection problem: JSON or CSV, told apart by how the text begins.
//!
//! Values go straight into flat arrays, so that a million clients cost their numbers and names and nothing else.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{IsTerminal, Read};
use std::path::Path;

use fedcote::{Federation, FederationSpec, Groups};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::error::Error;

/// A request as the file has it.
#[derive(Debug, Default)]
pub struct Problem {
    /// Draws per round, if the file says.
    pub selected: Option<u64>,
    /// Threshold, if the file says.
    pub threshold: Option<f64>,
    spec: FederationSpec,
    ids: Vec<String>,
    /// NaN where a client has none.
    selection: Vec<f64>,
    /// Groups with the probability that each is down.
    groups: Vec<(String, f64)>,
    /// The groups that clients name, in the order of first mention.
    named: HashMap<String, usize>,
    /// The group that each client names, if it names one.
    group: Vec<Option<usize>>,
    /// The line of each client, where there is one.
    lines: Vec<u64>,
}

/// `NAME=PROBABILITY` of a flag.
pub fn group(text: &str) -> Result<(String, f64), String> {
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("expected NAME=PROBABILITY, such as ap=0.1")?;
    let probability = value.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    let probability = probability.ok_or(format!("{value:?} is not a probability from 0 to 1"))?;
    Ok((name.to_owned(), probability))
}

impl Problem {
    /// Reads a file, or standard input for `-` or nothing.
    pub fn read(file: Option<&Path>) -> Result<Self, Error> {
        let name = source(file);
        let refuse = |problem: &dyn fmt::Display| Error::request(format!("{name}: {problem}"));
        let mut bytes = Vec::new();
        match file.filter(|path| *path != Path::new("-")) {
            Some(path) => {
                bytes = std::fs::read(path).map_err(|error| refuse(&error))?;
            }
            None if std::io::stdin().is_terminal() => {
                return Err(refuse(&"is a terminal; name a file, or pipe one in"));
            }
            None => {
                std::io::stdin().lock().read_to_end(&mut bytes).map_err(|error| refuse(&error))?;
            }
        }
        Self::parse(&bytes).map_err(|problem| refuse(&problem))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else {
            return Err("is empty; expected a JSON object or a CSV table".into());
        };
        let mut problem = Self::default();
        if *first == b'{' {
            let mut reader = serde_json::Deserializer::from_slice(bytes);
            let plain = |error: serde_json::Error| fedcote_sim::scenario::plain(&error.to_string());
            Document(&mut problem).deserialize(&mut reader).map_err(plain)?;
            reader.end().map_err(|error| error.to_string())?;
        } else if bytes.contains(&0) || std::str::from_utf8(bytes).is_err() {
            return Err("is neither JSON nor CSV text".into());
        } else {
            problem.read_csv(bytes)?;
        }
        if problem.ids.is_empty() {
            problem.spec.ids = None;
        } else {
            problem.spec.ids = Some(std::mem::take(&mut problem.ids));
        }
        Ok(problem)
    }

    /// Adds the groups of flags, which come before those of the file.
    pub fn with_groups(mut self, flags: &[(String, f64)]) -> Self {
        self.groups.retain(|(name, _)| flags.iter().all(|(other, _)| other != name));
        self.groups.extend_from_slice(flags);
        self
    }

    /// Who fails together, if anybody does.
    fn groups(&mut self) -> Result<Option<Groups>, String> {
        if self.groups.is_empty() && self.named.is_empty() {
            return Ok(None);
        }
        let mut places = vec![None; self.named.len()];
        let mut empty = None;
        for (at, (name, down)) in self.groups.iter().enumerate() {
            if !(0.0..=1.0).contains(down) {
                let down = fedcote_support::readable(*down);
                return Err(format!(
                    "groups: {name:?} must be a probability from 0 to 1, is {down}"
                ));
            }
            let Some(&named) = self.named.get(name) else {
                empty.get_or_insert(name);
                continue;
            };
            if places[named].replace(at).is_some() {
                return Err(format!("groups: {name:?} is given twice"));
            }
        }
        if let Some(client) = self.group.iter().position(|g| g.is_some_and(|g| places[g].is_none()))
        {
            let id = self.spec.ids.as_ref().map_or_else(
                || format!("client {}", client + 1),
                |ids| format!("client {:?}", ids[client]),
            );
            let line =
                self.lines.get(client).map_or(String::new(), |line| format!("line {line}: "));
            let named = self.group[client];
            let name = self.named.iter().find(|(_, at)| Some(**at) == named).map(|(name, _)| name);
            let known: Vec<&str> = self.groups.iter().map(|(name, _)| name.as_str()).collect();
            let name = name.map_or("", String::as_str);
            let remedy = match known.is_empty() {
                true => "; say how often it is down in `groups`, or with --group NAME=PROBABILITY"
                    .to_owned(),
                false => fedcote_support::suggestion(name, &known),
            };
            return Err(format!("{line}{id}: group: `{name}` is not known{remedy}"));
        }
        // After the clients' own names: a typo there may be why nobody is in the group.
        if let Some(name) = empty {
            return Err(format!("groups: no client is in group {name:?}"));
        }
        let down: Vec<f64> = self.groups.iter().map(|(_, down)| *down).collect();
        let of = self.group.iter().map(|group| group.and_then(|group| places[group]));
        let groups = Groups::new(down, of).map_err(|error| error.to_string())?;
        // Wrong failures are left for the check of all clients, which names the one at fault.
        if let Ok(overall) = groups.overall(&self.spec.failure) {
            self.spec.failure = overall;
        }
        Ok(Some(groups))
    }

    /// The checked federation and, where `needed`, the selection probabilities.
    pub fn check(
        mut self,
        file: Option<&Path>,
        needed: bool,
    ) -> Result<(Federation, Vec<f64>), Error> {
        let refuse =
            |problem: &dyn fmt::Display| Error::request(format!("{}: {problem}", source(file)));
        let groups = self.groups().map_err(|problem| refuse(&problem))?;
        let federation = self.spec.check().map_err(|error| refuse(&error))?;
        let federation = match groups {
            None => federation,
            Some(groups) => federation.with_groups(groups).map_err(|error| refuse(&error))?,
        };
        if needed {
            for (client, value) in self.selection.iter().enumerate() {
                let id = federation.id(client);
                if value.is_nan() {
                    return Err(refuse(&format!(
                        "client {id:?}: selection is missing; evaluate needs one for every client"
                    )));
                }
                if !(0.0..=1.0).contains(value) {
                    return Err(refuse(&format!(
                        "client {id:?}: selection must be a probability from 0 to 1, is {}",
                        fedcote_support::readable(*value)
                    )));
                }
            }
        }
        Ok((federation, self.selection))
    }

    /// Notes the group that the next client names.
    fn name_group(&mut self, name: Option<&str>) {
        let next = self.named.len();
        let group = name.map(|name| *self.named.entry(name.to_owned()).or_insert(next));
        self.group.push(group);
    }

    fn read_csv(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        let with_selection = header.get(2) == Some("selection");
        let unlabelled = if with_selection { 3 } else { 2 };
        let with_group = header.get(unlabelled) == Some("group");
        let fixed = unlabelled + usize::from(with_group);
        let right = header.len() > fixed
            && header.get(0) == Some("id")
            && header.get(1) == Some("failure")
            && header.iter().skip(fixed).enumerate().all(|(c, name)| name == format!("label_{c}"));
        if !right {
            let found: String =
                header.iter().collect::<Vec<_>>().join(",").chars().take(80).collect();
            return Err(format!(
                "line 1: the header must be id,failure,label_0,label_1,… (with selection after failure for evaluate, then group for clients that fail together), is {found:?}"
            ));
        }
        self.spec.classes = header.len() - fixed;
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(|error| error.to_string())? {
            let id = &record[0];
            let number = |column: usize| -> Result<f64, String> {
                let field = &header[column];
                let text = &record[column];
                text.parse().map_err(|_| {
                    let line = line_of(bytes, &record);
                    format!("line {line}: client {id:?}: {field} must be a number, is {text:?}")
                })
            };
            self.ids.push(id.to_owned());
            self.spec.failure.push(number(1)?);
            self.selection.push(if with_selection { number(2)? } else { f64::NAN });
            let group = Some(&record[unlabelled]).filter(|name| with_group && !name.is_empty());
            self.name_group(group);
            self.lines.push(line_of(bytes, &record));
            for column in fixed..header.len() {
                self.spec.counts.push(number(column)?);
            }
        }
        Ok(())
    }
}

/// The line of a record; the reader's position is before the empty lines that it skips.
fn line_of(bytes: &[u8], record: &csv::StringRecord) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let rest = bytes.get(position.byte() as usize..).unwrap_or_default();
    let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + skipped.filter(|byte| **byte == b'\n').count() as u64
}

/// What to call the input in a message.
pub fn source(file: Option<&Path>) -> String {
    match file.filter(|path| *path != Path::new("-")) {
        Some(path) => path.display().to_string(),
        None => "standard input".into(),
    }
}

/// The whole JSON document.
struct Document<'a>(&'a mut Problem);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with selected, threshold, groups and clients")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(problem) = self;
        let (mut clients, mut groups) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            let name = |error: A::Error| de::Error::custom(format!("{key}: {error}"));
            match key.as_str() {
                "selected" => problem.selected = Some(map.next_value().map_err(name)?),
                "threshold" => problem.threshold = Some(map.next_value().map_err(name)?),
                "groups" if groups => return Err(de::Error::duplicate_field("groups")),
                "groups" => {
                    groups = true;
                    map.next_value_seed(Failures(&mut problem.groups)).map_err(name)?;
                    problem.groups.sort_by(|a, b| a.0.cmp(&b.0));
                }
                "clients" if clients => return Err(de::Error::duplicate_field("clients")),
                "clients" => {
                    clients = true;
                    map.next_value_seed(Clients(problem))?;
                }
                _ => {
                    let known = &["selected", "threshold", "groups", "clients"];
                    return Err(de::Error::unknown_field(&key, known));
                }
            }
        }
        if clients { Ok(()) } else { Err(de::Error::missing_field("clients")) }
    }
}

/// How often each group is down.
struct Failures<'a>(&'a mut Vec<(String, f64)>);

impl<'de> DeserializeSeed<'de> for Failures<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Failures<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with the probability that each group is down")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(de::Error::custom(format!("{name:?} is given twice")));
            }
            self.0.push((name, map.next_value()?));
        }
        Ok(())
    }
}

/// The list of clients.
struct Clients<'a>(&'a mut Problem);

impl<'de> DeserializeSeed<'de> for Clients<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Clients<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of clients")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Client(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

/// One client.
struct Client<'a>(&'a mut Problem);

impl<'de> DeserializeSeed<'de> for Client<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Client<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a client: an object with id, labels and failure")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(problem) = self;
        let index = problem.spec.failure.len();
        let (mut id, mut labels, mut failure, mut selection) = (None, None, None, None);
        let mut group: Option<String> = None;
        // A client's name in messages: its id once read, its place until then.
        let name = |id: &Option<String>| match id {
            Some(id) => format!("client {id:?}"),
            None => format!("client {}", index + 1),
        };
        while let Some(key) = map.next_key::<Field>()? {
            let twice = match key {
                Field::Id => id.is_some(),
                Field::Labels => labels.is_some(),
                Field::Failure => failure.is_some(),
                Field::Selection => selection.is_some(),
                Field::Group => group.is_some(),
            };
            let field = key.name();
            let who = name(&id);
            if twice {
                return Err(de::Error::custom(format!("{who}: {field} is given twice")));
            }
            let place = |error: A::Error| de::Error::custom(format!("{who}: {field}: {error}"));
            match key {
                Field::Id => id = Some(map.next_value().map_err(place)?),
                Field::Failure => failure = Some(map.next_value::<f64>().map_err(place)?),
                Field::Selection => selection = Some(map.next_value::<f64>().map_err(place)?),
                Field::Group => group = map.next_value().map_err(place)?,
                Field::Labels => {
                    let counts = &mut problem.spec.counts;
                    labels = Some(map.next_value_seed(Numbers(counts)).map_err(place)?);
                }
            }
        }
        let missing = |field: &str| de::Error::custom(format!("{}: {field} is missing", name(&id)));
        let labels = labels.ok_or_else(|| missing("labels"))?;
        let failure = failure.ok_or_else(|| missing("failure"))?;
        if index == 0 {
            problem.spec.classes = labels;
        } else if problem.spec.classes != labels {
            return Err(de::Error::custom(format!(
                "{}: labels: expected {} counts as for the first client, found {labels}",
                name(&id),
                problem.spec.classes
            )));
        }
        let named = index == 0 || !problem.ids.is_empty();
        if (index > 0 || id.is_some()) && id.is_some() != named {
            return Err(de::Error::custom(format!(
                "client {}: id: either every client has one or none",
                index + 1
            )));
        }
        problem.ids.extend(id);
        problem.name_group(group.as_deref());
        problem.spec.failure.push(failure);
        problem.selection.push(selection.unwrap_or(f64::NAN));
        Ok(())
    }
}

/// Numbers appended to an array; yields how many.
struct Numbers<'a>(&'a mut Vec<f64>);

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let before = self.0.len();
        while let Some(value) = list.next_element()? {
            self.0.push(value);
        }
        Ok(self.0.len() - before)
    }
}

/// The keys of a client.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Id,
    Labels,
    Failure,
    Selection,
    Group,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Labels => "labels",
            Self::Failure => "failure",
            Self::Selection => "selection",
            Self::Group => "group",
        }
    }
}

#[cfg(test)]
mod fuzz;
