use super::super::oracle;
use super::*;
use crate::draw::systematic_at;
use proptest::prelude::*;

const UPLOADS: [Uploads; 2] = [Uploads::PerDraw, Uploads::PerClient];

/// The definition, slowly: between any two neighbouring borders take the list that is drawn there, and
/// enumerate what may arrive of it.
fn by_lists(model: &Systematic, selection: &[f64]) -> Vec<f64> {
    let mut places = vec![0.0, 1.0];
    let mut cumulated = 0.0;
    for &client in model.order {
        cumulated += selection[client as usize];
        places.push((model.selected as f64 * cumulated).fract());
    }
    places.sort_by(f64::total_cmp);
    let mut appearance = vec![0.0; selection.len()];
    let mut live = 0.0;
    for pair in places.windows(2).filter(|pair| pair[1] - pair[0] > 1e-13) {
        let middle = 0.5 * (pair[0] + pair[1]);
        let list = systematic_at(selection, model.order, model.selected, middle).unwrap();
        let shares = match model.groups {
            None => oracle::shares(&list, model.failure, model.uploads),
            Some(groups) => oracle::shares_together(&list, (groups, model.failure), model.uploads),
        };
        if let Some(shares) = shares {
            live += pair[1] - pair[0];
            for (client, share) in shares {
                appearance[client as usize] += (pair[1] - pair[0]) * share;
            }
        }
    }
    appearance.iter().map(|value| value / live).collect()
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) -> bool {
    found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance)
}

