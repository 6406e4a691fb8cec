//! What to make, and how.

use std::path::PathBuf;

use crate::artefact::{ARTEFACTS, Artefact, Body, Other};
use crate::error::Error;
use crate::list::{self, List};
use crate::plan::Plan;
use crate::request::{Request, SEEDS};
use crate::runs::Store;
use crate::variant::{Network, Task};
use fedcote_sim::comparison::Shard;

/// The names of all artefacts, and `all`.
pub fn names() -> Vec<&'static str> {
    ARTEFACTS.iter().map(|artefact| artefact.name).chain(["all"]).collect()
}

/// What to make, and how. The default is the paper's own extent, in the folder `paper`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names of artefacts; `all` is everything that suits the task.
    pub artefacts: Vec<String>,
    /// The network of the runs. Default: calibrated.
    pub network: Network,
    /// The task of artefacts that could have either. Default: MNIST.
    pub task: Option<Task>,
    /// Rounds per run instead of the paper's.
    pub rounds: Option<u32>,
    /// Seeds instead of those of the full artefact.
    pub seeds: Option<Vec<u64>>,
    /// The schemes to show, by the names in tables; all when empty.
    pub schemes: Vec<String>,
    /// The constant L of the bound in `theorem-1`. Default: 1.
    pub smoothness: Option<f64>,
    /// The part of the runs to play.
    pub shard: Shard,
    /// Play nothing: make tables and figures of the runs that are there, and say in the cells of the others that they were not run.
    pub existing: bool,
    /// Threads to compute with; 0 is one per core.
    pub threads: usize,
    /// The folder to write to; runs are kept below it and used again.
    pub out: PathBuf,
    /// The command that repeats this, for the pages.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            artefacts: Vec::new(),
            network: Network::Calibrated,
            task: None,
            rounds: None,
            seeds: None,
            schemes: Vec::new(),
            smoothness: None,
            shard: Shard::ALL,
            existing: false,
            threads: 0,
            out: PathBuf::from("paper"),
            command: "fedcote-paper".to_owned(),
        }
    }
}

impl Options {
    /// What there is to make, what it needs, and what of that is in the folder.
    pub fn list(&self) -> List {
        list::of(&self.request(), &Store::new(&self.out))
    }

    /// Checks everything and finds the runs that are needed.
    pub fn plan(&self) -> Result<Plan, Error> {
        if self.smoothness.is_some_and(|smoothness| !(smoothness > 0.0 && smoothness.is_finite())) {
            return Err(Error::option("smoothness", "must be above 0 and finite"));
        }
        let artefacts = self.chosen()?;
        self.check_effect(&artefacts)?;
        Plan::new(self.clone(), self.request(), artefacts)
    }

    fn request(&self) -> Request {
        Request {
            network: self.network,
            task: self.task.unwrap_or(Task::Mnist),
            rounds: self.rounds,
            seeds: self.seeds.clone(),
            full_seeds: SEEDS,
            schemes: self.schemes.clone(),
        }
    }

    /// The artefacts that were asked for, each once.
    fn chosen(&self) -> Result<Vec<&'static Artefact>, Error> {
        let task = self.task.unwrap_or(Task::Mnist);
        let mut chosen: Vec<&Artefact> = Vec::new();
        for name in &self.artefacts {
            let found: Vec<&Artefact> = match (name.as_str(), Artefact::find(name)) {
                ("all", _) => {
                    let suits = |artefact: &&Artefact| {
                        artefact.task.is_none_or(|own| own == task) && artefact.is_whole()
                    };
                    ARTEFACTS.iter().filter(suits).collect()
                }
                // The second fit goes by the first.
                ("calibrate", _) => {
                    let parts = ["calibrate", "calibrate-placement"].map(Artefact::find);
                    parts.into_iter().flatten().collect()
                }
                (_, Some(artefact)) => vec![artefact],
                (name, None) => {
                    return Err(Error::option("artefacts", format!("unknown artefact `{name}`")));
                }
            };
            for artefact in found {
                if !chosen.iter().any(|other| other.name == artefact.name) {
                    chosen.push(artefact);
                }
            }
        }
        Ok(chosen)
    }

    /// Refuses what would change nothing.
    fn check_effect(&self, artefacts: &[&Artefact]) -> Result<(), Error> {
        let is = |artefact: &Artefact, other| matches!(artefact.body, Body::Other(kind) if kind == other);
        if self.smoothness.is_some()
            && !artefacts.iter().any(|a| is(a, Other::Theorem) || is(a, Other::TheoremWalking))
        {
            let reason = "has no effect here: it belongs to theorem-1 and theorem-2";
            return Err(Error::option("smoothness", reason));
        }
        // It is on the network of another paper, whatever ours is.
        if self.network != Network::Calibrated
            && artefacts.iter().any(|artefact| matches!(artefact.body, Body::Rivals))
        {
            let reason = "has no effect on rivals, whose network is FedAWE's: leave it out";
            return Err(Error::option("network", reason));
        }
        if let Some(task) = self.task {
            // What `all` stands for suits the task already.
            let by_name = self.artefacts.iter().filter_map(|name| Artefact::find(name));
            let other = |artefact: &Artefact| Some((artefact.name, artefact.task?));
            if let Some((name, own)) = by_name.filter_map(other).find(|(_, own)| *own != task) {
                return Err(Error::option("task", format!("{name} is about {own}, not {task}")));
            }
        }
        let given = [
            ("task", self.task.is_some()),
            ("rounds", self.rounds.is_some()),
            ("seeds", self.seeds.is_some()),
            ("schemes", !self.schemes.is_empty()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) if artefacts.iter().all(|a| is(a, Other::Enumeration)) => {
                Err(Error::option(name, "has no effect on table-8, which needs no runs"))
            }
            _ => Ok(()),
        }
    }
}
