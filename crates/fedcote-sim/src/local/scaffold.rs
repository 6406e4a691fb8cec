//! SCAFFOLD (Karimireddy et al., "Stochastic Controlled Averaging for Federated Learning", ICML 2020),
//! option II.
//!
//! A client steps with ∇F_i(w) − c_i + c. An upload that arrived advances
//! c_i⁺ = c_i − c + (w̄ − w_i) / (E γ) and c ← c + (1/N) Σ (c_i⁺ − c_i), each client once a round; a
//! client whose uploads all failed keeps its c_i. The paper prints 1/(K γ), K being the number of selected
//! clients (`control = "printed"`); the original has the number of local steps. The paper also has a client advance its c_i
//! after training, before anybody knows whether its upload arrives (`advance = "trained"`): then a client whose upload is lost has
//! moved on from the c_i that the server's sum still counts.

use crate::part::{Arrival, LocalUpdate, RoundContext, State, Traffic};
use crate::saved::Saved;
use crate::scheme::settings::{choices, parameters};
use crate::slab::Slab;
use crate::task::Correction;

choices! {
    /// How SCAFFOLD's control variate is scaled.
    #[derive(Copy, Eq)]
    pub enum ControlKind in "control" {
        /// By the number of local steps, as in the original.
        "original" => Original,
        /// By the number of selected clients, as printed in the paper.
        "printed" => Printed,
    }
}

choices! {
    /// Whose control variate advances.
    #[derive(Copy, Eq)]
    pub enum AdvanceKind in "advance" {
        /// Of clients whose upload arrived.
        "arrived" => Arrived,
        /// Of everyone who was drawn, arrived or not; the server counts what arrived. Lost clients train, too.
        "trained" => Trained,
    }
}

parameters! {
    /// Parameters of `local = "scaffold"`.
    pub struct ScaffoldSettings {
        /// How the control variate is scaled.
        control: ControlKind = ControlKind::Original;
        /// Whose control variate advances.
        advance: AdvanceKind = AdvanceKind::Arrived;
    }
}

/// SGD with control variates.
pub struct Scaffold {
    control: ControlKind,
    advance: AdvanceKind,
    server: Vec<f32>,
    clients: Slab,
}

impl Scaffold {
    /// All control variates zero.
    pub fn new(settings: &ScaffoldSettings, parameters: usize) -> Self {
        Self {
            control: settings.control,
            advance: settings.advance,
            server: vec![0.0; parameters],
            clients: Slab::new(parameters),
        }
    }

    /// 1/(Eγ) for a client's variate.
    fn factor(&self, context: &RoundContext, steps: u32) -> f32 {
        let steps = match self.control {
            ControlKind::Original => steps as f32,
            ControlKind::Printed => context.world.draws() as f32,
        };
        1.0 / (steps * context.world.scenario.training.rate_in(context.round))
    }

    /// Advances the variates with one arrival's model; `factor` is 1/(Eγ).
    fn advance(
        &mut self,
        client: u32,
        factor: f32,
        share: f32,
        global: &[f32],
        model: &[f32],
        step: &mut [f32],
    ) {
        let own = self.clients.row(client);
        for (at, own) in own.iter_mut().enumerate() {
            let next = *own - self.server[at] + factor * (global[at] - model[at]);
            step[at] += share * (next - *own);
            *own = next;
        }
    }
}

impl LocalUpdate for Scaffold {
    fn correction(&self, _context: &RoundContext, client: u32) -> Correction<'_> {
        let own = self.clients.get(client).map(|own| (-1.0, own.into()));
        let linear = std::iter::once((1.0, self.server.as_slice().into())).chain(own).collect();
        Correction { linear, proximal: 0.0 }
    }

    /// The server's variate down; the client's own one, which it keeps, changed, up.
    fn traffic(&self, _context: &RoundContext, _client: u32) -> Traffic {
        Traffic { vectors_down: 1, vectors_up: 1, ..Traffic::default() }
    }

    fn received(&mut self, context: &RoundContext, arrivals: &[Arrival]) {
        let share = 1.0 / context.federation.len() as f32;
        // All arrivals advance from the same server variate.
        let mut step = vec![0.0; self.server.len()];
        for arrival in arrivals {
            let factor = self.factor(context, arrival.steps);
            self.advance(arrival.client, factor, share, context.global, &arrival.model, &mut step);
        }
        crate::vector::add(&mut self.server, 1.0, &step);
    }

    fn reads_models(&self) -> bool {
        true
    }

    fn uses_lost(&self) -> bool {
        self.advance == AdvanceKind::Trained
    }

    /// From the server variate of before this round's arrivals, and without a share in it.
    fn lost(&mut self, context: &RoundContext, lost: &[Arrival]) {
        if !self.uses_lost() {
            return;
        }
        let mut step = vec![0.0; self.server.len()];
        for lost in lost {
            let factor = self.factor(context, lost.steps);
            self.advance(lost.client, factor, 0.0, context.global, &lost.model, &mut step);
        }
    }
}

impl State for Scaffold {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put("scaffold.server", &self.server);
        self.clients.save("scaffold.clients", saved);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.server = saved.take("scaffold.server", self.server.len())?;
        self.clients.restore("scaffold.clients", saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clients of one parameter, N = 2, E γ = 0.5, worked by hand.
    #[test]
    fn variates_advance_as_by_hand() {
        let mut scaffold = Scaffold::new(&ScaffoldSettings::default(), 1);
        let mut step = vec![0.0];
        // w̄ = 1, w_0 = 0.5: c_0 = (1 − 0.5)/0.5 = 1; w_1 = 2: c_1 = −2; c = (1 − 2)/2 = −0.5.
        scaffold.advance(0, 2.0, 0.5, &[1.0], &[0.5], &mut step);
        scaffold.advance(1, 2.0, 0.5, &[1.0], &[2.0], &mut step);
        crate::vector::add(&mut scaffold.server, 1.0, &step);
        assert_eq!(scaffold.clients.get(0).unwrap(), [1.0]);
        assert_eq!(scaffold.clients.get(1).unwrap(), [-2.0]);
        assert_eq!(scaffold.server, [-0.5]);
        // Only client 0 arrives: c_0⁺ = 1 + 0.5 + (1 − 1)·2 = 1.5, c = −0.5 + 0.5/2 = −0.25.
        let mut step = vec![0.0];
        scaffold.advance(0, 2.0, 0.5, &[1.0], &[1.0], &mut step);
        crate::vector::add(&mut scaffold.server, 1.0, &step);
        assert_eq!(scaffold.clients.get(0).unwrap(), [1.5]);
        assert_eq!(scaffold.clients.get(1).unwrap(), [-2.0]);
        assert_eq!(scaffold.server, [-0.25]);
    }
}
