//! Amplified SCAFFOLD (Crawshaw and Liu, "Federated Learning under Periodic Client Participation and Heterogeneous Data", NeurIPS 2024):
//! control variates that are renewed once a period, from the gradients of the whole period.
//!
//! A client steps with ∇F_i(w) + c − c_i. Of its E steps that arrive, the sum of the raw gradients is −Δ_i/η + E (c_i − c), which the server
//! works out; S_i adds these up, n_i the steps. w̄ ← mean_A w_i. After every P-th round w̄ is amplified as in amplified FedAvg, c_i ← S_i/n_i for those with
//! n_i > 0, c ← (1/N) Σ c_i, and S and n begin again; who was absent keeps its c_i.

use super::amplified::{AmplifiedSettings, Anchor};
use super::mean::{shares, step};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State, Traffic};
use crate::saved::Saved;
use crate::slab::Slab;
use crate::task::Correction;
use crate::vector::add;

/// The mean of what arrived, amplified, with control variates of the last period.
pub struct AmplifiedScaffold {
    settings: AmplifiedSettings,
    anchor: Anchor,
    server: Vec<f32>,
    clients: Slab,
    sums: Slab,
    /// The steps of this period, by client.
    steps: Vec<u64>,
}

impl AmplifiedScaffold {
    /// All control variates zero.
    pub fn new(settings: &AmplifiedSettings, parameters: usize) -> Self {
        Self {
            settings: settings.clone(),
            anchor: Anchor::default(),
            server: vec![0.0; parameters],
            clients: Slab::new(parameters),
            sums: Slab::new(parameters),
            steps: Vec::new(),
        }
    }

    /// Adds the raw gradients of what arrived.
    fn count(&mut self, arrivals: &[Arrival], rate: f32, global: &[f32]) {
        for arrival in arrivals {
            let sum = self.sums.row(arrival.client);
            let steps = arrival.steps as f32;
            for (at, sum) in sum.iter_mut().enumerate() {
                *sum += (global[at] - arrival.model[at]) / rate - steps * self.server[at];
            }
            if let Some(own) = self.clients.get(arrival.client) {
                add(self.sums.row(arrival.client), steps, own);
            }
            self.steps[arrival.client as usize] += u64::from(arrival.steps);
        }
    }

    /// New control variates from the period that ends.
    fn renew(&mut self) {
        let share = 1.0 / self.steps.len() as f32;
        for client in 0..self.steps.len() {
            let steps = std::mem::take(&mut self.steps[client]);
            if steps == 0 {
                continue;
            }
            let sum = self.sums.row(client as u32);
            let own = self.clients.row(client as u32);
            for at in 0..own.len() {
                let next = sum[at] / steps as f32;
                self.server[at] += share * (next - own[at]);
                own[at] = next;
                sum[at] = 0.0;
            }
        }
    }
}

impl Aggregation for AmplifiedScaffold {
    /// The server's variate down, the change of the client's one up.
    fn traffic(&self, _context: &RoundContext, _client: u32) -> Traffic {
        Traffic { vectors_down: 1, vectors_up: 1, ..Traffic::default() }
    }

    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn correction(&self, _context: &RoundContext, client: u32) -> Correction<'_> {
        let own = self.clients.get(client).map(|own| (-1.0, own.into()));
        let linear = std::iter::once((1.0, self.server.as_slice().into())).chain(own).collect();
        Correction { linear, proximal: 0.0 }
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        self.anchor.begin(global);
        self.steps.resize(context.federation.len(), 0);
        let rate = context.world.scenario.training.rate_in(context.round);
        self.count(arrivals, rate, global);
        let shares = shares(arrivals, |_| 1.0);
        step(arrivals, &shares, 1.0, global);
        if self.anchor.amplify(&self.settings, context.round, global) {
            self.renew();
        }
        Ok(shares)
    }
}

impl State for AmplifiedScaffold {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.anchor.save(saved);
        saved.put("amplified.server", &self.server);
        self.clients.save("amplified.clients", saved);
        self.sums.save("amplified.sums", saved);
        saved.put_value("amplified.steps", &self.steps);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.anchor.restore(saved, self.server.len())?;
        self.server = saved.take("amplified.server", self.server.len())?;
        self.clients.restore("amplified.clients", saved)?;
        self.sums.restore("amplified.sums", saved)?;
        self.steps = saved.get_value("amplified.steps")?;
        Ok(())
    }
}
