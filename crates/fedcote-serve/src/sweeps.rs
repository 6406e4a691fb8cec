//! Sweeps: a table of combinations, each a run of its own, and a figure for every measure.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fedcote_plot::report::sweep::figures;
use fedcote_sim::Scenario;
use fedcote_sim::folder::{Lock, State};
use fedcote_sim::statistics::MEASURES;
use fedcote_sim::sweep::{FILE, SweepSummary, summarise};
use serde_json::{Map, Value, json};

use crate::children::Children;
use crate::reply::Refusal;
use crate::root::Root;
use crate::runs::{
    Far, MOST_SCENARIO, MOST_SCHEMES_AND_SEEDS, Status, changed, is_altered, refuse_huge,
};

/// Sweeps kept for the next question.
const KEPT: usize = 8;
/// The runs of a sweep are read again after so long, though none seems to have changed.
const READ_EVERY: Duration = Duration::from_secs(60);

/// What the sweeps that were asked for last came to: browsers ask every two seconds, and to read all runs may take longer.
#[derive(Debug, Default)]
pub struct Sweeps(Vec<(Key, Instant, Known)>);

/// The folder, when its scenario was written, and of each combination the states of its runs and the last change of those that
/// have ended: others do not count.
type Key = (PathBuf, u64, Vec<(Vec<State>, u64)>);

/// What a sweep came to.
#[derive(Debug)]
pub struct Known {
    /// In numbers; why there are none.
    pub summary: Result<SweepSummary, Refusal>,
    figures: Value,
    /// Combinations whose summary is not as it was written.
    altered: Vec<String>,
}

impl Sweeps {
    /// What a sweep, whose combinations are so far, came to.
    pub fn find(&mut self, root: &Root, sweep: &Path, scenario: &Scenario, far: &[Far]) -> &Known {
        let states = far.iter().map(|far| (far.states.clone(), far.ended)).collect();
        let key = (sweep.to_owned(), changed(&sweep.join(FILE)), states);
        self.0.retain(|(_, read, _)| read.elapsed() < READ_EVERY);
        let at = self.0.iter().position(|(known, ..)| *known == key).unwrap_or_else(|| {
            let known = Known::read(root, sweep, scenario);
            self.0.truncate(KEPT - 1);
            self.0.insert(0, (key, Instant::now(), known));
            0
        });
        &self.0[at].2
    }
}

