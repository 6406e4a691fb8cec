//! Clients that come and go, on top of any network: whoever is away in a round cannot upload in it.
//!
//! Every process is a function of seed, round and client, so that any round can be asked for directly. A chain looks back from the
//! round that is asked for: with one uniform number u a round, a client that is there stays if u < P(there | there), one that is
//! away comes back if u < P(there | away), so that for a u below or above both of them the state no longer depends on the past. With
//! correlations near 1 that is long ago: of every client the states in two earlier rounds are remembered, where looking back ends, too.

mod check;
mod config;
mod recipe;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fedcote::random::{Key, Purpose};
use rand::RngExt;

use crate::error::Error;
use config::least_correlation;
pub use config::{AvailabilityConfig, Chance, FlgoMode, Known, Pattern, Presence, Recipe};

/// How many samples of each class each client holds.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// The number of classes.
    pub classes: usize,
    /// Clients × classes, one client after the other.
    pub counts: &'a [f64],
}

/// Rounds between those whose states are remembered.
const BLOCK: u32 = 64;

/// Clients that a warning names.
const SHOWN: usize = 10;

/// Who is there when.
#[derive(Debug, Clone)]
pub struct Availability {
    config: AvailabilityConfig,
    clients: usize,
    key: Key,
    /// The probability of each client before any pattern; of a chain, its share of rounds in the good state.
    base: Vec<f64>,
    /// The correlation of each client's chain; empty without chains.
    lambda: Vec<f64>,
    /// Smallest and largest label of each client over the largest of all, for the mode of FLGo that needs them.
    spans: Vec<(f64, f64)>,
    /// Two of each client's chain, for even and odd blocks: twice the last round at the start of a block that was looked up, plus its state.
    remembered: Arc<[AtomicU64]>,
}

impl Availability {
    /// The process that the description names; none if everybody is always there.
    ///
    /// # Errors
    ///
    /// When it needs labels and there are none.
    pub(crate) fn new(
        config: &AvailabilityConfig,
        clients: usize,
        seed: u64,
        labels: Option<Labels<'_>>,
    ) -> Result<Option<Self>, Error> {
        if config.kind == Presence::Always {
            return Ok(None);
        }
        let key = Key::new(seed, Purpose::Availability);
        let (base, spans) = recipe::base(config, clients, key, labels)?;
        let lambda = match config.kind {
            Presence::Markov | Presence::GilbertElliott => (0..clients)
                .map(|client| {
                    let share = base[client];
                    let least = least_correlation(share).min(1.0);
                    wanted(config, share, client).clamp(least, 1.0)
                })
                .collect(),
            _ => Vec::new(),
        };
        let remembered = (0..2 * lambda.len()).map(|_| AtomicU64::new(0)).collect();
        let config = config.clone();
        Ok(Some(Self { config, clients, key, base, lambda, spans, remembered }))
    }

    /// Which clients have a chain of another correlation than is asked for, because there is no such chain for their probabilities.
    pub fn warning(&self) -> Option<String> {
        let raised = |&client: &usize| {
            wanted(&self.config, self.base[client], client) < self.lambda[client] - 1e-12
        };
        let raised: Vec<usize> = (0..self.lambda.len()).filter(raised).collect();
        let shown: Vec<String> =
            raised.iter().take(SHOWN).map(|client| (client + 1).to_string()).collect();
        let more = match raised.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let key =
            if self.config.absence_rounds.is_some() { "absence_rounds" } else { "correlation" };
        (!raised.is_empty()).then(|| {
            format!(
                "network.availability.{key}: no such chain for the probabilities of clients {}{more}; they have the smallest correlation there is",
                shown.join(", ")
            )
        })
    }

    /// Whether a client is there with a probability above 0 in some round up to this one.
    pub(crate) fn ever(&self, client: usize, rounds: u32) -> bool {
        let config = &self.config;
        let period = match (config.kind, config.pattern) {
            (Presence::Flgo, _) | (_, Pattern::Day) => 24,
            (_, Pattern::Stationary) => 1,
            _ => config.period,
        };
        (1..=period.min(rounds)).any(|round| self.probability(round, client) > 0.0)
    }

    /// The uniform number of a client in a round; `what` tells several apart.
    fn uniform(&self, round: u32, client: usize, what: u32) -> f64 {
        self.key.round(round).client(client as u64).copy(what).stream().random()
    }

    /// The probability that a client is there in a round, from 1: of a chain, a cycle or a turn, the share of rounds.
    pub fn probability(&self, round: u32, client: usize) -> f64 {
        let r = round.saturating_sub(1);
        let (config, base) = (&self.config, self.base[client]);
        match config.kind {
            Presence::Always => 1.0,
            Presence::Bernoulli | Presence::LabelCoupled => {
                let chance = (base * config.factor(r)).clamp(0.0, 1.0);
                let cut = config.pattern == Pattern::InterleavedSine && chance < config.cutoff;
                if cut { 0.0 } else { chance }
            }
            Presence::Markov => base,
            Presence::GilbertElliott => base * config.good + (1.0 - base) * config.bad,
            Presence::Cyclic => f64::from(self.present(client)) / f64::from(config.cycle),
            Presence::InTurn => 1.0 / f64::from(config.groups),
            Presence::Flgo => match config.mode {
                FlgoMode::Sln => (base * config::day(r)).clamp(0.0, 1.0),
                FlgoMode::Yc => {
                    let hour = f64::from(1 + r % 24) / 24.0;
                    let (low, high) = self.spans[client];
                    if (low..=high).contains(&hour) { 1.0 } else { base }
                }
                _ => base,
            },
        }
    }

