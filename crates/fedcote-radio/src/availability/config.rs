//! The `[network.availability]` table: which clients are there in a round.

use std::f64::consts::TAU;

use fedcote::SettingError;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::config::PerClient;
use crate::error::refused;

/// How clients come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Everybody is always there.
    #[default]
    Always,
    /// There in each round with its probability, times the pattern, whatever happened before.
    Bernoulli,
    /// The same with probabilities that follow from the labels a client holds (`probability = "fedawe"` unless another recipe is named).
    LabelCoupled,
    /// A chain of two states, there and away: the probability is the share of rounds that it is there, the correlation is that of neighbouring
    /// rounds.
    Markov,
    /// The same chain between a good and a bad state, each with a probability of its own to be there (Gilbert–Elliott).
    GilbertElliott,
    /// There for its share of every cycle, away for the rest, each client with its own start (FedAU).
    Cyclic,
    /// Equal groups of clients by number, one after the other there for its part of the cycle (amplified FedAvg).
    InTurn,
    /// The modes of the simulator of FLGo (`mode`, `strength`).
    Flgo,
}

/// A factor on the probabilities that changes from round to round; r counts rounds from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Always 1.
    #[default]
    Stationary,
    /// γ sin(2πr/P) + 1 − γ.
    Sine,
    /// 1 in the first half of every period, `low` in the second.
    Staircase,
    /// The sine, but nobody is there whose probability is below `cutoff` in that round.
    InterleavedSine,
    /// A day of 24 rounds: 0.4 sin(2πk/23) + 0.5, k = r mod 24 (F3AST).
    Day,
}

/// The availability modes of FLGo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlgoMode {
    /// Everybody, always.
    #[default]
    Idl,
    /// 1 − β for everybody.
    Homo,
    /// β times the smallest label held over the largest label, plus 1 − β.
    Ymf,
    /// β times the share of labels held, plus 1 − β.
    Yff,
    /// In proportion to (number of samples)^β: who has more is there more.
    Mdf,
    /// In proportion to (number of samples)^−β: who has less is there more.
    Ldf,
    /// Log-normal weights of deviation −ln(1 − β), scaled to a largest one of 1.
    Ln,
    /// The same times the curve of a day.
    Sln,
    /// 1 while the day's hour lies between the client's smallest and largest label, else 1 − β.
    Yc,
}

impl FlgoMode {
    /// FLGo's default for β.
    pub(super) fn strength(self) -> f64 {
        match self {
            Self::Idl => 0.0,
            Self::Homo | Self::Yff => 0.2,
            Self::Ymf | Self::Ln | Self::Sln => 0.1,
            Self::Mdf => 0.0001,
            Self::Ldf | Self::Yc => 0.5,
        }
    }

    /// Whether the probability depends on the round.
    pub(super) fn moves(self) -> bool {
        matches!(self, Self::Sln | Self::Yc)
    }
}

/// What the server knows of availability when `network.knowledge = "known"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// Each client's probability to be there in this round (of a chain, a cycle or a turn: the share of rounds), not who is there.
    #[default]
    Probability,
    /// Who is there in this round.
    Now,
}

/// Recipes that make probabilities of the labels that clients hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// FedAWE: ⟨labels, φ⟩, φ uniform in (0, 1) for the first half of the labels, in (0, 0.5) for the others.
    Fedawe,
    /// FedAU: max(0.02, ⟨labels, φ⟩ C/10), φ from a Dirichlet distribution of parameter 0.1.
    Fedau,
    /// FedPBC: max(0.02, ⟨labels, φ⟩), φ log-normal of deviation 10, scaled to a sum of 1.
    Fedpbc,
    /// MIFA: 0.1 + 0.9 · (smallest label held) / (largest label).
    Mifa,
}

const RECIPES: [(&str, Recipe); 4] = [
    ("fedawe", Recipe::Fedawe),
    ("fedau", Recipe::Fedau),
    ("fedpbc", Recipe::Fedpbc),
    ("mifa", Recipe::Mifa),
];

/// Probabilities to be there: a number, a list with one for each client, or the name of a recipe.
#[derive(Debug, Clone, PartialEq)]
pub enum Chance {
    /// As given.
    Given(PerClient),
    /// From the labels that clients hold.
    Recipe(Recipe),
}

