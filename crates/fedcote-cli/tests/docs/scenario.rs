//! `docs/reference/scenario.md`: every key of a scenario, from the types that read it.
//!
//! The text of a key is the documentation of its field, its default comes from a scenario that says nothing, and the
//! list of keys is compared with the one that the program itself knows.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use fedcote_sim::scheme::{NAMED, Named, Parameter, parameters};

use crate::{generated, root};

/// A table of a scenario: its path, what it is, and the types whose fields are its keys, each with its source file.
pub(crate) struct Section {
    pub(crate) table: &'static str,
    pub(crate) about: &'static str,
    pub(crate) types: &'static [(&'static str, &'static str)],
}

const GENERAL: &str = "crates/fedcote-sim/src/scenario/mod.rs";
const DATA: &str = "crates/fedcote-learn/src/data/spec.rs";
const NETWORK: &str = "crates/fedcote-radio/src/config.rs";
const AVAILABILITY: &str = "crates/fedcote-radio/src/availability/config.rs";
const STANDARD: &str = "crates/fedcote-radio/src/standard.rs";
const HOSTILE: &str = "crates/fedcote-sim/src/hostile.rs";
const SERVER: &str = "crates/fedcote-sim/src/scenario/server.rs";

const CLOCK: &str = "crates/fedcote-sim/src/scenario/clock.rs";

pub(crate) const SECTIONS: [Section; 16] = [
    Section {
        table: "",
        about: "The length of the comparison, who takes part, what is compared.",
        types: &[(GENERAL, "General")],
    },
    Section {
        table: "data",
        about: "Which samples, and how clients share them ([guide](../guide/data.md)).",
        types: &[(DATA, "DataSpec")],
    },
    Section {
        table: "model",
        about: "What is trained.",
        types: &[("crates/fedcote-learn/src/models/mod.rs", "ModelSpec")],
    },
    Section {
        table: "task",
        about: "What is learnt instead, in Python ([guide](../guide/own-task.md)); for the command of the Python package.",
        types: &[("crates/fedcote-sim/src/scenario/own.rs", "OwnTask")],
    },
    Section {
        table: "training",
        about: "What a client does in a round.",
        types: &[(GENERAL, "Training")],
    },
    Section {
        table: "network",
        about: "Whose uploads fail, and what the server knows of it ([guide](../guide/network.md)).",
        types: &[(NETWORK, "NetworkConfig"), (SERVER, "Observation")],
    },
    Section {
        table: "network.stragglers",
        about: "Clients that compute for a random time and may be late.",
        types: &[(NETWORK, "Stragglers")],
    },
    Section {
        table: "network.availability",
        about: "Clients that come and go, on top of any kind of network ([guide](../guide/network.md#clients-that-come-and-go)).",
        types: &[(AVAILABILITY, "AvailabilityConfig")],
    },
    Section {
        table: "network.groups.NAME",
        about: "Clients that fail together, because an access point, relay or cell is down ([guide](../guide/network.md#clients-that-fail-together)).",
        types: &[(NETWORK, "GroupConfig")],
    },
    Section {
        table: "network.stations.NAME",
        about: "A station of your own, for standards to name.",
        types: &[(NETWORK, "StationConfig")],
    },
    Section {
        table: "network.standards.NAME",
        about: "A standard of your own, or changes to `wifi24`, `wifi5`, `4g` or `5g`.",
        types: &[(STANDARD, "StandardConfig")],
    },
    Section {
        table: "network.standards.NAME.shadowing",
        about: "A list of ranges of distance that together cover every distance once.",
        types: &[(STANDARD, "ShadowingRange")],
    },
    Section {
        table: "clock",
        about: "How long things take on the simulated clock ([guide](../guide/costs.md)).",
        types: &[(CLOCK, "ClockConfig")],
    },
    Section {
        table: "clock.devices",
        about: "A list of kinds of devices.",
        types: &[(CLOCK, "Device")],
    },
    Section { table: "server", about: "What the server does.", types: &[(SERVER, "Server")] },
    Section {
        table: "hostile",
        about: "Clients that upload something else than what they learnt.",
        types: &[(HOSTILE, "Hostile")],
    },
];

/// Where types that are a choice of words are looked for.
const CHOICES: [&str; 8] = [
    AVAILABILITY,
    DATA,
    NETWORK,
    GENERAL,
    HOSTILE,
    SERVER,
    "crates/fedcote-learn/src/models/mod.rs",
    "crates/fedcote/src/procedure.rs",
];

