//! CA-Fed (Rodio, Faticanti, Marfoq, Neglia and Leonardi, "Federated Learning under Heterogeneous and Correlated Client Availability",
//! INFOCOM 2023, IEEE/ACM ToN 2024): everyone who is there is asked, apart from clients whose rare or correlated presence does more harm
//! than the bias of leaving them out.
//!
//! Those who are there report the loss F̂_i of the model (smoothed over rounds by b; who was never there has the mean of the first round). With
//! ω the weights p of the clients kept, normalised, the error is Σ ω_i F̂_i + κ max_i F̂_i (½ Σ |p_i − ω_i|)². Clients are gone through by falling |λ_i|, then by
//! rising π_i, and left out where that does not raise the error (by at least `tolerance` less); the last one stays. π_i is the probability that a client
//! arrives, λ_i the correlation of its arrivals in neighbouring rounds: known, or counted. With `aggregation = "known"` what arrives has the weight p_i/π_i.

use fedcote::Federation;
use fedcote::divergence::label_divergence;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::part::{Count, Probabilities, RoundContext, Selection, State};
use crate::saved::Saved;
use crate::scenario::Knowledge;
use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `selection = "ca-fed"`.
    pub struct CaFedSettings {
        /// The weight κ of the bias that leaving clients out causes.
        kappa_bias: f64 = 1.0, in 0.0..;
        /// By how much the error must fall for a client to be left out.
        tolerance: f64 = 0.0, in 0.0..;
        /// The weight b of earlier losses in the smoothed loss.
        loss_memory: f64 = 0.0, in 0.0..=1.0;
    }
}

/// Rounds in which nothing was counted, in the estimate of correlations: what rounds of independent presence would have been.
const PRIOR: f64 = 100.0;

/// Everyone who is there and not left out.
pub struct CaFed {
    settings: CaFedSettings,
    losses: Vec<f64>,
    counts: Vec<Visits>,
    selection: Vec<f64>,
    target: Vec<f64>,
    appearance: Vec<f64>,
    label_divergence: f64,
}

/// How often a client was there, or away, and stayed so.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Visits {
    there: Option<bool>,
    on: f64,
    on_on: f64,
    off: f64,
    off_off: f64,
}

impl Visits {
    fn observe(&mut self, there: bool) {
        let both = |before: bool| f64::from(u8::from(before == there));
        match self.there.replace(there) {
            Some(true) => {
                self.on += 1.0;
                self.on_on += both(true);
            }
            Some(false) => {
                self.off += 1.0;
                self.off_off += both(false);
            }
            None => {}
        }
    }

    /// P(there | there) + P(away | away) − 1.
    fn correlation(&self, share: f64) -> f64 {
        (self.on_on + PRIOR * share) / (self.on + PRIOR)
            + (self.off_off + PRIOR * (1.0 - share)) / (self.off + PRIOR)
            - 1.0
    }
}

impl CaFed {
    pub(super) fn new(settings: &CaFedSettings) -> Self {
        Self {
            settings: settings.clone(),
            losses: Vec::new(),
            counts: Vec::new(),
            selection: Vec::new(),
            target: Vec::new(),
            appearance: Vec::new(),
            label_divergence: 0.0,
        }
    }

    /// Takes note of what those who are there report.
    fn observe(&mut self, context: &RoundContext) -> Result<(), Error> {
        let there: Vec<u32> =
            (0..).zip(context.available).filter(|(_, there)| **there).map(|(c, _)| c).collect();
        self.counts.resize(context.available.len(), Visits::default());
        for (counts, &there) in self.counts.iter_mut().zip(context.available) {
            counts.observe(there);
        }
        if there.is_empty() {
            return Ok(());
        }
        let found = context.world.task.losses(context.global, &there)?;
        if self.losses.is_empty() {
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            self.losses = vec![mean; context.available.len()];
            for (&client, loss) in there.iter().zip(&found) {
                self.losses[client as usize] = *loss;
            }
        } else {
            let memory = self.settings.loss_memory;
            for (&client, loss) in there.iter().zip(&found) {
                let own = &mut self.losses[client as usize];
                *own = memory * *own + (1.0 - memory) * loss;
            }
        }
        Ok(())
    }

    /// The correlation of a client's arrivals in neighbouring rounds; q is the probability that it arrives.
    fn correlation(&self, context: &RoundContext, client: usize, q: f64) -> f64 {
        let availability = context.world.network.availability();
        let known = context.world.scenario.observation.knowledge == Knowledge::Known;
        match availability {
            Some(found) if known && !found.is_known_now() => {
                let there = found.probability(context.round, client);
                if there <= 0.0 || q <= 0.0 || q >= 1.0 {
                    return 0.0;
                }
                // Of those who are there, q/there arrive, independently.
                let link = q / there;
                link * link * there * (1.0 - there) * found.correlation(client) / (q * (1.0 - q))
            }
            None if known => 0.0,
            _ => self.counts[client].correlation(q),
        }
    }
}

/// The loss of those kept, by their weights, and what leaving out the others may add: κ times the largest loss times the squared distance in
/// total variation from all weights.
fn error(weights: &[f64], kept: &[bool], losses: &[f64], kappa: f64) -> f64 {
    let clients = weights.len();
    let largest = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mine = |at: usize| if kept[at] { weights[at] } else { 0.0 };
    let total: f64 = (0..clients).map(mine).sum();
    let loss: f64 = (0..clients).map(|at| mine(at) / total * losses[at]).sum();
    let gap: f64 = (0..clients).map(|at| (weights[at] - mine(at) / total).abs()).sum();
    loss + kappa * largest * (0.5 * gap).powi(2)
}

