//! Plays every named scheme on one small federation and prints, as JSON, what chance decided (data, initial model, draws,
//! arrivals, mini-batches) and the model in the end: what an independent implementation needs to come to the same model.
//!
//! `python/tests/test_differential.py` is that implementation.

use std::sync::Arc;

use fedcote::random::Stream;
use fedcote_sim::scheme::NAMED;
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
[scheme.control-full]
base = "fedcote-control"
correction = "full"
"#;

/// Hostile clients and a bound, for the second federation.
const GUARDED: &str = r#"
[server]
clip = 0.4
[hostile]
clients = [2]
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
        "hostile": scenario.hostile,
        "clients": clients,
        "initial": initial.global(),
        "schemes": schemes,
    }))
}

fn scheme(world: &Arc<World>, task: &Classification, name: &str) -> Result<Value, Error> {
    let scheme = world.scenario.schemes.resolve(name).expect("named");
    let mut engine = Engine::new(Arc::clone(world), scheme.clone())?;
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        let Outcome::Done(report) = engine.step(round)? else {
            let reason = format!("{name} diverged in round {round}");
            return Err(Error::Scenario { place: "draws".to_owned(), reason });
        };
        let arrived: Vec<Value> = report
            .arrived
            .iter()
            .map(|&(client, copies)| {
                let job = world.job(round, client);
                let samples = task.partition.client(client as usize).len();
                let batches =
                    mini_batches(samples, job.batch, job.steps as usize, &mut job.key.stream());
                json!({ "client": client, "copies": copies, "batches": batches })
            })
            .collect();
        let probabilities = engine.probabilities();
        rounds.push(json!({
            "rate": world.scenario.training.rate_in(round),
            "arrived": arrived,
            "selection": probabilities.map(|p| p.selection),
            "target": probabilities.map(|p| p.target),
            "failure": engine.federation().failure(),
        }));
    }
    Ok(json!({
        "name": name,
        "local": scheme.local,
        "aggregation": scheme.aggregation,
        "rounds": rounds,
        "final": engine.global(),
    }))
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
