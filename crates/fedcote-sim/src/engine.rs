//! Algorithm 1: one round is a function of the state and the round.
//!
//! Select, broadcast, update locally, upload (uploads fail by the network; when nothing arrives they are
//! repeated), aggregate what arrived. Every random number is keyed by what it is for, and updates are reduced in
//! client order, so neither threads nor interruptions change a bit.

mod buffer;
mod observe;

use std::borrow::Cow;
use std::sync::Arc;

use fedcote::Federation;
use fedcote::Uploads;
use fedcote::estimate::Estimator;
use fedcote::random::Purpose;
use fedcote_radio::{Availability, Upload};
use rand::RngExt;
use rayon::prelude::*;

use crate::clock::{Cost, Meter};
use crate::part::{
    Aggregation, Arrival, Count, LocalUpdate, Probabilities, RoundContext, Selection, Traffic,
};
use crate::privacy::Privacy;
use crate::report::RoundReport;
use crate::saved::Saved;
use crate::scenario::Knowledge;
use crate::scheme::{FailureKind, Scheme};
use crate::task::Job;
use crate::world::World;
use crate::{Error, aggregation, local, own, selection, vector};

/// How often a round is drawn again before giving up.
const MAX_REDRAWS: u32 = 1000;

/// What a round came to.
#[allow(clippy::large_enum_variant)] // one per round, taken apart at once
pub enum Outcome {
    /// It went well.
    Done(RoundReport),
    /// Every update or the global model stopped being numbers.
    Diverged,
}

/// A run: a scheme in a world.
pub struct Engine {
    world: Arc<World>,
    scheme: Scheme,
    selection: Box<dyn Selection>,
    local: Box<dyn LocalUpdate>,
    aggregation: Box<dyn Aggregation>,
    federation: Arc<Federation>,
    estimator: Option<Estimator>,
    privacy: Option<Privacy>,
    global: Arc<Vec<f32>>,
    fresh: bool,
    actual: Vec<f64>,
    available: Arc<[bool]>,
}

impl Engine {
    /// A run at its beginning.
    pub fn new(world: Arc<World>, scheme: Scheme) -> Result<Self, Error> {
        let parameters = world.task.len();
        let initial = world.task.initial(world.key(Purpose::Model))?;
        if initial.len() != parameters {
            let found = initial.len();
            let reason = format!(
                "gave an initial model of {found} values, its parameters have {parameters}"
            );
            return Err(Error::Task { round: 0, client: None, reason });
        }
        let own = own::parts(&scheme, &world)?;
        let estimator = match world.scenario.observation.knowledge {
            Knowledge::Estimated if scheme.failures != FailureKind::None => {
                Some(world.scenario.estimator().estimator(world.federation.len())?)
            }
            _ => None,
        };
        // Who has to learn how often clients fail, or meets other failures than the network's, knows of no groups.
        let known = scheme.failures == FailureKind::Network && estimator.is_none();
        let federation = match world.reported.groups() {
            Some(_) if !known => Arc::new(Federation::clone(&world.reported).without_groups()),
            _ => Arc::clone(&world.reported),
        };
        let (clients, draws) = (world.federation.len(), world.draws());
        Ok(Self {
            privacy: Privacy::new(&world.scenario.server, &scheme, clients, draws)?,
            selection: own.selection.unwrap_or_else(|| selection::build(&scheme, &world)),
            local: own.local.unwrap_or_else(|| local::build(&scheme, parameters)),
            aggregation: own.aggregation.unwrap_or_else(|| aggregation::build(&scheme, parameters)),
            federation,
            estimator,
            global: Arc::new(initial),
            fresh: true,
            actual: Vec::new(),
            available: Arc::default(),
            scheme,
            world,
        })
    }

    /// The global model.
    pub fn global(&self) -> &[f32] {
        &self.global
    }

