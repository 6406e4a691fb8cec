//! What the server knows of the network, and what it does: the `[server]` table and its keys of `[network]`.

use fedcote::SettingError;
use fedcote::estimate::EstimatorKind;
use fedcote::privacy::Geometric;
use serde::{Deserialize, Deserializer, Serialize};

use crate::vector;

/// What the server observes of the network: keys of the `[network]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observation {
    /// Whether the failure probabilities are known or estimated.
    pub knowledge: Knowledge,
    /// Whether each draw of a client uploads on its own, or one upload carries them all.
    pub uploads: fedcote::Uploads,
    /// How failure probabilities are learnt when `knowledge = "estimated"`: a name, or a table with `kind` and
    /// parameters.
    #[serde(deserialize_with = "estimator")]
    pub estimator: EstimatorKind,
    /// With the estimator `signal`: whose links show their margin in a round; by default those of clients that upload.
    #[serde(skip_serializing_if = "Pilots::are_default")]
    pub pilots: Pilots,
}

/// The keys of [`Observation`].
pub(super) const OBSERVATION: [&str; 4] = ["knowledge", "uploads", "estimator", "pilots"];

impl Default for Observation {
    fn default() -> Self {
        Self {
            knowledge: Knowledge::Known,
            uploads: fedcote::Uploads::PerDraw,
            estimator: Default::default(),
            pilots: Pilots::Uploads,
        }
    }
}

impl Observation {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        // Parameters of an estimator do not depend on the number of clients.
        let estimator = self.estimator.estimator(1).map(drop);
        estimator.map_err(|error| SettingError::new("network.estimator", error.to_string()))?;
        let told = self.knowledge == Knowledge::Estimated
            && matches!(self.estimator, EstimatorKind::Signal { .. });
        if self.pilots == Pilots::Everyone && !told {
            let reason =
                "\"everyone\" is for knowledge = \"estimated\" with the estimator \"signal\"";
            return Err(SettingError::new("network.pilots", reason));
        }
        Ok(())
    }
}

fn estimator<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EstimatorKind, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "must be a name, or a table with `kind` and parameters of that kind"
    )]
    enum Written {
        Name(String),
        Table(EstimatorKind),
    }
    match Written::deserialize(deserializer)? {
        Written::Table(kind) => Ok(kind),
        Written::Name(name) => name.parse().map_err(serde::de::Error::custom),
    }
}

/// Whose links show their margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pilots {
    /// Those of clients that upload.
    Uploads,
    /// Those of all clients that are there: who does not upload sends a pilot, once a round.
    Everyone,
}

impl Pilots {
    fn are_default(&self) -> bool {
        *self == Self::Uploads
    }
}

/// What the server knows of failure probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// It knows them in every round.
    Known,
    /// It learns them from what arrives.
    Estimated,
}

/// What the server does: the `[server]` table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The share of draws that go to clients in proportion to their weight while failure probabilities are being
    /// learnt, so that every client is still tried.
    pub exploration: f64,
    /// The server asks for label counts with noise for ε-differential privacy of each sample; by default clients report
    /// them as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_privacy: Option<f64>,
    /// A bound on the Euclidean norm of an update (the difference of an arrived model from the one sent): a longer one
    /// is scaled down to it, whatever the aggregation; by default there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Differential privacy of the models with respect to all updates of one client, together with `clip`: every step gets Gaussian noise of
    /// so many times what one client can do to it; by default there is none. For schemes whose step is a sum of updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// With `noise_multiplier`: a step in which one client has a larger share is shortened, noise included, until it has this one; by default
    /// twice an equal share, 2/K.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_share: Option<f64>,
    /// With `noise_multiplier`: the δ for which `epsilon` among the scores is given; by default 10⁻⁵.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
}

/// The keys of [`Server`].
pub(super) const SERVER: [&str; 6] =
    ["exploration", "label_privacy", "clip", "noise_multiplier", "max_share", "delta"];

/// Keys of `[server]` that were keys of `[network]` before.
pub(super) const MOVED: [&str; 2] = ["exploration", "label_privacy"];

impl Server {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let wrong = |key, reason: &str| Err(SettingError::new(key, reason));
        if !(0.0..=1.0).contains(&self.exploration) {
            return wrong("server.exploration", "must be from 0 to 1");
        }
        if let Some(Err(error)) = self.label_privacy.map(|epsilon| Geometric::new(epsilon, 1)) {
            return wrong("server.label_privacy", &error.to_string());
        }
        if self.clip.is_some_and(|clip| !(clip > 0.0 && clip.is_finite())) {
            return wrong("server.clip", "must be a positive number");
        }
        if self.noise_multiplier.is_some_and(|z| !(z > 0.0 && z.is_finite())) {
            return wrong("server.noise_multiplier", "must be a positive number");
        }
        if self.noise_multiplier.is_some() && self.clip.is_none() {
            return wrong(
                "server.noise_multiplier",
                "needs server.clip, the norm that an update may have",
            );
        }
        if self.max_share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return wrong("server.max_share", "must be above 0 and at most 1");
        }
        if self.delta.is_some_and(|delta| !(delta > 0.0 && delta < 1.0)) {
            return wrong("server.delta", "must be above 0 and below 1");
        }
        for (key, given) in
            [("server.max_share", self.max_share.is_some()), ("server.delta", self.delta.is_some())]
        {
            if given && self.noise_multiplier.is_none() {
                return wrong(key, "has no effect without server.noise_multiplier");
            }
        }
        Ok(())
    }

    /// Scales an update down to the bound; one within it stays as it is, to the bit.
    pub(crate) fn clip(&self, broadcast: &[f32], model: &mut [f32]) {
        let Some(bound) = self.clip else { return };
        let difference = |(model, sent): (&f32, &f32)| f64::from(*model) - f64::from(*sent);
        let norm = model.iter().zip(broadcast).map(difference).map(|d| d * d).sum::<f64>().sqrt();
        if norm > bound {
            vector::scale_from(broadcast, model, bound / norm);
        }
    }
}
