//! What the runs of a comparison share: threads, and the world of each seed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::Error;
use crate::comparison::Control;
use crate::scenario::Scenario;
use crate::task::Tasks;
use crate::world::World;

/// Threads, and worlds that are made when first needed and dropped when no run needs them any more.
pub(crate) struct Context<'a> {
    pub(crate) scenario: &'a Arc<Scenario>,
    pub(crate) pool: rayon::ThreadPool,
    tasks: &'a dyn Tasks,
    made: Mutex<HashMap<u64, Weak<World>>>,
    ahead: Mutex<Option<Arc<World>>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        scenario: &'a Arc<Scenario>,
        tasks: &'a dyn Tasks,
        control: &Control,
    ) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(control.threads).build();
        let pool = pool.map_err(|error| Error::Io {
            path: "threads".into(),
            source: std::io::Error::other(error),
        })?;
        Ok(Self { scenario, pool, tasks, made: Mutex::default(), ahead: Mutex::default() })
    }

    /// Makes a world before a run needs it, to see that it can be made.
    pub(crate) fn make_ahead(&self, seed: u64) -> Result<(), Error> {
        let world = self.world(seed)?;
        *self.ahead.lock().expect("no panic while held") = Some(world);
        Ok(())
    }

    pub(crate) fn world(&self, seed: u64) -> Result<Arc<World>, Error> {
        // Kept until the first run has its world.
        let _ahead = self.ahead.lock().expect("no panic while held").take();
        // Locked on the run's own thread: a pool thread that waits for a part of its work may take up another run's
        // work meanwhile, and would wait for its own lock for ever.
        let mut made = self.made.lock().expect("no panic while held");
        if let Some(world) = made.get(&seed).and_then(Weak::upgrade) {
            return Ok(world);
        }
        let make = || {
            let mut world = World::new(Arc::clone(self.scenario), self.tasks.task(seed)?, seed)?;
            world.own_schemes = self.tasks.schemes();
            Ok::<_, Error>(world)
        };
        let world = Arc::new(self.pool.install(make)?);
        made.insert(seed, Arc::downgrade(&world));
        Ok(world)
    }
}
