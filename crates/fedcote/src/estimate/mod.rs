//! Failure probabilities that nobody tells: estimated from arrivals and silences.
//!
//! | name | forgets | estimate of a client's failure probability |
//! |---|---|---|
//! | [`window`] | by rounds | failed uploads among those of the last rounds, shrunk to the prior |
//! | [`exponential`] | by the client's own uploads | exponentially weighted mean of outcomes |
//! | [`beta`] | by rounds | posterior mean under a beta prior, with a credible interval |
//! | [`signal`] | by rounds | the probability that a link's margin, as pilots or channel state show it, is used up |
//! | [`retransmissions`] | by rounds | posterior mean of q^(M+1), from every single transmission of an upload |
//!
//! The first three go by arrivals alone. The last two want to be told more ([`Estimator::observe_signal`],
//! [`Estimator::observe_transmissions`], each before the upload's own [`Estimator::observe`]), go by arrivals where nobody does, and
//! need far fewer rounds.
//!
//! All hold many clients at once, give the prior for a client never observed, and stay below 1 for one that
//! has always failed. Call [`Estimator::tick`] once per round, after the round's observations. A tick costs
//! nothing for clients that were not asked: forgetting is worked out when an estimate is read.
//!
//! **Which to choose.** With a failure threshold, a client that once looked bad is not asked any more, so nothing
//! new is learnt about it. Forgetting by rounds lets the estimate return to the prior, and the client gets another
//! chance; forgetting by own uploads keeps it out for good. The default is therefore `beta`.
//!
//! ```
//! use fedcote::estimate::EstimatorKind;
//!
//! let mut estimator = "beta".parse::<EstimatorKind>()?.estimator(3)?;
//! for _round in 0..20 {
//!     estimator.observe(0, true);
//!     estimator.observe(1, false);
//!     estimator.tick();
//! }
//! let failures = estimator.failures();
//! assert!(failures[0] < 0.1 && failures[1] > 0.9 && failures[1] < 1.0);
//! assert_eq!(failures[2], 0.5); // the prior
//! # Ok::<(), fedcote::Error>(())
//! ```

pub mod beta;
pub mod exponential;
pub mod retransmissions;
pub mod signal;
pub mod window;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

pub use beta::Beta;
pub use exponential::Exponential;
pub use retransmissions::Retransmissions;
pub use signal::Signal;
pub use window::Window;

use crate::{Error, chunks};

/// An estimator's name and parameters; parse a name to get its default parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(Serialize, Deserialize),
    serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)
)]
pub enum EstimatorKind {
    /// See [`window`].
    Window {
        /// How many rounds the window spans, the current one included; at least 1. Default 50.
        #[cfg_attr(feature = "serde", serde(default = "default_rounds"))]
        rounds: u32,
        /// The estimate for a client never observed, in (0, 1). Default 0.5.
        #[cfg_attr(feature = "serde", serde(default = "default_prior"))]
        prior: f64,
        /// How many observations the prior is worth, above 0. Default 2.
        #[cfg_attr(feature = "serde", serde(default = "default_strength"))]
        strength: f64,
    },
    /// See [`exponential`].
    Exponential {
        /// The weight of the newest observation, in (0, 1]. Default 0.1.
        #[cfg_attr(feature = "serde", serde(default = "default_rate"))]
        rate: f64,
        /// The estimate for a client never observed, in (0, 1). Default 0.5.
        #[cfg_attr(feature = "serde", serde(default = "default_prior"))]
        prior: f64,
    },
    /// See [`beta`].
    Beta {
        /// What is left of an observation's weight after a round, in (0, 1]. Default 0.98.
        #[cfg_attr(feature = "serde", serde(default = "default_retention"))]
        retention: f64,
        /// The estimate for a client never observed, in (0, 1). Default 0.5.
        #[cfg_attr(feature = "serde", serde(default = "default_prior"))]
        prior: f64,
        /// How many observations the prior is worth, above 0. Default 2: every probability equally likely.
        #[cfg_attr(feature = "serde", serde(default = "default_strength"))]
        strength: f64,
    },
    /// See [`signal`].
    Signal {
        /// What is left of an observation's weight after a round, in (0, 1]. Default 0.9.
        #[cfg_attr(feature = "serde", serde(default = "default_signal_retention"))]
        retention: f64,
    },
    /// See [`retransmissions`].
    Retransmissions {
        /// How often an upload is transmitted again at most, M. Default 0; in a scenario `network.retransmissions`.
        #[cfg_attr(feature = "serde", serde(default))]
        retransmissions: u32,
        /// What is left of an observation's weight after a round, in (0, 1]. Default 0.98.
        #[cfg_attr(feature = "serde", serde(default = "default_retention"))]
        retention: f64,
        /// The estimate for a client never observed, in (0, 1). Default 0.5.
        #[cfg_attr(feature = "serde", serde(default = "default_prior"))]
        prior: f64,
        /// How many transmissions the prior is worth, above 0. Default 2.
        #[cfg_attr(feature = "serde", serde(default = "default_strength"))]
        strength: f64,
    },
}