    /// Whether a client is there in a round, from 1.
    pub fn available(&self, round: u32, client: usize) -> bool {
        let (config, r) = (&self.config, round.saturating_sub(1));
        match config.kind {
            Presence::Markov => self.good_state(round, client),
            Presence::GilbertElliott => {
                let chance = if self.good_state(round, client) { config.good } else { config.bad };
                self.uniform(round, client, 1) < chance
            }
            Presence::Cyclic => {
                // Everybody starts away, at a place of its own in its absence.
                let away = config.cycle - self.present(client);
                let start = (self.uniform(0, client, 1) * f64::from(away)) as u32;
                (r % config.cycle + start) % config.cycle >= away
            }
            Presence::InTurn => {
                let turn = config.cycle / config.groups;
                let start = (self.uniform(0, 0, 1) * f64::from(turn)) as u32;
                let group = (r % config.cycle + start) % config.cycle / turn;
                client * config.groups as usize / self.clients == group as usize
            }
            _ => self.uniform(round, client, 0) < self.probability(round, client),
        }
    }

    /// The rounds of a cycle in which a client is there: at least one, and away for at least one.
    fn present(&self, client: usize) -> u32 {
        let cycle = self.config.cycle;
        ((f64::from(cycle) * self.base[client]).round() as u32).clamp(1, cycle - 1)
    }

    /// The state of a chain, found by looking back to the last round that made it forget the past, or to one that is remembered.
    fn good_state(&self, round: u32, client: usize) -> bool {
        let (share, lambda) = (self.base[client], self.lambda[client]);
        let (stay, back) = (lambda + (1.0 - lambda) * share, (1.0 - lambda) * share);
        let mut flipped = false;
        // With λ = 1 the first state is the state of all rounds.
        let mut at = if lambda < 1.0 { round } else { 1 };
        let mut passed = None;
        let state = loop {
            if at > 1 && at.is_multiple_of(BLOCK) {
                let found = self.remembered_at(at, client).load(Ordering::Relaxed);
                if found >> 1 == u64::from(at) {
                    break (found & 1 == 1) != flipped;
                }
                passed.get_or_insert((at, flipped));
            }
            let u = self.uniform(at.max(1), client, 0);
            if at <= 1 {
                break (u < share) != flipped;
            }
            match (u < stay, u < back) {
                (true, true) => break !flipped,
                (false, false) => break flipped,
                // Away comes back and there goes away: the state before, turned round.
                (false, true) => flipped = !flipped,
                (true, false) => {}
            }
            at -= 1;
        };
        if let Some((at, flipped)) = passed {
            let value = 2 * u64::from(at) + u64::from(state != flipped);
            self.remembered_at(at, client).store(value, Ordering::Relaxed);
        }
        state
    }

    /// Where the state at the start of a block is remembered.
    fn remembered_at(&self, round: u32, client: usize) -> &AtomicU64 {
        &self.remembered[2 * client + (round / BLOCK % 2) as usize]
    }

    /// What the server knows of [`probability`](Self::probability), or of who is there.
    pub(crate) fn known(&self, round: u32, client: usize) -> f64 {
        match self.config.known {
            Known::Probability => self.probability(round, client),
            Known::Now => f64::from(u8::from(self.available(round, client))),
        }
    }

    /// Whether the server knows who is there, not only with what probability.
    pub fn is_known_now(&self) -> bool {
        self.config.known == Known::Now
    }

    /// Whether what the server knows differs from round to round.
    pub(crate) fn moves(&self) -> bool {
        let config = &self.config;
        self.is_known_now()
            || config.pattern != Pattern::Stationary
            || (config.kind == Presence::Flgo && config.mode.moves())
    }

    /// The correlation of a client's being there in neighbouring rounds: of a chain λ, for independent rounds 0.
    pub fn correlation(&self, client: usize) -> f64 {
        let config = &self.config;
        let of_cycle = |present: u32| {
            let (present, cycle) = (f64::from(present), f64::from(config.cycle));
            let share = present / cycle;
            ((present - 1.0) / cycle - share * share) / (share * (1.0 - share))
        };
        match config.kind {
            Presence::Markov => self.lambda[client],
            Presence::GilbertElliott => {
                let share = self.probability(1, client);
                let spread = (config.good - config.bad).powi(2);
                let (states, all) =
                    (self.base[client] * (1.0 - self.base[client]), share * (1.0 - share));
                if all > 0.0 { self.lambda[client] * spread * states / all } else { 0.0 }
            }
            Presence::Cyclic => of_cycle(self.present(client)),
            Presence::InTurn if config.groups > 1 => of_cycle(config.cycle / config.groups),
            _ => 0.0,
        }
    }
}

/// The correlation that is asked for, of the chain of a client that is there for this share of rounds.
fn wanted(config: &AvailabilityConfig, share: f64, client: usize) -> f64 {
    match config.absence_rounds {
        // P(there | away) = (1 − λ) π = 1/absence.
        Some(rounds) if share > 0.0 => 1.0 - 1.0 / (rounds * share),
        Some(_) => 0.0,
        None => config.correlation.get(client),
    }
}
