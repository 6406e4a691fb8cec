//! FedAWE (Xiang, Ioannidis, Yeh, Joe-Wong and Su, "Efficient Federated Learning against Heterogeneous and Non-stationary Client
//! Unavailability", NeurIPS 2024): a client goes on from its own model, and what it missed is made up for by an echo.
//!
//! Client i has its own model x_i (at first the initial one) and the round τ_i of its last participation (0). In round r those who arrive
//! trained from x_i to x_i + Δ_i, and count e_i = r − τ_i times:
//! w̄ ← mean_A x_i + η clip(mean_A e_i Δ_i), then x_i ← w̄, τ_i ← r for them; the others keep both. The model that is evaluated is the mean of all x_i.
//! The clip to an L2 norm is that of the authors' code. A client whose upload is lost throws its steps away.
//!
//! Every x_i is some earlier w̄, so that one copy of each that is still in use is all there is to keep.

use std::collections::BTreeMap;

use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;
use crate::vector::add;

parameters! {
    /// Parameters of `aggregation = "fedawe"`.
    pub struct FedAweSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// A bound on the Euclidean norm of the mean of the echoed updates; 0 for none.
        clip: f64 = 0.5, in 0.0..;
        /// Echoes are multiplied by N p_i, for weights that are not equal.
        weighted: bool = false;
    }
}

/// The mean of the clients' own models, with echoes of what they missed.
pub struct FedAwe {
    settings: FedAweSettings,
    /// The global models that are somebody's own, by the round they are of.
    models: BTreeMap<u32, Vec<f32>>,
    /// The round of each client's last participation.
    last: Vec<u32>,
    parameters: usize,
}

impl FedAwe {
    /// Everybody at the initial model.
    pub fn new(settings: &FedAweSettings, parameters: usize) -> Self {
        let (models, last) = (BTreeMap::new(), Vec::new());
        Self { settings: settings.clone(), models, last, parameters }
    }
}

impl Aggregation for FedAwe {
    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn start(&self, client: u32) -> Option<&[f32]> {
        // Before the first aggregate everybody's own model is the global one.
        self.last.get(client as usize).and_then(|last| self.models.get(last)).map(Vec::as_slice)
    }

    fn evaluated(&self, global: &[f32]) -> Option<Vec<f32>> {
        let mut mean = global.to_vec();
        for (version, model) in &self.models {
            let owners = self.last.iter().filter(|last| *last == version).count();
            let share = owners as f32 / self.last.len() as f32;
            for ((mean, model), global) in mean.iter_mut().zip(model).zip(global) {
                *mean += share * (model - global);
            }
        }
        Some(mean)
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let clients = context.federation.len();
        if self.last.is_empty() {
            self.last = vec![0; clients];
            self.models.insert(0, global.to_vec());
        }
        if arrivals.is_empty() {
            return Ok(Vec::new());
        }
        let share = 1.0 / arrivals.len() as f64;
        let (mut base, mut change) = (vec![0.0; global.len()], vec![0.0; global.len()]);
        for arrival in arrivals {
            let client = arrival.client as usize;
            let own = &self.models[&self.last[client]];
            let mut echo = f64::from(context.round - self.last[client]);
            if self.settings.weighted {
                echo *= clients as f64 * context.federation.weights()[client];
            }
            let (share, echo) = (share as f32, (share * echo) as f32);
            for at in 0..own.len() {
                base[at] += share * (own[at] - global[at]);
                change[at] += echo * (arrival.model[at] - own[at]);
            }
        }
        let norm = change.iter().map(|&x: &f32| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let clip = self.settings.clip;
        let scale = if clip > 0.0 && norm > clip { clip / norm } else { 1.0 };
        add(global, 1.0, &base);
        add(global, (self.settings.server_rate * scale) as f32, &change);
        for arrival in arrivals {
            self.last[arrival.client as usize] = context.round;
        }
        self.models.insert(context.round, global.to_vec());
        let last = &self.last;
        self.models.retain(|version, _| last.contains(version));
        Ok(arrivals.iter().map(|arrival| (arrival.client, share)).collect())
    }
}

impl State for FedAwe {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        let versions: Vec<u32> = self.models.keys().copied().collect();
        let models: Vec<f32> = self.models.values().flatten().copied().collect();
        saved.tensors.insert("fedawe.models".to_owned(), models.into());
        saved.put_value("fedawe.versions", &versions);
        saved.put_value("fedawe.last", &self.last);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        let versions: Vec<u32> = saved.get_value("fedawe.versions")?;
        self.last = saved.get_value("fedawe.last")?;
        let length = self.parameters.max(1);
        let models = saved.take("fedawe.models", versions.len() * length)?;
        self.models =
            versions.into_iter().zip(models.chunks(length).map(<[f32]>::to_vec)).collect();
        match self.last.iter().all(|last| self.models.contains_key(last)) {
            true => Ok(()),
            false => Err("`fedawe.last` names a model that is missing".to_owned()),
        }
    }
}
