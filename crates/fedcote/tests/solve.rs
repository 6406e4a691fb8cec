//! The solvers: optimality, invariants, coverage, repairs.

use fedcote::divergence::{label_divergence, weight_divergence};
use fedcote::{
    Aim, Draws, Federation, FederationSpec, Method, Options, Uploads, Warning, appearance,
    eligible, evaluate, evaluate_for, select, select_from, select_or_all,
};
use proptest::prelude::*;

fn federation(classes: usize, counts: Vec<f64>, failure: Vec<f64>) -> Federation {
    FederationSpec { ids: None, classes, counts, failure }.check().expect("valid")
}

/// Random federations: labels missing here and there, failures at the edges.
fn federations(most: usize, largest_failure: f64) -> impl Strategy<Value = Federation> {
    let count = prop_oneof![2 => Just(0.0), 5 => (1u32..1000).prop_map(f64::from)];
    let failure =
        prop_oneof![1 => Just(0.0), 1 => Just(largest_failure), 8 => 0.0..largest_failure];
    (1..=most, 1usize..6).prop_flat_map(move |(clients, classes)| {
        let rows = prop::collection::vec(count.clone(), clients * classes);
        (Just(classes), rows, prop::collection::vec(failure.clone(), clients)).prop_map(
            |(classes, mut counts, failure)| {
                // Nobody without samples.
                for (client, row) in counts.chunks_exact_mut(classes).enumerate() {
                    if row.iter().all(|&count| count == 0.0) {
                        row[client % classes] = 1.0 + client as f64;
                    }
                }
                federation(classes, counts, failure)
            },
        )
    })
}

fn options(threshold: f64, kappa: f64, efficiency: f64) -> Options {
    Options::new().with_method(Method::Exact { kappa, efficiency }).with_threshold(threshold)
}

