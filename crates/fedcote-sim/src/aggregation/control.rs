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
//! drifts and nothing is sent, this is
//! [`Memory`](super::Memory), to the bit as long as all clients make equally many steps and the step size stays.
//!
//! `memory = "labels"` keeps one vector h_c per class instead of one per client: u_i/τ_i ≈ Σ_c α_ic h_c, learnt by
//! normalised least mean squares, h_c ← h_c + μ α_ic/‖α_i‖² (u_i/τ_i − Σ_c α_ic h_c).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::safety::{Safety, Verdict};
use crate::Error;
use crate::part::{Aggregation, Arrival, Probabilities, RoundContext, State};
use crate::saved::Saved;
use crate::scheme::settings::{choices, parameters};
use crate::slab::Slab;
use crate::task::Correction;
use crate::vector::add;

choices! {
    /// What the server remembers.
    pub enum MemoryKind in "memory" {
        /// The latest update of each client: one vector of model size per client heard from.
        "clients" => Clients,
        /// One vector of model size per class, whatever the number of clients.
        "labels" => Labels(LabelSettings),
    }
}

choices! {
    /// How much of the correction is sent.
    #[derive(Copy, Eq)]
    pub enum CorrectionKind in "correction" {
        /// All of it while the server sees that it is safe, else none.
        "auto" => Auto,
        /// All of it, always: unstable with deep models.
        "full" => Full,
        /// None: plain memory.
        "none" => None,
    }
}

parameters! {
    /// Parameters of `aggregation = "control"`.
    pub struct ControlSettings {
        /// With `control` also "auto": max(1, 3φ^⅔), φ being the share of the weight that arrives.
        server_rate: ServerRate = ServerRate::Fixed(1.0), in 0.0..=1e30;
        /// What the server remembers.
        memory: MemoryKind = MemoryKind::Clients;
        /// How much of the correction is sent.
        correction: CorrectionKind = CorrectionKind::Auto;
    }
}

parameters! {
    /// Parameters of `memory = "labels"`.
    pub struct LabelSettings {
        /// The share μ of an arrival's error that is corrected.
        label_step: f64 = 0.5, in 0.0..=1.0;
    }
}

/// A step size on the server, or the word "auto".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number, or \"auto\"")]
pub enum ServerRate {
    /// This step size.
    Fixed(f64),
    /// One that follows the share of weight that arrives.
    Auto(Auto),
}

/// The word "auto".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// "auto".
    Auto,
}

/// How fast the share of weight that arrives is followed.
const SHARE_STEP: f64 = 0.1;

/// The mean of everyone's latest update, with corrections of the drift.
pub struct Control {
    settings: ControlSettings,
    /// The update of each client, or the update per unit of step length of each class.
    rows: Slab,
    /// E_i γ behind the update of each client.
    lengths: BTreeMap<u32, f64>,
    /// The mean update per unit of step length, m.
    mean: Vec<f32>,
    /// The labels that the mean is meant to have, Σ b_i α_i; for `memory = "labels"`.
    mix: Vec<f64>,
    /// The share of weight that arrives, φ.
    share: Option<f64>,
    safety: Safety,
    /// The last calm model, while corrections are sent.
    calm: Vec<f32>,
    /// Whether corrections were sent in the last round.
    sent: bool,
}

