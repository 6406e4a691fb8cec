use super::*;
use crate::{Aim, Uploads};

const LABELS: [[f64; 3]; 4] =
    [[50.0, 0.0, 10.0], [0.0, 40.0, 0.0], [20.0, 20.0, 20.0], [0.0, 5.0, 90.0]];
const ALL: [u32; 4] = [0, 1, 2, 3];

fn selector(seed: u64, options: Options) -> Selector {
    let mut selector = Selector::new(seed, EstimatorKind::default(), options).unwrap();
    for labels in LABELS {
        let client = selector.join();
        selector.set_labels(client, &labels).unwrap();
    }
    selector
}

fn with_failures(options: Options, failure: [f64; 4]) -> Selector {
    let mut selector = selector(1, options);
    for (client, failure) in ALL.into_iter().zip(failure) {
        selector.set_failure(client, Some(failure)).unwrap();
    }
    selector
}

/// Rounds in which client 3 never arrives and client 1 every other time; returns what was drawn.
fn play(selector: &mut Selector, rounds: u32) -> Vec<Vec<(u32, u32)>> {
    (0..rounds)
        .map(|round| {
            let drawn = selector.select(&ALL, 6).unwrap();
            for &(client, _) in &drawn {
                let arrived = client != 3 && (client != 1 || round % 2 == 0);
                selector.observe(client, arrived).unwrap();
            }
            drawn
        })
        .collect()
}

#[test]
fn it_learns_who_fails() {
    let mut selector = selector(1, Options::new());
    for drawn in play(&mut selector, 60) {
        assert_eq!(drawn.iter().map(|&(_, count)| count).sum::<u32>(), 6);
    }
    assert_eq!(selector.round(), 60);
    let failure = ALL.map(|client| selector.failure(client).unwrap());
    assert!(failure[0] < 0.3 && failure[2] < 0.1 && failure[3] > 0.8, "{failure:?}");
    assert!((failure[1] - 0.5).abs() < 0.2, "{failure:?}");
}

#[test]
fn probabilities_are_those_of_a_single_selection() {
    let failure = [0.1, 0.3, 0.6, 0.8];
    let options = [
        Options::new(),
        Options::new().with_uploads(Uploads::PerClient).with_exploration(0.1),
        Options::new().with_draws(Draws::Systematic).with_aim(Aim::Freshness),
    ];
    for options in options {
        let mut selector = with_failures(options, failure);
        // In another order, and without client 1.
        selector.select(&[3, 0, 2], 5).unwrap();
        let labels = [LABELS[3], LABELS[0], LABELS[2]];
        let federation = Federation::new(labels, [failure[3], failure[0], failure[2]]).unwrap();
        let latest = selector.latest().unwrap();
        assert_eq!(latest.federation, federation);
        assert_eq!(latest.solution, crate::select(&federation, 5, &options).unwrap());
    }
}

#[test]
fn who_has_not_told_its_labels_has_the_mean_of_the_others() {
    let mut selector = Selector::new(1, EstimatorKind::default(), Options::new()).unwrap();
    selector.grow(3);
    selector.select(&[0, 1, 2], 4).unwrap(); // nobody has: all are alike
    assert_eq!(selector.latest().unwrap().federation.weights(), [1.0 / 3.0; 3]);
    selector.set_labels(0, &[30.0, 10.0]).unwrap();
    selector.set_labels(2, &[10.0, 30.0]).unwrap();
    selector.select(&[0, 1, 2], 4).unwrap();
    assert_eq!(selector.latest().unwrap().federation.labels(1), [0.5, 0.5]);
    assert_eq!(selector.latest().unwrap().federation.weights()[1], 1.0 / 3.0);
}

#[test]
fn nobody_within_the_threshold_leaves_nobody_out() {
    let options = Options::new().with_coverage(false);
    let mut selector = with_failures(options, [0.9, 0.95, 0.99, 0.92]);
    selector.select(&ALL, 5).unwrap();
    let Latest { federation, solution, .. } = selector.latest().unwrap();
    assert_eq!(solution.eligible, [true; 4]);
    assert_eq!(*solution, crate::select(federation, 5, &options.with_threshold(1.0)).unwrap());
    assert!(crate::select(federation, 5, &options).is_err());
}

