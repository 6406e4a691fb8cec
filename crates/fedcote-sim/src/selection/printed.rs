//! The paper's Algorithm 2 to the letter, to show what the repairs of `solver = "gradient"` mend.
//!
//! Start: s_i = p_i / Σ_{ε_j < 1} p_j for ε_i ≤ ε_th, which sums to less than one where clients are left out. Then a fixed number
//! of steps s ← s − η ∇χ², each followed by the printed projection, which adds (1 − Σ s) / (number of clients left *out*) to every
//! client that is not, and lets probabilities be negative. What comes out is made fit to draw from: negative values are 0, and all
//! are divided by their sum.

use fedcote::Federation;

use crate::scheme::settings::parameters;

parameters! {
    /// Parameters of `solver = "printed"`.
    pub struct PrintedSettings {
        /// The number of steps; the paper does not give it.
        steps: u32 = 1000, in 1..;
        /// The step size η; the paper does not give it.
        step_size: f64 = 0.02, in 0.0..=1e30;
    }
}

/// Probabilities to draw from, and what had to be done to them.
pub fn solve(
    federation: &Federation,
    draws: u64,
    threshold: f64,
    settings: &PrintedSettings,
) -> (Vec<f64>, Vec<String>) {
    let (weights, failure) = (federation.weights(), federation.failure());
    let reachable: f64 =
        weights.iter().zip(failure).filter(|(_, e)| **e < 1.0).map(|(p, _)| p).sum();
    let eligible: Vec<bool> = failure.iter().map(|&e| e <= threshold && e < 1.0).collect();
    let left_out = failure.iter().filter(|&&e| e >= threshold).count();
    let mut selection: Vec<f64> = weights
        .iter()
        .zip(&eligible)
        .map(|(p, &eligible)| if eligible { p / reachable } else { 0.0 })
        .collect();
    let mut warnings = Vec::new();
    if left_out == 0 {
        warnings.push(
            "Algorithm 2 as printed: nobody is left out, so its projection divides by 0; no step is made"
                .to_owned(),
        );
    }
    for step in 1..=settings.steps {
        if left_out == 0 {
            break;
        }
        let mut next = selection.clone();
        for (client, slope) in slope(federation, draws, &selection).into_iter().enumerate() {
            if eligible[client] {
                next[client] -= settings.step_size * slope;
            }
        }
        let sum: f64 = next.iter().sum();
        let shift = (1.0 - sum) / left_out as f64;
        next.iter_mut().zip(&eligible).filter(|(_, e)| **e).for_each(|(s, _)| *s += shift);
        // Beyond that the powers in the appearance overflow.
        if !next.iter().all(|s| s.abs() < 1e3) {
            warnings.push(format!("Algorithm 2 as printed: diverges in step {step}"));
            break;
        }
        selection = next;
    }
    let sum: f64 = selection.iter().sum();
    let negative = selection.iter().filter(|s| **s < 0.0).count();
    if (sum - 1.0).abs() > 1e-6 || negative > 0 {
        warnings.push(format!(
            "Algorithm 2 as printed: its probabilities sum to {sum:.3} and {negative} are negative; they are cut at 0 and divided by \
             their sum"
        ));
    }
    selection.iter_mut().for_each(|s| *s = s.max(0.0));
    let total: f64 = selection.iter().sum();
    if total > 0.0 {
        selection.iter_mut().for_each(|s| *s /= total);
    } else {
        selection = weights.to_vec();
    }
    (selection, warnings)
}

