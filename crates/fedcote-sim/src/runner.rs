//! One run from its first round, or from its checkpoint, to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::Error;
use crate::comparison::{Control, Event, Listener};
use crate::context::Context;
use crate::engine::{Engine, Outcome};
use crate::folder::{Client, Clients, Diverged, Finished, Lock, RunFolder, Seals};
use crate::plan::RunId;
use crate::report::RoundReport;
use crate::scenario::Scenario;

/// One run on its way.
pub(crate) struct Runner<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) folder: &'a RunFolder,
    pub(crate) control: &'a Control<'a>,
    pub(crate) listener: &'a dyn Listener,
    /// Becomes true when another run fails.
    pub(crate) failed: &'a AtomicBool,
}

impl Runner<'_> {
    fn stopping(&self) -> bool {
        self.control.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Plays the run to its end; false means that it was interrupted.
    pub(crate) fn play(&self, context: &Context) -> Result<bool, Error> {
        let scenario = &**context.scenario;
        let rounds = scenario.general.rounds;
        if self.stopping() {
            return Ok(false);
        }
        // One command at a time plays a run.
        let _lock = Lock::take(self.folder.path())?;
        if let Some((finished, _)) = self.folder.finished()? {
            self.folder.tidy()?;
            self.listener.event(self.run, Event::Skipped(&finished));
            return Ok(true);
        }
        let world = context.world(self.run.seed)?;
        let scheme = scenario.schemes.resolve(&self.run.scheme)?;
        let mut engine = Engine::new(world, scheme)?;
        self.folder.sweep()?;
        let (mut round, spent, mut seals) = match self.folder.resume()? {
            None => (0, 0.0, Seals::default()),
            Some(resumed) => {
                let path = self.folder.path();
                let damaged = |reason| {
                    let remedy = format!("remove {} to run it again", path.display());
                    Error::folder(path, format!("the checkpoint is damaged: {reason}; {remedy}"))
                };
                engine.restore(&resumed.saved).map_err(damaged)?;
                (resumed.round, resumed.seconds, resumed.seals)
            }
        };
        self.listener.event(self.run, Event::Started { round });
        let begun = Instant::now();
        let seconds = || spent + begun.elapsed().as_secs_f64();
        let mut metrics = self.folder.metrics()?;
        let mut diverged_at = None;
        while round < rounds {
            round += 1;
            let report = context.pool.install(|| play_round(&mut engine, round, scenario));
            let report = report.map_err(|error| error.in_round(round))?;
            if round == 1 {
                self.write_clients(&engine, &mut seals)?;
                if !engine.warnings().is_empty() {
                    self.listener.event(self.run, Event::Warned(engine.warnings()));
                }
            }
            let Some(report) = report else {
                metrics.add(&Diverged { diverged_at: round })?;
                diverged_at = Some(round);
                break;
            };
            metrics.add(&report)?;
            self.listener.event(self.run, Event::Round(&report));
            let stop = self.stopping() && round < rounds;
            if stop || round.is_multiple_of(scenario.general.checkpoint_every) {
                metrics.sync()?;
                let mut seals = seals.clone();
                seals.set("metrics.jsonl", metrics.checksum());
                self.folder.checkpoint(round, seconds(), &engine.save(), &seals)?;
            }
            if stop {
                self.listener.event(self.run, Event::Interrupted { round });
                return Ok(false);
            }
        }
        metrics.sync()?;
        let model = self.folder.path().join("model.safetensors");
        let parameters = engine.world().task.parameters();
        fedcote_learn::checkpoint::save(&model, parameters, engine.global())?;
        seals.seal(self.folder.path(), "model.safetensors").map_err(Error::io(&model))?;
        let finished = Finished {
            rounds: round,
            diverged_at,
            seconds: seconds(),
            classes: Some(engine.federation().classes()),
            server_memory: engine.server_memory(),
            metrics_checksum: metrics.checksum(),
            checksums: seals,
        };
        self.folder.finish(finished)?;
        let (finished, _) = self.folder.finished()?.expect("it has just been written");
        self.listener.event(self.run, Event::Finished(&finished));
        Ok(true)
    }

    /// Who takes part, as seen in the first round.
    fn write_clients(&self, engine: &Engine, seals: &mut Seals) -> Result<(), Error> {
        let federation = &engine.world().federation;
        if federation.len() > Clients::MOST {
            return Ok(());
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
            warnings: engine.warnings().to_vec(),
        };
        self.folder.write_clients(&clients, seals)
    }
}

/// One round and, where it is due, its evaluation; `None` when the numbers blew up.
fn play_round(
    engine: &mut Engine,
    round: u32,
    scenario: &Scenario,
) -> Result<Option<RoundReport>, Error> {
    let Outcome::Done(mut report) = engine.step(round)? else { return Ok(None) };
    let general = &scenario.general;
    let due = |every: u32| round.is_multiple_of(every) || round == general.rounds;
    if due(general.evaluate_every) {
        engine.evaluate(&mut report, due(general.train_loss_every))?;
    }
    Ok(Some(report))
}