fn default_rounds() -> u32 {
    50
}
fn default_prior() -> f64 {
    0.5
}
fn default_strength() -> f64 {
    2.0
}
fn default_rate() -> f64 {
    0.1
}
fn default_retention() -> f64 {
    0.98
}
fn default_signal_retention() -> f64 {
    0.9
}

impl Default for EstimatorKind {
    /// `beta` with its default parameters.
    fn default() -> Self {
        let (retention, prior, strength) =
            (default_retention(), default_prior(), default_strength());
        Self::Beta { retention, prior, strength }
    }
}

impl std::str::FromStr for EstimatorKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let (prior, strength) = (default_prior(), default_strength());
        match name {
            "window" => Ok(Self::Window { rounds: default_rounds(), prior, strength }),
            "exponential" => Ok(Self::Exponential { rate: default_rate(), prior }),
            "beta" => Ok(Self::default()),
            "signal" => Ok(Self::Signal { retention: default_signal_retention() }),
            "retransmissions" => {
                let (retransmissions, retention) = (0, default_retention());
                Ok(Self::Retransmissions { retransmissions, retention, prior, strength })
            }
            _ => Err(Error::Name {
                what: "estimator",
                found: name.to_owned(),
                known: "window, exponential, beta, signal, retransmissions",
            }),
        }
    }
}

impl EstimatorKind {
    /// The name users type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Window { .. } => "window",
            Self::Exponential { .. } => "exponential",
            Self::Beta { .. } => "beta",
            Self::Signal { .. } => "signal",
            Self::Retransmissions { .. } => "retransmissions",
        }
    }

    /// An estimator of this kind for so many clients, none observed yet.
    ///
    /// # Errors
    /// When a parameter lies outside its range.
    pub fn estimator(&self, clients: usize) -> Result<Estimator, Error> {
        match *self {
            Self::Window { rounds, prior, strength } => {
                Window::new(clients, rounds, prior, strength).map(Estimator::Window)
            }
            Self::Exponential { rate, prior } => {
                Exponential::new(clients, rate, prior).map(Estimator::Exponential)
            }
            Self::Beta { retention, prior, strength } => {
                Beta::new(clients, retention, prior, strength).map(Estimator::Beta)
            }
            Self::Signal { retention } => Signal::new(clients, retention).map(Estimator::Signal),
            Self::Retransmissions { retransmissions, retention, prior, strength } => {
                let found =
                    Retransmissions::new(clients, retransmissions, retention, prior, strength);
                found.map(Estimator::Retransmissions)
            }
        }
    }
}

/// The state of an estimator of any kind: plain data, to be saved and restored.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(Serialize, Deserialize),
    serde(tag = "kind", rename_all = "lowercase")
)]
pub enum Estimator {
    /// A sliding window.
    Window(Window),
    /// Exponential forgetting.
    Exponential(Exponential),
    /// Beta–Bernoulli with forgetting.
    Beta(Beta),
    /// From signals.
    Signal(Signal),
    /// From retransmissions.
    Retransmissions(Retransmissions),
}

impl Estimator {
    /// The number of clients.
    pub fn clients(&self) -> usize {
        match self {
            Self::Window(window) => window.clients(),
            Self::Exponential(exponential) => exponential.clients(),
            Self::Beta(beta) => beta.clients(),
            Self::Signal(signal) => signal.clients(),
            Self::Retransmissions(found) => found.clients(),
        }
    }

    /// Makes room for clients that joined, none of them observed yet; never forgets any.
    pub fn grow(&mut self, clients: usize) {
        match self {
            Self::Window(window) => window.grow(clients),
            Self::Exponential(exponential) => exponential.grow(clients),
            Self::Beta(beta) => beta.grow(clients),
            Self::Signal(signal) => signal.grow(clients),
            Self::Retransmissions(found) => found.grow(clients),
        }
    }

    /// Forgets what was observed of a client: it is like one never observed.
    ///
    /// # Panics
    /// When there is no such client.
    pub fn forget(&mut self, client: usize) {
        match self {
            Self::Window(window) => window.forget(client),
            Self::Exponential(exponential) => exponential.forget(client),
            Self::Beta(beta) => beta.forget(client),
            Self::Signal(signal) => signal.forget(client),
            Self::Retransmissions(found) => found.forget(client),
        }
    }

