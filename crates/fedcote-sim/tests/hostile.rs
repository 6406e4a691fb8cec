//! Clients that upload something else than what they learnt.

use std::sync::Arc;

use fedcote_sim::scheme::{NAMED, Named};
use fedcote_sim::{Classification, Engine, Error, Outcome, RoundReport, Scenario, World};

/// Six clients, everyone drawn with the same probability; more tables follow.
fn text(extra: &str) -> String {
    format!(
        r#"
clients = 6
selected = 4
[data]
set = "synthetic"
samples = 600
features = 4
classes = 3
partition = "dirichlet"
[model]
kind = "softmax"
[training]
local_steps = 3
batch = 20
rate = 0.2
[network]
kind = "fixed"
failure = [0.1, 0.5, 0.4, 0.3, 0.6, 0.0]
{extra}"#
    )
}

fn engine(text: &str, scheme: &str) -> Engine {
    let scenario = Scenario::parse("test", text, &[], ".".as_ref()).unwrap();
    let task = Arc::new(Classification::load(&scenario, 1).unwrap());
    let scheme = scenario.schemes.resolve(scheme).unwrap();
    Engine::new(Arc::new(World::new(Arc::new(scenario), task, 1).unwrap()), scheme).unwrap()
}

fn play(engine: &mut Engine, round: u32) -> RoundReport {
    match engine.step(round).unwrap() {
        Outcome::Done(report) => report,
        Outcome::Diverged => panic!("diverged in round {round}"),
    }
}

