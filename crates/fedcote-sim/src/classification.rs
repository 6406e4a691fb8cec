//! The built-in task: a data set, divided among clients, and a model that classifies it.

use std::sync::{Arc, Mutex, OnceLock};

use fedcote::random::Key;
use fedcote_learn::data::{self, Dataset};
use fedcote_learn::models::Model;
use fedcote_learn::train::{self, LocalSettings, Trainer};
use fedcote_learn::{Augmentation, Partition, Path};
use rayon::prelude::*;

use crate::Error;
use crate::scenario::Scenario;
use crate::task::{Job, LabelCounts, Parameter, Scores, Task, Tasks};

/// A data set × partition × model.
pub struct Classification {
    /// The data set.
    pub data: Arc<Dataset>,
    /// Which samples each client has.
    pub partition: Partition,
    /// The model.
    pub model: Box<dyn Model>,
    /// Samples of the client that has most.
    largest: usize,
    augmentation: Augmentation,
    trainers: Mutex<Vec<Trainer>>,
}

impl Classification {
    /// The `[data]` and `[model]` of a scenario, for a seed.
    ///
    /// # Errors
    ///
    /// When the data cannot be divided, or the model does not fit it.
    pub fn new(scenario: &Scenario, data: Arc<Dataset>, seed: u64) -> Result<Self, Error> {
        let (labels, classes) = (&data.train.labels, data.train.classes);
        let clients = scenario.general.clients;
        let partition = fedcote_learn::partition(&scenario.data, labels, classes, clients, seed)?;
        let data = match scenario.data.rotations {
            Some(rotations @ 2..) => Arc::new(data::rotate(&data, &partition, rotations)?),
            _ => data,
        };
        let path = if scenario.general.portable { Path::portable() } else { Path::best() };
        let shape = data.train.shape;
        let model = fedcote_learn::models::build_for(&scenario.model, shape, classes, path)?;
        let sizes = (0..partition.len()).map(|client| partition.client(client).len());
        let largest = sizes.max().unwrap_or(0);
        let augmentation = scenario.training.augmentation();
        augmentation.check(shape)?;
        Ok(Self { data, partition, model, largest, augmentation, trainers: Mutex::default() })
    }

    /// Makes the task of one seed from the data set that the scenario names.
    ///
    /// # Errors
    ///
    /// When the data set cannot be read, or as for [`Classification::new`].
    pub fn load(scenario: &Scenario, seed: u64) -> Result<Self, Error> {
        Self::new(scenario, data::load(&scenario.data, &scenario.base)?, seed)
    }

    fn train_one(&self, global: &[f32], job: &mut Job) {
        // No mini-batch is larger than the largest client, so no buffer need be.
        let batch = job.batch.min(self.largest);
        let trainer = self.trainers.lock().expect("no panic while held").pop();
        let mut trainer = trainer
            .unwrap_or_else(|| Trainer::new(&*self.model, batch).augmented(self.augmentation));
        job.model.clear();
        job.model.extend_from_slice(job.start.unwrap_or(global));
        let settings = LocalSettings { steps: job.steps as usize, batch, rate: job.rate };
        let outcome = train::local(
            &*self.model,
            &mut job.model,
            &self.data.train,
            self.partition.client(job.client as usize),
            &settings,
            job.key,
            &mut |weights, gradient| job.correction.apply(weights, global, gradient),
            &mut trainer,
        );
        job.finite = outcome.finite;
        self.trainers.lock().expect("no panic while held").push(trainer);
    }
}

impl Task for Classification {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn instructions(&self) -> &'static str {
        self.model.path().name()
    }

    fn label_counts(&self) -> LabelCounts {
        let classes = self.data.train.classes;
        let counts = self.partition.label_counts(&self.data.train.labels, classes);
        LabelCounts { classes, counts: counts.into_iter().map(f64::from).collect() }
    }

    fn initial(&self, key: Key) -> Result<Vec<f32>, Error> {
        Ok(self.model.initialise(key))
    }

    fn train(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error> {
        jobs.par_iter_mut().for_each(|job| self.train_one(global, job));
        Ok(())
    }

    fn losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        let loss = |&client: &u32| {
            let samples = self.partition.client(client as usize);
            fedcote_learn::loss_over(&*self.model, model, &self.data.train, samples)
        };
        Ok(clients.par_iter().map(loss).collect())
    }

    fn rms_losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        let loss = |&client: &u32| {
            let samples = self.partition.client(client as usize);
            fedcote_learn::rms_loss_over(&*self.model, model, &self.data.train, samples)
        };
        Ok(clients.par_iter().map(loss).collect())
    }

    fn evaluate(&self, model: &[f32], on_training_data: bool) -> Result<Scores, Error> {
        let split = if on_training_data { &self.data.train } else { &self.data.test };
        let found = fedcote_learn::evaluate(&*self.model, model, split);
        Ok(vec![("accuracy".to_owned(), found.accuracy), ("loss".to_owned(), found.loss)])
    }
}

/// The built-in tasks of a scenario, all on one data set.
pub struct Classifications {
    scenario: Scenario,
    data: OnceLock<Arc<Dataset>>,
}

impl Classifications {
    /// Reads the data set that the scenario names.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn load(scenario: &Scenario) -> Result<Self, Error> {
        let later = Self::later(scenario);
        later.data().map(|_| later)
    }

    /// The same, but the data set is read when the first task is made: perhaps never here.
    pub fn later(scenario: &Scenario) -> Self {
        Self { scenario: scenario.clone(), data: OnceLock::new() }
    }

    fn data(&self) -> Result<Arc<Dataset>, Error> {
        if let Some(data) = self.data.get() {
            return Ok(Arc::clone(data));
        }
        let data = data::load(&self.scenario.data, &self.scenario.base)?;
        Ok(Arc::clone(self.data.get_or_init(|| data)))
    }
}

impl Tasks for Classifications {
    fn task(&self, seed: u64) -> Result<Arc<dyn Task>, Error> {
        Ok(Arc::new(Classification::new(&self.scenario, self.data()?, seed)?))
    }

    fn identity(&self) -> Option<String> {
        None
    }
}