/// The objective of the exact method.
fn joint(federation: &Federation, appearance: &[f64], kappa: f64, efficiency: f64) -> f64 {
    let price: f64 = appearance
        .iter()
        .zip(federation.failure())
        .map(|(b, e)| if *b > 0.0 { b / (1.0 - e) } else { 0.0 })
        .sum();
    kappa * label_divergence(federation, appearance)
        + weight_divergence(federation, appearance)
        + efficiency * price
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn everybody_eligible_appears_by_weight(
        federation in federations(40, 0.85), selected in prop_oneof![1u64..100, Just(1_000_000_000)],
    ) {
        let solution = select(&federation, selected, &Options::default())?;
        for (found, weight) in solution.appearance.iter().zip(federation.weights()) {
            prop_assert!((found - weight).abs() < 1e-9);
        }
        prop_assert!(solution.label_divergence < 1e-12);
        prop_assert!(solution.optimality < 1e-11);
        prop_assert!(solution.warnings.is_empty());
    }

    #[test]
    fn the_selection_leads_to_what_is_promised(
        federation in federations(30, 1.0), selected in 1u64..60, threshold in 0.0..1.0,
        kappa in prop_oneof![Just(1.0), Just(1000.0), Just(1e9)],
        efficiency in prop_oneof![Just(0.0), 0.0..3.0],
    ) {
        prop_assume!(federation.failure().iter().any(|&failure| failure < 1.0));
        let solution = select(&federation, selected, &options(threshold, kappa, efficiency))?;
        let sum: f64 = solution.selection.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-12);
        let again = appearance::appearance(&solution.selection, federation.failure(), selected)?;
        for (client, again) in again.into_iter().enumerate() {
            prop_assert!((again - solution.appearance[client]).abs() < 1e-12);
            prop_assert!((again - solution.target[client]).abs() < 1e-9);
            prop_assert!(solution.eligible[client] || solution.selection[client] == 0.0);
        }
        // Multipliers of the size of κ leave that many digits less.
        prop_assert!(solution.optimality < 1e-10 + 1e-15 * kappa * 30.0, "optimality {}", solution.optimality);
    }

    #[test]
    fn no_move_between_two_clients_improves_the_target(
        federation in federations(12, 0.999), threshold in 0.0..1.0,
        kappa in prop_oneof![Just(0.1), Just(1000.0), Just(1e9)],
        efficiency in prop_oneof![Just(0.0), 0.0..3.0],
    ) {
        // The problem is convex: a point that no exchange of appearance improves is the optimum.
        let solution = select(&federation, 5, &options(threshold, kappa, efficiency))?;
        let best = joint(&federation, &solution.target, kappa, efficiency);
        for from in 0..federation.len() {
            for to in 0..federation.len() {
                let step = 1e-4f64.min(solution.target[from]);
                if from != to && solution.eligible[to] && step > 0.0 {
                    let mut moved = solution.target.clone();
                    moved[from] -= step;
                    moved[to] += step;
                    let value = joint(&federation, &moved, kappa, efficiency);
                    prop_assert!(value >= best - 1e-9 * best.abs().max(1e-6), "{value} {best}");
                }
            }
        }
    }

    #[test]
    fn no_label_is_lost_to_the_threshold(federation in federations(10, 1.0), threshold in 0.0..1.0) {
        prop_assume!(federation.failure().iter().any(|&failure| failure < 1.0));
        let solution = select(&federation, 8, &options(threshold, 1000.0, 0.0))?;
        for label in 0..federation.classes() {
            let holds = |client: &usize| federation.labels(*client)[label] > 0.0;
            let alive = |client: &usize| federation.failure()[*client] < 1.0;
            let holders: Vec<usize> = (0..federation.len()).filter(holds).collect();
            let kept = holders.iter().any(|&client| solution.eligible[client]);
            prop_assert_eq!(kept, holders.iter().any(alive), "label {}", label);
            let unreachable = solution.warnings.contains(&Warning::LabelUnreachable { label });
            prop_assert_eq!(unreachable, !holders.is_empty() && !kept);
        }
    }

    #[test]
    fn a_warm_start_ends_at_the_same_place(
        federation in federations(20, 0.95), other in prop::collection::vec(0.0..0.95f64, 20),
    ) {
        let mut federation = federation;
        let earlier = select(&federation, 10, &Options::default())?;
        federation.set_failure(other[..federation.len()].to_vec())?;
        let cold = select(&federation, 10, &Options::default())?;
        let warm = select_from(&federation, 10, &Options::default(), &earlier)?;
        for (a, b) in cold.selection.iter().zip(&warm.selection) {
            prop_assert!((a - b).abs() < 1e-9);
        }
    }

    #[test]
    fn the_gradient_method_never_ends_above_its_start(
        federation in federations(15, 0.9), selected in 1u64..20,
    ) {
        let by_weight = |coverage| Options::new().with_method(Method::Gradient { k_apx: None, max_steps: 0, tolerance: 1e-10 }).with_coverage(coverage);
        let start = select(&federation, selected, &by_weight(true))?;
        let options = Options::new().with_method(Method::GRADIENT);
        let end = select(&federation, selected, &options)?;
        prop_assert!(end.label_divergence <= start.label_divergence);
        prop_assert!((end.selection.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        prop_assert!(end.selection.iter().all(|&selection| selection >= 0.0));
    }
}

/// Twenty clients, two labels each, as the paper's non-i.i.d. partition; failures spread up to 0.84.
fn paper() -> Federation {
    let mut counts = vec![0.0; 200];
    for client in 0..20 {
        let first = 2 * (client / 4);
        counts[client * 10 + first] = 1500.0;
        counts[client * 10 + first + 1] = 1400.0 + client as f64;
    }
    let failure = (0..20).map(|client| f64::from(client * 7 % 20) / 20.0 * 0.88).collect();
    federation(10, counts, failure)
}

#[test]
fn the_gradient_method_reaches_what_the_exact_one_proves_possible() {
    let federation = paper();
    let exact = select(&federation, 10, &options(0.85, 1e9, 0.0)).expect("valid");
    assert!(exact.label_divergence < 1e-15, "{}", exact.label_divergence);
    let gradient = Options::new().with_method(Method::GRADIENT);
    let found = select(&federation, 10, &gradient).expect("valid");
    let fedavg = evaluate(&federation, 10, federation.weights()).expect("valid");
    assert!(fedavg.label_divergence > 1e-3, "{}", fedavg.label_divergence);
    // Labels that always come together in nearly the same ratio make a narrow valley: slow, but five digits.
    assert!(found.label_divergence < 1e-5 * fedavg.label_divergence, "{}", found.label_divergence);
    // FedCote-II solves for fewer draws and is applied to more: close, not equal.
    let fewer = Method::Gradient { k_apx: Some(4), max_steps: 2000, tolerance: 1e-10 };
    let fewer = Options::new().with_method(fewer);
    let apx = select(&federation, 10, &fewer).expect("valid");
    assert!(apx.label_divergence > found.label_divergence);
    assert!(apx.label_divergence < fedavg.label_divergence);
}

#[test]
fn the_default_kappa_leaves_the_divergence_its_multipliers_predict() {
    // At the optimum ᾱ_c = α_g,c (1 − y_c/κ), so the label divergence is Σ α_g (y/κ)².
    let federation = paper();
    let solution = select(&federation, 10, &options(0.5, 1000.0, 0.0)).expect("valid");
    let predicted: f64 = federation
        .global_labels()
        .iter()
        .zip(&solution.multipliers)
        .map(|(goal, y)| goal * (y / 1000.0).powi(2))
        .sum();
    assert!(predicted > 1e-9);
    assert!((solution.label_divergence / predicted - 1.0).abs() < 1e-6);
}

#[test]
fn restored_labels_are_warned_of_with_their_cost() {
    // Label 1 is only on clients 2 and 3, both above the threshold; 2 is the more reliable.
    let spec = FederationSpec {
        ids: Some(["a", "b", "c"].map(String::from).to_vec()),
        classes: 2,
        counts: vec![100.0, 0.0, 0.0, 50.0, 0.0, 50.0],
        failure: vec![0.0, 0.9, 0.95],
    };
    let federation = spec.check().expect("valid");
    let solution = select(&federation, 10, &options(0.85, 1e9, 0.0)).expect("valid");
    assert_eq!(solution.eligible, [true, true, false]);
    // The other client always arrives, so every failed draw of b is an arrival lost.
    let lost = 10.0 * solution.selection[1] * 0.9;
    let [Warning::LabelRestored { label: 1, clients, arrivals_lost }] = &solution.warnings[..]
    else {
        panic!("{:?}", solution.warnings)
    };
    assert_eq!(clients, &["b"]);
    assert!((arrivals_lost - lost).abs() < 1e-12);
    assert!(solution.warnings[0].to_string().starts_with(
        "label 1: no holder is within the threshold; client b is selected all the same, which costs "
    ));

    let paper = options(0.85, 1e9, 0.0).with_coverage(false);
    let solution = select(&federation, 10, &paper).expect("valid");
    assert_eq!(solution.selection, [1.0, 0.0, 0.0]);
    assert_eq!(solution.warnings, [Warning::LabelLost { label: 1 }]);

    let none = Options::new().with_threshold(0.0).with_coverage(false);
    let far = federation_of_failures(&[0.5, 0.6]);
    assert_eq!(
        select(&far, 1, &none).expect_err("nobody").to_string(),
        "threshold: every client's failure probability is above 0; raise the threshold or allow label coverage"
    );
}

fn federation_of_failures(failure: &[f64]) -> Federation {
    let counts = (0..failure.len()).flat_map(|client| [10.0 + client as f64, 5.0]).collect();
    federation(2, counts, failure.to_vec())
}

#[test]
fn unreachable_labels_are_reported() {
    let federation = federation(2, vec![10.0, 0.0, 0.0, 10.0], vec![0.1, 1.0]);
    let solution = select(&federation, 3, &Options::default()).expect("valid");
    assert_eq!(solution.warnings, [Warning::LabelUnreachable { label: 1 }]);
    assert_eq!(solution.selection, [1.0, 0.0]);
    let nobody = federation_of_failures(&[1.0, 1.0]);
    assert!(select(&nobody, 3, &Options::default()).is_err());
    assert!(evaluate(&nobody, 3, &[0.5, 0.5]).is_err());
}

#[test]
fn homogeneous_counts_are_selected_by_weight() {
    let gradient = Options::new().with_method(Method::GRADIENT);
    // Counts that differ as chance would have it, and one client out of reach.
    let counts = vec![101.0, 99.0, 195.0, 205.0, 97.0, 103.0];
    let alike = federation(2, counts, vec![0.1, 0.8, 0.9]);
    let solution = select(&alike, 4, &gradient).expect("valid");
    assert!(matches!(solution.warnings[..], [Warning::Homogeneous { .. }]));
    assert_eq!(solution.selection[2], 0.0);
    assert!((solution.selection[0] - 1.0 / 3.0).abs() < 1e-15);
    // The same shares of a hundred times the samples are no accident.
    let counts = vec![10100.0, 9900.0, 19500.0, 20500.0, 9700.0, 10300.0];
    let different = federation(2, counts, vec![0.1, 0.8, 0.9]);
    let solution = select(&different, 4, &gradient).expect("valid");
    assert!(solution.warnings.iter().all(|w| !matches!(w, Warning::Homogeneous { .. })));
}

#[test]
fn efficiency_trades_bias_for_arrivals() {
    let federation = paper();
    let mut last: Option<(f64, f64)> = None;
    for efficiency in [0.0, 0.1, 0.3, 1.0] {
        let solution = select(&federation, 10, &options(0.85, 1000.0, efficiency)).expect("valid");
        if let Some((arrivals, divergence)) = last {
            assert!(solution.expected_arrivals > arrivals);
            assert!(solution.weight_divergence > divergence);
        }
        last = Some((solution.expected_arrivals, solution.weight_divergence));
    }
}

#[test]
fn labels_nobody_has_and_single_clients_are_no_trouble() {
    let empty_label = federation(3, vec![10.0, 0.0, 5.0, 5.0, 0.0, 10.0], vec![0.2, 0.9]);
    let solution = select(&empty_label, 5, &options(0.85, 1e9, 0.0)).expect("valid");
    assert!(solution.optimality < 1e-7 && solution.label_divergence.is_finite());
    assert!(solution.warnings.is_empty());
    for method in [Method::EXACT, Method::GRADIENT] {
        let alone = federation_of_failures(&[0.84]);
        let options = Options::new().with_method(method);
        let solution = select(&alone, 5, &options).expect("valid");
        assert_eq!(solution.selection, [1.0]);
        assert!((solution.appearance[0] - 1.0).abs() < 1e-12);
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let federation = paper();
    let refused = |options: Options| {
        select(&federation, 10, &options).expect_err("must be refused").to_string()
    };
    assert_eq!(refused(options(1.5, 1.0, 0.0)), "threshold: must be from 0 to 1, is 1.5");
    assert_eq!(refused(options(0.5, 0.0, 0.0)), "kappa: must be above 0 and finite, is 0");
    assert_eq!(refused(options(0.5, 1.0, -1.0)), "efficiency: must be from 0 to 1000000, is -1");
    let gradient = |k_apx, tolerance| {
        Options::new().with_method(Method::Gradient { k_apx, max_steps: 10, tolerance })
    };
    assert_eq!(refused(gradient(Some(0), 1e-9)), "selected: must be from 1 to 1000000000, is 0");
    assert!(refused(gradient(None, f64::NAN)).starts_with("tolerance: must be"));
    assert!(select(&federation, 0, &Options::default()).is_err());
    assert!(evaluate(&federation, 10, &[1.0]).is_err());
}

#[test]
fn evaluation_of_clients_that_never_arrive_warns() {
    let federation = federation_of_failures(&[0.5, 1.0]);
    let evaluation = evaluate(&federation, 2, &[0.75, 0.25]).expect("valid");
    assert!((evaluation.appearance[0] - 1.0).abs() < 1e-15);
    assert_eq!(evaluation.appearance[1], 0.0);
    assert_eq!(evaluation.expected_arrivals, 2.0 * 0.75 * 0.5);
    assert_eq!(evaluation.warnings, [Warning::NeverArrives { selection: 0.25, clients: 1 }]);
}

#[cfg(feature = "rayon")]
#[test]
fn the_same_bits_on_any_number_of_threads() {
    let clients = 30_000;
    let counts: Vec<f64> = (0..clients * 4).map(|i| f64::from(i * 7919 % 101)).collect();
    let counts = counts.chunks(4).flat_map(|row| [row[0] + 1.0, row[1], row[2], row[3]]).collect();
    let failure = (0..clients).map(|i| f64::from(i * 31 % 1000) / 1000.0).collect();
    let federation = federation(4, counts, failure);
    let run = |threads, method| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let options = Options::new().with_method(method);
        let solution = pool.install(|| select(&federation, 20, &options)).expect("valid");
        solution.selection.into_iter().map(f64::to_bits).collect::<Vec<_>>()
    };
    let few = Method::Gradient { k_apx: None, max_steps: 20, tolerance: 1e-12 };
    for method in [Method::EXACT, few] {
        assert!(run(1, method) == run(3, method));
    }
}

#[cfg(feature = "serde")]
#[test]
fn solutions_survive_saving() {
    let federation = paper();
    let solution = select(&federation, 10, &Options::default()).expect("valid");
    let text = serde_json::to_string(&solution).expect("serialisable");
    let again: fedcote::Solution = serde_json::from_str(&text).expect("the same shape");
    assert_eq!(again.eligible, solution.eligible);
    assert_eq!(again.method, solution.method);
}

/// The i.i.d. branch used to certify itself as optimal whatever it led to.
#[test]
fn the_homogeneous_branch_tells_how_far_from_optimal_it_is() {
    // Shares instead of counts look like one sample a client: too few to tell from chance.
    let federation = FederationSpec {
        ids: None,
        classes: 2,
        counts: vec![0.5, 0.5, 1.0, 0.0, 0.0, 1.0],
        failure: vec![0.1, 0.8, 0.2],
    }
    .check()
    .unwrap();
    let options = Options::new().with_method(Method::GRADIENT);
    let solution = select(&federation, 10, &options).unwrap();
    assert!(solution.warnings.iter().any(|w| matches!(w, Warning::Homogeneous { .. })));
    assert!(solution.optimality > 1e-3, "{}", solution.optimality);
}

/// Noise on reported counts gives everyone a sample of every label: a threshold then seemed to lose none.
#[test]
fn a_few_samples_do_not_make_a_holder_of_a_label() {
    // Clients 0 and 1 hold label 0 but for one sample, client 2 holds label 1 and fails too often.
    let federation = federation(2, vec![999.0, 1.0, 999.0, 1.0, 0.0, 1000.0], vec![0.0, 0.1, 0.9]);
    let solution = select(&federation, 10, &Options::default()).unwrap();
    assert!(solution.selection[2] > 0.0, "{:?}", solution.selection);
    assert!(matches!(&solution.warnings[..], [Warning::LabelRestored { label: 1, .. }]));
    assert!(solution.label_divergence < 1e-3, "{}", solution.label_divergence);
    // When no holder ever arrives, the few samples that do are better than nothing.
    let federation =
        self::federation(2, vec![1000.0, 0.0, 999.0, 1.0, 0.0, 1000.0], vec![0.0, 0.9, 1.0]);
    let solution = select(&federation, 10, &Options::default()).unwrap();
    assert!(solution.selection[1] > 0.0 && solution.selection[2] == 0.0);
}

const PROCEDURES: [(Draws, Uploads); 4] = [
    (Draws::Independent, Uploads::PerDraw),
    (Draws::Independent, Uploads::PerClient),
    (Draws::Systematic, Uploads::PerDraw),
    (Draws::Systematic, Uploads::PerClient),
];

/// Some clients above the threshold, the only holders of label 2 among them.
fn uneven() -> Federation {
    let labels = [[40.0, 0.0, 0.0], [10.0, 30.0, 0.0], [0.0, 20.0, 0.0], [0.0, 5.0, 80.0]];
    Federation::new(labels, [0.05, 0.4, 0.9, 0.95]).expect("valid")
}

#[test]
fn freshness_draws_by_the_square_root_of_arrivals() {
    let federation = uneven();
    for (draws, uploads) in PROCEDURES {
        let options = Options::new().with_draws(draws).with_uploads(uploads);
        let appearance = select(&federation, 6, &options).expect("valid");
        let fresh = select(&federation, 6, &options.with_aim(Aim::Freshness)).expect("valid");
        // The same target, whatever the procedure; the server averages by it …
        assert_eq!(fresh.target, appearance.target);
        assert_eq!(fresh.appearance, fresh.target);
        assert_eq!(fresh.label_divergence, label_divergence(&federation, &fresh.target));
        assert_eq!(fresh.eligible, appearance.eligible);
        assert!(fresh.optimality < 1e-12);
        // … and s ∝ β / √(1 − ε).
        let raw = fresh.target.iter().zip(federation.failure());
        let raw: Vec<f64> = raw.map(|(target, failure)| target / (1.0 - failure).sqrt()).collect();
        let total: f64 = raw.iter().sum();
        for (found, raw) in fresh.selection.iter().zip(&raw) {
            assert!((found - raw / total).abs() < 1e-15);
        }
        let arrivals: f64 = fresh
            .selection
            .iter()
            .zip(federation.failure())
            .map(|(s, e)| 6.0 * s * (1.0 - e))
            .sum();
        assert!((fresh.expected_arrivals - arrivals).abs() < 1e-14);
    }
}

/// The simulator's `fedcote-memory` inverted the target for systematic draws and threw the selection away.
#[test]
fn regression_freshness_needs_no_model_of_the_draws() {
    let clients = 100_000;
    let counts = (0..clients).flat_map(|i| if i % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] });
    let failure = (0..clients).map(|i| 0.8 * (i as f64 / clients as f64)).collect();
    let federation = federation(2, counts.collect(), failure);
    let systematic = Options::new().with_draws(Draws::Systematic);
    // Too large for the exact model, and `appearance` says so; `freshness` does not ask it.
    let fresh = select(&federation, 100_000, &systematic.with_aim(Aim::Freshness)).expect("valid");
    assert!(fresh.warnings.is_empty(), "{:?}", fresh.warnings);
    let independent = Options::new().with_aim(Aim::Freshness);
    assert_eq!(select(&federation, 100_000, &independent).expect("valid"), fresh);
}