fn norm(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn what_is_no_number_never_reaches_the_model_of_any_scheme() {
    for kind in ["nan", "infinite"] {
        for Named { name, .. } in NAMED {
            let hostile = format!("[hostile]\nclients = [1, 6]\nkind = \"{kind}\"\n");
            let mut engine = engine(&text(&hostile), name);
            let mut asked = false;
            for round in 1..=15 {
                let report = play(&mut engine, round);
                asked |= report.selected.iter().any(|(client, _)| [0, 5].contains(client));
                assert!(report.arrived.iter().all(|(client, _)| ![0, 5].contains(client)));
                assert!(engine.global().iter().all(|x| x.is_finite()), "{name} {round}");
            }
            assert!(asked, "{name} never drew a hostile client: the test says nothing");
        }
    }
}

/// With one client a round the aggregate is its update, so the clip is seen as it is.
#[test]
fn an_update_longer_than_the_bound_is_scaled_to_it_and_a_shorter_one_is_left_alone() {
    let one = |extra: &str| {
        let text = text(extra).replace("selected = 4", "selected = 1");
        let mut engine = engine(&text, "fedavg");
        let before = engine.global().to_vec();
        play(&mut engine, 1);
        (before, engine.global().to_vec())
    };
    let (before, free) = one("");
    let length = norm(&free, &before);
    assert!(length > 0.01, "{length}");
    let (_, clipped) = one(&format!("[server]\nclip = {}\n", length / 4.0));
    assert!((norm(&clipped, &before) / (length / 4.0) - 1.0).abs() < 1e-5);
    for ((clipped, free), before) in clipped.iter().zip(&free).zip(&before) {
        assert!((clipped - before - (free - before) / 4.0).abs() < 1e-6, "the direction changed");
    }
    assert_eq!(one(&format!("[server]\nclip = {}\n", length * 1.001)).1, free);
    let everyone = "[hostile]\nclients = [1, 2, 3, 4, 5, 6]\nkind = \"scaled\"\nfactor = -3.0\n";
    let (_, reversed) = one(everyone);
    assert!((norm(&reversed, &before) / (3.0 * length) - 1.0).abs() < 1e-5);
    let hostile = format!("{everyone}[server]\nclip = {length}\n");
    for ((reversed, free), before) in one(&hostile).1.iter().zip(&free).zip(&before) {
        assert!((reversed - before + (free - before)).abs() < 1e-5);
    }
}

#[test]
fn a_bound_saves_a_run_that_huge_updates_destroy() {
    let hostile = "[hostile]\nclients = [6]\nkind = \"scaled\"\nfactor = 1e30\n";
    let last = |extra: &str| {
        let mut engine = engine(&text(extra), "fedavg");
        for round in 1..=40 {
            if let Outcome::Diverged = engine.step(round).unwrap() {
                return None;
            }
        }
        let mut report = RoundReport::default();
        engine.evaluate(&mut report, false).unwrap();
        report.test_loss
    };
    let honest = last("").unwrap();
    assert!(last(hostile).is_none_or(|loss| loss > 1e6), "the attack does nothing");
    let saved = last(&format!("{hostile}[server]\nclip = 0.2\n")).unwrap();
    assert!(saved < honest + 0.2, "{saved} and {honest} without hostile clients");
}

#[test]
fn only_hostile_clients_drawn_is_no_divergence_and_all_hostile_is_an_error() {
    let five = "[hostile]\nclients = [1, 2, 3, 4, 5]\nkind = \"nan\"\n";
    for scheme in ["fedavg", "mifa", "tf-aggregation"] {
        let mut engine = engine(&text(five).replace("selected = 4", "selected = 1"), scheme);
        for round in 1..=10 {
            let report = play(&mut engine, round);
            assert!(report.arrived.iter().all(|(client, _)| *client == 5), "{scheme}");
        }
    }
    let all = "[hostile]\nshare = 1.0\n";
    assert!(matches!(engine(&text(all), "fedavg").step(1), Err(Error::NothingArrives { .. })));
}

#[test]
fn a_run_with_hostile_clients_and_a_bound_goes_on_from_what_was_saved() {
    let extra = "knowledge = \"estimated\"\n[hostile]\nshare = 0.4\nkind = \"scaled\"\nfactor = -50.0\n\
                 [server]\nclip = 0.1\n";
    for Named { name, .. } in NAMED {
        let mut whole = engine(&text(extra), name);
        (1..=10).for_each(|round| drop(play(&mut whole, round)));
        let mut first = engine(&text(extra), name);
        (1..=4).for_each(|round| drop(play(&mut first, round)));
        let mut second = engine(&text(extra), name);
        second.restore(&mut first.save()).unwrap();
        (5..=10).for_each(|round| drop(play(&mut second, round)));
        assert_eq!(second.save(), whole.save(), "{name}");
    }
}

#[test]
fn a_share_is_drawn_once_a_seed_and_rounds_to_the_nearest() {
    let scenario =
        Scenario::parse("t", &text("[hostile]\nshare = 0.4\n"), &[], ".".as_ref()).unwrap();
    let scenario = Arc::new(scenario);
    let hostile = |seed: u64| {
        let task = Arc::new(Classification::load(&scenario, seed).unwrap());
        let world = World::new(Arc::clone(&scenario), task, seed).unwrap();
        (0..6).filter(|&client| world.attack(client).is_some()).collect::<Vec<u32>>()
    };
    assert_eq!(hostile(1), hostile(1));
    let drawn: std::collections::HashSet<Vec<u32>> = (0..20).map(hostile).collect();
    assert!(drawn.len() > 5 && drawn.iter().all(|clients| clients.len() == 2), "{drawn:?}");
}

#[test]
fn wrong_keys_are_refused_where_they_stand() {
    let refusal = |extra: &str| {
        let error = Scenario::parse("mine.toml", extra, &[], ".".as_ref()).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        refusal("[server]\nclip = 0\n"),
        "mine.toml:2: server.clip: must be a positive number"
    );
    assert_eq!(
        refusal("[server]\nclipp = 1.0\n"),
        "mine.toml:2: unknown key `server.clipp`; did you mean `clip`?"
    );
    assert_eq!(
        refusal("clients = 20\n[hostile]\nclients = [3, 21]\n"),
        "mine.toml:3: hostile.clients: no client 21; they are 1 to 20"
    );
    // They were counted from 0 here, and from 1 on the page and in groups.
    assert_eq!(
        refusal("clients = 20\n[hostile]\nclients = [0]\n"),
        "mine.toml:3: hostile.clients: no client 0; they are 1 to 20"
    );
    assert_eq!(
        refusal("[hostile]\nshare = 1.5\n"),
        "mine.toml:2: hostile.share: must be from 0 to 1"
    );
    assert_eq!(
        refusal("[hostile]\nclients = [1]\nshare = 0.5\n"),
        "mine.toml:3: hostile.share: give either `share` or `clients`, not both"
    );
    assert_eq!(
        refusal("[hostile]\nfactor = 1e300\n"),
        "mine.toml:2: hostile.factor: must be a finite number"
    );
    assert!(refusal("[hostile]\nkind = \"nam\"\n").ends_with("did you mean `nan`?"));
    assert!(refusal("hostile = 3\n").contains("must be a table: write [hostile]"));
    let text = "[server]\nclip = 2.5\n[hostile]\nshare = 0.25\nkind = \"infinite\"\n";
    let scenario = Scenario::parse("t", text, &[], ".".as_ref()).unwrap();
    let again = Scenario::parse("t", &scenario.to_toml(), &[], ".".as_ref()).unwrap();
    assert_eq!(again, scenario);
    // All tables are printed, with their defaults.
    let plain = Scenario::parse("t", "", &[], ".".as_ref()).unwrap().to_toml();
    assert!(
        plain.contains("[hostile]\n") && plain.contains("[server]\nexploration = 0.0"),
        "{plain}"
    );
}
