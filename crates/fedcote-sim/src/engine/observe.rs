//! What the server sees of the network: who is there, how often uploads fail, what becomes of each.

use std::sync::Arc;

use fedcote::random::Purpose;
use fedcote_radio::Upload;
use rayon::prelude::*;

use super::Engine;
use crate::Error;
use crate::part::{Count, RoundContext};
use crate::scenario::Pilots;
use crate::scheme::FailureKind;

impl Engine {
    /// Brings the failure probabilities up to date; says whether they may have changed.
    pub(super) fn observe_network(&mut self, round: u32) -> Result<bool, Error> {
        let network = &self.world.network;
        let first = std::mem::replace(&mut self.fresh, false);
        if first || network.moves() {
            match self.scheme.failures {
                FailureKind::None => self.actual = vec![0.0; self.federation.len()],
                FailureKind::Network => network.failures(round, &mut self.actual),
                FailureKind::Equalised => {
                    network.failures(round, &mut self.actual);
                    let mean = self.actual.iter().sum::<f64>() / self.actual.len() as f64;
                    self.actual.fill(mean);
                }
            }
        }
        if first || network.moves() || network.availability().is_some() {
            let there = |client: usize| match self.scheme.failures {
                FailureKind::Network => network.available(round, client),
                _ => self.actual[client] < 1.0,
            };
            self.available = (0..self.federation.len()).map(there).collect();
        }
        let believed = match &self.estimator {
            Some(estimator) => estimator.failures(),
            None if first || network.moves() => self.actual.clone(),
            None => return Ok(false),
        };
        Arc::make_mut(&mut self.federation).set_failure(believed)?;
        Ok(true)
    }

    /// Tells the estimator what became of each upload. One whose update is not finite counts as lost.
    pub(super) fn observe(
        &mut self,
        selected: &[Count],
        through: &[Vec<Upload>],
        sound: impl Fn(usize) -> bool,
    ) {
        let Some(estimator) = &mut self.estimator else { return };
        for (place, (&(client, _), uploads)) in selected.iter().zip(through).enumerate() {
            for upload in uploads {
                let (client, arrived) = (client as usize, upload.arrived && sound(place));
                if upload.transmissions == 0 {
                    estimator.observe_absent(client);
                    continue;
                }
                if let Some(margin_db) = upload.margin_db {
                    estimator.observe_signal(client, margin_db);
                }
                estimator.observe_transmissions(client, upload.failed, arrived);
                estimator.observe(client, arrived);
            }
        }
    }

    /// Tells the estimator what pilots show of the links of clients that did not upload, where they send any. A scheme whose
    /// uploads do not go over these links learns nothing from them.
    pub(super) fn observe_pilots(&mut self, context: &RoundContext, selected: &[Count]) {
        let Some(estimator) = &mut self.estimator else { return };
        let world = context.world;
        if world.scenario.observation.pilots == Pilots::Uploads
            || self.scheme.failures != FailureKind::Network
        {
            return;
        }
        let key = world.key(Purpose::Pilot).round(context.round);
        let mut uploaded = vec![false; context.federation.len()];
        selected.iter().for_each(|&(client, _)| uploaded[client as usize] = true);
        let pilot = |client: usize| {
            world.network.upload(context.round, client, key.client(client as u64)).margin_db
        };
        let margin = |client: usize| if uploaded[client] { None } else { pilot(client) };
        // Few clients are not worth waking threads.
        let margins: Vec<Option<f64>> =
            (0..uploaded.len()).into_par_iter().with_min_len(4096).map(margin).collect();
        for (client, margin_db) in margins.into_iter().enumerate() {
            margin_db.into_iter().for_each(|margin_db| estimator.observe_signal(client, margin_db));
        }
    }

    /// Tells the estimator who was not asked because it was not there.
    pub(super) fn observe_absent(&mut self, context: &RoundContext) {
        let Some(estimator) = &mut self.estimator else { return };
        for (client, _) in context.available.iter().enumerate().filter(|(_, there)| !**there) {
            estimator.observe_absent(client);
        }
    }
}
