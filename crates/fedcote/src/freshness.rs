//! Selection for a server that remembers updates: nobody's should be old.
//!
//! A server that keeps each client's latest update and averages all of them by weights `β` has the right label mix whoever
//! arrives. What selection decides is how old the updates are: client `i`'s is replaced about `K s_i (1−ε_i)` times per round,
//! so its age is about `1 / (K s_i (1−ε_i))`. The model has moved on since, and what an update is off by grows with its age
//! like a random walk: the variance of the average is, up to a factor,
//!
//! ```text
//! Σ_i β_i² / (s_i (1−ε_i)) ,     least for     s_i ∝ β_i / √(1−ε_i)
//! ```
//!
//! (Cauchy and Schwarz). That lies between drawing by weight, where updates of clients that fail often are old, and drawing
//! for equal appearance, `s_i ∝ β_i / (1−ε_i)`, where those of clients that never fail are.

use crate::error::{Error, check_length, check_probabilities};

/// Selection probabilities that keep a server's memory fresh, for the weights `target` of the remembered updates.
///
/// Clients that never arrive are not selected; without any other, nobody is eligible.
///
/// # Errors
///
/// When the lengths differ, an entry is no probability, or no client with a weight ever arrives.
pub fn selection(target: &[f64], failure: &[f64]) -> Result<Vec<f64>, Error> {
    check_length("failure", target.len(), failure.len())?;
    check_probabilities("target", target)?;
    check_probabilities("failure", failure)?;
    let share = |(&weight, &failure): (&f64, &f64)| {
        if failure < 1.0 { weight / (1.0 - failure).sqrt() } else { 0.0 }
    };
    let mut selection: Vec<f64> = target.iter().zip(failure).map(share).collect();
    let total: f64 = selection.iter().sum();
    if total <= 0.0 {
        return Err(Error::NobodyEligible(1.0));
    }
    selection.iter_mut().for_each(|share| *share /= total);
    Ok(selection)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::selection;

    /// The variance that the module speaks of.
    fn variance(target: &[f64], failure: &[f64], selection: &[f64]) -> f64 {
        let terms = target.iter().zip(failure).zip(selection);
        terms.map(|((b, e), s)| if *b > 0.0 { b * b / (s * (1.0 - e)) } else { 0.0 }).sum()
    }

    proptest! {
        #[test]
        fn no_other_selection_has_less_variance(
            clients in prop::collection::vec((0.01f64..1.0, 0.0f64..0.999, 0.01f64..1.0), 1..12),
        ) {
            let total: f64 = clients.iter().map(|c| c.0).sum();
            let target: Vec<f64> = clients.iter().map(|c| c.0 / total).collect();
            let failure: Vec<f64> = clients.iter().map(|c| c.1).collect();
            let best = selection(&target, &failure).unwrap();
            prop_assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let least = variance(&target, &failure, &best);
            let total: f64 = clients.iter().map(|c| c.2).sum();
            for step in [1.0, 0.1, 0.01] {
                let other: Vec<f64> =
                    best.iter().zip(&clients).map(|(s, c)| s + step * (c.2 / total - s)).collect();
                prop_assert!(variance(&target, &failure, &other) >= least * (1.0 - 1e-12));
            }
        }
    }

    #[test]
    fn the_age_of_a_remembered_update_is_what_the_module_says() {
        use crate::random::{Key, Purpose};
        use rand::RngExt;
        // One client of selection 0.2 and failure 0.6, three draws per round: a round replaces its update with probability
        // 1 − (1 − 0.08)³ = 0.2213, so that the mean age just after a round is 1/0.2213 − 1 = 3.52 rounds; to first order 1/0.24.
        let mut stream = Key::new(1, Purpose::Upload).stream();
        let (mut age, mut sum, rounds) = (0.0, 0.0, 200_000);
        for _ in 0..rounds {
            age += 1.0;
            for _ in 0..3 {
                if stream.random::<f64>() < 0.2 && stream.random::<f64>() >= 0.6 {
                    age = 0.0;
                }
            }
            sum += age;
        }
        let mean = sum / f64::from(rounds);
        let expected = 1.0 / (1.0 - 0.92f64.powi(3)) - 1.0;
        assert!((mean - expected).abs() < 0.06, "{mean} against {expected}");
    }

    #[test]
    fn one_arrival_in_four_doubles_the_draws() {
        // By hand: √(1/4) = ½, so it is drawn twice as often, not four times.
        let selection = selection(&[0.5, 0.5], &[0.0, 0.75]).unwrap();
        assert!((selection[0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn who_never_arrives_is_not_selected_and_nobody_left_is_an_error() {
        assert_eq!(selection(&[0.5, 0.5], &[1.0, 0.0]).unwrap(), [0.0, 1.0]);
        assert!(selection(&[0.0, 1.0], &[0.0, 1.0]).is_err());
        assert!(selection(&[1.0], &[0.0, 0.0]).is_err());
        assert!(selection(&[f64::NAN], &[0.0]).is_err());
    }
}