impl Control {
    /// Nobody heard from yet.
    pub fn new(settings: &ControlSettings, parameters: usize) -> Self {
        Self {
            settings: settings.clone(),
            rows: Slab::new(parameters),
            lengths: BTreeMap::new(),
            mean: vec![0.0; parameters],
            mix: Vec::new(),
            share: None,
            safety: Safety::default(),
            calm: Vec::new(),
            sent: false,
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

    /// d_i for a client: what is remembered of it per unit of step length, less the mean.
    fn deviation(&self, labels: &[f64], client: u32) -> Option<Vec<(f64, &[f32])>> {
        match self.settings.memory {
            MemoryKind::Clients => {
                let own = self.rows.get(client)?;
                Some(vec![(1.0 / self.lengths[&client], own), (-1.0, &self.mean)])
            }
            MemoryKind::Labels(_) => {
                let mix = |class: u32| self.mix.get(class as usize).copied().unwrap_or(0.0);
                let term = |(class, row)| (labels[class as usize] - mix(class), row);
                Some(self.rows.iter().map(term).collect()).filter(|_| !self.mix.is_empty())
            }
        }
    }

    /// A client's own update, u_i, and whether it was sent a correction: `length` is its E_i γ.
    fn own_update(
        &self,
        labels: &[f64],
        arrival: &Arrival,
        length: f64,
        corrected: bool,
        global: &[f32],
    ) -> (Vec<f32>, bool) {
        // In units of the update, so that without a correction nothing is rounded.
        let mut update: Vec<f32> =
            arrival.model.iter().zip(global).map(|(model, global)| model - global).collect();
        let sent = match corrected && arrival.steps > 1 {
            true => self.deviation(labels, arrival.client),
            false => None,
        };
        let was_corrected = sent.is_some();
        for (factor, vector) in sent.unwrap_or_default() {
            add(&mut update, (length * factor) as f32, vector);
        }
        (update, was_corrected)
    }

    /// Remembers a client's own update.
    fn remember(
        &mut self,
        labels: &[f64],
        client: u32,
        length: f64,
        (mut update, was_corrected): (Vec<f32>, bool),
    ) {
        let square = squared(&update) / (length * length);
        match &self.settings.memory {
            MemoryKind::Clients => {
                if was_corrected {
                    let before = self.rows.get(client).expect("only who was heard is corrected");
                    let scale = length / self.lengths[&client];
                    let distance = |(new, old): (&f32, &f32)| {
                        (f64::from(*new) - scale * f64::from(*old)).powi(2)
                    };
                    let change: f64 = update.iter().zip(before).map(distance).sum();
                    self.safety.corrected(client, change / length);
                } else {
                    self.safety.gained(square * length);
                    self.safety.remember(client, square.sqrt());
                }
                self.rows.row(client).copy_from_slice(&update);
                self.lengths.insert(client, length);
            }
            MemoryKind::Labels(LabelSettings { label_step }) => {
                // The error of what the classes foretell.
                for value in &mut update {
                    *value /= length as f32;
                }
                for (class, row) in self.rows.iter() {
                    add(&mut update, -labels[class as usize] as f32, row);
                }
                let norm: f64 = labels.iter().map(|share| share * share).sum();
                for (class, &share) in labels.iter().enumerate().filter(|(_, share)| **share > 0.0)
                {
                    let row = self.rows.row(class as u32);
                    add(row, (label_step * share / norm) as f32, &update);
                    if !was_corrected {
                        self.safety.remember(class as u32, squared(row).sqrt());
                    }
                }
                if was_corrected {
                    self.safety.corrected(client, squared(&update) * length);
                } else {
                    self.safety.gained(square * length);
                }
            }
        }
    }

    /// Back to the calm model, and to remembered updates no longer than without corrections.
    fn go_back(&mut self, global: &mut [f32]) {
        global.copy_from_slice(&std::mem::take(&mut self.calm));
        let rows: Vec<u32> = self.rows.iter().map(|(row, _)| row).collect();
        for row in rows {
            let unit = self.lengths.get(&row).copied().unwrap_or(1.0);
            let values = self.rows.row(row);
            let factor = self.safety.shortening(row, squared(values).sqrt() / unit) as f32;
            values.iter_mut().for_each(|value| *value *= factor);
        }
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

    /// Steps by the mean of the clients' updates; returns their shares.
    fn step_by_clients(
        &mut self,
        weights: &[f64],
        length: f64,
        rate: f32,
        global: &mut [f32],
    ) -> Vec<(u32, f64)> {
        let weight = |client: u32| weights[client as usize];
        let total: f64 = self.rows.iter().map(|(client, _)| weight(client)).sum();
        if total <= 0.0 {
            // Only clients without a say arrived.
            return Vec::new();
        }
        self.mean.fill(0.0);
        let mut shares = Vec::new();
        for (client, update) in self.rows.iter() {
            let share = weight(client) / total;
            if share > 0.0 {
                let own = self.lengths[&client];
                add(global, rate * (share * (length / own)) as f32, update);
                add(&mut self.mean, (share / own) as f32, update);
                shares.push((client, share));
            }
        }
        shares
    }

    /// Steps by the classes' vectors in the mix of labels that the weights aim at; returns the weights.
    fn step_by_labels(
        &mut self,
        context: &RoundContext,
        weights: &[f64],
        length: f64,
        rate: f32,
        global: &mut [f32],
    ) -> Vec<(u32, f64)> {
        let federation = context.federation;
        self.mix = vec![0.0; federation.classes()];
        let mut shares = Vec::new();
        for (client, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            for (mix, share) in self.mix.iter_mut().zip(federation.labels(client)) {
                *mix += weight * share;
            }
            shares.push((client as u32, weight));
        }
        self.mean.fill(0.0);
        for (class, row) in self.rows.iter() {
            add(&mut self.mean, self.mix[class as usize] as f32, row);
        }
        add(global, rate * length as f32, &self.mean);
        shares
    }
}

/// The squared Euclidean norm.
fn squared(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value).powi(2)).sum()
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
        let terms = self.deviation(labels, client).unwrap_or_default();
        match self.settings.memory {
            MemoryKind::Clients => {
                let scaled = |(factor, vector)| (factor as f32, Cow::Borrowed(vector));
                Correction { linear: terms.into_iter().map(scaled).collect(), proximal: 0.0 }
            }
            // One vector instead of one per class in every step.
            MemoryKind::Labels(_) => {
                let mut sum = vec![0.0; self.mean.len()];
                for (factor, vector) in terms {
                    add(&mut sum, factor as f32, vector);
                }
                Correction { linear: vec![(1.0, Cow::Owned(sum))], proximal: 0.0 }
            }
        }
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
        self.sent = corrected;
        self.safety.begin(rate);
        if !self.safety.is_open() {
            self.calm = Vec::new();
        }
        // Plain memory counts updates as they are, whatever the steps behind them.
        let plain = self.settings.correction == CorrectionKind::None
            && matches!(self.settings.memory, MemoryKind::Clients);
        let length = |steps: f64| if plain { 1.0 } else { steps * rate };
        // All corrections of a round were worked out from the same state: so are they taken back, before any arrival changes it.
        let labels = |client: u32| context.federation.labels(client as usize);
        let taken_back = |arrival: &Arrival| {
            let length = length(f64::from(arrival.steps));
            (length, self.own_update(labels(arrival.client), arrival, length, corrected, global))
        };
        let updates: Vec<_> = arrivals.iter().map(taken_back).collect();
        for (arrival, (length, update)) in arrivals.iter().zip(updates) {
            self.remember(labels(arrival.client), arrival.client, length, update);
        }
        // Only the automatic rule acts on what it sees.
        if self.settings.correction == CorrectionKind::Auto {
            match self.safety.decide() {
                Verdict::Stay => {}
                Verdict::Calm => self.calm = global.to_vec(),
                Verdict::Back => self.go_back(global),
            }
        }
        let total: f64 = weights.iter().sum();
        let arrived: f64 = arrivals.iter().map(|a| weights[a.client as usize]).sum();
        let server_rate = self.rate(if total > 0.0 { arrived / total } else { 0.0 });
        let steps: f64 = arrivals.iter().map(|arrival| f64::from(arrival.steps)).sum();
        let length = length(steps / arrivals.len() as f64);
        Ok(match self.settings.memory {
            MemoryKind::Clients => self.step_by_clients(weights, length, server_rate, global),
            MemoryKind::Labels(_) => {
                self.step_by_labels(context, weights, length, server_rate, global)
            }
        })
    }
}