impl Known {
    fn read(root: &Root, sweep: &Path, scenario: &Scenario) -> Self {
        let mut points = scenario.sweep.points.iter();
        let small = points.try_for_each(|point| refuse_huge(root, &sweep.join(&point.name)));
        let summary = small
            .and_then(|()| summarise(sweep).map_err(|error| Refusal::missing(error.to_string())));
        let figures = summary.as_ref().map_or_else(|_| Vec::new(), figures);
        let figures = figures
            .iter()
            .map(|figure| {
                json!({
                    "id": figure.id, "caption": figure.caption, "wide": figure.wide.inline(), "narrow": figure.narrow.inline(),
                })
            })
            .collect();
        let names = scenario.sweep.points.iter().map(|point| &point.name);
        let altered = names.filter(|name| is_altered(root, &sweep.join(name))).cloned().collect();
        Self { summary, figures, altered }
    }
}

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
pub fn get(
    root: &Root,
    sweep: &Path,
    name: &str,
    children: &Children,
    sweeps: &mut Sweeps,
) -> Result<Value, Refusal> {
    if !root.is_plain(sweep) {
        return Err(Refusal::new(hyper::StatusCode::FORBIDDEN, "this sweep is not plain files"));
    }
    let (scenario, far) = points(root, sweep)?;
    let states: Vec<State> = far.iter().flat_map(|far| far.states.iter().copied()).collect();
    let status = Status::of(name, Lock::is_taken(sweep), &states, children);
    // A run that is damaged costs the numbers, not the page.
    let Known { summary, figures, altered } = sweeps.find(root, sweep, &scenario, &far);
    let files: Vec<String> = altered.iter().map(|name| format!("{name}/summary.json")).collect();
    let status = if files.is_empty() { status } else { status.altered(&files.join(", ")) };
    let problem = summary.as_ref().err().map(|refusal| &refusal.reason);
    let none = SweepSummary::default();
    let summary = summary.as_ref().unwrap_or(&none);
    let known = |name: &str| summary.points.iter().find(|point| point.folder == name);
    let mut told = Vec::new();
    for (point, far) in scenario.sweep.points.iter().zip(&far) {
        let own = format!("{name}/{}", point.name);
        let path = sweep.join(&point.name);
        let status = Status::of(&own, Lock::is_taken(&path), &far.states, children);
        let status =
            if altered.contains(&point.name) { status.altered("summary.json") } else { status };
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
    let measures: Vec<Value> = MEASURES
        .iter()
        .map(|measure| json!({ "name": measure.name, "words": measure.words, "percent": measure.percent }))
        .collect();
    let keys: Vec<&str> = scenario.sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    Ok(json!({
        "status": status, "problem": problem, "keys": keys, "schemes": scenario.general.schemes,
        "seeds": scenario.general.seeds, "measures": measures, "points": told, "figures": figures,
        "done": far.iter().map(|far| far.done).sum::<u64>(), "total": far.iter().map(|far| far.total).sum::<u64>(),
        "begun": changed(&sweep.join(FILE)), "warnings": summary.warnings, "command": summary.command,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Every browser had all runs read, however large, and all figures drawn every two seconds.
    #[test]
    fn a_sweep_is_read_once_until_runs_end_and_not_if_it_is_huge() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let sweep = root.path().join("swept");
        let general =
            "rounds = 9\nclients = 3\nselected = 2\nseeds = [1]\nschemes = [\"fedavg\"]\n";
        let text = format!("{general}[sweep]\n\"training.rate\" = [0.05, 0.1]\n");
        fs::create_dir(&sweep).unwrap();
        fs::write(sweep.join(FILE), text).unwrap();
        let mut sweeps = Sweeps::default();
        let mut find = |ended| {
            let (scenario, mut far) = points(&root, &sweep).unwrap();
            far[0].ended = ended;
            let summary = &sweeps.find(&root, &sweep, &scenario, &far).summary;
            summary.as_ref().map(|summary| summary.missing).map_err(|refusal| refusal.status)
        };
        assert_eq!(find(0), Ok(2));
        let point = points(&root, &sweep).unwrap().0.sweep.points[1].name.clone();
        let run = sweep.join(&point).join("fedavg/1");
        fs::create_dir_all(&run).unwrap();
        fs::write(sweep.join(&point).join("scenario.toml"), general).unwrap();
        File::create(run.join("metrics.jsonl")).unwrap().set_len(3 << 30).unwrap();
        // Nothing has ended since.
        assert_eq!(find(0), Ok(2));
        assert_eq!(find(1), Err(hyper::StatusCode::PAYLOAD_TOO_LARGE));
    }

    /// The list named a file that a sweep does not have, and the page of a sweep showed an altered summary as sound.
    #[test]
    fn damage_to_a_sweep_is_told_by_list_and_page() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let sweep = root.path().join("swept");
        fs::create_dir(&sweep).unwrap();
        fs::write(sweep.join(FILE), [0xff, 0x00]).unwrap();
        let children = Children::new(Vec::new());
        let listed = json!(crate::runs::list(&root, &children));
        let message = listed[0]["message"].as_str().unwrap();
        assert!(message.starts_with("sweep.toml cannot be read"), "{listed}");

        let text = "rounds = 2\nclients = 3\nselected = 2\nschemes = [\"fedavg\"]\n\
                    [sweep]\n\"training.rate\" = [0.05, 0.1]\n";
        fs::write(sweep.join(FILE), text).unwrap();
        let told = get(&root, &sweep, "swept", &children, &mut Sweeps::default()).unwrap();
        assert_eq!(told["status"]["message"], Value::Null, "{told}");
        let point = told["points"][1]["name"].as_str().unwrap();
        fs::create_dir(sweep.join(point)).unwrap();
        let altered = b"{\"schemes\": [],\n  \"checksum\": \"0123456789abcdef\"\n}".as_slice();
        // The second is no text at all, and used to pass as none.
        for damage in [altered, b"{\"schemes\": [\xff]}".as_slice()] {
            fs::write(sweep.join(point).join("summary.json"), damage).unwrap();
            let told = get(&root, &sweep, "swept", &children, &mut Sweeps::default()).unwrap();
            let message = told["status"]["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{point}/summary.json: damaged")), "{told}");
        }
    }
}
