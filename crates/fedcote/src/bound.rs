//! The convergence bound under transmission failure, with all its constants.
//!
//! Theorem 1 of "Robust Federated Learning in Unreliable Wireless Networks: A Client Selection Approach" bounds the mean
//! of `E‖∇F‖²` over rounds by
//!
//! ```text
//! 2484 L / (55 √(TK)) · (F(w₀) − F̲)
//! + (276 / (55 (TK)^¼) + 24 / (55 (TK)^½) + 4 / (55 (TK)^¾)) · Σ_i β̄_i (Σ_c α_{i,c} V²_{i,c} + χ²(α_i‖α_g) G²)       (a)
//! + 828/55 · χ²(β̄‖p) Σ_{i,c} p_i α_{i,c} V²_{i,c}  +  828/55 · χ²(ᾱ‖α_g) G²                                      (b)
//! ```
//!
//! for `T = RE ≥ K³` steps, `E ≤ T^¼/K^¾` and the rate `γ = √K / (6 L √T)`. Theorem 2 is the same for appearances that
//! change from round to round, averaged over rounds; Corollaries 2 and 3 drop term (b), which vanishes when labels match. In
//! print the `χ² G²` of (a) stands inside the sum over classes, which counts it `C` times; Corollary 1, from
//! which it comes, has it once. Conditions that do not hold are named, and the bound is evaluated all the same.

use std::fmt;

use crate::divergence::{client_divergence, label_divergence, weight_divergence};
use crate::error::{Error, check_length, check_selected};
use crate::federation::Federation;

/// The two parts of Proposition 1: how far a client's gradient may be from the global one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradientGap {
    /// `Σ_c α_{i,c} ‖∇F_{i,c} − ∇F_{g,c}‖²`: from the features.
    pub feature: f64,
    /// `χ²(α_i‖α_g) Σ_c α_{g,c} ‖∇F_{g,c}‖²`: from the labels.
    pub label: f64,
}

impl GradientGap {
    /// The bound on `‖∇F_i − ∇F‖²`: twice the sum.
    pub fn total(&self) -> f64 {
        2.0 * (self.feature + self.label)
    }
}

/// Proposition 1 for one client, from the squared distances `‖∇F_{i,c} − ∇F_{g,c}‖²` and norms `‖∇F_{g,c}‖²` a class.
///
/// With their bounds `V²_{i,c}` and `G²` (for every class) it is Corollary 1.
pub fn proposition_1(
    federation: &Federation,
    client: usize,
    distances: &[f64],
    norms: &[f64],
) -> Result<GradientGap, Error> {
    check_length("distances", federation.classes(), distances.len())?;
    check_length("norms", federation.classes(), norms.len())?;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    Ok(GradientGap {
        feature: dot(federation.labels(client), distances),
        label: client_divergence(federation, client) * dot(federation.global_labels(), norms),
    })
}

/// The constants of the assumptions, and the training they are for.
#[derive(Debug, Clone, PartialEq)]
pub struct Training<'a> {
    /// `L`: Lipschitz constant of the gradients.
    pub smoothness: f64,
    /// `E[F(w₀)] − F̲`: what there is to descend.
    pub initial_gap: f64,
    /// `G²`: bound on the squared gradient norm.
    pub gradient_norm: f64,
    /// `V²_{i,c}`, row after row: bound on the squared gradient deviation within a class.
    pub class_deviation: &'a [f64],
    /// `R`: rounds.
    pub rounds: u64,
    /// `E`: local steps per round.
    pub local_steps: u64,
    /// `γ`: learning rate, if the condition on it is to be checked.
    pub rate: Option<f64>,
    /// Count `χ²(α_i‖α_g) G²` once for every class, as printed, instead of once.
    pub as_printed: bool,
}

/// A condition of the theorems that does not hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// `T ≥ K³`.
    Steps {
        /// `T`.
        steps: f64,
        /// `K³`.
        least: f64,
    },
    /// `E ≤ T^¼ / K^¾`.
    LocalSteps {
        /// `E`.
        local_steps: f64,
        /// `T^¼ / K^¾`.
        most: f64,
    },
    /// `γ = √K / (6 L √T)`.
    Rate {
        /// `γ`.
        rate: f64,
        /// `√K / (6 L √T)`.
        needed: f64,
    },
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps { steps, least } => {
                write!(formatter, "T = {steps} is below K³ = {least}")
            }
            Self::LocalSteps { local_steps, most } => {
                write!(formatter, "E = {local_steps} is above T^¼/K^¾ = {most:.3}")
            }
            Self::Rate { rate, needed } => {
                write!(formatter, "the rate {rate} is not √K/(6L√T) = {needed:.4e}")
            }
        }
    }
}

/// The terms of the bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// What is left of the initial gap.
    pub initial: f64,
    /// Term (a): non-i.i.d. data.
    pub heterogeneity: f64,
    /// First half of term (b): appearances that differ from weights.
    pub weights: f64,
    /// Second half of term (b): labels that differ.
    pub labels: f64,
    /// `G² / Σ p α V²`: the `κ` that weighs the two halves of (b) as the bound does.
    pub kappa: f64,
    /// Conditions that do not hold.
    pub failed: Vec<Condition>,
}