    /// The model that the scheme stands for: the global one, unless it evaluates another.
    pub fn model(&self) -> Cow<'_, [f32]> {
        self.aggregation
            .evaluated(&self.global)
            .map_or(Cow::Borrowed(self.global.as_slice()), Cow::Owned)
    }

    /// The world this run lives in.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Weights and labels as reported, and the failure probabilities that the server believes in.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// The failure probabilities that this scheme really meets.
    pub fn failures(&self) -> &[f64] {
        &self.actual
    }

    /// What the user should know about the network and the selection in force.
    pub fn warnings(&self) -> Vec<String> {
        let availability = self.world.network.availability();
        let network = self.scheme.failures == FailureKind::Network;
        let raised = availability.filter(|_| network).and_then(Availability::warning);
        raised.into_iter().chain(self.selection.warnings().iter().cloned()).collect()
    }

    /// The probabilities behind the last draws, for a selection that has some.
    pub fn probabilities(&self) -> Option<Probabilities<'_>> {
        self.selection.probabilities()
    }

    /// Bytes of server state that grow with the number of clients.
    pub fn server_memory(&self) -> usize {
        self.selection.memory() + self.aggregation.memory()
    }

    /// Plays one round. After an error the state is that of a half-played round: only [`restore`](Self::restore) helps.
    pub fn step(&mut self, round: u32) -> Result<Outcome, Error> {
        let changed = self.observe_network(round)?;
        if !self.available.contains(&true) {
            let network = &self.world.network;
            // On a network that stays like that for ever there is nothing to wait for.
            let rounds = self.world.scenario.general.rounds;
            let stays = !network.moves() && network.availability().is_none();
            if stays || network.is_hopeless(rounds.max(round)) {
                return Err(Error::NobodyCanArrive { round });
            }
            if !self.aggregation.counts_empty_rounds() && self.selection.buffered().is_none() {
                let mut meter = Meter::new(&self.world.clock, network);
                meter.idle();
                let report = RoundReport { round, ..RoundReport::default() };
                let report = report.with_cost(meter.cost(), self.world.has_transmitters());
                return Ok(Outcome::Done(report));
            }
        }
        let broadcast = std::mem::take(&mut self.global);
        let outcome = self.play(round, changed, &broadcast);
        if self.global.is_empty() {
            self.global = broadcast;
        }
        outcome
    }

    fn play(
        &mut self,
        round: u32,
        changed: bool,
        broadcast: &Arc<Vec<f32>>,
    ) -> Result<Outcome, Error> {
        let world = Arc::clone(&self.world);
        let federation = Arc::clone(&self.federation);
        let available = Arc::clone(&self.available);
        let context = RoundContext {
            world: &world,
            federation: &federation,
            changed,
            available: &available,
            round,
            global: broadcast,
        };
        self.selection.prepare(&context)?;
        let Some(uploads) = self.exchange(&context)? else { return Ok(Outcome::Diverged) };
        let Uploaded { selected, arrivals, lost, attempts, cost } = uploads;
        if attempts == 0 && !self.aggregation.counts_empty_rounds() {
            let report = RoundReport { round, selected, ..RoundReport::default() };
            return Ok(Outcome::Done(report.with_cost(cost, world.has_transmitters())));
        }
        let mut global = broadcast.to_vec();
        let weights = self.aggregation.aggregate(
            &context,
            self.selection.probabilities(),
            &arrivals,
            &mut global,
        )?;
        if let Some(privacy) = &mut self.privacy {
            let key = world.key(Purpose::UpdateNoise).round(round);
            privacy.release(key, &weights, broadcast, &mut global);
        }
        if self.uses_lost() {
            self.aggregation.lost(&context, &lost);
            self.local.lost(&context, &lost);
            self.selection.lost(&context, &lost);
        }
        self.local.received(&context, &arrivals);
        self.selection.received(&context, &arrivals);
        let report = RoundReport {
            round,
            selected,
            arrived: counts(&arrivals),
            attempts,
            label_divergence_wanted: self.selection.probabilities().map(|p| p.label_divergence),
            label_divergence_realised: realised(&world.federation, &weights),
            scores: self
                .aggregation
                .scores()
                .into_iter()
                .chain(self.privacy.as_ref().map(|privacy| ("epsilon", privacy.epsilon())))
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..RoundReport::default()
        };
        let report = report.with_cost(cost, world.has_transmitters());
        let finite = vector::finite(&global);
        self.global = Arc::new(global);
        Ok(if finite { Outcome::Done(report) } else { Outcome::Diverged })
    }

    /// Draws, uploads until something arrives, and trains those who get through. `None` when every update is no
    /// number.
    ///
    /// Whether an upload gets through does not depend on what it carries, so a client whose uploads are all lost
    /// need not be trained: nobody would see the result, except where a part says otherwise.
    fn exchange(&mut self, context: &RoundContext) -> Result<Option<Uploaded>, Error> {
        let mut attempts = 0;
        let mut absent = Vec::new();
        let mut meter = Meter::new(&context.world.clock, &context.world.network);
        if context.round == 1 {
            let labels = self.selection.needs_labels() || self.aggregation.needs_labels();
            let numbers = if labels { context.federation.classes() as u32 } else { 1 };
            meter.register(context.federation.len(), numbers);
        }
        if self.selection.buffered().is_some() {
            return self.fill_buffer(context, meter);
        }
        for redraw in 0..MAX_REDRAWS {
            let selected = self.selection.draw(context, redraw)?;
            meter.ask_losses(self.selection.asked());
            let there = |&(client, _): &Count| context.available[client as usize];
            if !selected.iter().any(there) && !self.aggregation.counts_empty_rounds() {
                // Nobody drawn can arrive: repeating the uploads would go on for ever. A selection that leaves nothing to chance
                // draws the same again.
                let same = absent == selected;
                absent = selected;
                if same && context.world.network.availability().is_some() {
                    break;
                }
                continue;
            }
            let drawn = self.traffic(context, &selected);
            let away = |client: u32| {
                let availability = context.world.network.availability();
                self.scheme.failures == FailureKind::Network
                    && availability.is_some_and(|a| !a.available(context.round, client as usize))
            };
            let mut received = Some(meter.broadcast(&drawn, away));
            let mut updates: Vec<Update> = selected.iter().map(|_| Update::Untrained).collect();
            let mut hopeless = false;
            for _ in 0..self.world.scenario.general.max_attempts {
                let through: Vec<Vec<Upload>> =
                    selected.iter().map(|&drawn| self.upload(context, drawn, attempts)).collect();
                let reached = |place: usize| through[place].iter().any(|upload| upload.arrived);
                // Who is sound and gets through arrives.
                self.train(context, &selected, &mut updates, reached, self.absorbs())?;
                let sound = |updates: &[Update], place: usize| {
                    matches!(updates[place], Update::Sound(_)) && reached(place)
                };
                let arrived = (0..selected.len()).any(|place| sound(&updates, place));
                if !arrived && (0..selected.len()).any(reached) {
                    self.train(context, &selected, &mut updates, |_| true, false)?;
                    if !updates.iter().any(|update| matches!(update, Update::Sound(_))) {
                        // What hostile clients send says nothing about the run.
                        if selected
                            .iter()
                            .any(|&(client, _)| context.world.attack(client).is_none())
                        {
                            return Ok(None);
                        }
                        hopeless = self.aggregation.retries();
                    }
                }
                attempts += 1;
                let steps = |client| context.world.steps(client);
                meter.attempt(&drawn, steps, &through, received.take().as_deref());
                self.observe(&selected, &through, |place| sound(&updates, place));
                if hopeless {
                    break;
                }
                if arrived || !self.aggregation.retries() {
                    if self.world.asks_everyone() || self.selection.sees_absent() {
                        self.observe_absent(context);
                    }
                    self.observe_pilots(context, &selected);
                    if let Some(estimator) = &mut self.estimator {
                        estimator.tick();
                    }
                    if self.uses_lost() {
                        self.train(context, &selected, &mut updates, |_| true, false)?;
                    }
                    let (arrivals, lost) = self.collect(&selected, updates, &through);
                    let cost = meter.cost();
                    return Ok(Some(Uploaded { selected, arrivals, lost, attempts, cost }));
                }
            }
        }
        if attempts == 0 && context.world.network.availability().is_some() {
            // Those who would be asked are away: they may come back.
            let (arrivals, lost) = (Vec::new(), Vec::new());
            meter.idle();
            let cost = meter.cost();
            return Ok(Some(Uploaded { selected: absent, arrivals, lost, attempts, cost }));
        }
        Err(Error::NothingArrives { round: context.round, attempts })
    }

    /// What the scheme sends to and from each drawn client beside the model.
    fn traffic(&self, context: &RoundContext, selected: &[Count]) -> Vec<(u32, Traffic)> {
        let traffic = |&(client, _): &Count| {
            let (local, server) = (&self.local, &self.aggregation);
            (client, local.traffic(context, client) + server.traffic(context, client))
        };
        selected.iter().map(traffic).collect()
    }

    /// Whether some part goes by what clients learnt whose uploads were all lost.
    fn uses_lost(&self) -> bool {
        self.local.uses_lost() || self.selection.uses_lost() || self.aggregation.uses_lost()
    }

    /// Whether nobody but the aggregation reads the models that arrive.
    fn absorbs(&self) -> bool {
        !(self.local.reads_models() || self.selection.reads_models())
    }

    /// Local updates of the drawn clients at these places that have none yet, in as few calls of the task as it likes;
    /// `arriving` ones are absorbed.
    fn train(
        &mut self,
        context: &RoundContext,
        selected: &[Count],
        updates: &mut [Update],
        wanted: impl Fn(usize) -> bool,
        arriving: bool,
    ) -> Result<(), Error> {
        let places: Vec<usize> = (0..updates.len())
            .filter(|&place| matches!(updates[place], Update::Untrained) && wanted(place))
            .collect();
        for places in places.chunks(context.world.task.jobs_at_once().max(1)) {
            let trained = self.train_together(context, selected, places)?;
            for (&place, mut update) in places.iter().zip(trained) {
                if let (true, Update::Sound(model)) = (arriving, &mut update) {
                    let client = selected[place].0;
                    self.aggregation.absorb(context, client, context.world.steps(client), model);
                }
                updates[place] = update;
            }
        }
        Ok(())
    }

    fn train_together(
        &self,
        context: &RoundContext,
        selected: &[Count],
        places: &[usize],
    ) -> Result<Vec<Update>, Error> {
        let job = |&place: &usize| {
            let client = selected[place].0;
            let own = self.local.try_correction(context, client)?;
            let job = context.world.job(context.round, client);
            let correction = own.and(self.aggregation.correction(context, client));
            let start = self.local.start(client).or_else(|| self.aggregation.start(client));
            Ok(Job { correction, start, ..job })
        };
        let mut jobs: Vec<Job> = places.iter().map(job).collect::<Result<_, Error>>()?;
        context.world.task.train(context.global, &mut jobs)?;
        let (wanted, wrong) =
            (context.global.len(), |job: &&Job| job.model.len() != context.global.len());
        if let Some(job) = jobs.iter().filter(|job| job.finite).find(wrong) {
            let reason = format!("returned {} values, the model has {wanted}", job.model.len());
            return Err(Error::Task { round: context.round, client: Some(job.client), reason });
        }
        Ok(jobs.into_par_iter().map(|job| accepted(context, job)).collect())
    }

    /// One attempt at a drawn client's uploads: which of them get through.
    fn upload(&self, context: &RoundContext, (client, copies): Count, attempt: u32) -> Vec<Upload> {
        let world = context.world;
        let key = world.key(Purpose::Upload).round(context.round).client(client.into());
        let uploads = match world.scenario.observation.uploads {
            Uploads::PerDraw => copies,
            Uploads::PerClient => 1,
        };
        let through = |copy| {
            let key = key.copy(copy).attempt(attempt);
            match self.scheme.failures {
                FailureKind::None => Upload::known_by_arrival(true),
                FailureKind::Network => world.network.upload(context.round, client as usize, key),
                FailureKind::Equalised => Upload::known_by_arrival(
                    key.stream().random::<f64>() >= self.actual[client as usize],
                ),
            }
        };
        (0..uploads).map(through).collect()
    }

    /// The models that arrived, and those that were trained and did not.
    fn collect(
        &self,
        selected: &[Count],
        updates: Vec<Update>,
        through: &[Vec<Upload>],
    ) -> (Vec<Arrival>, Vec<Arrival>) {
        let (mut arrivals, mut lost) = (Vec::new(), Vec::new());
        for ((&(client, copies), update), uploads) in selected.iter().zip(updates).zip(through) {
            let count = uploads.iter().filter(|upload| upload.arrived).count() as u32;
            let copies = match self.world.scenario.observation.uploads {
                Uploads::PerDraw => count,
                Uploads::PerClient => count * copies,
            };
            if let Update::Sound(model) = update {
                let steps = self.world.steps(client);
                let all = if copies > 0 { &mut arrivals } else { &mut lost };
                all.push(Arrival { client, copies, steps, model });
            }
        }
        (arrivals, lost)
    }

    /// Reports how good the model is, on the training samples too if that is wanted.
    ///
    /// # Errors
    ///
    /// When the task cannot evaluate.
    pub fn evaluate(&self, report: &mut RoundReport, train_loss: bool) -> Result<(), Error> {
        let model = self.model();
        for (name, value) in self.world.task.evaluate(&model, false)? {
            if !value.is_finite() {
                continue;
            }
            match name.as_str() {
                "accuracy" => report.test_accuracy = Some(value),
                "loss" => report.test_loss = Some(value),
                _ => {
                    report.scores.insert(name, value);
                }
            }
        }
        if train_loss {
            let scores = self.world.task.evaluate(&model, true)?;
            let loss = scores.iter().find(|(name, _)| name == "loss").map(|(_, loss)| *loss);
            report.train_loss = loss.filter(|loss| loss.is_finite());
        }
        Ok(())
    }

    /// Everything that must survive an interruption.
    pub fn save(&self) -> Saved<'_> {
        let mut saved = Saved::default();
        saved.put("global", &self.global);
        self.selection.save(&mut saved);
        self.local.save(&mut saved);
        self.aggregation.save(&mut saved);
        if let Some(estimator) = &self.estimator {
            saved.put_value("estimator", estimator);
        }
        if let Some(privacy) = &self.privacy {
            privacy.save(&mut saved);
        }
        saved
    }

    /// Goes on from what was saved; an error says what is damaged.
    pub fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.global = Arc::new(saved.take("global", self.global.len())?);
        self.selection.restore(saved)?;
        self.local.restore(saved)?;
        self.aggregation.restore(saved)?;
        if let Some(estimator) = &mut self.estimator {
            *estimator = saved.get_value("estimator")?;
        }
        if let Some(privacy) = &mut self.privacy {
            privacy.restore(saved)?;
        }
        self.fresh = true;
        Ok(())
    }
}

