//! A comparison: every scheme with every seed, several runs at once, each resumable.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use fedcote_learn::data::Dataset;
use serde::Serialize;

use crate::Error;
use crate::engine::{Engine, Outcome};
use crate::folder::{Finished, Lock, RunFolder, Seals};
use crate::report::RoundReport;
use crate::scenario::Scenario;
use crate::summary::{RunSummary, SchemeSummary, Summary};
use crate::world::World;

/// Above this many clients `clients.json` is left out: nobody looks at it client by client.
const MAX_LISTED: usize = 10_000;

/// Which run: a scheme and a seed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId {
    /// The scheme's name.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
}

/// What happens in a comparison, for whoever listens.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run begins, or goes on after so many rounds.
    Started {
        /// Rounds already played.
        round: u32,
    },
    /// What the user should know about the selection of this run.
    Warned(&'a [String]),
    /// A round was played.
    Round(&'a RoundReport),
    /// A run ended.
    Finished(&'a Finished),
    /// A run was there already.
    Skipped(&'a Finished),
    /// A run was interrupted after so many rounds and can be resumed.
    Interrupted {
        /// Rounds played and saved.
        round: u32,
    },
}

/// Whoever wants to know: progress bars, the live page, tests.
pub trait Listener: Sync {
    /// Called from the run's own thread; must be quick.
    fn event(&self, run: &RunId, event: Event);
}

impl<F: Fn(&RunId, Event) + Sync> Listener for F {
    fn event(&self, run: &RunId, event: Event) {
        self(run, event)
    }
}

/// How to run a comparison.
pub struct Control<'a> {
    /// Threads; 0 means one a core.
    pub threads: usize,
    /// Whether to go on in a folder that has runs already.
    pub resume: bool,
    /// Becomes true when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// The command that repeats the comparison, for the summary.
    pub command: String,
}

/// Runs a comparison in a folder. `None` means that it was interrupted, and can be resumed.
pub fn compare(
    scenario: &Scenario,
    out: &Path,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Option<Summary>, Error> {
    // What cannot work is refused before anything is written.
    let data = fedcote_learn::data::load(&scenario.data, &scenario.base)?;
    let _lock = Lock::take(out)?;
    fedcote_learn::checkpoint::sweep(out).map_err(Error::io(out))?;
    if !control.resume && has_runs(out)? {
        let reason = "has runs already; add --resume to go on with them, or choose another --out";
        return Err(Error::folder(out, reason));
    }
    let scenario = Arc::new(scenario.clone());
    let general = &scenario.general;
    let runs: Vec<RunId> = general
        .seeds
        .iter()
        .flat_map(|&seed| {
            general.schemes.iter().map(move |scheme| RunId { scheme: scheme.clone(), seed })
        })
        .collect();
    // Every folder is checked before the first round is played.
    let folders = runs
        .iter()
        .map(|run| RunFolder::open(out, &scenario, &run.scheme, run.seed))
        .collect::<Result<Vec<_>, _>>()?;
    write(&out.join("scenario.toml"), scenario.to_toml().as_bytes())?;
    let results = play_all(&scenario, data, &runs, &folders, control, listener)?;
    let Some(results) = results.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let schemes = general
        .schemes
        .iter()
        .map(|scheme| {
            let of_scheme = runs.iter().zip(&results).filter(|(run, _)| run.scheme == *scheme);
            let results: Vec<RunSummary> = of_scheme.map(|(_, result)| result.clone()).collect();
            SchemeSummary::of(scheme, &results)
        })
        .collect();
    let summary = Summary {
        schemes,
        rounds: general.rounds,
        command: control.command.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    write(&out.join("summary.json"), &serde_json::to_vec_pretty(&summary).expect("plain data"))?;
    write(&out.join("summary.csv"), summary.to_csv().as_bytes())?;
    Ok(Some(summary))
}

/// Plays some runs of a scenario in a folder, and goes on with those that were begun; the caller sees to it that
/// nobody else plays them. False means that it was interrupted.
pub fn play(
    scenario: &Scenario,
    out: &Path,
    runs: &[RunId],
    control: &Control,
    listener: &dyn Listener,
) -> Result<bool, Error> {
    let data = fedcote_learn::data::load(&scenario.data, &scenario.base)?;
    let folders = runs
        .iter()
        .map(|run| RunFolder::open(out, scenario, &run.scheme, run.seed))
        .collect::<Result<Vec<_>, _>>()?;
    let results = play_all(&Arc::new(scenario.clone()), data, runs, &folders, control, listener)?;
    Ok(results.iter().all(Option::is_some))
}

fn write(path: &Path, contents: &[u8]) -> Result<(), Error> {
    Ok(fedcote_learn::checkpoint::write(path, contents)?)
}

fn has_runs(out: &Path) -> Result<bool, Error> {
    let entries = std::fs::read_dir(out).map_err(Error::io(out))?;
    Ok(entries.flatten().any(|entry| entry.path().is_dir()))
}

/// Plays all runs, as many at once as there are threads. `None` for a run that was interrupted.
fn play_all(
    scenario: &Arc<Scenario>,
    data: Arc<Dataset>,
    runs: &[RunId],
    folders: &[RunFolder],
    control: &Control,
    listener: &dyn Listener,
) -> Result<Vec<Option<RunSummary>>, Error> {
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(control.threads).build().map_err(|error| {
            Error::Io { path: "threads".into(), source: std::io::Error::other(error) }
        })?;
    let worlds = Worlds { scenario, data, made: Mutex::default() };
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results = Mutex::new((0..runs.len()).map(|_| Ok(None)).collect::<Vec<_>>());
    // Runs live on threads of their own and lend each round to the pool, so that the last run of a comparison still
    // uses every core, and a run waits for another for a round at most.
    std::thread::scope(|scope| {
        for _ in 0..pool.current_num_threads().min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= runs.len() || failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let play = Play { run: &runs[at], folder: &folders[at], control, listener };
                    let result = play.all(scenario, &worlds, &pool);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("no panic while held")[at] = result;
                }
            });
        }
    });
    results.into_inner().expect("no panic while held").into_iter().collect()
}

