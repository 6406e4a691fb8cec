//! The form that starts a run: presets, and settings checked by the same code as scenario files.

use std::collections::BTreeMap;
use std::path::Path;

use fedcote_sim::Scenario;
use fedcote_sim::comparison::Seeds;
use fedcote_sim::folder::ScenarioFile;
use fedcote_sim::scenario::{LocalSteps, PRESETS, Preset, Selected};
use fedcote_sim::scheme::NAMED;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::reply::Refusal;
use crate::root::{self, Root};
use crate::runs::{self, MOST_SCENARIO};

/// The settings that the form has. None of them is a path.
pub const SETTINGS: [&str; 17] = [
    "rounds",
    "clients",
    "selected",
    "seeds",
    "schemes",
    "evaluate_every",
    "data.set",
    "model.kind",
    "data.partition",
    "data.unbalance",
    "training.rate",
    "training.local_steps",
    "training.batch",
    "network.outdoor_excess_loss_db",
    "network.mobility",
    "network.knowledge",
    "network.deadline_seconds",
];

/// The most that the page starts: beyond it a command is the better place.
const MOST: [(&str, u64); 5] = [
    ("clients", 100_000),
    ("rounds", 100_000),
    ("selected", 1_000_000),
    ("training.local_steps", 100_000),
    ("training.batch", 100_000),
];

/// What the form sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The run's name.
    pub name: String,
    /// The preset's name; none when it is like a run that is there.
    #[serde(default)]
    pub preset: String,
    /// A run of the folder whose scenario it begins from, instead of a preset's.
    #[serde(default)]
    pub like: Option<String>,
    /// Settings that differ from the preset's, or that run's.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Settings to sweep, each as `fedcote run --sweep` has it: `KEY=V1,V2,…`.
    #[serde(default)]
    pub sweep: Vec<String>,
}