proptest! {
    #[test]
    fn agrees_with_the_enumeration_of_lists_and_arrivals(
        weights in prop::collection::vec(0.0..1.0f64, 1..7),
        failure in prop::collection::vec(prop_oneof![
            Just(0.0), Just(1.0), 0.0..1.0f64, 0.999..1.0f64
        ], 7),
        selected in 1u64..9,
    ) {
        let clients = weights.len();
        let total: f64 = weights.iter().sum();
        prop_assume!(total > 0.01);
        let selection: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let failure = &failure[..clients];
        let dead: f64 = (0..clients).filter(|&i| failure[i] < 1.0).map(|i| selection[i]).sum();
        prop_assume!(dead > 1e-6);
        let order: Vec<u32> = (0..clients as u32).rev().collect();
        for uploads in UPLOADS {
            let model = Systematic { failure, selected, order: &order, uploads, groups: None };
            let found = model.checked(&selection).unwrap();
            let expected = by_lists(&model, &selection);
            prop_assert!(close(&found, &expected, 1e-11), "{:?}\n{:?}", found, expected);
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn clients_that_fail_together_are_as_by_enumeration(
        weights in prop::collection::vec(0.0..1.0f64, 1..7),
        own in prop::collection::vec(prop_oneof![
            Just(0.0), Just(1.0), 0.0..1.0f64, 0.999..1.0f64
        ], 7),
        of in prop::collection::vec(prop::option::of(0usize..3), 7),
        down in prop::collection::vec(prop_oneof![
            Just(0.0), Just(1.0), 0.0..1.0f64, 0.999..1.0f64
        ], 3),
        selected in 1u64..9,
    ) {
        let clients = weights.len();
        let total: f64 = weights.iter().sum();
        prop_assume!(total > 0.01);
        let selection: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let groups = Groups::new(down, of[..clients].to_vec()).unwrap();
        let failure = groups.overall(&own[..clients]).unwrap();
        let live: f64 = (0..clients).filter(|&i| failure[i] < 1.0).map(|i| selection[i]).sum();
        prop_assume!(live > 1e-6);
        let order: Vec<u32> = (0..clients as u32).rev().collect();
        for uploads in UPLOADS {
            let groups = Some(&groups);
            let model = Systematic { failure: &failure, selected, order: &order, uploads, groups };
            let found = model.checked(&selection).unwrap();
            let expected = by_lists(&model, &selection);
            // Rounding of how often clients fail on their own, once to that for whatever reason and back.
            prop_assert!(close(&found, &expected, 1e-11), "{:?}\n{:?}", found, expected);
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn equal_failures_leave_the_selection_as_it_is(
        weights in prop::collection::vec(0.01..1.0f64, 2..40), selected in 1u64..400, failure in 0.0..0.99f64,
    ) {
        // One upload per draw: by symmetry among the draws of a list each has the share 1/K.
        let total: f64 = weights.iter().sum();
        let selection: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let failure = vec![failure; weights.len()];
        let order: Vec<u32> = (0..weights.len() as u32).collect();
        let model = Systematic { failure: &failure, selected, order: &order, uploads: Uploads::PerDraw, groups: None };
        prop_assert!(close(&model.checked(&selection).unwrap(), &selection, 1e-12));
    }

    #[test]
    fn appearances_sum_to_one(
        weights in prop::collection::vec(0.0..1.0f64, 30..200), selected in 1u64..3000, seed in 0u32..1000,
    ) {
        let total: f64 = weights.iter().sum();
        let selection: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let failure = oracle::failures(weights.len(), seed);
        let order: Vec<u32> = (0..weights.len() as u32).collect();
        for uploads in UPLOADS {
            let model = Systematic { failure: &failure, selected, order: &order, uploads, groups: None };
            let sum: f64 = model.checked(&selection).unwrap().iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-11, "{sum}");
        }
    }
}

#[test]
fn agrees_with_simulation() {
    let failure = oracle::failures(20, 1);
    let selection = oracle::selection(20, 2);
    let order: Vec<u32> = (0..20).map(|i| (i * 7) % 20).collect();
    for uploads in UPLOADS {
        let model =
            Systematic { failure: &failure, selected: 10, order: &order, uploads, groups: None };
        let exact = model.checked(&selection).unwrap();
        oracle::simulate(&exact, &failure, uploads, |rng| {
            crate::draw::systematic(&selection, &order, 10, rng).unwrap()
        });
    }
}

#[test]
fn tiny_selections_keep_their_relative_precision() {
    // Client 1 in the middle of the order is alone at its border: share of its one list times K·s.
    let tiny = 1e-11;
    let selection = [0.3, tiny, 0.7 - tiny];
    let failure = [0.9, 0.5, 0.2];
    let order = [0, 1, 2];
    let model = Systematic {
        failure: &failure,
        selected: 2,
        order: &order,
        uploads: Uploads::PerDraw,
        groups: None,
    };
    let found = model.checked(&selection).unwrap()[1];
    let shares = oracle::shares(&[(1, 1), (2, 1)], &failure, Uploads::PerDraw).unwrap();
    // The place of the client, not its share, is what rounding of the cumulative selection blurs.
    assert!((found / (2.0 * tiny * shares[0].1) - 1.0).abs() < 1e-4);
    let mut sums = [0.0; 3];
    model.appearance(&[0.5, 0.0, 0.5], &mut sums).unwrap();
    assert_eq!(sums[1], 0.0);
}

#[test]
fn many_draws_of_few_clients_approach_the_limit() {
    // One upload per draw: β̄ → s (1 − ε) / Σ s (1 − ε) with an error of the order 1/K.
    let (selection, failure) = ([0.2, 0.3, 0.5], [0.5, 0.9, 0.1]);
    let model = Systematic {
        failure: &failure,
        selected: 1_000_000_000,
        order: &[0, 1, 2],
        uploads: Uploads::PerDraw,
        groups: None,
    };
    let found = model.checked(&selection).unwrap();
    let total = 0.2 * 0.5 + 0.3 * 0.1 + 0.5 * 0.9;
    assert!(close(&found, &[0.1 / total, 0.03 / total, 0.45 / total], 1e-8), "{found:?}");
}

#[test]
fn derivatives_agree_with_differences() {
    let failure = oracle::failures(9, 4);
    let order: Vec<u32> = (0..9).map(|i| (i * 4) % 9).collect();
    let groups = Groups::new([0.1, 0.2], (0..9).map(|client| [None, Some(0), Some(1)][client % 3]));
    let groups = groups.unwrap();
    let overall = groups.overall(&failure).unwrap();
    for (selected, uploads, groups) in [
        (3, UPLOADS[0], None),
        (14, UPLOADS[1], None),
        (3, UPLOADS[0], Some(&groups)),
        (14, UPLOADS[1], Some(&groups)),
    ] {
        let selection = oracle::selection(9, 5);
        let failure = if groups.is_some() { &overall } else { &failure };
        let model = Systematic { failure, selected, order: &order, uploads, groups };
        let columns = model.jacobian(&selection).unwrap();
        for (slot, column) in columns.iter().enumerate() {
            // The map is linear in between, so even large steps are exact while no passages meet.
            let step = 1e-6;
            let moved = |step: f64| {
                let mut moved = selection.clone();
                moved[order[slot] as usize] += step;
                moved[order[slot + 1] as usize] -= step;
                model.checked(&moved).unwrap()
            };
            let (up, down) = (moved(step), moved(-step));
            for (slot, derivative) in column.iter().enumerate() {
                let client = order[slot] as usize;
                let difference = (up[client] - down[client]) / (2.0 * step);
                assert!((difference - derivative).abs() < 1e-8, "{difference} {derivative}");
            }
        }
    }
}

#[test]
fn wrong_requests_are_refused() {
    let model = |failure, order| Systematic {
        failure,
        selected: 3,
        order,
        uploads: Uploads::PerDraw,
        groups: None,
    };
    assert_eq!(model(&[1.0, 1.0], &[0, 1]).checked(&[0.5, 0.5]), Err(Error::NobodyArrives));
    assert!(model(&[0.5, 2.0], &[0, 1]).checked(&[0.5, 0.5]).is_err());
    assert!(model(&[0.5, 0.5], &[1, 1]).checked(&[0.5, 0.5]).is_err());
    assert!(model(&[0.5], &[0, 1]).checked(&[0.5, 0.5]).is_err());
}
