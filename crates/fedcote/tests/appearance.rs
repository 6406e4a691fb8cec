//! The closed form against everything that can be computed another way.

use fedcote::appearance::{appearance, gradient};
use fedcote::enumeration;
use fedcote::random::{Key, Purpose};
use proptest::prelude::*;
use rand::RngExt;

/// Positive numbers scaled to sum to one.
fn simplex(parts: &[f64]) -> Vec<f64> {
    let total: f64 = parts.iter().sum();
    parts.iter().map(|part| part / total).collect()
}

fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Selection and failure of up to `clients` clients, the edges 0 and 1 of both included.
fn clients(most: usize, largest_failure: f64) -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let part = prop_oneof![1 => Just(0.0), 8 => 0.001..1.0];
    let failure =
        prop_oneof![1 => Just(0.0), 1 => Just(largest_failure), 8 => 0.0..largest_failure];
    (1..=most)
        .prop_flat_map(move |n| {
            (prop::collection::vec(part.clone(), n), prop::collection::vec(failure.clone(), n))
        })
        .prop_filter("somebody must be selected", |(parts, _)| parts.iter().sum::<f64>() > 0.0)
        .prop_map(|(parts, failure)| (simplex(&parts), failure))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn equals_the_enumeration((selection, failure) in clients(6, 0.999), selected in 1u64..=5) {
        let series = appearance(&selection, &failure, selected)?;
        let enumerated = enumeration::appearance(&selection, &failure, selected)?;
        prop_assert!(largest_gap(&series, &enumerated) < 1e-13);
    }

    #[test]
    fn equals_proposition_3((selection, failure) in clients(5, 0.99), selected in 2u64..=6) {
        let series = appearance(&selection, &failure, selected)?;
        let third = enumeration::proposition_3(&selection, &failure, selected)?;
        prop_assert!(largest_gap(&series, &third) < 1e-12);
    }

    #[test]
    fn equals_the_enumeration_with_clients_that_never_arrive(
        (selection, mut failure) in clients(5, 0.9), selected in 1u64..=4,
    ) {
        failure[0] = 1.0;
        let live: f64 = selection[1..].iter().sum();
        prop_assume!(live > 0.0);
        let series = appearance(&selection, &failure, selected)?;
        let enumerated = enumeration::appearance(&selection, &failure, selected)?;
        prop_assert_eq!(series[0], 0.0);
        prop_assert!(largest_gap(&series, &enumerated) < 1e-13);
    }

    #[test]
    fn sums_to_one((selection, failure) in clients(50, 1.0 - 1e-9), exponent in 0u32..=9) {
        let sum: f64 = appearance(&selection, &failure, 10u64.pow(exponent))?.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-12, "sum {sum}");
    }

    #[test]
    fn equal_failures_change_nothing(
        (selection, _) in clients(30, 0.9), failure in 0.0..0.999_999_9, selected in 1u64..1000,
    ) {
        let found = appearance(&selection, &vec![failure; selection.len()], selected)?;
        prop_assert!(largest_gap(&found, &selection) < 1e-13);
    }

    #[test]
    fn who_fails_more_appears_less(
        (selection, failure) in clients(8, 0.9), selected in 2u64..40, more in 0.01..0.09,
    ) {
        prop_assume!(selection[0] > 1e-3 && selection[0] < 0.999);
        let before = appearance(&selection, &failure, selected)?;
        let mut worse = failure;
        worse[0] += more;
        prop_assert!(appearance(&selection, &worse, selected)?[0] < before[0]);
    }

    #[test]
    fn the_gradient_equals_differences(
        (selection, failure) in clients(6, 0.97), selected in 1u64..200, dead in any::<bool>(),
        cotangent in prop::collection::vec(-1.0..1.0f64, 6),
    ) {
        let mut failure = failure;
        if dead {
            failure[0] = 1.0;
        }
        let n = selection.len();
        prop_assume!(n > 1 && selection.iter().all(|&s| s > 0.01));
        let cotangent = &cotangent[..n];
        let slope = gradient(&selection, &failure, selected, cotangent)?;
        let value = |selection: &[f64]| -> f64 {
            let found = appearance(selection, &failure, selected).expect("valid");
            found.iter().zip(cotangent).map(|(b, v)| b * v).sum()
        };
        // Along e_0 − e_1, with the error of a central difference of fourth order.
        let step = 1e-4;
        let at = |length: f64| {
            let mut moved = selection.clone();
            moved[0] += length;
            moved[1] -= length;
            value(&moved)
        };
        let difference =
            (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step);
        let scale = 1.0 + slope.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        prop_assert!(((slope[0] - slope[1]) - difference).abs() < 1e-6 * scale);
    }

    #[test]
    fn the_gradient_equals_the_enumeration_s(
        (selection, failure) in clients(5, 0.95), selected in 2u64..=4,
        cotangent in prop::collection::vec(-1.0..1.0f64, 5),
    ) {
        prop_assume!(selection.iter().all(|&s| s > 0.0));
        let cotangent = &cotangent[..selection.len()];
        let slope = gradient(&selection, &failure, selected, cotangent)?;
        let other = enumeration::gradient(&selection, &failure, selected, cotangent)?;
        // Off the simplex the two continue differently: compare up to a constant.
        let shift = slope[0] - other[0];
        for (a, b) in slope.iter().zip(&other) {
            prop_assert!((a - b - shift).abs() < 1e-10 * (1.0 + a.abs()));
        }
    }
}