#[test]
fn the_scenario_reference_is_up_to_date() {
    let mut text = String::from(
        "# Scenario files: every key\n\n\
         Written by `cargo xtask docs` from the types that read a scenario. Everything has a default, and an unknown \
         key is\n\
         refused. `fedcote run SCENARIO --print-config` prints a scenario with everything filled in, \
         `--set table.key=value`\n\
         overrides a key. The guides ([first scenario](../guide/first-scenario.md), [data](../guide/data.md),\n\
         [network](../guide/network.md)) explain; this page lists.\n",
    );
    let defaults = defaults();
    for Section { table, about, types } in SECTIONS {
        let heading =
            if table.is_empty() { "Top of the file".into() } else { format!("`[{table}]`") };
        text += &format!("\n## {heading}\n\n{about}\n\n");
        text += "| key | value | default | |\n|---|---|---|---|\n";
        let mut explained = String::new();
        let fields: Vec<Entry> = types.iter().flat_map(|(file, name)| fields(file, name)).collect();
        for Entry { name, kind, about } in &fields {
            let default = defaults.get(&(table.to_owned(), name.clone()));
            let (about, told) = apart(about);
            let default = default.map_or(told, |value| format!("`{value}`"));
            let variants = variants(inner(kind));
            let shown = match variants.is_empty() {
                false => {
                    explained += &format!("\n`{name}`:\n\n");
                    for variant in variants {
                        explained += &format!("- `\"{}\"`: {}\n", variant.name, variant.about);
                    }
                    "one of the values below".to_owned()
                }
                true => plain(kind),
            };
            text +=
                &format!("| `{name}` | {shown} | {default} | {} |\n", about.replace('|', "\\|"));
        }
        text += &explained;
        same_keys(table, &fields);
    }
    text += &schemes();
    text += "\n## `[sweep]`\n\n\
             Keys of the tables above, written as dotted names in quotes, each with a list of values: the comparison is run with \
             every\ncombination ([guide](../guide/sweeps.md)).\n\n\
             ```toml\n[sweep]\n\"network.outdoor_excess_loss_db\" = [0, 10, 20, 26]\n```\n";
    text += "\n## Estimators\n\n\
             `network.estimator` is a name, or a table such as `{ kind = \"beta\", retention = 0.9 }`:\n\n\
             | kind | key | |\n|---|---|---|\n";
    for (variant, entry) in estimators() {
        text += &format!("| `\"{variant}\"` | `{}` | {} |\n", entry.name, entry.about);
    }
    text += "\n## Named schemes\n\nWhat the table of a named scheme does not say is as in `fedavg`: `selection = \"weights\"`, \
             `local = \"sgd\"`, `aggregation = \"mean\"`, `failures = \"network\"`.\n\n\
             | name | | its table |\n|---|---|---|\n";
    for Named { name, about, table } in NAMED {
        let table = if table.is_empty() { String::new() } else { format!("`{table}`") };
        text += &format!("| `{name}` | {about} | {table} |\n");
    }
    generated("docs/reference/scenario.md", &text);
}

/// A key or a value, and what the source says about it.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) about: String,
}

/// What the program says about a scenario.
fn ask(scenario: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("scenario.toml"), scenario).expect("written");
    Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(["run", "scenario.toml", "--print-config"])
        .current_dir(folder.path())
        .output()
        .expect("the command starts")
}

/// Values by table and key in a scenario that says nothing.
pub(crate) fn defaults() -> BTreeMap<(String, String), String> {
    let printed = String::from_utf8(ask("").stdout).expect("text");
    let mut table = String::new();
    let mut found = BTreeMap::new();
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = name.to_owned();
        } else if let Some((key, value)) = line.split_once(" = ") {
            found.insert((table.clone(), key.to_owned()), value.to_owned());
        }
    }
    assert!(found.len() > 30, "defaults are printed: {printed}");
    found
}

