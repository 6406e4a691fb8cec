//! A run in memory: one round after the other, without a folder.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::{Engine, Outcome};
use crate::folder::{Client, Clients, Diverged, Line};
use crate::saved::Saved;
use crate::world::World;

/// A run on its way.
pub(crate) struct Play {
    engine: Engine,
    round: u32,
    diverged: bool,
}

/// How a run ended, apart from its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Rounds played.
    pub rounds: u32,
    /// The round in which the numbers blew up, if they did.
    pub diverged_at: Option<u32>,
    /// The number of classes, of a task that has an accuracy.
    pub classes: Option<usize>,
    /// Bytes of server state that grew with the number of clients.
    pub server_memory: usize,
}

impl Play {
    /// The run of a scheme at its beginning.
    pub(crate) fn new(world: Arc<World>, scheme: &str) -> Result<Self, Error> {
        let scheme = world.scenario.schemes.resolve(scheme)?;
        Ok(Self { engine: Engine::new(world, scheme)?, round: 0, diverged: false })
    }

    /// Goes on after so many rounds; an error says what is damaged.
    pub(crate) fn restore(&mut self, round: u32, saved: &mut Saved<'_>) -> Result<(), String> {
        self.round = round;
        self.engine.restore(saved)
    }

    /// Everything that must survive an interruption.
    pub(crate) fn save(&self) -> Saved<'_> {
        self.engine.save()
    }

    /// Rounds played.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// Whether there is nothing more to play.
    pub(crate) fn has_ended(&self) -> bool {
        self.diverged || self.round >= self.engine.world().scenario.general.rounds
    }

    /// What the user should know about the selection in force.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.engine.warnings()
    }

    /// The instruction set that rounds are computed with.
    pub(crate) fn instructions(&self) -> &'static str {
        self.engine.world().task.instructions()
    }

    /// One round and, where it is due, its evaluation.
    pub(crate) fn step(&mut self) -> Result<Line, Error> {
        self.round += 1;
        self.play_round().map_err(|error| error.in_round(self.round))
    }

    fn play_round(&mut self) -> Result<Line, Error> {
        let Outcome::Done(mut report) = self.engine.step(self.round)? else {
            self.diverged = true;
            return Ok(Line::Diverged(Diverged { diverged_at: self.round }));
        };
        let general = &self.engine.world().scenario.general;
        let due = |every: u32| self.round.is_multiple_of(every) || self.round == general.rounds;
        if due(general.evaluate_every) {
            self.engine.evaluate(&mut report, due(general.train_loss_every))?;
        }
        Ok(Line::Round(Box::new(report)))
    }

    /// How the run ended.
    pub(crate) fn ending(&self) -> Ending {
        Ending {
            rounds: self.round,
            diverged_at: self.diverged.then_some(self.round),
            classes: Some(self.engine.federation().classes()),
            server_memory: self.engine.server_memory(),
        }
    }

    /// The contents of `model.safetensors`.
    pub(crate) fn model(&self) -> Result<Vec<u8>, Error> {
        let parameters = self.engine.world().task.parameters();
        let contents = fedcote_learn::checkpoint::contents(parameters, &self.engine.model());
        contents.map_err(|error| Error::Task {
            round: self.round,
            client: None,
            reason: format!("has a model that cannot be written: {error}"),
        })
    }

    /// The contents of `clients.json` after the first round; of very many clients nothing is told.
    pub(crate) fn clients(&self) -> Option<String> {
        let engine = &self.engine;
        let federation = &engine.world().federation;
        if federation.len() > Clients::MOST {
            return None;
        }
        let probabilities = engine.probabilities();
        let places = engine.world().network.positions(1);
        let clients: Vec<Client> = (0..federation.len())
            .map(|at| {
                let place = places.get(at);
                Client {
                    id: federation.id(at).into_owned(),
                    weight: federation.weights()[at],
                    failure: engine.failures()[at],
                    labels: federation.labels(at).to_vec(),
                    selection: probabilities.map(|p| p.selection[at]),
                    appearance: probabilities.map(|p| p.appearance[at]),
                    x: place.map(|place| place.x),
                    y: place.map(|place| place.y),
                    standard: place.map(|place| place.standard.to_owned()),
                    indoor: place.map(|place| place.indoor),
                }
            })
            .collect();
        let clients = Clients {
            classes: federation.classes(),
            clients,
            global_labels: federation.global_labels().to_vec(),
            warnings: engine.warnings(),
        };
        Some(serde_json::to_string(&clients).expect("plain data"))
    }
}
