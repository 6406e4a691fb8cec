//! Control variates on the server: drift is corrected without state on the clients, from plain uploads.
//!
//! SCAFFOLD (Karimireddy et al., ICML 2020) takes the drift out of local training by control variates that every client
//! keeps and uploads. The server can work them out itself, because it knows what correction it sent. With
//! τ_i = E_i γ, the server keeps the latest update u_i of each client heard from, corrected as if none had been sent, and
//! their mean per unit of step length, m = Σ b_i (u_i/τ_i) / Σ b_i, b being the target of the selection. A client gets
//! the model x and
//!
//! ```text
//! d_i = λ (u_i/τ_i − m)        each local step: y ← y − γ (∇F_i(y; ξ) + d_i)
//! u_i ← (y_i − x) + τ_i d_i    for each arrival y_i, with the d_i that was sent
//! x   ← x + η Ē γ m            Ē: mean number of local steps of the arrivals
//! ```
//!
//! −u_i/τ_i is the mean gradient along the local path: SCAFFOLD's c_i in its option II; the step is SAG with weights b.
//! λ is 1 while corrections are safe ([`Safety`]), else 0. With λ = 0, or one local step, in which nothing
//! drifts and nothing is sent, this is [`Memory`](super::Memory), to the bit as long as all clients make equally many steps and the step size stays.
//!
//! `memory = "labels"` keeps one vector h_c per class instead of one per client: u_i/τ_i ≈ Σ_c α_ic h_c, learnt by
//! normalised least mean squares, h_c ← h_c + μ α_ic/‖α_i‖² (u_i/τ_i − Σ_c α_ic h_c).

mod remembered;
mod safety;
mod settings;

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use settings::{ControlSettings, CorrectionKind, LabelSettings, MemoryKind, ServerRate};

use self::remembered::{Energies, OwnUpdate, Remembered};
use self::safety::{Safety, Verdict};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State, Traffic};
use crate::saved::Saved;
use crate::task::Correction;
use crate::vector::add;

/// How fast the share of weight that arrives is followed.
const SHARE_STEP: f64 = 0.1;

/// The mean of everyone's latest update, with corrections of the drift.
pub struct Control {
    settings: ControlSettings,
    parameters: usize,
    remembered: Remembered,
    /// The share of weight that arrives, φ.
    share: Option<f64>,
    safety: Safety,
    /// The model to go back to, while corrections are sent and watched.
    calm: Option<Vec<f32>>,
    /// Whether a correction was sent to someone who arrived in the last round.
    sent: bool,
    /// What was seen of this round's arrivals that are already remembered.
    absorbed: BTreeMap<u32, Seen>,
}

/// What the safety rule goes by.
struct Seen {
    /// Whether a correction had been sent.
    corrected: bool,
    energies: Energies,
}

impl Control {
    /// Nobody heard from yet.
    pub fn new(settings: &ControlSettings, parameters: usize) -> Self {
        Self {
            settings: settings.clone(),
            parameters,
            remembered: Remembered::new(settings.memory.clone(), parameters),
            share: None,
            safety: Safety::default(),
            calm: None,
            sent: false,
            absorbed: BTreeMap::new(),
        }
    }

    /// Whether corrections are sent: λ = 1.
    fn corrects(&self) -> bool {
        match self.settings.correction {
            CorrectionKind::Auto => self.safety.is_open(),
            CorrectionKind::Full => true,
            CorrectionKind::None => false,
        }
    }

    /// E_i γ for so many steps.
    fn length(&self, context: &RoundContext, steps: f64) -> f64 {
        // Plain memory counts updates as they are, whatever the steps behind them.
        let plain = self.settings.correction == CorrectionKind::None
            && matches!(self.settings.memory, MemoryKind::Clients);
        match plain {
            true => 1.0,
            false => steps * f64::from(context.world.scenario.training.rate_in(context.round)),
        }
    }

    /// The client's own update, in place of its model.
    fn own_update(
        &self,
        context: &RoundContext,
        client: u32,
        steps: u32,
        model: Vec<f32>,
    ) -> OwnUpdate {
        let length = self.length(context, f64::from(steps));
        // Nothing was sent to whom there is one step.
        let corrected = self.corrects() && steps > 1;
        let labels = context.federation.labels(client as usize);
        self.remembered.own_update(labels, client, model, length, corrected, context.global)
    }

    fn remember(&mut self, context: &RoundContext, client: u32, update: OwnUpdate) -> Seen {
        let (corrected, labels) = (update.corrected, context.federation.labels(client as usize));
        Seen { corrected, energies: self.remembered.remember(labels, client, update) }
    }

    /// Acts on what was seen in a round, before its step; whether the server went back.
    fn go_back(&mut self, global: &mut [f32]) -> bool {
        // Only the automatic rule acts on what it sees.
        if self.settings.correction != CorrectionKind::Auto {
            return false;
        }
        match self.safety.decide() {
            Verdict::Stay => {}
            // In the memory of the last one.
            Verdict::Calm => {
                let calm = self.calm.get_or_insert_default();
                calm.clear();
                calm.extend_from_slice(global);
            }
            Verdict::Back => {
                if let Some(calm) = self.calm.take() {
                    global.copy_from_slice(&calm);
                }
                // What corrected clients uploaded is too long where nobody is corrected.
                self.remembered.forget();
                return true;
            }
        }
        false
    }

    /// The step η on the server, after a round in which this share of the weight arrived.
    fn rate(&mut self, arrived: f64) -> f32 {
        let share = self.share.map_or(arrived, |share| share + SHARE_STEP * (arrived - share));
        self.share = Some(share);
        match self.settings.server_rate {
            ServerRate::Fixed(rate) => rate as f32,
            ServerRate::Auto(_) => (3.0 * share.powf(2.0 / 3.0)).max(1.0) as f32,
        }
    }
}