impl Bound {
    /// The right-hand side of the theorem.
    pub fn total(&self) -> f64 {
        self.corollary() + self.weights + self.labels
    }

    /// The right-hand side of Corollary 2 or 3: the theorem without term (b).
    pub fn corollary(&self) -> f64 {
        self.initial + self.heterogeneity
    }
}

/// Theorem 1: the bound for one appearance in all rounds.
pub fn theorem_1(
    federation: &Federation,
    selected: u64,
    appearance: &[f64],
    training: &Training<'_>,
) -> Result<Bound, Error> {
    theorem_2(federation, selected, &[appearance], training)
}

/// Theorem 2: the bound for appearances that change from round to round; their terms are averaged.
pub fn theorem_2(
    federation: &Federation,
    selected: u64,
    appearances: &[&[f64]],
    training: &Training<'_>,
) -> Result<Bound, Error> {
    check(federation, selected, appearances, training)?;
    let classes = federation.classes();
    let steps = training.rounds as f64 * training.local_steps as f64;
    let product = steps * selected as f64;
    let feature = |client: usize| -> f64 {
        let deviation = &training.class_deviation[client * classes..][..classes];
        federation.labels(client).iter().zip(deviation).map(|(label, v)| label * v).sum()
    };
    let copies = if training.as_printed { classes as f64 } else { 1.0 };
    let all_features: f64 =
        federation.weights().iter().enumerate().map(|(i, weight)| weight * feature(i)).sum();
    let rate_a =
        (276.0 * product.powf(-0.25) + 24.0 * product.powf(-0.5) + 4.0 * product.powf(-0.75))
            / 55.0;
    let mut bound = Bound {
        initial: 2484.0 * training.smoothness * training.initial_gap / (55.0 * product.sqrt()),
        heterogeneity: 0.0,
        weights: 0.0,
        labels: 0.0,
        kappa: training.gradient_norm / all_features,
        failed: failed_conditions(selected as f64, steps, training),
    };
    for appearance in appearances {
        let share = 1.0 / appearances.len() as f64;
        let mixed: f64 = (0..federation.len())
            .map(|client| {
                let label = client_divergence(federation, client) * training.gradient_norm;
                appearance[client] * (feature(client) + copies * label)
            })
            .sum();
        bound.heterogeneity += share * rate_a * mixed;
        let deviations = weight_divergence(federation, appearance) * all_features;
        bound.weights += share * 828.0 / 55.0 * deviations;
        let labels = label_divergence(federation, appearance) * training.gradient_norm;
        bound.labels += share * 828.0 / 55.0 * labels;
    }
    Ok(bound)
}

fn check(
    federation: &Federation,
    selected: u64,
    appearances: &[&[f64]],
    training: &Training<'_>,
) -> Result<(), Error> {
    check_selected(selected)?;
    if appearances.is_empty() {
        return Err(Error::Length { what: "appearances", expected: 1, found: 0 });
    }
    for appearance in appearances {
        check_length("appearance", federation.len(), appearance.len())?;
    }
    let all = federation.len() * federation.classes();
    check_length("class deviation", all, training.class_deviation.len())?;
    let positive = [
        ("smoothness", training.smoothness),
        ("rounds", training.rounds as f64),
        ("local steps", training.local_steps as f64),
    ];
    for (name, value) in positive {
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::Parameter { name, legal: "above 0 and finite", value });
        }
    }
    Ok(())
}