impl Form {
    /// The scenario, and the settings as `key=value`, once they and the name are found right.
    pub fn check(&self, root: &Root) -> Result<(Scenario, Vec<String>), Refusal> {
        let wrong = |field: &str, reason: String| Refusal {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            reason,
            field: Some(field.to_owned()),
        };
        if !root::is_name(&self.name) {
            let reason =
                "a name is one word for a folder: no slash, no colon, no dot or dash in front";
            return Err(wrong("name", reason.into()));
        }
        let (text, base) = match &self.like {
            Some(like) => {
                let run = root.sweep(like).or_else(|| root.run(like));
                let run = run.ok_or_else(|| wrong("preset", format!("no run `{like}`")))?;
                let text = root.read(&run.join(runs::file(&run)), MOST_SCENARIO);
                (text.ok_or_else(|| wrong("preset", format!("`{like}` cannot be read")))?, run)
            }
            None => {
                let Some((preset, walks)) = Preset::find(&self.preset) else {
                    return Err(wrong("preset", format!("no preset `{}`", self.preset)));
                };
                let text = if walks { preset.walking() } else { preset.text.to_owned() };
                (text, ".".into())
            }
        };
        for (key, value) in &self.settings {
            if !SETTINGS.contains(&key.as_str()) {
                return Err(wrong(key, format!("{key} cannot be set here; write a scenario file")));
            }
            if value.len() > 1000 || value.chars().any(char::is_control) {
                return Err(wrong(key, format!("{key}: expected one short line")));
            }
        }
        let mut overrides = Vec::new();
        for (key, value) in &self.settings {
            // Seeds are written as on the command line, or as in a file.
            let listed = key == "seeds" && !value.trim_start().starts_with('[');
            let value = match listed {
                true => {
                    let seeds: Seeds = value
                        .parse()
                        .map_err(|reason: String| wrong("seeds", format!("seeds: {reason}")))?;
                    format!("{:?}", seeds.0)
                }
                false => value.clone(),
            };
            overrides.push(format!("{key}={value}"));
        }
        let mut lines = Vec::new();
        for line in &self.sweep {
            if line.len() > 1000 || line.chars().any(char::is_control) {
                return Err(wrong("sweep", "expected a short line for each key".into()));
            }
            let assignment = fedcote_sim::scenario::sweep_assignment(line);
            lines.push(assignment.map_err(|reason| wrong("sweep", reason))?);
            let key = line.split('=').next().unwrap_or_default().trim();
            if !SETTINGS.contains(&key) {
                let reason = format!("{key} cannot be swept here; write a scenario file");
                return Err(wrong("sweep", reason));
            }
        }
        let set = overrides.clone();
        overrides.extend(lines);
        let scenario = Scenario::parse(&self.origin(root), &text, &overrides, &base);
        let scenario = scenario.map_err(|error| match error {
            fedcote_sim::Error::Scenario { place, reason } => {
                if place.starts_with("--sweep ") || place.starts_with("sweep") {
                    return wrong("sweep", format!("{place}: {reason}"));
                }
                let key = place.strip_prefix("--set ").unwrap_or(&place);
                let key = key.split('=').next().unwrap_or(key).to_owned();
                wrong(&key, format!("{key}: {reason}"))
            }
            other => wrong("preset", other.to_string()),
        })?;
        // Of what was understood, however it is spelt, and wherever it comes from.
        let points = scenario.sweep.points.iter().map(|point| (&point.scenario, true));
        for (scenario, is_swept) in std::iter::once((&scenario, false)).chain(points) {
            for (key, most) in MOST {
                if asked(scenario, key) > most {
                    let remedy = "`fedcote run` has no such limit";
                    let reason = format!("{key}: at most {most} from the page; {remedy}");
                    return Err(wrong(if is_swept { "sweep" } else { key }, reason));
                }
            }
        }
        let swept = |axis: &fedcote_sim::scenario::Axis| {
            self.sweep.iter().any(|line| line.split('=').next().map(str::trim) == Some(&axis.key))
        };
        if let Some(axis) = scenario.sweep.axes.iter().find(|axis| !swept(axis)) {
            let reason =
                format!("{} is swept by what this begins from and must be here, too", axis.key);
            return Err(wrong("sweep", reason));
        }
        let each = scenario.general.schemes.len() * scenario.general.seeds.len();
        let (runs, field) = match scenario.sweep.is_empty() {
            true => (each, "seeds"),
            false => (fedcote_sim::sweep::runs(&scenario), "sweep"),
        };
        if runs > 500 {
            let reason =
                format!("{runs} runs (combinations × schemes × seeds); at most 500 from the page");
            return Err(wrong(field, reason));
        }
        Ok((scenario, set))
    }

    /// What it begins from, in a word.
    pub fn origin(&self, root: &Root) -> String {
        match &self.like {
            Some(like) if root.sweep(like).is_some() => {
                format!("{like}/{}", fedcote_sim::sweep::FILE)
            }
            Some(like) => format!("{like}/{}", ScenarioFile::FILE),
            None => self.preset.clone(),
        }
    }
}

/// How much a scenario asks for of what the page bounds.
fn asked(scenario: &Scenario, key: &str) -> u64 {
    let general = &scenario.general;
    match key {
        "clients" => general.clients as u64,
        "rounds" => general.rounds.into(),
        "selected" => match general.selected {
            Selected::Number(draws) => draws,
            Selected::Everyone(_) => general.clients as u64,
        },
        "training.local_steps" => match scenario.training.local_steps {
            LocalSteps::Same(steps) | LocalSteps::Range([_, steps]) => steps.into(),
        },
        _ => scenario.training.batch as u64,
    }
}