/// The `[scheme.NAME]` table: parts and their parameters, as the parts declare them.
fn schemes() -> String {
    let mut text = String::from(
        "\n## `[scheme.NAME]`\n\n\
         Parameters of a named scheme, or a new mixture of parts ([guide](../guide/adding-a-scheme.md)). A parameter that no part \
         of the scheme reads is refused.\n\n\
         | key | value | default | read with | |\n|---|---|---|---|---|\n",
    );
    let mut explained = String::new();
    let mut entries: Vec<Entry> = Vec::new();
    let all = parameters();
    for first in &all {
        if entries.iter().any(|entry| entry.name == first.key) {
            continue;
        }
        let same: Vec<&Parameter> = all.iter().filter(|other| other.key == first.key).collect();
        let words: Vec<(String, String)> = match first.words {
            [] => variants(inner(first.kind)).into_iter().map(|v| (v.name, v.about)).collect(),
            words => words.iter().map(|(word, about)| ((*word).into(), (*about).into())).collect(),
        };
        let value = match (words.is_empty(), &first.range) {
            (false, _) => "one of the values below".to_owned(),
            (true, None) => plain(first.kind),
            (true, Some(range)) if range.starts_with("a number") => {
                range.trim_start_matches("a ").to_owned()
            }
            (true, Some(range)) => format!("{}, {range}", plain(first.kind)),
        };
        if !words.is_empty() {
            explained += &format!("\n`{}`:\n\n", first.key);
            for (word, about) in words {
                explained += &format!("- `\"{word}\"`: {about}\n");
            }
        }
        let mut abouts: Vec<&str> = Vec::new();
        for other in &same {
            if !abouts.contains(&other.about.as_str()) {
                abouts.push(&other.about);
            }
        }
        let (default, about) = (defaults_of(&same), abouts.join(" "));
        text += &format!(
            "| `{}` | {value} | {default} | {} | {about} |\n",
            first.key,
            read_with(&same)
        );
        entries.push(Entry { name: first.key.into(), kind: String::new(), about: String::new() });
    }
    same_keys("scheme.NAME", &entries);
    text + &explained
}

/// The default of a parameter, and where it is another one.
fn defaults_of(same: &[&Parameter]) -> String {
    let Some(usual) = &same[0].default else { return String::new() };
    let mut text = format!("`{usual}`");
    for other in same.iter().filter(|other| other.default.as_ref() != Some(usual)) {
        let default = other.default.as_deref().unwrap_or("none");
        text += &format!(", `{}`: `{default}`", other.given[0].1);
    }
    text
}

/// The choices with which a parameter is read.
fn read_with(same: &[&Parameter]) -> String {
    let words = |p: &&Parameter| p.given.iter().map(|(_, word)| format!("`{word}`")).collect();
    let all: Vec<Vec<String>> = same.iter().map(words).collect();
    all.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(", ")
}

/// The lines of the item with this name, without the first and the last; none if the file has no such item.
fn item(file: &str, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(file)).expect("a source file");
    let starts = |line: &&str| {
        let line = line.trim();
        [format!("pub struct {name} {{"), format!("pub enum {name} {{"), format!("{name} {{")]
            .iter()
            .any(|start| line == start)
    };
    let Some(begin) = text.lines().find(starts) else { return Vec::new() };
    let end = " ".repeat(begin.len() - begin.trim_start().len()) + "}";
    let after = text.lines().skip_while(|line| *line != begin).skip(1);
    after.take_while(|line| *line != end).map(str::to_owned).collect()
}

/// Fields of a type with their documentation.
pub(crate) fn fields(file: &str, name: &str) -> Vec<Entry> {
    entries(&item(file, name), |line| {
        let (name, kind) = line.strip_prefix("pub ")?.strip_suffix(',')?.split_once(": ")?;
        Some((name.to_owned(), kind.to_owned()))
    })
}

/// The values of a choice, as a scenario spells them; none for another type.
pub(crate) fn variants(name: &str) -> Vec<Entry> {
    let lines = CHOICES.iter().map(|file| item(file, name)).find(|lines| !lines.is_empty());
    entries(&lines.unwrap_or_default(), |line| {
        let variant = line.strip_suffix(',')?;
        Some((variant.chars().all(char::is_alphanumeric).then(|| kebab(variant))?, String::new()))
    })
}

fn entries(lines: &[String], read: impl Fn(&str) -> Option<(String, String)>) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut about = Vec::new();
    for line in lines.iter().map(|line| line.trim()) {
        if let Some(said) = line.strip_prefix("///") {
            about.push(said.trim().to_owned());
        } else if let Some((name, kind)) = read(line) {
            found.push(Entry { name, kind, about: std::mem::take(&mut about).join(" ") });
        }
    }
    found
}

