//! Selection for every way to draw and to upload.

use fedcote::appearance::{AppearanceModel, Model};
use fedcote::draw::{Alias, label_order, systematic};
use fedcote::invert::{Limits, many_draws};
use fedcote::random::{Key, Purpose};
use fedcote::{
    Draws, Federation, FederationSpec, Groups, Options, Uploads, Warning, evaluate, evaluate_for,
    select,
};
use rand::RngExt;

const PROCEDURES: [(Draws, Uploads); 4] = [
    (Draws::Independent, Uploads::PerDraw),
    (Draws::Independent, Uploads::PerClient),
    (Draws::Systematic, Uploads::PerDraw),
    (Draws::Systematic, Uploads::PerClient),
];

fn federation(clients: usize, worst: f64, seed: u32) -> Federation {
    let mut rng = Key::new(31, Purpose::Test).round(seed).stream();
    let counts = (0..clients)
        .flat_map(|client| {
            let mut row = vec![0.0; 5];
            row[client % 5] = 50.0 + 50.0 * rng.random::<f64>();
            row[(client + 1) % 5] = 20.0;
            row
        })
        .collect();
    let failure = (0..clients).map(|_| worst * rng.random::<f64>()).collect();
    FederationSpec { ids: None, classes: 5, counts, failure }.check().expect("valid")
}

#[test]
fn everybody_eligible_appears_by_weight_whatever_the_procedure() {
    for seed in 0..20 {
        let federation = federation(20, 0.8, seed);
        for (draws, uploads) in PROCEDURES {
            let options = Options::new().with_draws(draws).with_uploads(uploads);
            let solution = select(&federation, 10, &options).expect("valid");
            assert!(solution.warnings.is_empty(), "{:?}", solution.warnings);
            assert!(solution.optimality < 1e-9);
            for (appearance, weight) in solution.appearance.iter().zip(federation.weights()) {
                assert!((appearance - weight).abs() < 1e-9);
            }
            // The evaluation of what was found agrees.
            let evaluation = evaluate_for(&federation, 10, &solution.selection, (draws, uploads))
                .expect("valid");
            assert_eq!(evaluation.appearance, solution.appearance);
        }
    }
}

/// Twenty clients as above, half of them in each of two groups that are down with this probability.
fn together(down: f64, seed: u32) -> Federation {
    let alone = federation(20, 0.8, seed);
    let groups = Groups::new([down; 2], (0..20).map(|client| Some(client % 2))).expect("valid");
    let failure = groups.overall(alone.failure()).expect("valid");
    let counts = alone.all_labels().to_vec();
    let spec = FederationSpec { ids: None, classes: 5, counts, failure };
    spec.check().expect("valid").with_groups(groups).expect("valid")
}

/// Regression: with uploads per client, or systematic draws, groups had the model of independent draws with an upload each, even where
/// they are never down.
#[test]
fn groups_that_are_never_down_change_nothing() {
    let (alone, together) = (federation(20, 0.8, 3), together(0.0, 3));
    for procedure in PROCEDURES {
        let found =
            |federation| evaluate_for(federation, 10, alone.weights(), procedure).expect("valid");
        assert!(found(&together).warnings.is_empty(), "{procedure:?}");
        for (found, wanted) in found(&together).appearance.iter().zip(found(&alone).appearance) {
            assert!((found - wanted).abs() < 1e-12, "{procedure:?}: {found} {wanted}");
        }
    }
}