#[test]
fn monte_carlo_of_draws_failures_and_retries() {
    let selection = simplex(&[1.0, 2.0, 3.0, 4.0, 2.0]);
    let failure = [0.0, 0.9, 0.5, 0.95, 1.0];
    let rounds = 200_000;
    for selected in [1, 2, 4, 9] {
        let mut sum = [0.0; 5];
        let mut squares = [0.0; 5];
        let mut stream = Key::new(1, Purpose::Test).round(selected).stream();
        for _ in 0..rounds {
            // Draw; redraw when all drawn are dead.
            let drawn: Vec<usize> = loop {
                let drawn: Vec<usize> = (0..selected)
                    .map(|_| {
                        let mut point: f64 = stream.random();
                        selection
                            .iter()
                            .position(|s| {
                                point -= s;
                                point < 0.0
                            })
                            .unwrap_or(0)
                    })
                    .collect();
                if drawn.iter().any(|&client| failure[client] < 1.0) {
                    break drawn;
                }
            };
            // Upload until something arrives.
            let arrived: Vec<usize> = loop {
                let arrived: Vec<usize> = drawn
                    .iter()
                    .copied()
                    .filter(|&client| stream.random::<f64>() >= failure[client])
                    .collect();
                if !arrived.is_empty() {
                    break arrived;
                }
            };
            let mut share = [0.0; 5];
            arrived.iter().for_each(|&client| share[client] += 1.0 / arrived.len() as f64);
            for client in 0..5 {
                sum[client] += share[client];
                squares[client] += share[client] * share[client];
            }
        }
        let expected = appearance(&selection, &failure, u64::from(selected)).expect("valid");
        for client in 0..5 {
            let mean = sum[client] / f64::from(rounds);
            let variance = squares[client] / f64::from(rounds) - mean * mean;
            let error = (variance / f64::from(rounds)).sqrt();
            assert!(
                (mean - expected[client]).abs() <= 4.5 * error + 1e-12,
                "client {client}, {selected} draws: {mean} ± {error}, expected {}",
                expected[client]
            );
        }
    }
}

#[test]
fn proposition_5_the_gap_to_one_more_draw_shrinks() {
    let selection = [0.1, 0.2, 0.3, 0.4];
    let failure = [0.0, 0.3, 0.6, 0.9];
    let at: Vec<Vec<f64>> = (1..40)
        .map(|selected| appearance(&selection, &failure, selected).expect("valid"))
        .collect();
    let gaps: Vec<f64> = at.windows(2).map(|pair| largest_gap(&pair[0], &pair[1])).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] < pair[0]), "{gaps:?}");
}

#[test]
fn two_clients_two_draws_for_failures_next_to_one() {
    // By hand: with draws {i,j} the share of i is (1−ε_i)(1+ε_j) / (2 (1 − ε_i ε_j)), and {i,i} gives 1. Written with
    // q = 1 − ε the share is q_i (2 − q_j) / (2 (q_i + q_j − q_i q_j)).
    for [q, r] in [[1e-9, 1e-9], [1e-15, 3e-15], [1e-12, 1e-3], [1e-16, 0.5], [1e-14, 1.0]] {
        let failure = [1.0 - q, 1.0 - r];
        let [q, r] = failure.map(|failure| 1.0 - failure);
        let found = appearance(&[0.25, 0.75], &failure, 2).expect("valid");
        let share = q * (2.0 - r) / (2.0 * (q + r - q * r));
        let expected = 0.0625 + 2.0 * 0.25 * 0.75 * share;
        assert!((found[0] / expected - 1.0).abs() < 1e-12, "{q} {r}: {} {expected}", found[0]);
    }
}