/// What the form shows of a run that it begins from.
pub fn like(root: &Root, run: &Path, name: &str) -> Result<Value, Refusal> {
    let file = runs::file(run);
    let text = root.read(&run.join(file), MOST_SCENARIO);
    let text = text.ok_or_else(|| Refusal::missing("its scenario cannot be read"))?;
    let scenario = Scenario::parse(file, &text, &[], run);
    let scenario = scenario.map_err(|error| {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{name}: {error}"))
    })?;
    let summary = format!("The scenario of {name}, with all that the form does not show");
    let line = |axis: &fedcote_sim::scenario::Axis| {
        let values: Vec<String> = axis.values.iter().map(ToString::to_string).collect();
        format!("{}={}", axis.key, values.join(","))
    };
    let sweep: Vec<String> = scenario.sweep.axes.iter().map(line).collect();
    let mut settings = settings(scenario);
    // What is swept has no one value.
    settings.retain(|key, _| !sweep.iter().any(|line| line.starts_with(&format!("{key}="))));
    Ok(json!({
        "name": format!("like {name}"), "like": name, "summary": summary, "settings": settings, "sweep": sweep,
    }))
}

/// The values of a scenario that the form has.
fn settings(scenario: Scenario) -> BTreeMap<&'static str, String> {
    let table = toml::Value::Table(scenario.to_table());
    let found = SETTINGS.iter().filter_map(|key| {
        let value = key.split('.').try_fold(&table, |table, key| table.get(key))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((*key, text))
    });
    found.collect()
}