/// Which clients to keep.
fn kept(
    weights: &[f64],
    share: &[f64],
    correlation: &[f64],
    losses: &[f64],
    settings: &CaFedSettings,
) -> Vec<bool> {
    let clients = weights.len();
    let error = |kept: &[bool]| error(weights, kept, losses, settings.kappa_bias);
    let mut kept = vec![true; clients];
    let sorted = |key: &dyn Fn(usize) -> f64| {
        let mut order: Vec<usize> = (0..clients).collect();
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        order
    };
    for order in [sorted(&|at| -correlation[at].abs()), sorted(&|at| share[at])] {
        let mut before = error(&kept);
        for client in order {
            if !kept[client] || kept.iter().filter(|kept| **kept).count() == 1 {
                continue;
            }
            kept[client] = false;
            let after = error(&kept);
            if before - after >= settings.tolerance {
                before = after;
            } else {
                kept[client] = true;
            }
        }
    }
    kept
}

/// The label divergence and normalised weights of the clients kept.
fn aimed(federation: &Federation, target: &[f64]) -> (Vec<f64>, f64) {
    let total: f64 = target.iter().sum();
    let appearance: Vec<f64> = target.iter().map(|weight| weight / total).collect();
    let divergence = label_divergence(federation, &appearance);
    (appearance, divergence)
}

impl Selection for CaFed {
    fn prepare(&mut self, context: &RoundContext) -> Result<(), Error> {
        self.observe(context)?;
        let federation = context.federation;
        let (weights, clients) = (federation.weights(), federation.len());
        let share: Vec<f64> = federation.failure().iter().map(|failure| 1.0 - failure).collect();
        let kept = if self.losses.is_empty() {
            vec![true; clients]
        } else {
            let correlation: Vec<f64> = (0..clients)
                .map(|client| self.correlation(context, client, share[client]))
                .collect();
            kept(weights, &share, &correlation, &self.losses, &self.settings)
        };
        let count = kept.iter().filter(|kept| **kept).count() as f64;
        self.selection = kept.iter().map(|kept| if *kept { 1.0 / count } else { 0.0 }).collect();
        self.target =
            weights.iter().zip(&kept).map(|(w, kept)| if *kept { *w } else { 0.0 }).collect();
        (self.appearance, self.label_divergence) = aimed(federation, &self.target);
        Ok(())
    }

    fn draw(&mut self, context: &RoundContext, _redraw: u32) -> Result<Vec<Count>, Error> {
        let asked = |client: &u32| {
            context.available[*client as usize] && self.target[*client as usize] > 0.0
        };
        let clients = 0..context.federation.len() as u32;
        Ok(clients.filter(asked).map(|client| (client, 1)).collect())
    }

    fn probabilities(&self) -> Option<Probabilities<'_>> {
        let count = self.target.iter().filter(|target| **target > 0.0).count();
        (count > 0).then_some(Probabilities {
            selection: &self.selection,
            appearance: &self.appearance,
            target: &self.target,
            label_divergence: self.label_divergence,
            draws: count as u64,
        })
    }

    fn sees_absent(&self) -> bool {
        true
    }
}

impl State for CaFed {
    fn save<'a>(&'a self, saved: &mut Saved<'a>) {
        saved.put_value("ca-fed.losses", &self.losses);
        saved.put_value("ca-fed.counts", &self.counts);
    }

    fn restore(&mut self, saved: &mut Saved<'_>) -> Result<(), String> {
        self.losses = saved.get_value("ca-fed.losses")?;
        self.counts = saved.get_value("ca-fed.counts")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// p = (½, ½), π = (0.9, 0.1), λ = (0, 0.9), worked by hand: with losses (1, 1.2) the error is 1.1, without the second client 1.3, without the
    /// first 1.5; with losses (1, 3) it is 2, without the second 1.75.
    #[test]
    fn who_does_more_harm_than_good_is_left_out() {
        let settings = CaFedSettings::default();
        let (weights, share, correlation) = ([0.5, 0.5], [0.9, 0.1], [0.0, 0.9]);
        let kept = |losses: [f64; 2]| kept(&weights, &share, &correlation, &losses, &settings);
        assert_eq!(kept([1.0, 1.2]), [true, true]);
        assert_eq!(kept([1.0, 3.0]), [true, false]);
        for (losses, kept, wanted) in [
            ([1.0, 1.2], [true, true], 1.1),
            ([1.0, 1.2], [true, false], 1.3),
            ([1.0, 1.2], [false, true], 1.5),
            ([1.0, 3.0], [true, true], 2.0),
            ([1.0, 3.0], [true, false], 1.75),
        ] {
            let found = error(&weights, &kept, &losses, settings.kappa_bias);
            assert!((found - wanted).abs() < 1e-12, "{losses:?} {kept:?}: {found}");
        }
    }

    #[test]
    fn a_correlation_is_counted_from_visits() {
        let mut visits = Visits::default();
        for there in [true, true, false, false, true] {
            visits.observe(there);
        }
        // On: stayed 1 of 2; off: stayed 1 of 2; each with 100 rounds of the share 0.6.
        let wanted = (1.0 + 60.0) / 102.0 + (1.0 + 40.0) / 102.0 - 1.0;
        assert!((visits.correlation(0.6) - wanted).abs() < 1e-12);
        assert_eq!(Visits::default().correlation(0.3), 0.0);
    }
}