/// What a key is, and the default that the text names (`; default X.`, `Default: X.`).
pub(crate) fn apart(about: &str) -> (String, String) {
    if let Some((before, after)) = about.split_once("; default ") {
        let (default, rest) = after.split_once(". ").unwrap_or((after.trim_end_matches('.'), ""));
        return (format!("{before}. {rest}").trim_end().to_owned(), default.to_owned());
    }
    match about.split_once(" Default: ") {
        Some((before, default)) => (before.to_owned(), default.trim_end_matches('.').to_owned()),
        None => (about.to_owned(), String::new()),
    }
}

/// Estimators are values with keys of their own.
pub(crate) fn estimators() -> Vec<(String, Entry)> {
    let lines = item("crates/fedcote/src/estimate/mod.rs", "EstimatorKind");
    let mut found = Vec::new();
    let mut rest = &lines[..];
    while let Some(at) = rest.iter().position(|line| line.trim_end().ends_with(" {")) {
        let variant = rest[at].trim().trim_end_matches(" {").to_lowercase();
        let length = rest[at..].iter().position(|line| line.trim() == "},").expect("an end");
        let fields = entries(&rest[at + 1..at + length], |line| {
            let (name, kind) = line.strip_suffix(',')?.split_once(": ")?;
            Some((name.to_owned(), kind.to_owned()))
        });
        found.extend(fields.into_iter().map(|field| (variant.clone(), field)));
        rest = &rest[at + length..];
    }
    assert!(found.len() >= 8, "the estimators' keys are read");
    found
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// The type inside `Option<…>`, without its path.
pub(crate) fn inner(kind: &str) -> &str {
    let kind = kind.strip_prefix("Option<").and_then(|k| k.strip_suffix('>')).unwrap_or(kind);
    kind.rsplit("::").next().unwrap_or(kind)
}

/// A type in the words of a scenario.
fn plain(kind: &str) -> String {
    match inner(kind) {
        "u32" | "u64" | "usize" => "whole number",
        "f64" => "number",
        "bool" => "`true` or `false`",
        "String" | "PathBuf" => "text",
        "Vec<String>" => "list of texts",
        "Vec<u32>" | "Vec<u64>" | "Vec<usize>" => "list of whole numbers",
        "PerClient" => "number, or a list with one per client",
        "Vec<[f64; 2]>" => "list of pairs",
        "Vec<(u32, f64)>" => "list of pairs",
        "LocalSteps" => "whole number, or `[low, high]`",
        "EstimatorKind" => "name or table, below",
        "Stragglers" | "AvailabilityConfig" => "table, below",
        "Chance" => "number, a list with one per client, or a recipe",
        "Selected" => "whole number, or `\"all\"`",
        "Table" => "table",
        "BTreeMap<String, StationConfig>"
        | "BTreeMap<String, StandardConfig>"
        | "BTreeMap<String, GroupConfig>" => "tables, below",
        "Vec<ShadowingRange>" | "Vec<Device>" => "list of tables, below",
        other => panic!("say in scenario.rs what a user writes for a {other}"),
    }
    .to_owned()
}

/// The program knows exactly these keys.
fn same_keys(table: &str, fields: &[Entry]) {
    let table = table.replace("NAME", "mine");
    let wrong = match table.as_str() {
        "" => "qqqqqqqqqqqqqqqqqqqqqqqqqqqq = 1".to_owned(),
        "network.standards.mine.shadowing" => {
            "[network.standards.mine]\nshadowing = [{ qqqqqqqqqqqqqqqqqqqqqqqqqqqq = 1 }]"
                .to_owned()
        }
        "clock.devices" => "[clock]\ndevices = [{ qqqqqqqqqqqqqqqqqqqqqqqqqqqq = 1 }]".to_owned(),
        table => format!("[{table}]\nqqqqqqqqqqqqqqqqqqqqqqqqqqqq = 1"),
    };
    let refused = String::from_utf8(ask(&wrong).stderr).expect("text");
    let (_, known) = refused.split_once("expected one of ").unwrap_or_else(|| panic!("{refused}"));
    let known: Vec<&str> = known.trim_end().split(", ").collect();
    for Entry { name, .. } in fields {
        assert!(known.contains(&name.as_str()), "[{table}] {name} is no key: {refused}");
    }
    let tables = [
        "data", "model", "task", "training", "network", "clock", "server", "hostile", "scheme",
        "sweep",
    ];
    for name in known {
        let told = fields.iter().any(|field| field.name == name) || tables.contains(&name);
        assert!(told, "[{table}] {name} is not explained");
    }
}
