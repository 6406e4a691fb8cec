//! `docs/reference/scenario.md`: every key of a scenario, from the types that read it.
//!
//! The text of a key is the documentation of its field, its default comes from a scenario that says nothing, and the
//! list of keys is compared with the one that the program itself knows.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use crate::{generated, root};

/// A table of a scenario: its path, what it is, and the types whose fields are its keys, each with its source file.
struct Section {
    table: &'static str,
    about: &'static str,
    types: &'static [(&'static str, &'static str)],
}

const GENERAL: &str = "crates/fedcote-sim/src/scenario/mod.rs";
const DATA: &str = "crates/fedcote-learn/src/data/spec.rs";
const NETWORK: &str = "crates/fedcote-radio/src/config.rs";
const STANDARD: &str = "crates/fedcote-radio/src/standard.rs";
const HOSTILE: &str = "crates/fedcote-sim/src/hostile.rs";
const SCHEME: &str = "crates/fedcote-sim/src/scheme/config.rs";

const SECTIONS: [Section; 12] = [
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
        table: "training",
        about: "What a client does in a round.",
        types: &[(GENERAL, "Training")],
    },
    Section {
        table: "network",
        about: "Whose uploads fail, and what the server knows of it ([guide](../guide/network.md)).",
        types: &[(NETWORK, "NetworkConfig"), (GENERAL, "Server")],
    },
    Section {
        table: "network.stragglers",
        about: "Clients that compute for a random time and may be late.",
        types: &[(NETWORK, "Stragglers")],
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
        table: "server",
        about: "What the server does about updates that are too long.",
        types: &[(HOSTILE, "Guard")],
    },
    Section {
        table: "hostile",
        about: "Clients that upload something else than what they learnt.",
        types: &[(HOSTILE, "Hostile")],
    },
    Section {
        table: "scheme.NAME",
        about: "Parameters of a named scheme, or a new mixture of parts ([guide](../guide/adding-a-scheme.md)).",
        types: &[(SCHEME, "SchemeConfig")],
    },
];

/// Where types that are a choice of words are looked for.
const CHOICES: [&str; 7] = [
    DATA,
    NETWORK,
    GENERAL,
    HOSTILE,
    "crates/fedcote-learn/src/models/mod.rs",
    "crates/fedcote/src/procedure.rs",
    "crates/fedcote-sim/src/scheme/kinds.rs",
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
                    "a word, below".to_owned()
                }
                true => plain(kind),
            };
            text +=
                &format!("| `{name}` | {shown} | {default} | {} |\n", about.replace('|', "\\|"));
        }
        text += &explained;
        same_keys(table, &fields);
    }
    text += "\n## Estimators\n\n\
             `network.estimator` is a name, or a table such as `{ kind = \"beta\", retention = 0.9 }`:\n\n\
             | kind | key | |\n|---|---|---|\n";
    for (variant, entry) in estimators() {
        text += &format!("| `\"{variant}\"` | `{}` | {} |\n", entry.name, entry.about);
    }
    text += "\n## Named schemes\n\n| name | |\n|---|---|\n";
    for (name, about) in schemes() {
        text += &format!("| `{name}` | {about} |\n");
    }
    generated("docs/reference/scenario.md", &text);
}

/// A key or a value, and what the source says about it.
struct Entry {
    name: String,
    kind: String,
    about: String,
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
fn defaults() -> BTreeMap<(String, String), String> {
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

/// The named schemes and what each is.
fn schemes() -> Vec<(String, String)> {
    let file = root().join("crates/fedcote-sim/src/scheme/named.rs");
    let text = std::fs::read_to_string(file).expect("a source file");
    let list = text.split("] = [").nth(1).and_then(|rest| rest.split("\n];").next());
    let texts: Vec<&str> = list.expect("the list").split('"').skip(1).step_by(2).collect();
    assert!(texts.len() > 30 && texts.len().is_multiple_of(2));
    texts.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
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
fn fields(file: &str, name: &str) -> Vec<Entry> {
    entries(&item(file, name), |line| {
        let (name, kind) = line.strip_prefix("pub ")?.strip_suffix(',')?.split_once(": ")?;
        Some((name.to_owned(), kind.to_owned()))
    })
}

/// The values of a choice, as a scenario spells them; none for another type.
fn variants(name: &str) -> Vec<Entry> {
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

/// What a key is, and the default that the text names (`; X unless told`, `Default: X.`).
fn apart(about: &str) -> (String, String) {
    if let Some((before, after)) = about.split_once(" unless told") {
        let (before, default) = before.rsplit_once("; ").expect("`; X unless told`");
        return (format!("{before}{after}"), default.trim_end_matches(',').to_owned());
    }
    match about.split_once(" Default: ") {
        Some((before, default)) => (before.to_owned(), default.trim_end_matches('.').to_owned()),
        None => (about.to_owned(), String::new()),
    }
}

/// Estimators are values with keys of their own.
fn estimators() -> Vec<(String, Entry)> {
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
fn inner(kind: &str) -> &str {
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
        "PerClient" => "number, or a list with one a client",
        "Vec<[f64; 2]>" => "list of pairs",
        "Vec<(u32, f64)>" => "list of pairs",
        "LocalSteps" => "whole number, or `[low, high]`",
        "EstimatorKind" => "name or table, below",
        "Stragglers" => "table, below",
        "BTreeMap<String, StationConfig>" | "BTreeMap<String, StandardConfig>" => "tables, below",
        "Vec<ShadowingRange>" => "list of tables, below",
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
        table => format!("[{table}]\nqqqqqqqqqqqqqqqqqqqqqqqqqqqq = 1"),
    };
    let refused = String::from_utf8(ask(&wrong).stderr).expect("text");
    let (_, known) = refused.split_once("expected one of ").unwrap_or_else(|| panic!("{refused}"));
    let known: Vec<&str> = known.trim_end().split(", ").collect();
    for Entry { name, .. } in fields {
        assert!(known.contains(&name.as_str()), "[{table}] {name} is no key: {refused}");
    }
    let tables = ["data", "model", "training", "network", "server", "hostile", "scheme"];
    for name in known {
        let told = fields.iter().any(|field| field.name == name) || tables.contains(&name);
        assert!(told, "[{table}] {name} is not explained");
    }
}
