//! What the server remembers: the latest update of each client, or one vector per class.

use std::collections::BTreeMap;

use super::settings::{LabelSettings, MemoryKind};
use crate::part::RoundContext;
use crate::saved::Saved;
use crate::slab::Slab;
use crate::vector::add;

/// A client's own update, as if no correction had been sent.
pub(super) struct OwnUpdate {
    values: Vec<f32>,
    /// E_i γ behind it.
    length: f64,
    /// Whether a correction had been sent.
    pub(super) corrected: bool,
}

/// Energies of an update, in units of the loss.
pub(super) struct Energies {
    /// ‖u_i‖²/(E_i γ): to first order what the client gains on its own data.
    pub(super) gain: f64,
    /// The same of its difference from what was remembered.
    pub(super) change: f64,
}

/// Updates by client or by class, and their mean.
pub(super) struct Remembered {
    kind: MemoryKind,
    /// The update of each client, or the update per unit of step length of each class.
    rows: Slab,
    /// E_i γ behind the update of each client.
    lengths: BTreeMap<u32, f64>,
    /// The mean update per unit of step length, m.
    mean: Vec<f32>,
    /// The labels that the mean is meant to have, Σ b_i α_i; for `memory = "labels"`.
    mix: Vec<f64>,
}

impl Remembered {
    /// Nobody heard from yet.
    pub(super) fn new(kind: MemoryKind, parameters: usize) -> Self {
        Self {
            kind,
            rows: Slab::new(parameters),
            lengths: BTreeMap::new(),
            mean: vec![0.0; parameters],
            mix: Vec::new(),
        }
    }

    /// Nobody heard from again.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.kind.clone(), self.mean.len());
    }

    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// d_i for a client as a sum of vectors: what is remembered of it per unit of step length, less the mean.
    pub(super) fn deviation(&self, labels: &[f64], client: u32) -> Option<Vec<(f64, &[f32])>> {
        match self.kind {
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

    /// u_i of a model that arrived, of length E_i γ, with the correction taken back if the client was sent one.
    pub(super) fn own_update(
        &self,
        labels: &[f64],
        client: u32,
        model: Vec<f32>,
        length: f64,
        corrected: bool,
        global: &[f32],
    ) -> OwnUpdate {
        // In units of the update, so that without a correction nothing is rounded.
        let mut values = model;
        for (value, global) in values.iter_mut().zip(global) {
            *value -= global;
        }
        let sent = if corrected { self.deviation(labels, client) } else { None };
        let corrected = sent.is_some();
        for (factor, vector) in sent.unwrap_or_default() {
            add(&mut values, (length * factor) as f32, vector);
        }
        OwnUpdate { values, length, corrected }
    }

    /// Remembers a client's own update.
    pub(super) fn remember(&mut self, labels: &[f64], client: u32, own: OwnUpdate) -> Energies {
        let OwnUpdate { values: mut update, length, .. } = own;
        let gain = squared(&update) / length;
        let change = match &self.kind {
            MemoryKind::Clients => {
                let scale = length / self.lengths.get(&client).copied().unwrap_or(length);
                let row = self.rows.row(client);
                let distance =
                    |(new, old): (&f32, &f32)| (f64::from(*new) - scale * f64::from(*old)).powi(2);
                let change: f64 = update.iter().zip(&*row).map(distance).sum();
                row.copy_from_slice(&update);
                self.lengths.insert(client, length);
                change / length
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
                }
                squared(&update) * length
            }
        };
        Energies { gain, change }
    }

    /// Steps by the mean of what is remembered, `rate` times a round of length Ē γ; returns the clients' shares.
    pub(super) fn step(
        &mut self,
        context: &RoundContext,
        weights: &[f64],
        length: f64,
        rate: f32,
        global: &mut [f32],
    ) -> Vec<(u32, f64)> {
        match self.kind {
            MemoryKind::Clients => self.step_by_clients(weights, length, rate, global),
            MemoryKind::Labels(_) => self.step_by_labels(context, weights, length, rate, global),
        }
    }

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

    /// The classes' vectors in the mix of labels that the weights aim at; the shares are the weights.
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

    pub(super) fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        self.rows.save("control.rows", saved);
        saved.put("control.mean", &self.mean);
        saved.put_value("control.lengths", &self.lengths);
        saved.put_value("control.mix", &self.mix);
    }

    pub(super) fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.rows.restore("control.rows", saved)?;
        self.mean = saved.take("control.mean", self.mean.len())?;
        self.lengths = saved.get_value("control.lengths")?;
        let by_client = matches!(self.kind, MemoryKind::Clients);
        if by_client && self.rows.iter().any(|(client, _)| !self.lengths.contains_key(&client)) {
            return Err("`control.lengths` misses a client".to_owned());
        }
        self.mix = saved.get_value("control.mix")?;
        Ok(())
    }
}

