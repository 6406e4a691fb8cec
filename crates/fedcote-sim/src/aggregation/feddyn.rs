//! FedDyn (Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021).
//!
//! A client steps with ∇F_i(w) + α_i λ_i + α_i (w − w̄), α_i = α/(N p_i), λ_i being the sum of its updates so far (the paper's gradient memory is −α λ_i).
//! What arrives advances λ_i ← λ_i + Δ_i and λ̄ ← λ̄ + (1/N) Δ_i; then w̄ ← mean_A w_i + λ̄. The model that is evaluated is the mean of what arrived last,
//! w̄ − λ̄. λ̄ grows while few clients come for long.

use super::mean::shares;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;
use crate::slab::Slab;
use crate::task::Correction;
use crate::vector::{add, mean_change};

parameters! {
    /// Parameters of `aggregation = "feddyn"`.
    pub struct FedDynSettings {
        /// The strength α of the regularisation.
        alpha: f64 = 0.01, in 0.0..=1e30;
    }
}

/// The mean of what arrived, with a regulariser that moves along.
pub struct FedDyn {
    alpha: f64,
    server: Vec<f32>,
    clients: Slab,
}

impl FedDyn {
    /// Nobody has moved yet.
    pub fn new(settings: &FedDynSettings, parameters: usize) -> Self {
        let (server, clients) = (vec![0.0; parameters], Slab::new(parameters));
        Self { alpha: settings.alpha, server, clients }
    }
}

impl Aggregation for FedDyn {
    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn correction(&self, context: &RoundContext, client: u32) -> Correction<'_> {
        let weights = context.federation.weights();
        let share = weights.len() as f64 * weights[client as usize];
        let strength = (self.alpha / share) as f32;
        let linear = self.clients.get(client).map(|own| (strength, own.into()));
        Correction { linear: linear.into_iter().collect(), proximal: strength }
    }

    fn evaluated(&self, global: &[f32]) -> Option<Vec<f32>> {
        Some(global.iter().zip(&self.server).map(|(global, server)| global - server).collect())
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        if arrivals.is_empty() {
            return Ok(Vec::new());
        }
        let share = 1.0 / context.federation.len() as f32;
        for arrival in arrivals {
            let own = self.clients.row(arrival.client);
            for at in 0..own.len() {
                let update = arrival.model[at] - global[at];
                own[at] += update;
                self.server[at] += share * update;
            }
        }
        let shares = shares(arrivals, |_| 1.0);
        let terms = arrivals.iter().zip(&shares).map(|(a, s)| (s.1, a.model.as_slice()));
        let change = mean_change(global, terms);
        add(global, 1.0, &change);
        add(global, 1.0, &self.server);
        Ok(shares)
    }
}

impl State for FedDyn {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put("feddyn.server", &self.server);
        self.clients.save("feddyn.clients", saved);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.server = saved.take("feddyn.server", self.server.len())?;
        self.clients.restore("feddyn.clients", saved)
    }
}
