//! What all schemes of a comparison share: data, partition, model, network, by seed.

use std::sync::Arc;

use fedcote::random::{Key, Purpose};
use fedcote::{Federation, FederationSpec};
use fedcote_learn::Partition;
use fedcote_learn::data::Dataset;
use fedcote_learn::models::Model;
use fedcote_learn::train::LocalSettings;
use fedcote_radio::Network;
use rand::RngExt;

use crate::Error;
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
    /// Weights and labels; its failure probabilities are those of round 1.
    pub federation: Arc<Federation>,
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
        let federation = FederationSpec {
            ids: None,
            classes,
            counts: counts.into_iter().map(f64::from).collect(),
            failure,
        }
        .check()?;
        let federation = Arc::new(federation);
        Ok(Self { scenario, seed, data, partition, model, network, federation })
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

    /// How a client trains in a round, and the key of its mini-batches.
    pub fn local_settings(&self, round: u32, client: u32) -> (LocalSettings, Key) {
        let training = &self.scenario.training;
        let settings = LocalSettings {
            steps: self.steps(client) as usize,
            batch: training.batch,
            rate: training.rate_in(round),
        };
        (settings, self.key(Purpose::Batch).round(round).client(client.into()))
    }
}