fn failed_conditions(selected: f64, steps: f64, training: &Training<'_>) -> Vec<Condition> {
    let mut failed = Vec::new();
    let least = selected.powi(3);
    if steps < least {
        failed.push(Condition::Steps { steps, least });
    }
    let local_steps = training.local_steps as f64;
    let most = steps.powf(0.25) / selected.powf(0.75);
    if local_steps > most {
        failed.push(Condition::LocalSteps { local_steps, most });
    }
    if let Some(rate) = training.rate {
        let needed = selected.sqrt() / (6.0 * training.smoothness * steps.sqrt());
        if ((rate - needed) / needed).abs() > 1e-9 {
            failed.push(Condition::Rate { rate, needed });
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federation::FederationSpec;

    fn federation() -> Federation {
        // p = (¼, ¾), α_1 = (1, 0), α_2 = (⅓, ⅔), α_g = (½, ½).
        FederationSpec {
            ids: None,
            classes: 2,
            counts: vec![1.0, 0.0, 1.0, 2.0],
            failure: vec![0.0, 0.5],
        }
        .check()
        .expect("valid")
    }

    const DEVIATION: [f64; 4] = [1.0, 2.0, 3.0, 6.0];

    fn training() -> Training<'static> {
        Training {
            smoothness: 2.0,
            initial_gap: 3.0,
            gradient_norm: 10.0,
            class_deviation: &DEVIATION,
            rounds: 16,
            local_steps: 1,
            rate: None,
            as_printed: false,
        }
    }

    #[test]
    fn theorem_1_by_hand() {
        // K = 1, T = 16: √(TK) = 4, ∜(TK) = 2, (TK)^¾ = 8. β̄ = (½, ½).
        // χ²(α_1‖α_g) = 1, χ²(α_2‖α_g) = 1/9; features 1 and ⅓·3 + ⅔·6 = 5; Σ p α V² = ¼ + 15/4 = 4.
        // χ²(β̄‖p) = (1/16)/(1/4) + (1/16)/(3/4) = ⅓; ᾱ = (⅔, ⅓), χ²(ᾱ‖α_g) = 1/9.
        let bound = theorem_1(&federation(), 1, &[0.5, 0.5], &training()).expect("valid");
        let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-14);
        close(bound.initial, 2484.0 * 2.0 * 3.0 / (55.0 * 4.0));
        let factor = 276.0 / 110.0 + 24.0 / 220.0 + 4.0 / 440.0;
        close(bound.heterogeneity, factor * (0.5 * (1.0 + 10.0) + 0.5 * (5.0 + 10.0 / 9.0)));
        close(bound.weights, 828.0 / 55.0 / 3.0 * 4.0);
        close(bound.labels, 828.0 / 55.0 / 9.0 * 10.0);
        close(bound.kappa, 2.5);
        close(bound.total() - bound.corollary(), bound.weights + bound.labels);
        assert!(bound.failed.is_empty());

        let printed = Training { as_printed: true, ..training() };
        let printed = theorem_1(&federation(), 1, &[0.5, 0.5], &printed).expect("valid");
        close(printed.heterogeneity, factor * (0.5 * (1.0 + 20.0) + 0.5 * (5.0 + 20.0 / 9.0)));
    }

    #[test]
    fn theorem_2_averages_rounds() {
        let (one, two): ([f64; 2], [f64; 2]) = ([0.5, 0.5], [0.25, 0.75]);
        let first = theorem_1(&federation(), 1, &one, &training()).expect("valid");
        let second = theorem_1(&federation(), 1, &two, &training()).expect("valid");
        let both = theorem_2(&federation(), 1, &[&one, &two], &training()).expect("valid");
        assert!((both.total() - 0.5 * (first.total() + second.total())).abs() < 1e-12);
        // β̄ = p leaves nothing of term (b).
        assert_eq!((second.weights, second.labels), (0.0, 0.0));
    }

    #[test]
    fn failed_conditions_of_the_paper_s_own_settings() {
        // K = 10, E = 5: T^¼/K^¾ is 1.26 for 500 rounds and 2.66 for 10,000.
        for (rounds, most) in [(500, "1.257"), (10_000, "2.659")] {
            let training = Training { rounds, local_steps: 5, rate: Some(0.05), ..training() };
            let bound = theorem_1(&federation(), 10, &[0.5, 0.5], &training).expect("valid");
            assert_eq!(bound.failed.len(), 2);
            assert_eq!(bound.failed[0].to_string(), format!("E = 5 is above T^¼/K^¾ = {most}"));
        }
        let training = Training { rounds: 4, local_steps: 1, ..training() };
        let bound = theorem_1(&federation(), 2, &[0.5, 0.5], &training).expect("valid");
        assert_eq!(bound.failed[0].to_string(), "T = 4 is below K³ = 8");
        let needed = 2f64.sqrt() / (6.0 * 2.0 * 2.0);
        let right = Training { rate: Some(needed), ..training };
        let again = theorem_1(&federation(), 2, &[0.5, 0.5], &right).expect("valid");
        assert_eq!(again.failed.len(), bound.failed.len());
    }

    #[test]
    fn proposition_1_holds_for_gradients_of_two_dimensions() {
        // ∇F_{g,c} = Σ_i p_i α_{i,c} ∇F_{i,c} / α_{g,c}; the bound must cover ‖∇F_i − ∇F‖² for any gradients.
        let federation = federation();
        let local = [[[1.0, 2.0], [0.0, 0.0]], [[-1.0, 0.5], [3.0, -2.0]]];
        let mut global = [[0.0; 2]; 2];
        for (i, local) in local.iter().enumerate() {
            for (c, global) in global.iter_mut().enumerate() {
                let share = federation.weights()[i] * federation.labels(i)[c]
                    / federation.global_labels()[c];
                (0..2).for_each(|d| global[d] += share * local[c][d]);
            }
        }
        let norm = |a: [f64; 2]| a[0] * a[0] + a[1] * a[1];
        for (i, local) in local.iter().enumerate() {
            let mut gap = [0.0; 2];
            for c in 0..2 {
                for (d, gap) in gap.iter_mut().enumerate() {
                    *gap += federation.labels(i)[c] * local[c][d];
                    *gap -= federation.global_labels()[c] * global[c][d];
                }
            }
            let distances: Vec<f64> = (0..2)
                .map(|c| norm([local[c][0] - global[c][0], local[c][1] - global[c][1]]))
                .collect();
            let norms = [norm(global[0]), norm(global[1])];
            let bound = proposition_1(&federation, i, &distances, &norms).expect("valid");
            assert!(norm(gap) <= bound.total());
        }
    }
}
