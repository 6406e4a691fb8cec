//! Computes stretches for a [`Remote`](crate::remote::Remote), one after the other.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::Error;
use crate::plan::RunId;
use crate::scenario::Scenario;
use crate::stretch::{State, Stretch};
use crate::task::Tasks;
use crate::world::World;

/// Makes the tasks of a scenario.
pub type MakeTasks<'a> = &'a dyn Fn(&Scenario) -> Result<Box<dyn Tasks>, Error>;

/// Threads, and what stretches of the same comparison share: data set, and network and clients of the last seed.
pub struct Worker {
    pool: rayon::ThreadPool,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    text: String,
    scenario: Arc<Scenario>,
    tasks: Box<dyn Tasks>,
    world: Option<Arc<World>>,
}

impl Worker {
    /// With so many threads.
    ///
    /// # Errors
    ///
    /// When the system has no more of them.
    pub fn new(threads: usize) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Error::remote(error.to_string()))?;
        Ok(Self { pool, kept: Mutex::default() })
    }

    /// Plays up to so many rounds of a run, from its beginning or from a state. The scenario is text with absolute paths;
    /// `make` makes its tasks, unless they are those of the last call with this text.
    ///
    /// # Errors
    ///
    /// When the scenario is refused, what it names is not here, or the work fails.
    pub fn play(
        &self,
        scenario: &str,
        make: MakeTasks,
        run: &RunId,
        from: Option<&State>,
        rounds: u32,
    ) -> Result<Stretch, Error> {
        let world = self.world(scenario, make, run.seed)?;
        self.pool.install(|| Stretch::play(world, &run.scheme, from, rounds))
    }

    fn world(&self, text: &str, make: MakeTasks, seed: u64) -> Result<Arc<World>, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.as_ref().is_none_or(|kept| kept.text != text) {
            *kept = None;
            let scenario = Arc::new(Scenario::parse("scenario", text, &[], Path::new("."))?);
            let tasks = make(&scenario)?;
            *kept = Some(Kept { text: text.to_owned(), scenario, tasks, world: None });
        }
        let kept = kept.as_mut().expect("it has just been made");
        if let Some(world) = kept.world.as_ref().filter(|world| world.seed == seed) {
            return Ok(Arc::clone(world));
        }
        kept.world = None;
        let make = || World::new(Arc::clone(&kept.scenario), kept.tasks.task(seed)?, seed);
        let world = Arc::new(self.pool.install(make)?);
        kept.world = Some(Arc::clone(&world));
        Ok(world)
    }
}