/// Regression: the selection for clients that fail together was exact for independent draws with an upload each only. Whatever is
/// drawn and uploaded, repeated until something arrives, clients appear by weight.
#[test]
fn clients_that_fail_together_appear_by_weight_whatever_the_procedure() {
    for (seed, down) in [(1, 0.05), (2, 0.2), (3, 0.5)] {
        let federation = together(down, seed);
        let groups = federation.groups().expect("given");
        for (draws, uploads) in PROCEDURES {
            let options =
                Options::new().with_threshold(1.0).with_draws(draws).with_uploads(uploads);
            let solution = select(&federation, 10, &options).expect("valid");
            assert!(solution.warnings.is_empty(), "{draws:?} {uploads:?}: {:?}", solution.warnings);
            assert!(solution.optimality < 1e-9, "{draws:?} {uploads:?}: {}", solution.optimality);
            let order = label_order(federation.all_labels(), 20, 5).expect("valid");
            let alias = Alias::new(&solution.selection).expect("valid");
            let mut rng = Key::new(33, Purpose::Test).round(seed).stream();
            let rounds = 20_000;
            let (mut sums, mut squares) = ([0.0; 20], [0.0; 20]);
            for _ in 0..rounds {
                let list = match draws {
                    Draws::Independent => alias.draws(10, &mut rng),
                    Draws::Systematic => systematic(&solution.selection, &order, 10, &mut rng),
                };
                let list = list.expect("valid");
                let mut arrived = vec![0.0; list.len()];
                while arrived.iter().all(|&copies| copies == 0.0) {
                    let up = [0, 1].map(|_| rng.random::<f64>() >= down);
                    for (arrived, &(client, copies)) in arrived.iter_mut().zip(&list) {
                        let client = client as usize;
                        let own = 1.0 - (1.0 - federation.failure()[client]) / (1.0 - down);
                        let up = up[groups.of(client).expect("in one")];
                        let mut arrives = || up && rng.random::<f64>() >= own;
                        *arrived = match uploads {
                            Uploads::PerDraw => (0..copies).filter(|_| arrives()).count() as f64,
                            Uploads::PerClient => f64::from(u32::from(arrives()) * copies),
                        };
                    }
                }
                let total: f64 = arrived.iter().sum();
                for ((client, _), copies) in list.iter().zip(&arrived) {
                    sums[*client as usize] += copies / total;
                    squares[*client as usize] += (copies / total).powi(2);
                }
            }
            for (client, &weight) in federation.weights().iter().enumerate() {
                let mean = sums[client] / f64::from(rounds);
                let variance = squares[client] / f64::from(rounds) - mean * mean;
                let errors = (mean - weight) / (variance / f64::from(rounds)).sqrt();
                assert!(errors.abs() < 4.5, "{draws:?} {uploads:?} {down}: {mean} for {weight}");
            }
        }
    }
}

#[test]
fn too_many_groups_are_ignored_and_said_so() {
    let alone = federation(4_000, 0.8, 4);
    let groups = Groups::new([0.0; 4_000], (0..4_000).map(Some)).expect("valid");
    let together = alone.clone().with_groups(groups).expect("valid");
    for (procedure, warnings) in PROCEDURES.into_iter().zip([
        vec![Warning::GroupsIgnored],
        vec![Warning::GroupsIgnored, Warning::ClosedForm],
        vec![Warning::GroupsIgnored],
        vec![Warning::GroupsIgnored],
    ]) {
        let found = |federation: &Federation| {
            evaluate_for(federation, 100, alone.weights(), procedure).expect("valid")
        };
        assert_eq!(found(&together).warnings, warnings);
        assert_eq!(found(&together).appearance, found(&alone).appearance);
    }
}

/// What a client's single upload changes is little among so many, and less than what groups do.
#[test]
fn among_many_clients_groups_come_before_uploads() {
    let alone = federation(10_000, 0.8, 4);
    let groups = Groups::new([0.3, 0.4], (0..10_000).map(|client| Some(client % 2)));
    let together = alone.clone().with_groups(groups.expect("valid")).expect("valid");
    let found = |uploads| {
        let procedure = (Draws::Independent, uploads);
        evaluate_for(&together, 100, alone.weights(), procedure).expect("valid")
    };
    let (draw, client) = (found(Uploads::PerDraw), found(Uploads::PerClient));
    assert_eq!(client.appearance, draw.appearance);
    assert_eq!((draw.warnings, client.warnings), (vec![], vec![Warning::ClosedForm]));
}