    /// Takes note of one upload in the current round.
    ///
    /// # Panics
    /// When there is no such client: `client` must be below [`clients`](Self::clients).
    pub fn observe(&mut self, client: usize, arrived: bool) {
        match self {
            Self::Window(window) => window.observe(client, arrived),
            Self::Exponential(exponential) => exponential.observe(client, arrived),
            Self::Beta(beta) => beta.observe(client, arrived),
            Self::Signal(signal) => signal.observe(client, arrived),
            Self::Retransmissions(found) => found.observe(client, arrived),
        }
    }

    /// Takes note of the margin of an upload in dB, before [`observe`](Self::observe) says what became of it: by how much the
    /// capacity of its link exceeded what it needs. For [`signal`]; the others do without.
    ///
    /// # Panics
    /// When there is no such client.
    pub fn observe_signal(&mut self, client: usize, margin_db: f64) {
        if let Self::Signal(signal) = self {
            signal.observe_signal(client, margin_db);
        }
    }

    /// Takes note of the transmissions of an upload, before [`observe`](Self::observe) says what became of it: how many failed, and
    /// whether a last one got through. For [`retransmissions`]; the others do without.
    ///
    /// # Panics
    /// When there is no such client.
    pub fn observe_transmissions(&mut self, client: usize, failed: u32, arrived: bool) {
        if let Self::Retransmissions(found) = self {
            found.observe_transmissions(client, failed, arrived);
        }
    }

    /// Takes note of an upload that was lost whatever its link: the client was not there.
    ///
    /// # Panics
    /// When there is no such client.
    pub fn observe_absent(&mut self, client: usize) {
        match self {
            Self::Signal(signal) => signal.observe_absent(client),
            Self::Retransmissions(found) => {
                found.observe_transmissions(client, 1, false);
                found.observe(client, false);
            }
            Self::Window(_) | Self::Exponential(_) | Self::Beta(_) => self.observe(client, false),
        }
    }

    /// Clients are drawn: what was told of uploads before is not about those that follow.
    pub(crate) fn draw(&mut self) {
        if let Self::Signal(signal) = self {
            signal.draw();
        }
    }

    /// Whether the parts of a restored state fit together.
    #[cfg(feature = "serde")]
    pub(crate) fn fits(&self) -> bool {
        match self {
            Self::Window(window) => window.fits(),
            Self::Exponential(exponential) => exponential.fits(),
            Self::Beta(beta) => beta.fits(),
            Self::Signal(signal) => signal.fits(),
            Self::Retransmissions(found) => found.fits(),
        }
    }

    /// Ends the current round.
    pub fn tick(&mut self) {
        match self {
            Self::Window(window) => window.tick(),
            Self::Exponential(_) => {}
            Self::Beta(beta) => beta.tick(),
            Self::Signal(signal) => signal.tick(),
            Self::Retransmissions(found) => found.tick(),
        }
    }

    /// The estimated failure probability of a client, in [0, 1).
    ///
    /// # Panics
    /// When there is no such client.
    pub fn failure(&self, client: usize) -> f64 {
        match self {
            Self::Window(window) => window.failure(client),
            Self::Exponential(exponential) => exponential.failure(client),
            Self::Beta(beta) => beta.failure(client),
            Self::Signal(signal) => signal.failure(client),
            Self::Retransmissions(found) => found.failure(client),
        }
    }

    /// The estimated failure probabilities of all clients.
    pub fn failures(&self) -> Vec<f64> {
        let mut failures = vec![0.0; self.clients()];
        chunks::fill(&mut failures, |first, chunk| {
            for (client, failure) in (first..).zip(chunk) {
                *failure = self.failure(client);
            }
        });
        failures
    }
}

/// Refuses a parameter that is not in its range (NaN is in none).
fn check(name: &'static str, value: f64, valid: bool, legal: &'static str) -> Result<(), Error> {
    if valid { Ok(()) } else { Err(Error::Parameter { name, legal, value }) }
}

fn check_prior(prior: f64) -> Result<(), Error> {
    check("prior", prior, prior > 0.0 && prior < 1.0, "a number between 0 and 1, both excluded")
}

