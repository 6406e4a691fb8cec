//! Plays every named scheme on one small federation and prints, as JSON, what chance decided (data, initial model, draws,
//! arrivals, mini-batches) and the model in the end: what an independent implementation needs to come to the same model.
//!
//! `python/tests/test_differential.py` is that implementation.

#[path = "../tests/flights/mod.rs"]
mod flights;

use std::sync::Arc;

use fedcote::random::{Purpose, Stream};
use fedcote_sim::scheme::{NAMED, SelectionKind};
use fedcote_sim::task::Job;
use fedcote_sim::{Classification, Engine, Error, Outcome, Scenario, World};
use rand::RngExt;
use serde_json::{Value, json};

const ROUNDS: u32 = 20;

const TEXT: &str = r#"
clients = 6
selected = 4
schemes = ["fedavg", "control-full"]
[data]
set = "synthetic"
samples = 240
features = 4
classes = 3
partition = "dirichlet"
concentration = 0.5
[model]
kind = "mlp"
hidden = [5]
[training]
local_steps = [2, 5]
batch = 8
rate = 0.2
rate_changes = [[11, 0.1]]
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
[clock]
seconds_per_sample = [0.001, 0.002, 0.02, 0.004, 0.0015, 0.003]
[scheme.control-full]
base = "fedcote-control"
correction = "full"
"#;

/// Hostile clients and a bound, for the second federation.
const GUARDED: &str = r#"
[server]
clip = 0.4
[hostile]
clients = [3]
kind = "scaled"
factor = -20.0
"#;

fn main() -> Result<(), Error> {
    let federations: Vec<Value> =
        ["", GUARDED].into_iter().map(federation).collect::<Result<_, Error>>()?;
    println!("{}", Value::from(federations));
    Ok(())
}

fn federation(extra: &str) -> Result<Value, Error> {
    let scenario = Scenario::parse("draws", &format!("{TEXT}{extra}"), &[], ".".as_ref())?;
    let scenario = Arc::new(scenario);
    let task = Arc::new(Classification::load(&scenario, 7)?);
    let world = Arc::new(World::new(Arc::clone(&scenario), task.clone(), 7)?);
    let features = task.model.inputs();
    let clients: Vec<Value> = (0..task.partition.len())
        .map(|client| {
            let samples = task.partition.client(client);
            let mut inputs = vec![0.0; samples.len() * features];
            let mut labels = vec![0; samples.len()];
            task.data.train.gather(samples, &mut inputs, &mut labels);
            json!({ "inputs": inputs, "labels": labels, "steps": world.steps(client as u32) })
        })
        .collect();
    let initial =
        Engine::new(Arc::clone(&world), scenario.schemes.resolve("fedavg").expect("named"))?;
    let schemes: Vec<Value> = NAMED
        .iter()
        .map(|named| scheme(&world, &task, named.name))
        .collect::<Result<_, Error>>()?;
    Ok(json!({
        "features": features,
        "classes": task.model.classes(),
        "hidden": 5,
        "draws": world.draws(),
        "clip": scenario.server.clip,
        "seconds_per_sample": scenario.clock.seconds_per_sample,
        "batch": scenario.training.batch,
        "hostile": scenario.hostile,
        "clients": clients,
        "initial": initial.global(),
        "schemes": schemes,
    }))
}

fn scheme(world: &Arc<World>, task: &Classification, name: &str) -> Result<Value, Error> {
    let scheme = world.scenario.schemes.resolve(name).expect("named");
    let mut engine = Engine::new(Arc::clone(world), scheme.clone())?;
    let batches = |job: &Job| {
        let samples = task.partition.client(job.client as usize).len();
        mini_batches(samples, job.batch, job.steps as usize, &mut job.key.stream())
    };
    let seconds: Vec<f64> = (0..6).map(|client| usual_seconds(world, task, client)).collect();
    let mut server = flights::Server::new(&seconds);
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        let Outcome::Done(report) = engine.step(round)? else {
            let reason = format!("{name} diverged in round {round}");
            return Err(Error::Scenario { place: "draws".to_owned(), reason });
        };
        let mut started = Vec::new();
        if let SelectionKind::Buffered(_) = scheme.selection {
            // In the order in which they start, which the report does not tell.
            let flights::Round { started: flights, ended } = server.round(world, round);
            let same = flights::counts(flights.iter().map(|flight| flight.client))
                == report.selected
                && flights::counts(ended.iter().map(|flight| flight.client)) == report.arrived;
            assert!(same && ended.iter().all(|flight| flight.version < round as usize), "{name}");
            for flight in flights {
                let key = world.key(Purpose::Batch).round(flight.number);
                let key = key.client(flight.client.into());
                let job = Job { key, ..world.job(round, flight.client) };
                let (client, arrives) = (flight.client, flight.arrives);
                let batches = batches(&job);
                started.push(json!({ "client": client, "arrives": arrives, "batches": batches }));
            }
        }
        let uploads = |counts: &[(u32, u32)]| -> Vec<Value> {
            let upload = |&(client, copies): &(u32, u32)| {
                let batches = batches(&world.job(round, client));
                json!({ "client": client, "copies": copies, "batches": batches })
            };
            counts.iter().map(upload).collect()
        };
        let came = |client: u32| report.arrived.iter().any(|(arrived, _)| *arrived == client);
        let lost: Vec<(u32, u32)> =
            report.selected.iter().copied().filter(|(client, _)| !came(*client)).collect();
        let probabilities = engine.probabilities();
        rounds.push(json!({
            "rate": world.scenario.training.rate_in(round),
            "arrived": uploads(&report.arrived),
            "lost": uploads(&lost),
            "started": started,
            "selection": probabilities.map(|p| p.selection),
            "target": probabilities.map(|p| p.target),
            "draws": probabilities.map(|p| p.draws),
            "failure": engine.federation().failure(),
        }));
    }
    Ok(json!({
        "name": name,
        "local": scheme.local,
        "selection": scheme.selection,
        "aggregation": scheme.aggregation,
        "rounds": rounds,
        "final": engine.global(),
    }))
}

/// How long a client takes for download, training and upload; the model has 43 parameters.
fn usual_seconds(world: &World, task: &Classification, client: usize) -> f64 {
    let clock = &world.scenario.clock;
    let per_sample = clock.seconds_per_sample.as_ref().expect("given").get(client);
    let batch = world.scenario.training.batch.min(task.partition.client(client).len());
    let bits = 32.0 * world.task.len() as f64;
    let steps = f64::from(world.steps(client as u32));
    bits / 50e6 + steps * batch as f64 * per_sample + world.scenario.network.deadline_seconds
}

/// The places of the samples in each step's mini-batch: the first steps of a shuffle that goes on from step to step.
fn mini_batches(samples: usize, batch: usize, steps: usize, stream: &mut Stream) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..samples as u32).collect();
    (0..steps)
        .map(|_| {
            if samples <= batch {
                return order.clone();
            }
            for place in 0..batch {
                let other = stream.random_range(place as u32..samples as u32);
                order.swap(place, other as usize);
            }
            order[..batch].to_vec()
        })
        .collect()
}