impl Aggregation for Control {
    fn scores(&self) -> Vec<(&'static str, f64)> {
        let energy = self.safety.median().map(|median| ("correction_energy", median));
        let sent = ("corrected", f64::from(u8::from(self.sent)));
        std::iter::once(sent).chain(energy).collect()
    }

    fn correction(&self, context: &RoundContext, client: u32) -> Correction<'_> {
        // Nothing drifts in one step.
        if !self.corrects() || context.world.steps(client) < 2 {
            return Correction::default();
        }
        let labels = context.federation.labels(client as usize);
        let terms = self.remembered.deviation(labels, client).unwrap_or_default();
        match self.settings.memory {
            MemoryKind::Clients => {
                let scaled = |(factor, vector)| (factor as f32, Cow::Borrowed(vector));
                Correction { linear: terms.into_iter().map(scaled).collect(), proximal: 0.0 }
            }
            // One vector instead of one per class in every step.
            MemoryKind::Labels(_) => {
                let mut sum = vec![0.0; self.parameters];
                for (factor, vector) in terms {
                    add(&mut sum, factor as f32, vector);
                }
                Correction { linear: vec![(1.0, Cow::Owned(sum))], proximal: 0.0 }
            }
        }
    }

    fn absorb(&mut self, context: &RoundContext, client: u32, steps: u32, model: &mut Vec<f32>) {
        // What is remembered of a class is part of the corrections of all clients: it waits for the others.
        if matches!(self.settings.memory, MemoryKind::Clients) {
            let update = self.own_update(context, client, steps, std::mem::take(model));
            let seen = self.remember(context, client, update);
            self.absorbed.insert(client, seen);
        }
    }

    fn needs_labels(&self) -> bool {
        matches!(self.settings.memory, MemoryKind::Labels(_))
    }

    /// A second vector to whoever gets a correction.
    fn traffic(&self, context: &RoundContext, client: u32) -> Traffic {
        let labels = context.federation.labels(client as usize);
        let sent = self.corrects()
            && context.world.steps(client) >= 2
            && self.remembered.deviation(labels, client).is_some();
        Traffic { vectors_down: sent.into(), ..Traffic::default() }
    }

    fn aggregate(
        &mut self,
        context: &RoundContext,
        probabilities: Option<Probabilities>,
        arrivals: &[Arrival],
        global: &mut [f32],
    ) -> Result<Vec<(u32, f64)>, Error> {
        let weights = probabilities.map_or(context.federation.weights(), |p| p.target);
        let rate = f64::from(context.world.scenario.training.rate_in(context.round));
        let corrected = self.corrects();
        let mut seen = std::mem::take(&mut self.absorbed);
        // All corrections of a round were worked out from the same state: so are they taken back, before any arrival changes it.
        let late = arrivals.iter().filter(|arrival| !seen.contains_key(&arrival.client));
        let own = |arrival: &Arrival| {
            let model = arrival.model.clone();
            (arrival.client, self.own_update(context, arrival.client, arrival.steps, model))
        };
        let updates: Vec<_> = late.map(own).collect();
        for (client, update) in updates {
            seen.insert(client, self.remember(context, client, update));
        }
        self.safety.begin(rate);
        self.sent = seen.values().any(|seen| seen.corrected);
        if self.settings.correction == CorrectionKind::Auto && corrected && self.calm.is_none() {
            self.calm = Some(global.to_vec());
        }
        for arrival in arrivals {
            let Seen { corrected, energies } = &seen[&arrival.client];
            match corrected {
                true => self.safety.corrected(arrival.client, energies.gain, energies.change),
                false => self.safety.gained(energies.gain),
            }
        }
        let total: f64 = weights.iter().sum();
        let arrived: f64 = arrivals.iter().map(|a| weights[a.client as usize]).sum();
        let server_rate = self.rate(if total > 0.0 { arrived / total } else { 0.0 });
        if self.go_back(global) {
            return Ok(Vec::new());
        }
        let steps: f64 = arrivals.iter().map(|arrival| f64::from(arrival.steps)).sum();
        let length = self.length(context, steps / arrivals.len() as f64);
        Ok(self.remembered.step(context, weights, length, server_rate, global))
    }
}

impl State for Control {
    fn memory(&self) -> usize {
        self.remembered.bytes() + self.calm.as_ref().map_or(0, |calm| size_of_val(calm.as_slice()))
    }

    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.remembered.save(saved);
        saved.put("control.calm", self.calm.as_deref().unwrap_or_default());
        saved.put_value("control.is_watched", &self.calm.is_some());
        saved.put_value("control.share", &self.share);
        saved.put_value("control.safety", &self.safety);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.absorbed.clear();
        self.remembered.restore(saved)?;
        self.share = saved.get_value("control.share")?;
        self.safety = saved.get_value("control.safety")?;
        let is_watched: bool = saved.get_value("control.is_watched")?;
        let calm = saved.take("control.calm", if is_watched { self.parameters } else { 0 })?;
        self.calm = is_watched.then_some(calm);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automatic_step_follows_what_arrives() {
        let settings = ControlSettings {
            server_rate: ServerRate::Auto(settings::Auto::Auto),
            ..ControlSettings::default()
        };
        let mut control = Control::new(&settings, 1);
        // 3 · 1^⅔, then φ = 1 − 0.1 · (1 − 0.125) = 0.9125: 3 · 0.9125^⅔.
        assert_eq!(control.rate(1.0), 3.0);
        assert!((control.rate(0.125) - 2.822_31).abs() < 1e-4);
        control.share = Some(0.1);
        assert_eq!(control.rate(0.1), 1.0);
    }
}