fn check_strength(strength: f64) -> Result<(), Error> {
    check("strength", strength, strength > 0.0 && strength.is_finite(), "a number above 0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};
    use rand::RngExt;

    const NAMES: [&str; 5] = ["window", "exponential", "beta", "signal", "retransmissions"];

    fn estimator(name: &str, clients: usize) -> Estimator {
        name.parse::<EstimatorKind>().unwrap().estimator(clients).unwrap()
    }

    #[test]
    fn the_unobserved_have_the_prior_and_the_dead_stay_below_one() {
        for name in NAMES {
            let mut estimator = estimator(name, 2);
            for _ in 0..100_000 {
                estimator.observe(1, false);
                estimator.tick();
            }
            assert_eq!(estimator.failure(0), 0.5, "{name}");
            let dead = estimator.failure(1);
            assert!(dead > 0.9 && dead < 1.0, "{name}: {dead}");
        }
    }

    #[test]
    fn clients_that_join_later_are_like_those_never_observed() {
        for name in NAMES {
            let (mut grown, mut roomy) = (estimator(name, 1), estimator(name, 3));
            for round in 0..30 {
                if round == 10 {
                    grown.grow(3);
                    grown.grow(2); // never shrinks
                }
                for estimator in [&mut grown, &mut roomy] {
                    estimator.observe(0, round % 3 == 0);
                    if round >= 20 {
                        estimator.observe(2, round % 2 == 0);
                    }
                    estimator.tick();
                }
            }
            assert_eq!(grown.failures(), roomy.failures(), "{name}");
        }
    }

    #[test]
    fn a_forgotten_client_is_like_one_never_observed() {
        for name in NAMES {
            let (mut forgotten, mut never) = (estimator(name, 2), estimator(name, 2));
            for round in 0..30 {
                if round == 20 {
                    forgotten.forget(0);
                }
                for estimator in [&mut forgotten, &mut never] {
                    estimator.observe(1, round % 3 == 0);
                    estimator.tick();
                }
                if round < 20 {
                    forgotten.observe_signal(0, 3.0);
                    forgotten.observe_transmissions(0, 0, true);
                    forgotten.observe(0, round % 2 == 0);
                }
            }
            assert_eq!(forgotten.failures(), never.failures(), "{name}");
            for estimator in [&mut forgotten, &mut never] {
                estimator.observe(0, false);
                (0..60).for_each(|_| estimator.tick());
                estimator.observe(0, true);
            }
            assert_eq!(forgotten.failures(), never.failures(), "{name}");
        }
    }

    #[test]
    fn estimates_follow_a_change() {
        // Failure 0.2 for 2000 rounds, then 0.7 for 500: every default has forgotten by then.
        let mut rng = Key::new(1, Purpose::Test).stream();
        for name in NAMES {
            let mut estimator = estimator(name, 1);
            let mut mean = 0.0;
            for round in 0..2500 {
                let failure = if round < 2000 { 0.2 } else { 0.7 };
                estimator.observe(0, rng.random::<f64>() >= failure);
                estimator.tick();
                if round >= 2250 {
                    mean += estimator.failure(0) / 250.0;
                }
            }
            assert!((mean - 0.7).abs() < 0.1, "{name}: {mean}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn the_state_survives_saving() {
        for name in NAMES {
            let mut estimator = estimator(name, 3);
            let step = |estimator: &mut Estimator, round: usize| {
                estimator.observe(round % 2, round.is_multiple_of(3));
                estimator.tick();
            };
            (0..70).for_each(|round| step(&mut estimator, round));
            let saved = serde_json::to_string(&estimator).unwrap();
            let mut restored: Estimator = serde_json::from_str(&saved).unwrap();
            for round in 70..140 {
                step(&mut estimator, round);
                step(&mut restored, round);
            }
            assert_eq!(estimator, restored, "{name}");
        }
    }

    #[test]
    fn kinds_are_chosen_by_name_and_checked() {
        for name in NAMES {
            let kind: EstimatorKind = name.parse().unwrap();
            assert_eq!(kind.name(), name);
            #[cfg(feature = "serde")]
            assert_eq!(kind, serde_json::from_str(&format!("{{\"kind\": \"{name}\"}}")).unwrap());
        }
        assert!("kalman".parse::<EstimatorKind>().is_err());
        let bad = [
            EstimatorKind::Window { rounds: 0, prior: 0.5, strength: 1.0 },
            EstimatorKind::Window { rounds: 5, prior: 1.0, strength: 1.0 },
            EstimatorKind::Exponential { rate: 0.0, prior: 0.5 },
            EstimatorKind::Exponential { rate: 1.1, prior: 0.5 },
            EstimatorKind::Beta { retention: 0.0, prior: 0.5, strength: 1.0 },
            EstimatorKind::Beta { retention: 1.0, prior: f64::NAN, strength: 1.0 },
            EstimatorKind::Beta { retention: 1.0, prior: 0.5, strength: 0.0 },
            EstimatorKind::Signal { retention: 0.0 },
            EstimatorKind::Retransmissions {
                retransmissions: 1001,
                retention: 0.9,
                prior: 0.5,
                strength: 2.0,
            },
        ];
        for kind in bad {
            assert!(kind.estimator(1).is_err(), "{kind:?}");
        }
    }
}