impl Serialize for Chance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(given) => given.serialize(serializer),
            Self::Recipe(recipe) => {
                let name = RECIPES.iter().find(|(_, known)| known == recipe).map(|(name, _)| *name);
                serializer.serialize_str(name.unwrap_or_default())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Chance;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(
                    "a number, a list with a number for each client, or the name of a recipe",
                )
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Chance, E> {
                Ok(Chance::Given(PerClient::All(value)))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Chance, E> {
                self.visit_f64(value as f64)
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Chance, E> {
                self.visit_f64(value as f64)
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Chance, E> {
                let found = RECIPES.iter().find(|(known, _)| *known == name);
                let known = RECIPES.map(|(name, _)| name);
                found.map(|(_, recipe)| Chance::Recipe(*recipe)).ok_or_else(|| {
                    let remedy = fedcote_support::suggestion(name, &known);
                    E::custom(format!("unknown recipe `{name}`{remedy}"))
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Chance, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Chance::Given(PerClient::Each(values)))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Which clients are there in a round. Who is away cannot upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AvailabilityConfig {
    /// How clients come and go. Default: they are always there.
    pub kind: Presence,
    /// The probability to be there, the same for all, one for each client, or by a recipe from the labels that clients hold: `fedawe`, `fedau`,
    /// `fedpbc`, `mifa`. Default: 0.5, for `label-coupled` `fedawe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<Chance>,
    /// What the probabilities of `bernoulli` and `label-coupled` are multiplied by. Default: 1.
    pub pattern: Pattern,
    /// The rounds P after which a pattern repeats. Default: 20.
    pub period: u32,
    /// The γ of a sine. Default: 0.3.
    pub amplitude: f64,
    /// The lower step of a staircase. Default: 0.4.
    pub low: f64,
    /// Below this probability nobody is there in the interleaved sine. Default: 0.1.
    pub cutoff: f64,
    /// The correlation λ of neighbouring rounds of a chain. Default: 0.
    pub correlation: PerClient,
    /// In place of `correlation`: the mean number of rounds that a chain stays away (in its bad state). With it, and with a recipe, a λ too small for
    /// a probability becomes the smallest there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absence_rounds: Option<f64>,
    /// Gilbert–Elliott: the probability to be there in the good state. Default: 1.
    pub good: f64,
    /// Gilbert–Elliott: the probability to be there in the bad state. Default: 0.
    pub bad: f64,
    /// The rounds of a cycle, or of one turn of all groups. Default: 100.
    pub cycle: u32,
    /// The groups that take turns. Default: 5.
    pub groups: u32,
    /// The mode of FLGo. Default: idl.
    pub mode: FlgoMode,
    /// The β of an FLGo mode. Default: FLGo's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strength: Option<f64>,
    /// What the server knows when it knows the network. Default: probability.
    pub known: Known,
}

impl Default for AvailabilityConfig {
    fn default() -> Self {
        Self {
            kind: Presence::Always,
            probability: None,
            pattern: Pattern::Stationary,
            period: 20,
            amplitude: 0.3,
            low: 0.4,
            cutoff: 0.1,
            correlation: PerClient::All(0.0),
            absence_rounds: None,
            good: 1.0,
            bad: 0.0,
            cycle: 100,
            groups: 5,
            mode: FlgoMode::Idl,
            strength: None,
            known: Known::Probability,
        }
    }
}

/// The chain that is there a share π of the rounds needs λ ≥ max(1 − 1/π, 1 − 1/(1 − π)).
pub(super) fn least_correlation(share: f64) -> f64 {
    let bound = |share: f64| if share > 0.0 { 1.0 - 1.0 / share } else { f64::NEG_INFINITY };
    bound(share).max(bound(1.0 - share)).max(-1.0)
}

impl AvailabilityConfig {
    /// The probabilities that it goes by.
    pub(super) fn chance(&self) -> Chance {
        self.probability.clone().unwrap_or(match self.kind {
            Presence::LabelCoupled => Chance::Recipe(Recipe::Fedawe),
            _ => Chance::Given(PerClient::All(0.5)),
        })
    }

    /// The factor of a round, counted from 0.
    pub(super) fn factor(&self, round: u32) -> f64 {
        let turn = f64::from(round % self.period) / f64::from(self.period);
        match self.pattern {
            Pattern::Stationary => 1.0,
            Pattern::Sine | Pattern::InterleavedSine => {
                self.amplitude * (TAU * turn).sin() + 1.0 - self.amplitude
            }
            Pattern::Staircase if turn < 0.5 => 1.0,
            Pattern::Staircase => self.low,
            Pattern::Day => day(round),
        }
    }
}

/// The curve of a day of 24 rounds.
pub(super) fn day(round: u32) -> f64 {
    0.4 * (TAU * f64::from(round % 24) / 23.0).sin() + 0.5
}

/// The refusal of a recipe where nobody knows what clients hold.
pub(super) fn without_labels() -> SettingError {
    refused(
        "availability",
        "depends on the labels that clients hold, which only a run has (`fedcote run`)",
    )
}
