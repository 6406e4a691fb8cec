//! Selection for every way to draw and to upload.

use fedcote::appearance::{AppearanceModel, Model};
use fedcote::draw::label_order;
use fedcote::invert::{Limits, many_draws};
use fedcote::random::{Key, Purpose};
use fedcote::{
    Draws, Federation, FederationSpec, Options, Uploads, Warning, evaluate, evaluate_for, select,
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
