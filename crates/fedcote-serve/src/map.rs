//! Where clients are in a round: from the scenario, as everything of a network is a function of seed and round.

use std::path::Path;
use std::sync::{Arc, Mutex};

use fedcote_learn::data::SetKind;
use fedcote_radio::{Kind, Mobility, Network};
use fedcote_sim::Scenario;
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::reply::Refusal;
use crate::root::Root;
use crate::runs::MOST_SCENARIO;

/// More clients are not drawn one by one.
const MOST_CLIENTS: usize = 2000;
/// Networks kept for the next question.
const KEPT: usize = 8;

/// The networks that were asked for last.
#[derive(Debug, Default)]
pub struct Networks(Mutex<Vec<(Key, Arc<Known>)>>);

type Key = (String, u64, String);

#[derive(Debug)]
struct Known {
    network: Network,
    /// Whether the size of the model, hence the failures, are known without the data.
    exact: bool,
    walks: bool,
    rounds: u32,
}

impl Networks {
    /// Cell, building and stations; null for a network without places.
    pub fn plan(&self, root: &Root, run: &Path, seed: u64) -> Result<Value, Refusal> {
        let Some(known) = self.find(root, run, seed)? else { return Ok(Value::Null) };
        let Some(layout) = known.network.layout() else { return Ok(Value::Null) };
        let area = layout.area();
        let stations: Vec<Value> = layout
            .stations()
            .into_iter()
            .map(|(name, at)| {
                let name = name.replace('_', " ");
                json!({ "name": name, "x": at.x, "y": at.y, "indoor": area.indoors(at) })
            })
            .collect();
        Ok(json!({
            "radius": area.radius,
            "building": [area.centre.x, area.centre.y, area.width, area.depth],
            "stations": stations,
            "walks": known.walks,
        }))
    }

    /// x, y, indoors and failure of every client in a round; failure is null where it is not known.
    pub fn places(&self, root: &Root, run: &Path, seed: u64, round: u32) -> Result<Value, Refusal> {
        let Some(known) = self.find(root, run, seed)? else { return Ok(json!([])) };
        // Rounds that the run does not have are nowhere.
        let round = round.min(known.rounds);
        let places = known.network.positions(round).into_iter().map(|place| {
            json!([place.x, place.y, place.indoor, known.exact.then_some(place.failure)])
        });
        Ok(places.collect())
    }

    fn find(&self, root: &Root, run: &Path, seed: u64) -> Result<Option<Arc<Known>>, Refusal> {
        let text = root.read(&run.join("scenario.toml"), MOST_SCENARIO);
        let text = text.ok_or_else(|| Refusal::missing("no such run"))?;
        let key = (run.display().to_string(), seed, text);
        let mut kept = self.0.lock().expect("no panic while held");
        if let Some((_, known)) = kept.iter().find(|(at, _)| *at == key) {
            return Ok(Some(Arc::clone(known)));
        }
        // What a folder holds may be anything: it is the folder that is at fault then, not the page.
        let damaged = |error: &dyn std::fmt::Display| {
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
        };
        let scenario =
            Scenario::parse("scenario.toml", &key.2, &[], run).map_err(|error| damaged(&error))?;
        let clients = scenario.general.clients;
        // A trace has no places, and may be a file elsewhere.
        if scenario.network.kind != Kind::Radio || clients > MOST_CLIENTS {
            return Ok(None);
        }
        let exact = matches!(scenario.data.set, SetKind::Mnist | SetKind::Cifar10);
        let parameters = if exact { scenario.model_parameters() } else { Ok(1) };
        let parameters = parameters.map_err(|error| damaged(&error))?;
        // The map is about links; who comes and goes may depend on labels.
        let mut config = scenario.network_of(parameters);
        config.availability = Default::default();
        let network = Network::new(&config, clients, parameters, seed, run);
        let network = network.map_err(|error| damaged(&error))?;
        let walks = scenario.network.mobility != Mobility::None;
        let known = Arc::new(Known { network, exact, walks, rounds: scenario.general.rounds });
        kept.truncate(KEPT - 1);
        kept.insert(0, (key, Arc::clone(&known)));
        Ok(Some(known))
    }
}
