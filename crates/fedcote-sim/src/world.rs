//! What all schemes of a seed share: task, network, weights and labels.

use std::sync::Arc;

use fedcote::privacy::{Geometric, fill_empty};
use fedcote::random::{Key, Purpose};
use fedcote::{Federation, FederationSpec};
use fedcote_radio::{Labels, Network};
use rand::RngExt;

use crate::Error;
use crate::clock::{self, Clock};
use crate::hostile::Hostile;
use crate::own::OwnSchemes;
use crate::scenario::{LocalSteps, Scenario, Selected};
use crate::task::{Correction, Job, LabelCounts, Task};

/// What all runs of one seed share.
pub struct World {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The seed of everything random.
    pub seed: u64,
    /// What is learnt.
    pub task: Arc<dyn Task>,
    /// Who fails when.
    pub network: Network,
    /// What takes how long.
    pub clock: Clock,
    /// Weights and labels as they are; the failure probabilities are those of round 1.
    pub federation: Arc<Federation>,
    /// Weights and labels as the clients report them to the server.
    pub reported: Arc<Federation>,
    /// Schemes with parts of their own.
    pub own_schemes: Option<Arc<dyn OwnSchemes>>,
    /// Who is hostile, in order.
    hostile: Vec<u32>,
}

impl World {
    /// Puts a task on the scenario's network, for a seed.
    ///
    /// # Errors
    ///
    /// When the task does not have the scenario's number of clients, or network or label counts are refused.
    pub fn new(scenario: Arc<Scenario>, task: Arc<dyn Task>, seed: u64) -> Result<Self, Error> {
        let clients = scenario.general.clients;
        let LabelCounts { classes, counts } = task.label_counts();
        if classes == 0 || counts.len() != clients * classes {
            let found = counts.len() as f64 / classes.max(1) as f64;
            let reason = format!("the task has {found} clients, the scenario {clients}");
            return Err(Error::Scenario { place: "clients".to_owned(), reason });
        }
        let (parameters, base) = (task.len(), &scenario.base);
        let labels = Some(Labels { classes, counts: &counts });
        let network = scenario.network_of(parameters);
        let network = Network::with_labels(&network, clients, parameters, seed, base, labels)?;
        let clock = Clock::new(&scenario, parameters, clock::samples(&counts, classes), seed);
        let mut failure = Vec::new();
        network.failures(1, &mut failure);
        let describe = |counts: Vec<f64>, failure: Vec<f64>| {
            let federation = FederationSpec { ids: None, classes, counts, failure }.check()?;
            match network.groups() {
                None => Ok::<_, fedcote::Error>(Arc::new(federation)),
                Some(groups) => Ok(Arc::new(federation.with_groups(groups.clone())?)),
            }
        };
        let reported = match scenario.server.label_privacy {
            None => None,
            Some(epsilon) => Some(protected(&counts, classes, epsilon, seed)?),
        };
        let federation = describe(counts, failure.clone())?;
        let reported = match reported {
            None => Arc::clone(&federation),
            Some(counts) => describe(counts, failure)?,
        };
        let hostile = scenario.hostile.members(clients, seed);
        let own_schemes = None;
        Ok(Self {
            scenario,
            seed,
            task,
            network,
            clock,
            federation,
            reported,
            own_schemes,
            hostile,
        })
    }

    /// The name of a stream of this seed.
    pub fn key(&self, purpose: Purpose) -> Key {
        Key::new(self.seed, purpose)
    }

    /// Whether clients have transmitters, whose energy counts.
    pub(crate) fn has_transmitters(&self) -> bool {
        self.network.transmit_watts(0).is_some()
    }

    /// Draws per round, K; as many as there are clients where everyone is asked.
    pub fn draws(&self) -> u64 {
        match self.scenario.general.selected {
            Selected::Number(draws) => draws,
            Selected::Everyone(_) => self.scenario.general.clients as u64,
        }
    }

    /// Whether a round asks everyone who is there, instead of K draws.
    pub fn asks_everyone(&self) -> bool {
        matches!(self.scenario.general.selected, Selected::Everyone(_))
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

    /// The training of a client in a round, not done yet, from the global model and without a correction.
    pub fn job<'a>(&self, round: u32, client: u32) -> Job<'a> {
        let training = &self.scenario.training;
        Job {
            client,
            round,
            steps: self.steps(client),
            batch: training.batch,
            rate: training.rate_in(round),
            key: self.key(Purpose::Batch).round(round).client(client.into()),
            correction: Correction::default(),
            start: None,
            model: Vec::new(),
            finite: false,
        }
    }
}

/// Label counts with the noise that each client adds to its own.
fn protected(
    counts: &[f64],
    classes: usize,
    epsilon: f64,
    seed: u64,
) -> Result<Vec<f64>, fedcote::Error> {
    let noise = Geometric::new(epsilon, 1)?;
    let mut reported = Vec::with_capacity(counts.len());
    for (client, row) in counts.chunks(classes).enumerate() {
        let mut stream = Key::new(seed, Purpose::Privacy).client(client as u64).stream();
        let row: Vec<u64> = row.iter().map(|&count| count.round() as u64).collect();
        reported.extend(noise.protect(&row, &mut stream).into_iter().map(|count| count as f64));
    }
    fill_empty(&mut reported, classes)?;
    Ok(reported)
}
