//! Sweeps: a table of combinations, each a run of its own, and a figure for every measure.

use std::path::Path;

use fedcote_plot::report::sweep::figures;
use fedcote_sim::Scenario;
use fedcote_sim::folder::{Lock, State};
use fedcote_sim::statistics::MEASURES;
use fedcote_sim::sweep::{FILE, summarise};
use serde_json::{Map, Value, json};

use crate::children::Children;
use crate::reply::Refusal;
use crate::root::Root;
use crate::runs::{Far, MOST_SCENARIO, MOST_SCHEMES_AND_SEEDS, Status, changed};

/// The scenario of a sweep, and how far each of its combinations is.
pub fn points(root: &Root, sweep: &Path) -> Result<(Scenario, Vec<Far>), Refusal> {
    let text = root.read(&sweep.join(FILE), MOST_SCENARIO);
    let text = text.ok_or_else(|| Refusal::missing("sweep.toml cannot be read"))?;
    // It is the folder that is at fault then, not the page.
    let damaged = |error: fedcote_sim::Error| {
        Refusal::new(hyper::StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
    };
    let scenario = Scenario::parse(FILE, &text, &[], sweep).map_err(damaged)?;
    if fedcote_sim::sweep::runs(&scenario) > MOST_SCHEMES_AND_SEEDS {
        let reason = "this sweep is too large for the page";
        return Err(Refusal::new(hyper::StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    let far = scenario
        .sweep
        .points
        .iter()
        .map(|point| Far::of(root, &sweep.join(&point.name), &point.scenario.general));
    let far = far.collect();
    Ok((scenario, far))
}

/// All that the page of a sweep shows.
pub fn get(root: &Root, sweep: &Path, name: &str, children: &Children) -> Result<Value, Refusal> {
    if !root.is_plain(sweep) {
        return Err(Refusal::new(hyper::StatusCode::FORBIDDEN, "this sweep is not plain files"));
    }
    let (scenario, far) = points(root, sweep)?;
    let states: Vec<State> = far.iter().flat_map(|far| far.states.iter().copied()).collect();
    let status = Status::of(name, Lock::is_taken(sweep), &states, children);
    // A run that is damaged costs the numbers, not the page.
    let (summary, problem) = match summarise(sweep) {
        Ok(summary) => (summary, None),
        Err(error) => (Default::default(), Some(error.to_string())),
    };
    let known = |name: &str| summary.points.iter().find(|point| point.folder == name);
    let mut told = Vec::new();
    for (point, far) in scenario.sweep.points.iter().zip(&far) {
        let own = format!("{name}/{}", point.name);
        let path = sweep.join(&point.name);
        let status = Status::of(&own, Lock::is_taken(&path), &far.states, children);
        let words = point.settings.iter().map(|(key, value)| {
            (key.clone(), json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        });
        let mut schemes = Map::new();
        for scheme in known(&point.name).iter().flat_map(|point| &point.schemes) {
            let mut measures = Map::new();
            for measure in MEASURES {
                if let Some(spread) = (measure.over)(scheme) {
                    let leads = scheme.leads.iter().any(|leads| leads == measure.name);
                    let told = json!({ "mean": spread.mean, "std": spread.std, "leads": leads });
                    measures.insert(measure.name.to_owned(), told);
                }
            }
            let told = json!({ "seeds": scheme.seeds, "measures": measures });
            schemes.insert(scheme.name.clone(), told);
        }
        let begun = root.run(&own).is_some();
        told.push(json!({
            "name": point.name, "settings": words.collect::<Map<_, _>>(), "begun": begun,
            "state": if far.done == 0 && status.state == "stopped" { "waiting" } else { status.state },
            "done": far.done, "total": far.total, "schemes": schemes,
        }));
    }
    let drawn: Vec<Value> = figures(&summary)
        .iter()
        .map(|figure| {
            json!({
                "id": figure.id, "caption": figure.caption, "wide": figure.wide.inline(), "narrow": figure.narrow.inline(),
            })
        })
        .collect();
    let measures: Vec<Value> = MEASURES
        .iter()
        .map(|measure| json!({ "name": measure.name, "words": measure.words, "percent": measure.percent }))
        .collect();
    let keys: Vec<&str> = scenario.sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    Ok(json!({
        "status": status, "problem": problem, "keys": keys, "schemes": scenario.general.schemes,
        "seeds": scenario.general.seeds, "measures": measures, "points": told, "figures": drawn,
        "done": far.iter().map(|far| far.done).sum::<u64>(), "total": far.iter().map(|far| far.total).sum::<u64>(),
        "begun": changed(&sweep.join(FILE)), "warnings": summary.warnings, "command": summary.command,
    }))
}
