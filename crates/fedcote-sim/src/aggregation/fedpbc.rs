//! FedPBC (Xiang, Ioannidis, Yeh, Joe-Wong and Su, "Towards Bias Correction of FedAvg over Nonuniform and Time-Varying Communications",
//! 2023): everybody trains in every round, connected or not, and the mean of those who arrive is sent to them only.
//!
//! x_i ← x_i + η Δ_i for every client, starting from its own model x_i; w̄ ← mean_A x_i; x_i ← w̄ for those who arrived. The model that is evaluated
//! is the mean of all x_i. A client whose upload is lost keeps its progress.

use super::mean::StepSettings;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::slab::Slab;
use crate::vector::{add, mean_change};

/// The mean of the clients' own models, which they go on with when they are not heard.
pub struct FedPbc {
    rate: f32,
    models: Slab,
    /// The model of clients that have not trained yet; empty before the first round.
    initial: Vec<f32>,
    /// The number of clients; 0 before the first round.
    clients: usize,
    parameters: usize,
}

impl FedPbc {
    /// Everybody at the initial model.
    pub fn new(settings: &StepSettings, parameters: usize) -> Self {
        Self {
            rate: settings.rate(),
            models: Slab::new(parameters),
            initial: Vec::new(),
            clients: 0,
            parameters,
        }
    }

    /// x_i + η Δ_i.
    fn advanced(&self, arrival: &Arrival) -> Vec<f32> {
        let own = self.models.get(arrival.client).unwrap_or(&self.initial);
        let mut next = own.to_vec();
        for (next, model) in next.iter_mut().zip(&arrival.model) {
            *next += self.rate * (model - *next);
        }
        next
    }
}

impl Aggregation for FedPbc {
    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn start(&self, client: u32) -> Option<&[f32]> {
        let initial = (!self.initial.is_empty()).then_some(self.initial.as_slice());
        self.models.get(client).or(initial)
    }

    fn evaluated(&self, global: &[f32]) -> Option<Vec<f32>> {
        if self.initial.is_empty() {
            return None;
        }
        let (mut sum, mut count) = (vec![0.0; global.len()], 0usize);
        for (_, model) in self.models.iter() {
            add(&mut sum, 1.0, model);
            count += 1;
        }
        // The others are still where they began.
        let clients = self.clients.max(count);
        add(&mut sum, (clients - count) as f32, &self.initial);
        sum.iter_mut().for_each(|value| *value /= clients as f32);
        Some(sum)
    }

    fn uses_lost(&self) -> bool {
        true
    }

    fn lost(&mut self, _context: &RoundContext, lost: &[Arrival]) {
        for lost in lost {
            let next = self.advanced(lost);
            self.models.row(lost.client).copy_from_slice(&next);
        }
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        if self.initial.is_empty() {
            self.initial = global.to_vec();
            self.clients = context.federation.len();
        }
        if arrivals.is_empty() {
            return Ok(Vec::new());
        }
        let share = 1.0 / arrivals.len() as f64;
        let advanced: Vec<Vec<f32>> = arrivals.iter().map(|a| self.advanced(a)).collect();
        let change = mean_change(global, advanced.iter().map(|model| (share, model.as_slice())));
        add(global, 1.0, &change);
        for arrival in arrivals {
            self.models.row(arrival.client).copy_from_slice(global);
        }
        Ok(arrivals.iter().map(|arrival| (arrival.client, share)).collect())
    }
}

impl State for FedPbc {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.models.save("fedpbc.models", saved);
        saved.put("fedpbc.initial", &self.initial);
        saved.put_value("fedpbc.clients", &self.clients);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.models.restore("fedpbc.models", saved)?;
        self.clients = saved.get_value("fedpbc.clients")?;
        let length = if self.clients > 0 { self.parameters } else { 0 };
        self.initial = saved.take("fedpbc.initial", length)?;
        Ok(())
    }
}
