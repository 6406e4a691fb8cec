//! Clients that upload something else than what they learnt.
//!
//! The server cannot see who is hostile. What is not a number it rejects, as a failed upload; what is too long it
//! scales down to its bound, if it has one (`server.clip`).

use fedcote::SettingError;
use fedcote::random::{Key, Purpose};
use rand::seq::index;
use serde::{Deserialize, Serialize};

use crate::vector;

/// The `[hostile]` table: who is hostile, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hostile {
    /// The hostile clients, counted from 1.
    pub clients: Vec<u32>,
    /// In place of a list: the share of all clients that is hostile, drawn once per seed.
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

impl Hostile {
    /// Checks against the number of clients.
    pub(crate) fn check(&self, clients: usize) -> Result<(), SettingError> {
        let wrong = |key: &str, reason: &str| Err(SettingError::new(key, reason).within("hostile"));
        if !(0.0..=1.0).contains(&self.share) {
            return wrong("share", "must be from 0 to 1");
        }
        if self.share > 0.0 && !self.clients.is_empty() {
            return wrong("share", "give either `share` or `clients`, not both");
        }
        let there = |client: &u32| (1..=clients).contains(&(*client as usize));
        if let Some(client) = self.clients.iter().find(|client| !there(client)) {
            return wrong("clients", &format!("no client {client}; they are 1 to {clients}"));
        }
        if !(self.factor as f32).is_finite() {
            return wrong("factor", "must be a finite number");
        }
        Ok(())
    }

    /// The hostile clients of a seed, in order; the first of all clients is 0 here.
    pub(crate) fn members(&self, clients: usize, seed: u64) -> Vec<u32> {
        let mut members: Vec<u32> = if self.clients.is_empty() {
            let count = (self.share * clients as f64).round() as usize;
            let mut stream = Key::new(seed, Purpose::Hostile).stream();
            index::sample(&mut stream, clients, count).into_iter().map(|at| at as u32).collect()
        } else {
            self.clients.iter().filter_map(|client| client.checked_sub(1)).collect()
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
