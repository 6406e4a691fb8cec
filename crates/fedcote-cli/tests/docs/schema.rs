//! `crates/fedcote-cli/src/schema.json`, which `fedcote schema` prints: the JSON schema of scenario files, from what the reference is
//! made of. It knows names, types and words; what must hold between values is for the program to say.

use std::collections::BTreeMap;

use fedcote_sim::scheme::{NAMED, Parameter, parameters};
use serde_json::{Map, Value, json};

use crate::generated;
use crate::scenario::{Entry, SECTIONS, apart, defaults, estimators, fields, inner, variants};

#[test]
fn the_schema_is_up_to_date() {
    let defaults = defaults();
    let mut tables: BTreeMap<&str, Value> = BTreeMap::new();
    for section in &SECTIONS {
        let all = section.types.iter().flat_map(|(file, name)| fields(file, name));
        let property = |Entry { name, kind, about }: Entry| {
            let mut value = of(&kind);
            let (about, _) = apart(&about);
            if about.contains("counted from 1") {
                value["items"]["minimum"] = json!(1);
            }
            value["description"] = json!(about);
            let default = defaults.get(&(section.table.to_owned(), name.clone()));
            if let Some(default) = default.and_then(|text| default_of(text)) {
                value["default"] = default;
            }
            (name, value)
        };
        let about = section.about.split(" ([guide]").next().unwrap_or_default();
        tables.insert(section.table, object(about, all.map(property).collect()));
    }
    let mut take = |name: &str| tables.remove(name).expect("a section");
    let named = |about: &str, inner: Value| json!({"type": "object", "description": about, "additionalProperties": inner});
    let mut standard = take("network.standards.NAME");
    standard["properties"]["shadowing"] =
        json!({"type": "array", "items": take("network.standards.NAME.shadowing")});
    let mut network = take("network");
    for (key, value) in [
        ("standards", named("Standards of your own, or changes to known ones.", standard)),
        ("stations", named("Stations of your own.", take("network.stations.NAME"))),
        ("stragglers", take("network.stragglers")),
        ("availability", take("network.availability")),
        (
            "groups",
            named(
                "Clients that fail together, by the name of their group.",
                take("network.groups.NAME"),
            ),
        ),
    ] {
        assert!(network["properties"].get(key).is_some(), "[network] {key}");
        network["properties"][key] = value;
    }
    let mut clock = take("clock");
    clock["properties"]["devices"] = json!({"type": "array", "items": take("clock.devices")});
    let mut top = take("");
    top["properties"]["clock"] = clock;
    top["properties"]["network"] = network;
    for name in tables.keys().copied().collect::<Vec<_>>() {
        assert!(!name.contains('.'), "say in schema.rs where [{name}] is");
        top["properties"][name] = tables.remove(name).expect("it is there");
    }
    let schemes: Vec<&str> = NAMED.iter().map(|named| named.name).collect();
    top["properties"]["schemes"]["items"] = json!({"type": "string", "examples": schemes});
    top["properties"]["scheme"] =
        named("Parameters of schemes, and mixtures under new names.", scheme());
    top["properties"]["sweep"] = json!({
        "type": "object",
        "description": "Keys of other tables, as dotted names in quotes, each with a list of values: all combinations are run.",
        "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1}, {"type": "object"}]},
    });
    top["properties"]["version"] =
        json!({"type": "string", "description": "The version that wrote the file; not read."});
    top["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    top["title"] = json!("FedCote scenario");
    let text = serde_json::to_string_pretty(&top).expect("plain data") + "\n";
    generated("crates/fedcote-cli/src/schema.json", &text);
}

fn object(about: &str, properties: Map<String, Value>) -> Value {
    json!({"type": "object", "description": about, "additionalProperties": false, "properties": properties})
}

/// What a user may write for a type.
fn of(kind: &str) -> Value {
    let words = variants(inner(kind));
    if !words.is_empty() {
        let words = words.into_iter().map(|word| (word.name, word.about));
        return choice(&words.collect::<Vec<_>>());
    }
    let list = |items: Value| json!({"type": "array", "items": items});
    let (number, whole) = (json!({"type": "number"}), json!({"type": "integer", "minimum": 0}));
    let pair =
        |items: &Value| json!({"type": "array", "items": items, "minItems": 2, "maxItems": 2});
    let any = |all: &[Value]| json!({"anyOf": all});
    match inner(kind) {
        "u32" | "u64" | "usize" => whole,
        "f64" => number,
        "bool" => json!({"type": "boolean"}),
        "String" | "PathBuf" => json!({"type": "string"}),
        "Vec<String>" => list(json!({"type": "string"})),
        "Vec<u32>" | "Vec<u64>" | "Vec<usize>" => list(whole),
        "PerClient" => any(&[number.clone(), list(number)]),
        "Vec<[f64; 2]>" | "Vec<(u32, f64)>" => list(pair(&number)),
        "LocalSteps" => any(&[whole.clone(), pair(&whole)]),
        "Selected" => any(&[whole, json!({"const": "all"})]),
        "ServerRate" => any(&[number, json!({"const": "auto"})]),
        "Chance" => any(&[number.clone(), list(number), json!({"type": "string"})]),
        "EstimatorKind" => estimator(),
        // Put in from sections of their own.
        "Stragglers" | "AvailabilityConfig" | "Table" => json!({"type": "object"}),
        "BTreeMap<String, StationConfig>"
        | "BTreeMap<String, StandardConfig>"
        | "BTreeMap<String, GroupConfig>" => json!({"type": "object"}),
        "Vec<ShadowingRange>" | "Vec<Device>" => list(json!({"type": "object"})),
        other => panic!("say in schema.rs what a user writes for a {other}"),
    }
}

fn choice(words: &[(String, String)]) -> Value {
    let one = |(word, about): &(String, String)| json!({"const": word, "description": about});
    json!({"oneOf": words.iter().map(one).collect::<Vec<_>>()})
}

/// A name, or a table with the keys of that kind.
fn estimator() -> Value {
    let mut kinds: Vec<(String, Map<String, Value>)> = Vec::new();
    for (kind, Entry { name, kind: key, about }) in estimators() {
        if kinds.iter().all(|(other, _)| *other != kind) {
            kinds.push((
                kind.clone(),
                Map::from_iter([("kind".to_owned(), json!({"const": kind}))]),
            ));
        }
        let mut value = of(&key);
        value["description"] = json!(about);
        kinds.last_mut().expect("just added").1.insert(name, value);
    }
    let names: Vec<&String> = kinds.iter().map(|(kind, _)| kind).collect();
    let mut all = vec![json!({"enum": names})];
    all.extend(kinds.iter().map(|(_, keys)| {
        let mut table = object("", keys.clone());
        table["required"] = json!(["kind"]);
        table
    }));
    json!({"anyOf": all})
}

/// The table of a scheme: a key that several parts read may be what any of them takes.
fn scheme() -> Value {
    let mut keys: BTreeMap<&str, (Vec<Value>, Vec<String>)> = BTreeMap::new();
    for Parameter { key, about, kind, range, words, .. } in parameters() {
        let mut value = match words {
            [] => of(kind),
            words => {
                let words = words.iter().map(|(word, about)| ((*word).into(), (*about).into()));
                choice(&words.collect::<Vec<_>>())
            }
        };
        if let Some(range) = &range {
            let numbers: Vec<f64> = range.split(' ').filter_map(|word| word.parse().ok()).collect();
            if value.get("type").is_some() && !numbers.is_empty() {
                value["minimum"] = json!(numbers[0]);
                if range.starts_with("from ") && numbers.len() == 2 {
                    value["maximum"] = json!(numbers[1]);
                }
            }
        }
        let (values, abouts) = keys.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
        if !abouts.contains(&about) {
            abouts.push(about);
        }
    }
    let property = |(key, (mut values, abouts)): (&str, (Vec<Value>, Vec<String>))| {
        let mut value = if values.len() == 1 { values.remove(0) } else { json!({"anyOf": values}) };
        value["description"] = json!(abouts.join(" "));
        (key.to_owned(), value)
    };
    object("", keys.into_iter().map(property).collect())
}

/// A default as TOML prints it, when JSON has it, too.
fn default_of(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}