/// The presets with places on a map, with their settings, and the schemes.
pub fn choices() -> Value {
    let names = PRESETS.iter().filter(|preset| preset.has_places()).flat_map(|preset| {
        [(preset.name.to_owned(), preset.summary().to_owned()), {
            let summary = format!("{} — with walking clients", preset.summary());
            (format!("{}-dynamic", preset.name), summary)
        }]
    });
    let presets: Vec<Value> = names
        .filter_map(|(name, summary)| {
            let settings = settings(Scenario::load(&name, &[]).ok()?);
            Some(json!({ "name": name, "summary": summary, "settings": settings }))
        })
        .collect();
    let schemes: Vec<Value> =
        NAMED.iter().map(|named| json!({ "name": named.name, "what": named.about })).collect();
    json!({ "presets": presets, "schemes": schemes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(settings: &[(&str, &str)]) -> Form {
        let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Form {
            name: "mine".into(),
            preset: "quickstart".into(),
            like: None,
            settings: settings.iter().map(own).collect(),
            sweep: Vec::new(),
        }
    }

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn every_preset_fills_the_form() {
        let (_folder, root) = root();
        let choices = choices();
        for preset in choices["presets"].as_array().unwrap() {
            let settings = preset["settings"].as_object().unwrap();
            let without: Vec<_> =
                SETTINGS.iter().filter(|key| !settings.contains_key(**key)).collect();
            // Half of the samples is what "nothing said" means.
            assert!(without.is_empty() || without == [&"data.unbalance"], "{without:?}");
            let settings: Vec<(&str, &str)> = settings
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str().unwrap()))
                .collect();
            let form = Form { preset: preset["name"].as_str().unwrap().into(), ..form(&settings) };
            assert!(form.check(&root).is_ok(), "{preset}: {:?}", form.check(&root));
        }
        let placed = PRESETS.iter().filter(|preset| preset.has_places()).count();
        assert_eq!(choices["presets"].as_array().unwrap().len(), 2 * placed);
    }

    #[test]
    fn mistakes_are_told_at_their_field() {
        let (_folder, root) = root();
        for (key, value, reason) in [
            ("rounds", "0", "rounds: must be at least 1"),
            ("rounds", "many", "is not a whole number"),
            ("rounds", "3\nclients = 4", "one short line"),
            ("schemes", "[\"fedcoat\"]", "fedcote"),
            ("seeds", "[]", "at least one seed"),
            ("seeds", "5-1", "starts after its end"),
            ("training.rate", "-1", "positive"),
            ("clients", "1000000", "at most 100000 from the page"),
            // Other spellings of numbers used to pass.
            ("rounds", "4_000_000_000", "at most 100000 from the page"),
            ("rounds", "0x3b9aca00", "at most 100000 from the page"),
            ("selected", "0b1000000000000000000000", "at most 1000000 from the page"),
            ("training.local_steps", "4294967295", "at most 100000 from the page"),
            ("training.local_steps", "[1, 0o777777777]", "at most 100000 from the page"),
            ("training.batch", "+9_000_000", "at most 100000 from the page"),
            ("data.folder", "/etc", "cannot be set here"),
            ("network.mobility", "swim", "is not known"),
        ] {
            let refusal = form(&[(key, value)]).check(&root).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some(key), "{}", refusal.reason);
            assert!(refusal.reason.contains(reason), "{key}: {}", refusal.reason);
        }
        let bad = Form { name: "../x".into(), ..form(&[]) };
        assert_eq!(bad.check(&root).unwrap_err().field.as_deref(), Some("name"));
        let bad = Form { preset: "/etc/passwd".into(), ..form(&[]) };
        assert_eq!(bad.check(&root).unwrap_err().field.as_deref(), Some("preset"));
        assert_eq!(form(&[("rounds", "7")]).check(&root).unwrap().1, ["rounds=7"]);
    }

    #[test]
    fn sweeps_are_written_as_on_the_command_line() {
        let (folder, root) = root();
        let swept = |lines: &[&str]| Form {
            sweep: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..form(&[])
        };
        let good = swept(&["training.rate=0.05,0.1", "data.partition=iid,shards"]);
        let (scenario, set) = good.check(&root).unwrap();
        assert_eq!((scenario.sweep.points.len(), set.len()), (4, 0));
        for (line, reason) in [
            ("training.rate", "expected KEY=V1,V2"),
            ("training.rate=-1,2", "positive"),
            ("data.folder=/etc,/tmp", "cannot be swept here"),
            ("seeds=1,2", "is no setting to sweep"),
            ("rounds=5,1000000", "at most 100000 from the page"),
            (
                "clients=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36",
                "at most 500",
            ),
        ] {
            let refusal = swept(&[line]).check(&root).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("sweep"), "{line}: {}", refusal.reason);
            assert!(refusal.reason.contains(reason), "{line}: {}", refusal.reason);
        }
        // Begun from a sweep, its keys are in the form and stay.
        let path = folder.path().join("swept");
        std::fs::create_dir(&path).unwrap();
        fedcote_sim::sweep::begin(&scenario, &path, "fedcote run").unwrap();
        let shown = like(&root, &path, "swept").unwrap();
        let lines: Vec<String> = serde_json::from_value(shown["sweep"].clone()).unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(shown["settings"].get("training.rate").is_none());
        let again = |lines: &[String]| Form {
            preset: String::new(),
            like: Some("swept".into()),
            sweep: lines.to_vec(),
            ..form(&[])
        };
        assert_eq!(again(&lines).check(&root).unwrap().0.sweep.points.len(), 4);
        let refusal = again(&lines[..1]).check(&root).unwrap_err();
        assert!(refusal.reason.contains("must be here, too"), "{}", refusal.reason);
    }

    #[test]
    fn seeds_are_written_as_on_the_command_line_and_a_run_can_be_begun_from() {
        let (folder, root) = root();
        let (scenario, overrides) = form(&[("seeds", "1-3,7")]).check(&root).unwrap();
        assert_eq!(
            (scenario.general.seeds, overrides),
            (vec![1, 2, 3, 7], vec!["seeds=[1, 2, 3, 7]".into()])
        );
        let run = folder.path().join("before");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(
            run.join("scenario.toml"),
            "rounds = 9\nclients = 6\n[data]\nset = \"synthetic\"\n",
        )
        .unwrap();
        let shown = like(&root, &root.run("before").unwrap(), "before").unwrap();
        assert_eq!(
            (&shown["settings"]["clients"], &shown["like"]),
            (&json!("6"), &json!("before"))
        );
        let again =
            Form { preset: String::new(), like: Some("before".into()), ..form(&[("rounds", "5")]) };
        let (scenario, _) = again.check(&root).unwrap();
        assert_eq!((scenario.general.rounds, scenario.general.clients), (5, 6));
        let gone = Form { like: Some("../x".into()), ..form(&[]) };
        assert_eq!(gone.check(&root).unwrap_err().field.as_deref(), Some("preset"));
    }
}