/// The worlds of the seeds, made when first needed and dropped when nobody lives there.
struct Worlds<'a> {
    scenario: &'a Arc<Scenario>,
    data: Arc<Dataset>,
    made: Mutex<HashMap<u64, std::sync::Weak<World>>>,
}

impl Worlds<'_> {
    fn of(&self, seed: u64, pool: &rayon::ThreadPool) -> Result<Arc<World>, Error> {
        // Locked on the run's own thread: a pool thread that waits for a part of its work may take up another run's
        // work meanwhile, and would wait for its own lock for ever.
        let mut made = self.made.lock().expect("no panic while held");
        if let Some(world) = made.get(&seed).and_then(std::sync::Weak::upgrade) {
            return Ok(world);
        }
        let data = Arc::clone(&self.data);
        let make = || World::new(Arc::clone(self.scenario), data, seed);
        let world = Arc::new(pool.install(make)?);
        made.insert(seed, Arc::downgrade(&world));
        Ok(world)
    }
}

/// One run on its way.
struct Play<'a> {
    run: &'a RunId,
    folder: &'a RunFolder,
    control: &'a Control<'a>,
    listener: &'a dyn Listener,
}

impl Play<'_> {
    fn stopping(&self) -> bool {
        self.control.stop.load(Ordering::Relaxed)
    }

    fn all(
        &self,
        scenario: &Scenario,
        worlds: &Worlds,
        pool: &rayon::ThreadPool,
    ) -> Result<Option<RunSummary>, Error> {
        let rounds = scenario.general.rounds;
        if let Some((finished, reports)) = self.folder.finished()? {
            self.folder.tidy()?;
            self.listener.event(self.run, Event::Skipped(&finished));
            return Ok(Some(RunSummary::of(rounds, &finished, &reports)));
        }
        if self.stopping() {
            return Ok(None);
        }
        let world = worlds.of(self.run.seed, pool)?;
        let scheme = scenario.schemes.resolve(&self.run.scheme);
        let scheme = scheme.map_err(|(place, reason)| Error::Scenario { place, reason })?;
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
            let report = pool.install(|| play_round(&mut engine, round, scenario))?;
            if round == 1 {
                self.write_clients(&engine, &mut seals)?;
                if !engine.warnings().is_empty() {
                    self.listener.event(self.run, Event::Warned(engine.warnings()));
                }
            }
            let Some(report) = report else {
                metrics.add(&serde_json::json!({ "diverged_at": round }))?;
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
                return Ok(None);
            }
        }
        metrics.sync()?;
        let model = self.folder.path().join("model.safetensors");
        let parameters = engine.world().model.parameters();
        fedcote_learn::checkpoint::save(&model, parameters, engine.global())?;
        seals.seal(self.folder.path(), "model.safetensors").map_err(Error::io(&model))?;
        let finished = Finished {
            rounds: round,
            diverged_at,
            seconds: seconds(),
            classes: engine.federation().classes(),
            server_memory: engine.server_memory(),
            metrics_checksum: metrics.checksum(),
            checksums: seals,
        };
        self.folder.finish(finished)?;
        let (finished, reports) = self.folder.finished()?.expect("it has just been written");
        self.listener.event(self.run, Event::Finished(&finished));
        Ok(Some(RunSummary::of(rounds, &finished, &reports)))
    }

    /// Who takes part, as seen in the first round.
    fn write_clients(&self, engine: &Engine, seals: &mut Seals) -> Result<(), Error> {
        let federation = &engine.world().federation;
        if federation.len() > MAX_LISTED {
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
                    labels: federation.labels(at),
                    selection: probabilities.map(|p| p.selection[at]),
                    appearance: probabilities.map(|p| p.appearance[at]),
                    x: place.map(|place| place.x),
                    y: place.map(|place| place.y),
                    standard: place.map(|place| place.standard),
                    indoor: place.map(|place| place.indoor),
                }
            })
            .collect();
        let global_labels = federation.global_labels();
        self.folder.write_json(
            "clients.json",
            &serde_json::json!({
                "classes": federation.classes(),
                "global_labels": global_labels,
                "clients": clients,
                "warnings": engine.warnings(),
            }),
        )?;
        let sealed = seals.seal(self.folder.path(), "clients.json");
        sealed.map_err(Error::io(&self.folder.path().join("clients.json")))
    }
}

/// A client in `clients.json`.
#[derive(Serialize)]
struct Client<'a> {
    id: String,
    weight: f64,
    failure: f64,
    labels: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    appearance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    indoor: Option<bool>,
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
        engine.evaluate(&mut report, due(general.train_loss_every));
    }
    Ok(Some(report))
}
