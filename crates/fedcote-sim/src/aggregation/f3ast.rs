//! F3AST's aggregation (Ribero, Vikalo and de Veciana, "Federated Learning Under Intermittent Client Availability and Time-Varying
//! Communication Constraints", IEEE JSTSP 2023): updates divided by the smoothed rate at which a client's arrive.
//!
//! r_i ← (1 − β) r_i + β [i arrived] for all i, then with the new rates w̄ ← w̄ + η Σ_A (p_i / r_i) (w_i − w̄). Rates start at min(1, K/N), so that with
//! equal weights the first steps are those of plain averaging. The paper has one rate for choosing and for weighing, for uploads that never
//! fail; the rate at which clients are chosen is kept by the selection, since one that counts arrivals would choose dead links for ever.

use super::mean::step;
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `aggregation = "f3ast"`.
    pub struct F3astSettings {
        /// Step size η on the server.
        server_rate: f64 = 1.0, in 0.0..=1e30;
        /// The weight β of a round in the smoothed rates.
        smoothing: f64 = 0.001, in 0.0..=1.0;
        /// At most so many clients a round; by default K.
        most: Option<u64> = None, in 1..;
    }
}

/// The smallest rate that is divided by.
const LEAST: f64 = 1e-6;

/// Rates of clients, smoothed over rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rates(pub(crate) Vec<f64>);

impl Rates {
    /// The rates in force, at first min(1, K/N) for each of the clients.
    pub(crate) fn of(&mut self, clients: usize, draws: u64) -> &[f64] {
        if self.0.is_empty() {
            self.0 = vec![(draws as f64 / clients as f64).min(1.0); clients];
        }
        &self.0
    }

    /// One more round.
    pub(crate) fn advance(&mut self, smoothing: f64, members: impl Iterator<Item = u32>) {
        self.0.iter_mut().for_each(|rate| *rate *= 1.0 - smoothing);
        for member in members {
            self.0[member as usize] += smoothing;
        }
    }
}

/// The sum of what arrived, each divided by its rate.
pub struct F3ast {
    settings: F3astSettings,
    rates: Rates,
}

impl F3ast {
    /// Nothing observed yet.
    pub fn new(settings: &F3astSettings) -> Self {
        Self { settings: settings.clone(), rates: Rates::default() }
    }
}

impl Aggregation for F3ast {
    fn retries(&self) -> bool {
        false
    }

    fn counts_empty_rounds(&self) -> bool {
        true
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        _probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let weights = context.federation.weights();
        self.rates.of(weights.len(), self.settings.most.unwrap_or(context.world.draws()));
        self.rates.advance(self.settings.smoothing, arrivals.iter().map(|a| a.client));
        let factor = |a: &Arrival| {
            let client = a.client as usize;
            (a.client, weights[client] / self.rates.0[client].max(LEAST))
        };
        let factors: Vec<(u32, f64)> = arrivals.iter().map(factor).collect();
        step(arrivals, &factors, self.settings.server_rate as f32, global);
        Ok(factors)
    }
}

impl State for F3ast {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put_value("f3ast.arrived", &self.rates.0);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.rates.0 = saved.get_value("f3ast.arrived")?;
        Ok(())
    }
}
