//! Where runs are played.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use fedcote_learn::data::Dataset;

use crate::Error;
use crate::comparison::Control;
use crate::scenario::Scenario;
use crate::world::World;

/// Where runs are played: the threads, and the worlds of the seeds, made when first needed and dropped when nobody
/// lives there.
pub(crate) struct Stage<'a> {
    pub(crate) scenario: &'a Arc<Scenario>,
    data: Arc<Dataset>,
    pub(crate) pool: rayon::ThreadPool,
    made: Mutex<HashMap<u64, Weak<World>>>,
    ahead: Mutex<Option<Arc<World>>>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(scenario: &'a Arc<Scenario>, control: &Control) -> Result<Self, Error> {
        let data = fedcote_learn::data::load(&scenario.data, &scenario.base)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(control.threads).build();
        let pool = pool.map_err(|error| Error::Io {
            path: "threads".into(),
            source: std::io::Error::other(error),
        })?;
        Ok(Self { scenario, data, pool, made: Mutex::default(), ahead: Mutex::default() })
    }

    /// Makes a world before anybody needs it, to see that it can be made.
    pub(crate) fn make_ahead(&self, seed: u64) -> Result<(), Error> {
        let world = self.world(seed)?;
        *self.ahead.lock().expect("no panic while held") = Some(world);
        Ok(())
    }

    pub(crate) fn world(&self, seed: u64) -> Result<Arc<World>, Error> {
        // Kept until somebody lives there, or elsewhere.
        let _ahead = self.ahead.lock().expect("no panic while held").take();
        // Locked on the run's own thread: a pool thread that waits for a part of its work may take up another run's
        // work meanwhile, and would wait for its own lock for ever.
        let mut made = self.made.lock().expect("no panic while held");
        if let Some(world) = made.get(&seed).and_then(Weak::upgrade) {
            return Ok(world);
        }
        let data = Arc::clone(&self.data);
        let make = || World::new(Arc::clone(self.scenario), data, seed);
        let world = Arc::new(self.pool.install(make)?);
        made.insert(seed, Arc::downgrade(&world));
        Ok(world)
    }
}