#[test]
fn exploration_gives_a_part_of_the_draws_to_everyone_by_weight() {
    let federation = uneven();
    for (draws, uploads) in PROCEDURES {
        for aim in [Aim::Appearance, Aim::Freshness] {
            let options = Options::new().with_draws(draws).with_uploads(uploads).with_aim(aim);
            let plain = select(&federation, 6, &options).expect("valid");
            let mixed = select(&federation, 6, &options.with_exploration(0.1)).expect("valid");
            for client in 0..4 {
                let wanted = 0.9 * plain.selection[client] + 0.1 * federation.weights()[client];
                assert!((mixed.selection[client] - wanted).abs() < 1e-15);
            }
            assert_eq!((&mixed.target, &mixed.eligible), (&plain.target, &plain.eligible));
            if aim == Aim::Appearance {
                let procedure = (draws, uploads);
                let again = evaluate_for(&federation, 6, &mixed.selection, procedure);
                assert_eq!(mixed.appearance, again.expect("valid").appearance);
            }
        }
    }
    for wrong in [-0.1, 1.1, f64::NAN] {
        let refused = select(&federation, 6, &Options::new().with_exploration(wrong));
        assert!(refused.expect_err("refused").to_string().starts_with("exploration: must be from"));
    }
}

#[test]
fn who_is_eligible_is_as_the_solution_says_and_nobody_means_all_where_someone_must_be_asked() {
    let federation = uneven();
    for coverage in [true, false] {
        for threshold in [0.01, 0.3, 0.85, 0.92, 1.0] {
            let options = Options::new().with_threshold(threshold).with_coverage(coverage);
            let found = select(&federation, 5, &options);
            assert_eq!(
                found.clone().map(|found| found.eligible),
                eligible(&federation, &options),
                "{threshold} {coverage}"
            );
            let lenient = select_or_all(&federation, 5, &options).expect("valid");
            match found {
                Ok(found) => assert_eq!(lenient, found),
                Err(_) => assert_eq!(lenient.eligible, [true; 4]),
            }
        }
    }
}