/// ∂χ²/∂s of the effective appearance in closed form, for any s: it need not be a distribution here.
fn slope(federation: &Federation, draws: u64, selection: &[f64]) -> Vec<f64> {
    let failure = federation.failure();
    let power = |base: f64, exponent: u64| base.powf(exponent as f64);
    // g_m = Σ_k M_{m+1}^k M_m^{K−1−k} and its derivatives by M_m and M_{m+1}.
    let mut terms: Vec<[f64; 3]> = Vec::new();
    let mut powers: Vec<f64> = selection.to_vec();
    let mut moment: f64 = powers.iter().sum();
    loop {
        powers.iter_mut().zip(failure).for_each(|(power, e)| *power *= e);
        let next: f64 = powers.iter().sum();
        let mut term = [0.0; 3];
        for k in 0..draws {
            let rest = draws - 1 - k;
            term[0] += power(next, k) * power(moment, rest);
            if rest > 0 {
                term[1] += rest as f64 * power(next, k) * power(moment, rest - 1);
            }
            if k > 0 {
                term[2] += k as f64 * power(next, k - 1) * power(moment, rest);
            }
        }
        terms.push(term);
        moment = next;
        // Where the series does not fall off, enough of it is known.
        if power(next.abs(), draws) < 1e-18 || terms.len() == 200 {
            break;
        }
    }
    let clients = || 0..selection.len();
    let appearance: Vec<f64> = clients()
        .map(|i| {
            let mut share = selection[i] * (1.0 - failure[i]);
            let mut sum = 0.0;
            for term in &terms {
                sum += share * term[0];
                share *= failure[i];
            }
            sum
        })
        .collect();
    let labels = fedcote::divergence::effective_labels(federation, &appearance);
    let pull: Vec<f64> = clients()
        .map(|i| {
            let classes = federation.labels(i).iter().zip(&labels).zip(federation.global_labels());
            let held = classes.filter(|(_, goal)| **goal > 0.0);
            held.map(|((label, found), goal)| 2.0 * label * (found - goal) / goal).sum()
        })
        .collect();
    let mut sums = vec![0.0; terms.len()];
    for i in clients() {
        let mut share = pull[i] * selection[i] * (1.0 - failure[i]);
        for sum in &mut sums {
            *sum += share;
            share *= failure[i];
        }
    }
    clients()
        .map(|i| {
            let (mut slope, mut power) = (0.0, 1.0);
            for (term, sum) in terms.iter().zip(&sums) {
                slope += pull[i] * (1.0 - failure[i]) * power * term[0]
                    + sum * power * (term[1] + failure[i] * term[2]);
                power *= failure[i];
            }
            slope
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedcote::divergence::label_divergence;

    fn federation() -> Federation {
        let counts =
            [[30.0, 0.0], [10.0, 10.0], [0.0, 40.0], [5.0, 15.0], [20.0, 1.0], [1.0, 20.0]];
        Federation::new(counts, [0.1, 0.4, 0.6, 0.3, 0.9, 0.95]).unwrap()
    }

    /// Against differences of the library's appearance, along directions that keep the sum.
    #[test]
    fn the_slope_is_that_of_the_label_divergence() {
        let federation = federation();
        let selection = [0.2, 0.1, 0.3, 0.25, 0.05, 0.1];
        let slope = slope(&federation, 4, &selection);
        let value = |selection: &[f64]| {
            let found =
                fedcote::appearance::appearance(selection, federation.failure(), 4).unwrap();
            label_divergence(&federation, &found)
        };
        for to in 1..selection.len() {
            let moved = |by: f64| {
                let mut moved = selection;
                moved[0] -= by;
                moved[to] += by;
                value(&moved)
            };
            let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            let ours = slope[to] - slope[0];
            assert!((difference - ours).abs() < 1e-7, "{to}: {difference} and {ours}");
        }
    }

    /// Two of six left out: the start sums to p of the other four, and the projection, which divides by two where four share, turns
    /// every excess round.
    #[test]
    fn the_printed_projection_does_not_keep_the_sum() {
        let (federation, settings) = (federation(), PrintedSettings { steps: 1, step_size: 0.0 });
        let kept: f64 = federation.weights()[..4].iter().sum();
        let (_, warnings) = solve(&federation, 4, 0.85, &settings);
        let sum = kept + 4.0 * (1.0 - kept) / 2.0;
        assert!(
            warnings[0].contains(&format!("sum to {sum:.3} and 0 are negative")),
            "{warnings:?}"
        );
        // One of six left out: with every step the excess grows fourfold and changes its sign.
        let (selection, warnings) = solve(&federation, 4, 0.92, &PrintedSettings::default());
        assert!((selection.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(warnings.iter().any(|warning| warning.contains("diverges")), "{warnings:?}");
        // Nobody is left out: the projection divides by 0.
        let (selection, warnings) = solve(&federation, 4, 1.0, &PrintedSettings::default());
        assert!(warnings[0].contains("divides by 0"), "{warnings:?}");
        let weights = federation.weights().iter().zip(&selection);
        assert!(weights.map(|(p, s)| (p - s).abs()).all(|gap| gap < 1e-15));
    }
}
