//! Clients that fail together: the network does what the mathematics says.

use std::sync::Arc;

use fedcote::draw::Alias;
use fedcote::random::Purpose;
use fedcote_sim::{Classification, Scenario, World};

/// The paper's network with its access point and its base station as groups.
fn world() -> World {
    let overrides = [
        "data.set=synthetic",
        "data.samples=2000",
        "network.groups.ap={failure=0.2, station=\"access_point\"}",
        "network.groups.cell={failure=0.1, station=\"base_station\"}",
    ];
    let scenario = Scenario::load("paper-calibrated", &overrides.map(String::from)).unwrap();
    let task = Classification::load(&scenario, 1).unwrap();
    World::new(Arc::new(scenario), Arc::new(task), 1).unwrap()
}

#[test]
fn clients_of_a_group_share_its_fate() {
    let world = world();
    let groups = world.network.groups().unwrap();
    let members: Vec<usize> = (0..20).filter(|&client| groups.of(client) == Some(0)).collect();
    assert_eq!(members.len(), 10, "every other pair of clients is on Wi-Fi");
    let key = world.key(Purpose::Upload);
    let failures = &world.federation.failure();
    let sure: Vec<usize> = members.iter().copied().filter(|&c| failures[c] < 0.2 + 1e-6).collect();
    assert!(sure.len() >= 2, "some links hold");
    let mut down = 0;
    for round in 1..=2000 {
        let arrives = |&client: &usize| {
            world.network.arrives(1, client, key.round(round).client(client as u64))
        };
        let arrived: Vec<bool> = sure.iter().map(arrives).collect();
        assert!(arrived.iter().all(|&a| a == arrived[0]), "round {round}: {arrived:?}");
        down += usize::from(!arrived[0]);
    }
    // 400 with a deviation of √(2000 · 0.16) = 17.9.
    assert!((330..=470).contains(&down), "{down}");
}

#[test]
fn the_appearance_on_the_paper_s_network_is_that_of_its_uploads() {
    let world = world();
    let federation = &world.federation;
    let solution = fedcote::select(federation, 10, &fedcote::Options::new()).unwrap();
    assert!(solution.warnings.iter().all(|w| !w.to_string().contains("together")));
    let expected = fedcote::evaluate(federation, 10, &solution.selection).unwrap().appearance;
    assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let alias = Alias::new(&solution.selection).unwrap();
    let rounds = 40_000;
    let (mut sums, mut squares) = ([0.0; 20], [0.0; 20]);
    for round in 1..=rounds {
        let mut stream = world.key(Purpose::Selection).round(round).stream();
        let list = alias.draws(10, &mut stream).unwrap();
        let key = world.key(Purpose::Upload).round(round);
        let mut arrived: Vec<(usize, f64)> = Vec::new();
        let mut attempt = 0;
        while arrived.is_empty() {
            for &(client, copies) in &list {
                let key = key.client(client.into()).attempt(attempt);
                let through = (0..copies)
                    .filter(|&copy| world.network.arrives(1, client as usize, key.copy(copy)));
                arrived.push((client as usize, through.count() as f64));
            }
            arrived.retain(|(_, copies)| *copies > 0.0);
            attempt += 1;
        }
        let total: f64 = arrived.iter().map(|(_, copies)| copies).sum();
        for (client, copies) in arrived {
            sums[client] += copies / total;
            squares[client] += (copies / total).powi(2);
        }
    }
    let rounds = f64::from(rounds);
    for (client, &wanted) in expected.iter().enumerate() {
        let mean = sums[client] / rounds;
        let deviation = ((squares[client] / rounds - mean * mean) / rounds).sqrt();
        let errors = (mean - wanted) / deviation.max(1e-9);
        assert!(errors.abs() < 3.0, "client {}: {mean} for {wanted}", client + 1);
    }
}