#[test]
fn a_tiny_share_of_a_hopeless_client_keeps_its_digits() {
    // Regression: a series cut when the *total* remainder is small loses all digits of such a client.
    // Client 0 never fails, client 1 does but for q. The shares of client 1, arrivals of its n copies being binomial:
    // drawn once q/3, twice 2 q (1−q)/2 + 2/3 q², three times 1.
    let q: f64 = 2f64.powi(-40);
    let found = appearance(&[0.999, 0.001], &[0.0, 1.0 - q], 3).expect("valid");
    let [s, t]: [f64; 2] = [0.999, 0.001];
    let twice = 2.0 * q * (1.0 - q) / 2.0 + q * q * (2.0 / 3.0);
    let expected = 3.0 * s * s * t * (q / 3.0) + 3.0 * s * t * t * twice + t.powi(3);
    assert!((found[1] / expected - 1.0).abs() < 1e-12, "{} {expected}", found[1]);
}

#[test]
fn many_draws_approach_the_limit() {
    // For K → ∞ the share is s (1−ε) / Σ s (1−ε), with an error of order 1/K.
    let selection = [0.2, 0.3, 0.5];
    let failure = [0.1, 0.999_999, 0.7];
    let mass: f64 = selection.iter().zip(failure).map(|(s, e)| s * (1.0 - e)).sum();
    for selected in [100_000, 1_000_000_000] {
        let found = appearance(&selection, &failure, selected).expect("valid");
        for client in 0..3 {
            let limit = selection[client] * (1.0 - failure[client]) / mass;
            assert!((found[client] / limit - 1.0).abs() < 5.0 / selected as f64);
        }
    }
}

#[test]
fn a_billion_draws_of_hardly_anybody_arriving() {
    // With ε = 1 − 10⁻⁹ a for all, arrivals are Poisson with mean μ = Σ s a; given at least one, shares are s a / Σ s a.
    let selection = [0.5, 0.5];
    let failure = [1.0 - 1e-9, 1.0 - 3e-9];
    let found = appearance(&selection, &failure, 1_000_000_000).expect("valid");
    assert!((found[0] - 0.25).abs() < 1e-6, "{found:?}");
    assert!((found[0] + found[1] - 1.0).abs() < 1e-13);
}

#[cfg(feature = "rayon")]
#[test]
fn the_same_bits_on_any_number_of_threads() {
    let n = 50_000;
    let mut stream = Key::new(7, Purpose::Test).stream();
    let selection = simplex(&(0..n).map(|_| stream.random::<f64>()).collect::<Vec<_>>());
    let failure: Vec<f64> = (0..n).map(|_| stream.random::<f64>()).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let found = appearance(&selection, &failure, 7).expect("valid");
            let slope = gradient(&selection, &failure, 7, &selection).expect("valid");
            found.into_iter().chain(slope).map(f64::to_bits).collect::<Vec<_>>()
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(5));
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let text = |selection: &[f64], failure: &[f64], selected| {
        appearance(selection, failure, selected).expect_err("must be refused").to_string()
    };
    assert_eq!(text(&[1.0], &[0.0], 0), "selected: must be from 1 to 1000000000, is 0");
    assert_eq!(
        text(&[1.0], &[0.0], 1_000_000_001),
        "selected: must be from 1 to 1000000000, is 1000000001"
    );
    assert_eq!(text(&[0.5], &[0.0], 1), "selection: must sum to 1 within 1e-6, sums to 0.5");
    assert_eq!(text(&[2.0], &[0.0], 1), "selection: entry 0 must be from 0 to 1, is 2");
    assert_eq!(text(&[1.0], &[f64::NAN], 1), "failure: entry 0 must be from 0 to 1, is NaN");
    assert_eq!(text(&[1.0], &[], 1), "failure: expected 1 values, found 0");
    assert_eq!(text(&[], &[], 1), "clients: there must be at least one client");
    for selected in [1, 5] {
        assert!(
            text(&[1.0, 0.0], &[1.0, 0.0], selected).starts_with("failure: no eligible client")
        );
    }
}