struct Uploaded {
    selected: Vec<Count>,
    arrivals: Vec<Arrival>,
    /// What was trained and did not arrive; all of it if a part goes by it.
    lost: Vec<Arrival>,
    attempts: u32,
    cost: Cost,
}

/// What a drawn client has to upload.
enum Update {
    /// Not known yet: it is not worked out before an upload gets through.
    Untrained,
    /// Not a number.
    Broken,
    /// A model.
    Sound(Vec<f32>),
}

/// What the server makes of a client's work: what is not a number is rejected, what is too long is clipped.
fn accepted(context: &RoundContext, job: Job) -> Update {
    let (mut model, mut finite) = (job.model, job.finite);
    if model.len() != context.global.len() {
        return Update::Broken;
    }
    // An update is the difference from where the client started.
    let start = job.start.unwrap_or(context.global);
    if let Some(attack) = context.world.attack(job.client) {
        attack.corrupt(start, &mut model);
        finite = vector::finite(&model);
    }
    if !finite {
        if context.world.scenario.server.noise_multiplier.is_none() {
            return Update::Broken;
        }
        // Who takes part must not depend on updates.
        model.copy_from_slice(start);
    }
    context.world.scenario.server.clip(start, &mut model);
    Update::Sound(model)
}

/// Who arrived, and how often: neighbours that are the same client, who came twice, are one.
fn counts(arrivals: &[Arrival]) -> Vec<Count> {
    let mut counts: Vec<Count> = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        match counts.last_mut() {
            Some((client, copies)) if *client == arrival.client => *copies += arrival.copies,
            _ => counts.push((arrival.client, arrival.copies)),
        }
    }
    counts
}

/// χ² of the label mix that these weights make, normalised.
fn realised(federation: &Federation, weights: &[(u32, f64)]) -> Option<f64> {
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if !(total.is_finite() && total > 0.0) {
        return None;
    }
    let mut mix = vec![0.0; federation.classes()];
    for &(client, weight) in weights {
        for (mix, share) in mix.iter_mut().zip(federation.labels(client as usize)) {
            *mix += weight / total * share;
        }
    }
    Some(fedcote::divergence::chi_square(&mix, federation.global_labels()))
}
