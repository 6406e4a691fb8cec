//! Positions, margins and failures against `oracle.py`, which shares no code with the crate.

use fedcote_radio::{Network, NetworkConfig, Place};

/// The rows of a table that the oracle wrote.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

fn task(name: &str) -> (usize, f64) {
    match name {
        "mnist" => (23_860, 0.1),
        _ => (269_722, 1.0),
    }
}

fn close(ours: f64, oracle: f64) -> bool {
    (ours - oracle).abs() <= 1e-9
}

/// Columns from `x` on: x, y, indoor, distance, sigma, margin, failure.
fn compare(place: &Place, columns: &[&str]) {
    let failure = number(columns[6]);
    assert!(close(place.x, number(columns[0])) && close(place.y, number(columns[1])), "{place:?}");
    assert_eq!(place.indoor, columns[2] == "1", "{place:?}");
    assert!(close(place.distance, number(columns[3])), "{place:?}");
    assert!(close(place.margin_db, number(columns[5])), "{place:?}");
    assert!(close(place.failure, failure), "{place:?}: {failure}");
    // Small failures too: to nine digits, not just to 1e-9.
    assert!(failure < 1e-300 || close(place.failure / failure, 1.0), "{place:?}: {failure}");
}

#[test]
fn every_client_of_the_paper_stands_and_fails_as_computed_elsewhere() {
    let mut compared = 0;
    let rows = rows(include_str!("paper.csv"));
    for clients in rows.chunks(20) {
        let [seed, excess, name] = clients[0][..3] else { panic!("columns") };
        let (parameters, deadline_seconds) = task(name);
        let config = NetworkConfig {
            deadline_seconds,
            outdoor_excess_loss_db: number(excess),
            ..Default::default()
        };
        let network =
            Network::new(&config, 20, parameters, seed.parse().unwrap(), ".".as_ref()).unwrap();
        assert_eq!(network.rate_bps(), if name == "mnist" { 7_635_200.0 } else { 8_631_104.0 });
        let mut failures = Vec::new();
        network.failures(0, &mut failures);
        for (place, row) in network.positions(0).iter().zip(clients) {
            assert_eq!(place.client.to_string(), row[3]);
            assert_eq!(place.standard, row[4]);
            compare(place, &row[5..]);
            assert_eq!(failures[place.client], place.failure);
            compared += 1;
        }
    }
    assert_eq!(compared, 240);
}

#[test]
fn every_standard_side_range_and_task_fails_as_computed_elsewhere() {
    let rows = rows(include_str!("grid.csv"));
    for group in rows.chunks(16) {
        let (parameters, deadline_seconds) = task(group[0][0]);
        let config = NetworkConfig {
            deadline_seconds,
            outdoor_excess_loss_db: 5.0,
            cell_radius_m: 1000.0,
            building_width_m: 400.0,
            building_depth_m: 40.0,
            separation_m: 250.0,
            standard_order: group.iter().map(|row| row[1].to_string()).collect(),
            positions: Some(group.iter().map(|row| [number(row[2]), number(row[3])]).collect()),
            ..Default::default()
        };
        let network = Network::new(&config, 16, parameters, 1, ".".as_ref()).unwrap();
        let places = network.positions(0);
        assert_eq!(places.len(), group.len());
        for (place, row) in places.iter().zip(group) {
            assert_eq!(place.standard, row[1]);
            compare(place, &row[2..]);
        }
        // The table has all that it promises.
        for standard in ["wifi24", "wifi5", "4g", "5g"] {
            for (indoor, far) in [(true, true), (true, false), (false, true), (false, false)] {
                let found = |place: &&Place| {
                    place.standard == standard
                        && place.indoor == indoor
                        && (place.distance > 100.0) == far
                };
                assert_eq!(places.iter().filter(found).count(), 1, "{standard} {indoor} {far}");
            }
        }
    }
}
