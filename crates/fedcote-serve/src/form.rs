//! The form that starts a run: presets, and settings checked by the same code as scenario files.

use std::collections::BTreeMap;
use std::path::Path;

use fedcote_sim::Scenario;
use fedcote_sim::scenario::{PRESETS, Preset};
use fedcote_sim::scheme::NAMED;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::reply::Refusal;
use crate::root;

/// The settings that the form has. None of them is a path.
pub const SETTINGS: [&str; 15] = [
    "rounds",
    "clients",
    "selected",
    "seeds",
    "schemes",
    "evaluate_every",
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
const MOST: [(&str, f64); 3] = [("clients", 100_000.0), ("rounds", 100_000.0), ("selected", 1e6)];

/// What the form sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The run's name.
    pub name: String,
    /// The preset's name.
    pub preset: String,
    /// Settings that differ from the preset's.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

impl Form {
    /// The scenario, and the settings as `key=value`, once they and the name are found right.
    pub fn check(&self) -> Result<(Scenario, Vec<String>), Refusal> {
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
        let Some((preset, walks)) = Preset::find(&self.preset) else {
            return Err(wrong("preset", format!("no preset `{}`", self.preset)));
        };
        for (key, value) in &self.settings {
            if !SETTINGS.contains(&key.as_str()) {
                return Err(wrong(key, format!("{key} cannot be set here; write a scenario file")));
            }
            if value.len() > 1000 || value.chars().any(char::is_control) {
                return Err(wrong(key, format!("{key}: expected one short line")));
            }
            let most = MOST.iter().find(|(bounded, _)| bounded == key);
            if let (Some((_, most)), Ok(number)) = (most, value.trim().parse::<f64>())
                && number > *most
            {
                let reason =
                    format!("{key}: at most {most} from the page; `fedcote run` has no such limit");
                return Err(wrong(key, reason));
            }
        }
        let overrides: Vec<String> =
            self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let text = if walks { &preset.walking() } else { preset.text };
        let scenario = Scenario::parse(&self.preset, text, &overrides, Path::new("."));
        let scenario = scenario.map_err(|error| match error {
            fedcote_sim::Error::Scenario { place, reason } => {
                let key = place.strip_prefix("--set ").unwrap_or(&place);
                let key = key.split('=').next().unwrap_or(key).to_owned();
                wrong(&key, format!("{key}: {reason}"))
            }
            other => wrong("preset", other.to_string()),
        })?;
        let runs = scenario.general.schemes.len() * scenario.general.seeds.len();
        if runs > 500 {
            return Err(wrong(
                "seeds",
                format!("{runs} runs (schemes × seeds); at most 500 from the page"),
            ));
        }
        Ok((scenario, overrides))
    }
}

/// The presets with their settings, and the schemes.
pub fn choices() -> Value {
    let names = PRESETS.iter().flat_map(|preset| {
        [(preset.name.to_owned(), preset.summary().to_owned()), {
            let summary = format!("{} — with walking clients", preset.summary());
            (format!("{}-dynamic", preset.name), summary)
        }]
    });
    let presets: Vec<Value> = names
        .filter_map(|(name, summary)| {
            let table = toml::Value::Table(Scenario::load(&name, &[]).ok()?.to_table());
            let settings: BTreeMap<&str, String> = SETTINGS
                .iter()
                .filter_map(|key| {
                    let value = key.split('.').try_fold(&table, |table, key| table.get(key))?;
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    Some((*key, text))
                })
                .collect();
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
            settings: settings.iter().map(own).collect(),
        }
    }

    #[test]
    fn every_preset_fills_the_form() {
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
            assert!(form.check().is_ok(), "{preset}: {:?}", form.check());
        }
        assert_eq!(choices["presets"].as_array().unwrap().len(), 2 * PRESETS.len());
    }

    #[test]
    fn mistakes_are_told_at_their_field() {
        for (key, value, reason) in [
            ("rounds", "0", "rounds: must be at least 1"),
            ("rounds", "many", "is not a whole number"),
            ("rounds", "3\nclients = 4", "one short line"),
            ("schemes", "[\"fedcoat\"]", "fedcote"),
            ("seeds", "[]", "at least one seed"),
            ("training.rate", "-1", "positive"),
            ("clients", "1000000", "at most 100000 from the page"),
            ("data.folder", "/etc", "cannot be set here"),
            ("network.mobility", "swim", "is not known"),
        ] {
            let refusal = form(&[(key, value)]).check().unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some(key), "{}", refusal.reason);
            assert!(refusal.reason.contains(reason), "{key}: {}", refusal.reason);
        }
        let bad = Form { name: "../x".into(), ..form(&[]) };
        assert_eq!(bad.check().unwrap_err().field.as_deref(), Some("name"));
        let bad = Form { preset: "/etc/passwd".into(), ..form(&[]) };
        assert_eq!(bad.check().unwrap_err().field.as_deref(), Some("preset"));
        assert_eq!(form(&[("rounds", "7")]).check().unwrap().1, ["rounds=7"]);
    }
}