impl State for Control {
    fn memory(&self) -> usize {
        self.rows.bytes() + size_of_val(self.calm.as_slice())
    }

    fn save(&self, saved: &mut Saved) {
        self.rows.save("control.rows", saved);
        saved.put("control.mean", &self.mean);
        saved.put("control.calm", &self.calm);
        saved.put_value("control.lengths", &self.lengths);
        saved.put_value("control.mix", &self.mix);
        saved.put_value("control.share", &self.share);
        saved.put_value("control.safety", &self.safety);
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), String> {
        self.rows.restore("control.rows", saved)?;
        self.mean = saved.get("control.mean", self.mean.len())?;
        self.lengths = saved.get_value("control.lengths")?;
        let by_client = matches!(self.settings.memory, MemoryKind::Clients);
        if by_client && self.rows.iter().any(|(client, _)| !self.lengths.contains_key(&client)) {
            return Err("`control.lengths` misses a client".to_owned());
        }
        self.mix = saved.get_value("control.mix")?;
        self.share = saved.get_value("control.share")?;
        self.safety = saved.get_value("control.safety")?;
        let calm = if self.safety.is_open() { self.mean.len() } else { 0 };
        self.calm = saved.get("control.calm", calm)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;

    fn near(found: &[f32], expected: f32) {
        assert!(found.len() == 1 && (found[0] - expected).abs() < 1e-6, "{found:?} {expected}");
    }

    fn visit(
        control: &mut Control,
        labels: &[f64],
        arrival: &Arrival,
        length: f64,
        global: &[f32],
    ) {
        let update = control.own_update(labels, arrival, length, true, global);
        control.remember(labels, arrival.client, length, update);
    }

    /// Two clients minimise w²/2 and 3(w − 1)²/2 by exact gradients, E = 2, γ = 0.1, τ = 0.2, equal weights, from x = 0.
    #[test]
    fn two_rounds_on_quadratics_are_as_by_hand() {
        let mut control = Control::new(&ControlSettings::default(), 1);
        let mut global = vec![0.0];
        // Client 0 stays at its minimum. Client 1: 0 → 0.3 → 0.51.
        assert!(control.deviation(&[], 1).is_none());
        visit(&mut control, &[], &arrival(0, 1, 2, &[0.0]), 0.2, &global);
        visit(&mut control, &[], &arrival(1, 2, 2, &[0.51]), 0.2, &global);
        // m = (0 + 0.51/0.2)/2 = 1.275, x = 0.2 · 1.275.
        let shares = control.step_by_clients(&[0.5, 0.5], 0.2, 1.0, &mut global);
        assert_eq!(shares, [(0, 0.5), (1, 0.5)]);
        near(&control.mean, 1.275);
        near(&global, 0.255);
        // d_0 = 0 − 1.275: 0.255 → 0.255 − 0.1 (0.255 − 1.275) = 0.357 → 0.4488. Without the correction the update would be
        // −γ (0.255 + 0.357) = −0.0612.
        visit(&mut control, &[], &arrival(0, 1, 2, &[0.4488]), 0.2, &global);
        near(control.rows.get(0).unwrap(), -0.0612);
        // m = (−0.0612 + 0.51)/0.4 = 1.122; only client 0 arrived, both count.
        control.step_by_clients(&[0.5, 0.5], 0.2, 1.0, &mut global);
        near(&control.mean, 1.122);
        near(&global, 0.255 + 0.2244);
    }

    #[test]
    fn an_update_is_scaled_to_the_steps_of_the_round() {
        let mut control = Control::new(&ControlSettings::default(), 1);
        let mut global = vec![0.0];
        // Four steps of length 0.1 moved by 0.8: 2 per unit; two steps by 0.2: 1 per unit.
        visit(&mut control, &[], &arrival(0, 1, 4, &[0.8]), 0.4, &global);
        visit(&mut control, &[], &arrival(1, 1, 2, &[0.2]), 0.2, &global);
        control.step_by_clients(&[0.5, 0.5], 0.3, 1.0, &mut global);
        near(&control.mean, 1.5);
        near(&global, 0.45);
    }

    /// With one label per client and μ = 1 a class is its client.
    #[test]
    fn classes_stand_for_clients_that_have_one_label() {
        let settings = ControlSettings {
            memory: MemoryKind::Labels(LabelSettings { label_step: 1.0 }),
            ..ControlSettings::default()
        };
        let mut control = Control::new(&settings, 1);
        visit(&mut control, &[1.0, 0.0], &arrival(0, 1, 2, &[0.0]), 0.2, &[0.0]);
        visit(&mut control, &[0.0, 1.0], &arrival(1, 1, 2, &[0.51]), 0.2, &[0.0]);
        near(control.rows.get(1).unwrap(), 2.55);
        control.mix = vec![0.5, 0.5];
        // What is sent to client 0: h_0 − (h_0 + h_1)/2 = −1.275; its upload shows 0.4488 as above.
        visit(&mut control, &[1.0, 0.0], &arrival(0, 1, 2, &[0.4488]), 0.2, &[0.255]);
        near(control.rows.get(0).unwrap(), -0.306);
    }

    #[test]
    fn the_automatic_step_follows_what_arrives() {
        let settings = ControlSettings {
            server_rate: ServerRate::Auto(Auto::Auto),
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
