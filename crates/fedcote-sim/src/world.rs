//! What all schemes of a comparison share: data, partition, model, network, by seed.

use std::sync::Arc;

use fedcote::privacy::{Geometric, fill_empty};
use fedcote::random::{Key, Purpose};
use fedcote::{Federation, FederationSpec};
use fedcote_learn::Partition;
use fedcote_learn::data::Dataset;
use fedcote_learn::models::Model;
use fedcote_learn::train::LocalSettings;
use fedcote_radio::Network;
use rand::RngExt;

use crate::Error;
use crate::hostile::Hostile;
use crate::scenario::{LocalSteps, Scenario};

/// The world that the runs of one seed live in.
pub struct World {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The seed of everything random.
    pub seed: u64,
    /// The data set.
    pub data: Arc<Dataset>,
    /// Which samples each client has.
    pub partition: Partition,
    /// The model.
    pub model: Box<dyn Model>,
    /// Who fails when.
    pub network: Network,
    /// Weights and labels as they are; the failure probabilities are those of round 1.
    pub federation: Arc<Federation>,
    /// Weights and labels as the clients report them to the server.
    pub reported: Arc<Federation>,
    /// Who is hostile, in order.
    hostile: Vec<u32>,
    /// Samples of the client that has most.
    largest: usize,
}

impl World {
    /// Makes the world of a seed.
    pub fn new(scenario: Arc<Scenario>, data: Arc<Dataset>, seed: u64) -> Result<Self, Error> {
        let clients = scenario.general.clients;
        let labels = &data.train.labels;
        let classes = data.train.classes;
        let partition = fedcote_learn::partition(&scenario.data, labels, classes, clients, seed)?;
        let model = fedcote_learn::models::build(&scenario.model, data.train.shape, classes)?;
        let network = Network::new(&scenario.network, clients, model.len(), seed, &scenario.base)?;
        let counts = partition.label_counts(labels, classes);
        let mut failure = Vec::new();
        network.failures(1, &mut failure);
        let describe = |counts: Vec<f64>, failure: Vec<f64>| {
            FederationSpec { ids: None, classes, counts, failure }.check().map(Arc::new)
        };
        let reported = match scenario.server.label_privacy {
            None => None,
            Some(epsilon) => Some(protected(&counts, classes, epsilon, seed)?),
        };
        let counts = counts.into_iter().map(f64::from).collect();
        let federation = describe(counts, failure.clone())?;
        let reported = match reported {
            None => Arc::clone(&federation),
            Some(counts) => describe(counts, failure)?,
        };
        let clients = 0..partition.len();
        let largest = clients.map(|client| partition.client(client).len()).max().unwrap_or(0);
        let hostile = scenario.hostile.members(partition.len(), seed);
        Ok(Self {
            scenario,
            seed,
            data,
            partition,
            model,
            network,
            federation,
            reported,
            hostile,
            largest,
        })
    }

    /// The name of a stream of this world's seed.
    pub fn key(&self, purpose: Purpose) -> Key {
        Key::new(self.seed, purpose)
    }

    /// Draws a round, K.
    pub fn draws(&self) -> u64 {
        self.scenario.general.selected
    }

    /// The local steps of a client.
    pub fn steps(&self, client: u32) -> u32 {
        match self.scenario.training.local_steps {
            LocalSteps::Same(steps) => steps,
            LocalSteps::Range([low, high]) => {
                let key = self.key(Purpose::LocalSteps).client(client.into());
                key.stream().random_range(low..=high)
            }
        }
    }

    /// What a client does to its upload, if it is hostile.
    pub fn attack(&self, client: u32) -> Option<&Hostile> {
        self.hostile.binary_search(&client).ok().map(|_| &self.scenario.hostile)
    }

    /// Samples in a mini-batch: no more than the largest client has.
    pub fn batch(&self) -> usize {
        self.scenario.training.batch.min(self.largest)
    }

    /// How a client trains in a round, and the key of its mini-batches.
    pub fn local_settings(&self, round: u32, client: u32) -> (LocalSettings, Key) {
        let training = &self.scenario.training;
        let settings = LocalSettings {
            steps: self.steps(client) as usize,
            batch: self.batch(),
            rate: training.rate_in(round),
        };
        (settings, self.key(Purpose::Batch).round(round).client(client.into()))
    }
}

/// Label counts with the noise that each client adds to its own.
fn protected(
    counts: &[u32],
    classes: usize,
    epsilon: f64,
    seed: u64,
) -> Result<Vec<f64>, fedcote::Error> {
    let noise = Geometric::new(epsilon, 1)?;
    let mut reported = Vec::with_capacity(counts.len());
    for (client, row) in counts.chunks(classes).enumerate() {
        let mut stream = Key::new(seed, Purpose::Privacy).client(client as u64).stream();
        let row: Vec<u64> = row.iter().map(|&count| count.into()).collect();
        reported.extend(noise.protect(&row, &mut stream).into_iter().map(|count| count as f64));
    }
    fill_empty(&mut reported, classes)?;
    Ok(reported)
}