#[test]
fn the_procedure_matters() {
    let federation = federation(20, 0.8, 1);
    let plain = select(&federation, 10, &Options::default()).expect("valid");
    for procedure in &PROCEDURES[1..] {
        let found = evaluate_for(&federation, 10, &plain.selection, *procedure).expect("valid");
        let worst = found
            .appearance
            .iter()
            .zip(federation.weights())
            .map(|(a, p)| (a / p - 1.0).abs())
            .fold(0.0, f64::max);
        assert!(worst > 0.01 && worst < 0.6, "{procedure:?}: {worst}");
    }
    let same = evaluate(&federation, 10, &plain.selection).expect("valid");
    assert_eq!(same.appearance, plain.appearance);
}

#[test]
fn independent_draws_with_one_upload_a_client_are_inverted() {
    let mut missed = 0;
    for case in 0..200 {
        let mut rng = Key::new(32, Purpose::Test).round(case).stream();
        let (clients, selected) = (rng.random_range(2..20usize), rng.random_range(1..25u64));
        let failure: Vec<f64> = (0..clients).map(|_| 0.9 * rng.random::<f64>()).collect();
        let mut target: Vec<f64> = (0..clients).map(|_| 0.1 + rng.random::<f64>()).collect();
        let total: f64 = target.iter().sum();
        target.iter_mut().for_each(|value| *value /= total);
        let (model, exact) =
            Model::new((Draws::Independent, Uploads::PerClient), &failure, selected, &[]);
        assert!(exact);
        let start = many_draws(&target, &failure);
        let found = model.invert(&target, start, Limits::default()).expect("valid");
        let mut appearance = vec![0.0; clients];
        model.appearance(&found.selection, &mut appearance).expect("valid");
        let worst =
            appearance.iter().zip(&target).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
        assert!((worst - found.residual).abs() < 1e-11);
        missed += usize::from(worst > 1e-9);
    }
    assert_eq!(missed, 0);
}

#[test]
fn too_large_a_problem_takes_the_closed_form_and_says_so() {
    let federation = federation(10_000, 0.8, 2);
    let options = Options::new().with_uploads(Uploads::PerClient);
    let solution = select(&federation, 1000, &options).expect("valid");
    assert_eq!(solution.warnings, [Warning::ClosedForm]);
    let closed = select(&federation, 1000, &Options::default()).expect("valid");
    assert_eq!(closed.selection, solution.selection);
    assert!(closed.warnings.is_empty());
}

#[test]
fn clients_that_never_arrive_are_redrawn_in_every_procedure() {
    let counts = vec![10.0; 3];
    let failure = vec![1.0, 0.5, 0.2];
    let federation =
        FederationSpec { ids: None, classes: 1, counts, failure }.check().expect("valid");
    for procedure in PROCEDURES {
        let selection = [0.6, 0.2, 0.2];
        let found = evaluate_for(&federation, 3, &selection, procedure).expect("valid");
        assert_eq!(found.appearance[0], 0.0);
        assert!((found.appearance.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(matches!(found.warnings[..], [Warning::NeverArrives { clients: 1, .. }]));
    }
}

#[test]
fn the_order_of_systematic_draws_is_that_of_the_labels() {
    let federation = federation(20, 0.8, 3);
    let order = label_order(federation.all_labels(), 20, 5).expect("valid");
    let (model, _) =
        Model::new((Draws::Systematic, Uploads::PerDraw), federation.failure(), 10, &order);
    let mut appearance = vec![0.0; 20];
    model.appearance(federation.weights(), &mut appearance).expect("valid");
    let found =
        evaluate_for(&federation, 10, federation.weights(), (Draws::Systematic, Uploads::PerDraw));
    assert_eq!(found.expect("valid").appearance, appearance);
}