/// The squared Euclidean norm.
fn squared(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregation::arrival;
    use crate::part::Arrival;

    fn near(found: &[f32], expected: f32) {
        assert!(found.len() == 1 && (found[0] - expected).abs() < 1e-6, "{found:?} {expected}");
    }

    fn visit(
        remembered: &mut Remembered,
        labels: &[f64],
        arrival: &Arrival,
        length: f64,
        global: &[f32],
    ) -> Energies {
        let Arrival { client, model, .. } = arrival.clone();
        let update = remembered.own_update(labels, client, model, length, true, global);
        remembered.remember(labels, client, update)
    }

    /// Two clients minimise w²/2 and 3(w − 1)²/2 by exact gradients, E = 2, γ = 0.1, τ = 0.2, equal weights, from x = 0.
    #[test]
    fn two_rounds_on_quadratics_are_as_by_hand() {
        let mut remembered = Remembered::new(MemoryKind::Clients, 1);
        let mut global = vec![0.0];
        // Client 0 stays at its minimum. Client 1: 0 → 0.3 → 0.51.
        assert!(remembered.deviation(&[], 1).is_none());
        visit(&mut remembered, &[], &arrival(0, 1, 2, &[0.0]), 0.2, &global);
        let energies = visit(&mut remembered, &[], &arrival(1, 2, 2, &[0.51]), 0.2, &global);
        near(&[energies.gain as f32], 0.51 * 0.51 / 0.2);
        // m = (0 + 0.51/0.2)/2 = 1.275, x = 0.2 · 1.275.
        let shares = remembered.step_by_clients(&[0.5, 0.5], 0.2, 1.0, &mut global);
        assert_eq!(shares, [(0, 0.5), (1, 0.5)]);
        near(&remembered.mean, 1.275);
        near(&global, 0.255);
        // d_0 = 0 − 1.275: 0.255 → 0.255 − 0.1 (0.255 − 1.275) = 0.357 → 0.4488. Without the correction the update would be
        // −γ (0.255 + 0.357) = −0.0612; it was 0.
        let energies = visit(&mut remembered, &[], &arrival(0, 1, 2, &[0.4488]), 0.2, &global);
        near(remembered.rows.get(0).unwrap(), -0.0612);
        near(&[energies.change as f32], 0.0612 * 0.0612 / 0.2);
        // m = (−0.0612 + 0.51)/0.4 = 1.122; only client 0 arrived, both count.
        remembered.step_by_clients(&[0.5, 0.5], 0.2, 1.0, &mut global);
        near(&remembered.mean, 1.122);
        near(&global, 0.255 + 0.2244);
        // Nothing is left of it.
        remembered.forget();
        assert!(remembered.deviation(&[], 0).is_none() && remembered.bytes() == 0);
        assert_eq!(remembered.step_by_clients(&[0.5, 0.5], 0.2, 1.0, &mut global), []);
        near(&global, 0.255 + 0.2244);
    }

    #[test]
    fn an_update_is_scaled_to_the_steps_of_the_round() {
        let mut remembered = Remembered::new(MemoryKind::Clients, 1);
        let mut global = vec![0.0];
        // Four steps of length 0.1 moved by 0.8: 2 per unit; two steps by 0.2: 1 per unit.
        visit(&mut remembered, &[], &arrival(0, 1, 4, &[0.8]), 0.4, &global);
        visit(&mut remembered, &[], &arrival(1, 1, 2, &[0.2]), 0.2, &global);
        remembered.step_by_clients(&[0.5, 0.5], 0.3, 1.0, &mut global);
        near(&remembered.mean, 1.5);
        near(&global, 0.45);
    }

    /// With one label per client and μ = 1 a class is its client.
    #[test]
    fn classes_stand_for_clients_that_have_one_label() {
        let kind = MemoryKind::Labels(LabelSettings { label_step: 1.0 });
        let mut remembered = Remembered::new(kind, 1);
        visit(&mut remembered, &[1.0, 0.0], &arrival(0, 1, 2, &[0.0]), 0.2, &[0.0]);
        visit(&mut remembered, &[0.0, 1.0], &arrival(1, 1, 2, &[0.51]), 0.2, &[0.0]);
        near(remembered.rows.get(1).unwrap(), 2.55);
        remembered.mix = vec![0.5, 0.5];
        // What is sent to client 0: h_0 − (h_0 + h_1)/2 = −1.275; its upload shows 0.4488 as above.
        visit(&mut remembered, &[1.0, 0.0], &arrival(0, 1, 2, &[0.4488]), 0.2, &[0.255]);
        near(remembered.rows.get(0).unwrap(), -0.306);
    }
}
