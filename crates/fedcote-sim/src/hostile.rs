//! Clients that upload something else than what they learnt, and the server's bound on updates.
//!
//! The server cannot see who is hostile. What is no number it rejects, as a failed upload; what is too long it
//! scales down to its bound, if it has one.

use fedcote::random::{Key, Purpose};
use rand::seq::index;
use serde::{Deserialize, Serialize};

use crate::vector;

/// The `[hostile]` table: who is hostile, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hostile {
    /// The hostile clients, counted from 0.
    pub clients: Vec<u32>,
    /// In place of a list: the share of all clients that is hostile, drawn once a seed.
    pub share: f64,
    /// What they upload.
    pub kind: HostileKind,
    /// `scaled`: what the honest update is multiplied by; a negative factor turns it round.
    pub factor: f64,
}

impl Default for Hostile {
    fn default() -> Self {
        Self { clients: Vec::new(), share: 0.0, kind: HostileKind::Nan, factor: 1e6 }
    }
}

/// What a hostile client uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostileKind {
    /// A model in which nothing is a number.
    Nan,
    /// A model of infinities.
    Infinite,
    /// The honest update times `factor`.
    Scaled,
}

/// The `[server]` table: what the server does about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// A bound on the Euclidean norm of an update (the difference of an arrived model from the one sent): a longer one
    /// is scaled down to it, whatever the aggregation; by default there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
}

impl Hostile {
    /// Checks against the number of clients; an error is a key and a reason.
    pub(crate) fn check(&self, clients: usize) -> Result<(), (String, String)> {
        let wrong = |key: &str, reason: &str| Err((format!("hostile.{key}"), reason.to_owned()));
        if !(0.0..=1.0).contains(&self.share) {
            return wrong("share", "must be from 0 to 1");
        }
        if self.share > 0.0 && !self.clients.is_empty() {
            return wrong("share", "give either `share` or `clients`, not both");
        }
        if let Some(client) = self.clients.iter().find(|&&client| client as usize >= clients) {
            return wrong("clients", &format!("no client {client}; they are 0 to {}", clients - 1));
        }
        if !(self.factor as f32).is_finite() {
            return wrong("factor", "must be a finite number");
        }
        Ok(())
    }

    /// The hostile clients of a seed, in order.
    pub(crate) fn members(&self, clients: usize, seed: u64) -> Vec<u32> {
        let mut members = if self.clients.is_empty() {
            let count = (self.share * clients as f64).round() as usize;
            let mut stream = Key::new(seed, Purpose::Hostile).stream();
            index::sample(&mut stream, clients, count).into_iter().map(|at| at as u32).collect()
        } else {
            self.clients.clone()
        };
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Puts what is uploaded in the place of the honest model.
    pub(crate) fn corrupt(&self, broadcast: &[f32], model: &mut [f32]) {
        match self.kind {
            HostileKind::Nan => model.fill(f32::NAN),
            HostileKind::Infinite => model.fill(f32::INFINITY),
            HostileKind::Scaled => vector::scale_from(broadcast, model, self.factor),
        }
    }
}

impl Guard {
    /// Checks; an error is a key and a reason.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        match self.clip {
            Some(clip) if !(clip > 0.0 && clip.is_finite()) => {
                Err(("server.clip".to_owned(), "must be a positive number".to_owned()))
            }
            _ => Ok(()),
        }
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