#[test]
fn only_those_present_are_drawn_in_proportion() {
    let mut selector = with_failures(Options::new().with_aim(Aim::Freshness), [0.1; 4]);
    selector.select(&ALL, 40).unwrap();
    let everyone = selector.latest().unwrap().solution.clone();
    let present = [true, false, true, false];
    let drawn = selector.select_present(&ALL, &present, 40, false).unwrap();
    assert!(drawn.iter().all(|&(client, _)| present[client as usize]));
    let found = &selector.latest().unwrap().solution;
    assert_eq!(found.target, everyone.target);
    let ratio = everyone.selection[0] / everyone.selection[2];
    assert!((found.selection[0] / found.selection[2] - ratio).abs() < 1e-12);
    assert!((found.selection.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    assert!((found.expected_arrivals - 36.0).abs() < 1e-12);
    // Nobody who has a say is there: client 3 is above the threshold, so the draws go by weight.
    let mut selector = with_failures(Options::new(), [0.1, 0.1, 0.1, 0.99]);
    let present = [false, false, false, true];
    assert_eq!(selector.select_present(&ALL, &present, 4, false).unwrap(), [(3, 4)]);
    assert!(selector.select_present(&ALL, &[false; 4], 4, false).is_err());
}

#[test]
fn a_redraw_belongs_to_the_round() {
    let (mut one, mut other) = (selector(5, Options::new()), selector(5, Options::new()));
    assert_eq!(one.select(&ALL, 30).unwrap(), other.select(&ALL, 30).unwrap());
    let again = one.select_again(&ALL, 30).unwrap();
    assert_eq!(one.round(), 1);
    assert_ne!(again, one.select_again(&ALL, 30).unwrap());
    assert_eq!(one.select(&ALL, 30).unwrap(), other.select(&ALL, 30).unwrap());
    // Before the first round there is nothing to draw again.
    let mut fresh = selector(5, Options::new());
    fresh.select_again(&ALL, 30).unwrap();
    assert_eq!(fresh.round(), 1);
}

#[test]
fn a_selection_that_fails_changes_nothing() {
    let (mut selector, mut other) = (selector(1, Options::new()), selector(1, Options::new()));
    play(&mut selector, 5);
    play(&mut other, 5);
    ALL.into_iter().for_each(|client| selector.set_failure(client, Some(1.0)).unwrap());
    assert_eq!(selector.select(&ALL, 5), Err(Error::NobodyArrives));
    assert_eq!(selector.select(&ALL, 0), Err(Error::Selected(0)));
    ALL.into_iter().for_each(|client| selector.set_failure(client, None).unwrap());
    assert_eq!(selector.state, other.state);
    assert_eq!(play(&mut selector, 5), play(&mut other, 5));
}

#[test]
fn label_divergence_by_hand() {
    let mut selector = Selector::new(1, EstimatorKind::default(), Options::new()).unwrap();
    selector.grow(3);
    assert!(selector.label_divergence(&[(0, 1.0)]).is_err(), "nothing selected yet");
    selector.set_labels(0, &[10.0, 0.0]).unwrap();
    selector.set_labels(1, &[0.0, 10.0]).unwrap();
    selector.select(&[1, 0], 2).unwrap();
    // ¾ and ¼ against ½ and ½: 2 · (¼)² / ½ = ¼.
    let found = selector.label_divergence(&[(0, 3.0), (1, 1.0)]).unwrap();
    assert!((found - 0.25).abs() < 1e-15, "{found}");
    let absent = selector.label_divergence(&[(2, 1.0)]).unwrap_err().to_string();
    assert_eq!(
        absent,
        "client \"2\": weight is of a client that was not part of the latest selection"
    );
    assert!(selector.label_divergence(&[]).is_err());
}

#[test]
fn wrong_use_is_refused_in_one_line() {
    let mut selector = selector(1, Options::new());
    let refusals = [
        selector.select(&[], 3).map(drop),
        selector.select(&[7], 3).map(drop),
        selector.select(&[1, 1], 3).map(drop),
        selector.select_present(&ALL, &[true], 3, false).map(drop),
        selector.set_labels(0, &[]),
        selector.set_labels(0, &[1.0, 2.0]),
        selector.set_labels(2, &[1.0, -2.0, 3.0]),
        selector.set_labels(9, &[1.0, 2.0, 3.0]),
        selector.set_failure(2, Some(1.5)),
        selector.observe(4, true),
    ]
    .map(|refused| refused.unwrap_err().to_string());
    let expected = [
        "clients: there must be at least one client",
        "there is no client 7",
        "client \"1\": available is listed twice; list every client once",
        "present: expected 4 values, found 1",
        "labels: there must be at least one label class",
        "labels: expected 3 values, found 2",
        "client \"2\": labels [1] must be 0 or from 1e-9 to 2^53, is -2",
        "there is no client 9",
        "client \"2\": failure must be a probability from 0 to 1, is 1.5",
        "there is no client 4",
    ];
    assert_eq!(refusals, expected);
}

#[test]
fn warnings_name_clients_by_number() {
    // Label 2 is held by client 3 alone, above the threshold.
    let mut selector = with_failures(Options::new(), [0.1, 0.1, 0.9, 0.95]);
    selector.set_labels(0, &[50.0, 0.0, 0.0]).unwrap();
    selector.set_labels(2, &[20.0, 20.0, 0.0]).unwrap();
    selector.select(&[3, 0, 1], 5).unwrap();
    let warnings = &selector.latest().unwrap().solution.warnings;
    let named = |warning: &Warning| match warning {
        Warning::LabelRestored { clients, .. } => clients.clone(),
        _ => Vec::new(),
    };
    assert_eq!(warnings.iter().map(named).collect::<Vec<_>>(), [["3"]]);
}

#[cfg(feature = "serde")]
mod saved {
    use super::*;

    #[test]
    fn a_restored_selector_goes_on_as_if_nothing_had_happened() {
        for estimator in ["beta", "window", "exponential"] {
            let options = Options::new().with_draws(Draws::Systematic).with_aim(Aim::Freshness);
            let mut selector = Selector::new(3, estimator.parse().unwrap(), options).unwrap();
            for labels in LABELS {
                let client = selector.join();
                selector.set_labels(client, &labels).unwrap();
            }
            play(&mut selector, 60);
            selector.select_again(&ALL, 6).unwrap();
            let saved = serde_json::to_string(&selector).unwrap();
            let mut restored: Selector = serde_json::from_str(&saved).unwrap();
            let again = selector.select_again(&ALL, 6).unwrap();
            assert_eq!(restored.select_again(&ALL, 6).unwrap(), again);
            assert_eq!(play(&mut restored, 60), play(&mut selector, 60), "{estimator}");
            assert_eq!(restored.state, selector.state);
        }
    }

    #[test]
    fn damaged_states_are_refused() {
        for estimator in ["beta", "window", "exponential"] {
            let mut selector =
                Selector::new(3, estimator.parse().unwrap(), Options::new()).unwrap();
            selector.grow(4);
            selector.set_labels(0, &[1.0, 2.0]).unwrap();
            play(&mut selector, 3);
            let saved = serde_json::to_value(&selector).unwrap();
            let damages: [(&str, serde_json::Value); 8] = [
                ("/known", serde_json::json!([null])),
                ("/known/1", 1.5.into()),
                ("/classes", 3.into()),
                ("/classes", u64::MAX.into()),
                ("/counts/0", (-1.0).into()),
                ("/estimator/prior", 2.0.into()),
                ("/estimator/failed", serde_json::json!([0, 0])),
                ("/estimator/failure", serde_json::json!([0.5])),
            ];
            for (place, value) in damages {
                let mut damaged = saved.clone();
                let Some(entry) = damaged.pointer_mut(place) else { continue };
                *entry = value;
                let refused = serde_json::from_value::<Selector>(damaged);
                assert!(refused.is_err(), "{estimator}: {place}");
            }
        }
    }
}

#[test]
fn signals_are_heard_by_their_estimator_alone() {
    let mut selector = Selector::new(1, "signal".parse().unwrap(), Options::new()).unwrap();
    let client = selector.join();
    for margin in [12.0, 9.0, 15.0] {
        selector.observe_signal(client, margin).unwrap();
        selector.observe(client, true).unwrap();
    }
    assert!(selector.failure(client).unwrap() < 0.1);
    let refused = selector.observe_transmissions(client, 1, true).unwrap_err().to_string();
    assert_eq!(
        refused,
        "observe_transmissions: needs estimator \"retransmissions\", this one is \"signal\""
    );
    assert!(selector.observe_signal(client, f64::NAN).is_err());
    assert!(selector.observe_signal(7, 1.0).is_err());
    let mut beta = Selector::new(1, EstimatorKind::default(), Options::new()).unwrap();
    let client = beta.join();
    assert!(beta.observe_signal(client, 3.0).is_err());
}

/// Groups are those of a single selection for the clients that are there, numbered anew; taken back, nothing of them is left.
#[test]
fn clients_may_fail_together() {
    let failure = [0.4, 0.5, 0.6, 0.1];
    let mut selector = with_failures(Options::new(), failure);
    let alone = selector.select(&[3, 1, 0], 5).map(|_| selector.latest().unwrap().solution.clone());
    selector.set_groups([0.1, 0.25, 0.3]).unwrap();
    selector.set_group(0, Some(2)).unwrap();
    selector.set_group(1, Some(2)).unwrap();
    selector.set_group(2, Some(1)).unwrap();
    selector.select(&[3, 1, 0], 5).unwrap();
    let labels = [LABELS[3], LABELS[1], LABELS[0]];
    let federation = Federation::new(labels, [failure[3], failure[1], failure[0]]).unwrap();
    let groups = Groups::new([0.3], [None, Some(0), Some(0)]).unwrap();
    let federation = federation.with_groups(groups).unwrap();
    let latest = selector.latest().unwrap();
    assert_eq!(latest.federation, federation);
    assert_eq!(latest.solution, crate::select(&federation, 5, &Options::new()).unwrap());
    assert!(latest.solution.warnings.is_empty(), "{:?}", latest.solution.warnings);
    let together = latest.solution.clone();
    assert_ne!(together.selection, alone.as_ref().unwrap().selection);

    // Whatever is drawn and uploaded.
    for (draws, uploads) in [
        (Draws::Independent, Uploads::PerClient),
        (Draws::Systematic, Uploads::PerDraw),
        (Draws::Systematic, Uploads::PerClient),
    ] {
        let options = Options::new().with_draws(draws).with_uploads(uploads);
        let mut other = with_failures(options, failure);
        other.set_groups([0.3]).unwrap();
        other.set_group(0, Some(0)).unwrap();
        other.set_group(1, Some(0)).unwrap();
        other.select(&[3, 1, 0], 5).unwrap();
        let latest = other.latest().unwrap();
        assert_eq!(latest.solution, crate::select(&federation, 5, &options).unwrap());
        assert!(latest.solution.warnings.is_empty(), "{:?}", latest.solution.warnings);
        assert_ne!(latest.solution.selection, together.selection);
    }

    #[cfg(feature = "serde")]
    {
        let saved = serde_json::to_string(&selector).unwrap();
        let mut restored: Selector = serde_json::from_str(&saved).unwrap();
        restored.select(&[3, 1, 0], 5).unwrap();
        assert_eq!(restored.latest().unwrap().solution, together);
        let damaged = saved.replace("[0.1,0.25,0.3]", "[0.1,0.25]");
        assert_ne!(damaged, saved);
        let wrong = serde_json::from_str::<Selector>(&damaged).unwrap_err();
        assert!(wrong.to_string().contains("the groups are damaged"), "{wrong}");
    }

    let told = |result: Result<(), Error>| result.unwrap_err().to_string();
    let gone = told(selector.set_groups([0.1, 0.25]));
    assert!(gone.contains("client \"0\": group 2 is not there"), "{gone}");
    assert!(told(selector.set_groups([0.1, 0.25, 1.5])).contains("groups"));
    let unknown = told(selector.set_group(3, Some(7)));
    assert!(unknown.contains("client \"3\": group 7 is not there"), "{unknown}");
    selector.set_group(0, None).unwrap();
    selector.set_group(1, None).unwrap();
    selector.select(&[3, 1, 0], 5).unwrap();
    let alone = alone.unwrap();
    assert_eq!(selector.latest().unwrap().solution, alone);

    // Who gets the number of a client that was forgotten is in no group.
    selector.set_group(1, Some(0)).unwrap();
    selector.forget(1).unwrap();
    selector.set_labels(1, &LABELS[1]).unwrap();
    selector.set_failure(1, Some(failure[1])).unwrap();
    selector.select(&[3, 1, 0], 5).unwrap();
    assert_eq!(selector.latest().unwrap().solution, alone);
}
