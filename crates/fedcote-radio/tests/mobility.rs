//! Where clients stand and walk.

use fedcote_radio::{Mobility, Network, NetworkConfig, Place, Point};

const CLIENTS: usize = 200;

fn network(mobility: Mobility) -> Network {
    let config = NetworkConfig { mobility, pause_seconds: 7.5, ..Default::default() };
    Network::new(&config, CLIENTS, 23_860, 5, ".".as_ref()).unwrap()
}

fn point(place: &Place) -> Point {
    Point { x: place.x, y: place.y }
}

fn in_building(point: Point) -> bool {
    (20.0..=40.0).contains(&point.x) && (-10.0..=10.0).contains(&point.y)
}

#[test]
fn everybody_stands_in_the_right_area() {
    let network = network(Mobility::None);
    assert!(!network.moves());
    let places = network.positions(0);
    for place in &places {
        assert_eq!(place.indoor, place.client < 80);
        assert_eq!(in_building(point(place)), place.indoor, "{place:?}");
        assert!(place.x.hypot(place.y) <= 200.0, "{place:?}");
    }
    assert_eq!(places, network.positions(4711));
    assert!((0..CLIENTS).all(|client| network.layout().unwrap().route(9, client).is_empty()));
}

/// Kolmogorov and Smirnov's distance of a sample from the uniform distribution on [0, 1].
fn distance_from_uniform(mut sample: Vec<f64>) -> f64 {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    let gap = |(index, value): (usize, &f64)| (value - (index as f64 + 0.5) / count).abs();
    sample.iter().enumerate().map(gap).fold(0.0, f64::max) + 0.5 / count
}

#[test]
fn placement_is_uniform() {
    let network = Network::new(&NetworkConfig::default(), 50_000, 23_860, 1, ".".as_ref()).unwrap();
    let places = network.positions(0);
    let sample = |indoor: bool, value: fn(&Place) -> f64| {
        places.iter().filter(|place| place.indoor == indoor).map(value).collect::<Vec<_>>()
    };
    for sample in [
        sample(true, |place| (place.x - 20.0) / 20.0),
        sample(true, |place| (place.y + 10.0) / 20.0),
        // Half-planes away from the building: outdoors is the whole disc there.
        sample(false, |place| if place.x < 0.0 { place.x.hypot(place.y) / 200.0 } else { -1.0 })
            .into_iter()
            .filter(|share| *share >= 0.0)
            .map(|share| share * share)
            .collect(),
        sample(false, |place| place.y.atan2(-place.x) / std::f64::consts::PI + 0.5)
            .into_iter()
            .filter(|share| (0.0..1.0).contains(share))
            .collect(),
    ] {
        // The 99.9 % point of Kolmogorov's distribution.
        let limit = 1.95 / (sample.len() as f64).sqrt();
        assert!(sample.len() > 10_000);
        assert!(distance_from_uniform(sample) < limit);
    }
}

#[test]
fn half_of_the_clients_move_from_where_they_stood() {
    let still = network(Mobility::None);
    let standing = still.positions(0);
    for mobility in [Mobility::Walk, Mobility::Waypoint] {
        let network = network(mobility);
        assert!(network.moves());
        assert_eq!(network.positions(0), standing);
        let later = network.positions(3);
        let moved: Vec<usize> =
            (0..CLIENTS).filter(|&client| later[client] != standing[client]).collect();
        assert_eq!(moved.len(), CLIENTS / 2);
        assert!(moved.iter().all(|&client| !network.layout().unwrap().route(3, client).is_empty()));
        // Drawn, not a pattern of indices: of each parity and each quarter some move and some stand.
        for residue in 0..4 {
            let share = moved.iter().filter(|&&client| client % 4 == residue).count();
            assert!((10..=40).contains(&share), "{share}");
        }
    }
}

#[test]
fn walkers_go_between_building_and_edge() {
    let network = network(Mobility::Walk);
    let mut walkers = 0;
    for start in network.positions(0) {
        let route = network.layout().unwrap().route(0, start.client);
        let [from, first, second] = route[..] else { continue };
        assert_eq!(from, point(&start));
        let on_edge = |corner: Point| (corner.x.hypot(corner.y) - 200.0).abs() < 1e-9;
        if start.indoor {
            assert!(on_edge(first) && second == from);
        } else {
            assert!(in_building(first) && on_edge(second));
        }
        walkers += 1;
    }
    assert_eq!(walkers, CLIENTS / 2);
}

/// Walks a route one round at a time: what is left of a round's way after a corner is walked on the next leg.
fn step_by_step(corners: &[Point], pause: f64, rounds: usize) -> Vec<Point> {
    let (mut here, mut next, mut rest) = (corners[0], 1, 0.0);
    let mut seen = vec![here];
    for _ in 0..rounds {
        let mut time: f64 = 1.0;
        while time > 0.0 {
            if rest > 0.0 {
                let spent = f64::min(rest, time);
                rest -= spent;
                time -= spent;
                continue;
            }
            let left = here.distance(corners[next]);
            if left <= 1.5 * time {
                time -= left / 1.5;
                here = corners[next];
                next += 1;
                rest = pause;
            } else {
                let share = 1.5 * time / left;
                here.x += share * (corners[next].x - here.x);
                here.y += share * (corners[next].y - here.y);
                time = 0.0;
            }
        }
        seen.push(here);
    }
    seen
}

#[test]
fn a_round_asked_directly_is_the_round_reached_step_by_step() {
    const ROUNDS: usize = 900;
    for (mobility, pause) in [(Mobility::Walk, 0.0), (Mobility::Waypoint, 7.5)] {
        let network = network(mobility);
        // Backwards, so that nothing can come from an earlier answer.
        let direct: Vec<Vec<Place>> =
            (0..=ROUNDS).rev().map(|round| network.positions(round as u32)).collect();
        let mut turns = 0;
        for client in (0..CLIENTS).rev() {
            let mut corners = network.layout().unwrap().route(ROUNDS as u32, client);
            if corners.is_empty() {
                continue;
            }
            if mobility == Mobility::Walk {
                let (first, second) = (corners[1], corners[2]);
                corners.extend((0..80).map(|leg| if leg % 2 == 0 { first } else { second }));
            }
            let stepped = step_by_step(&corners, pause, ROUNDS);
            for (round, expected) in stepped.iter().enumerate() {
                let place = &direct[ROUNDS - round][client];
                assert!(
                    point(place).distance(*expected) < 1e-6,
                    "round {round}: {place:?} {expected:?}"
                );
                assert_eq!(place.indoor, in_building(point(place)));
                assert!(place.x.hypot(place.y) <= 200.0 + 1e-9);
            }
            for step in stepped.windows(2) {
                let way = step[0].distance(step[1]);
                assert!(way <= 1.5 + 1e-9);
                turns += usize::from(way < 1.5 - 1e-9);
            }
        }
        assert!(turns > 100, "{turns}");
    }
}

#[test]
fn failures_are_the_same_on_any_number_of_threads() {
    for (mobility, rayleigh) in [(Mobility::Walk, false), (Mobility::Waypoint, true)] {
        let config = NetworkConfig { mobility, rayleigh, ..Default::default() };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let network = Network::new(&config, 20_000, 23_860, 3, ".".as_ref()).unwrap();
                let mut failures = vec![7.0; 3];
                network.failures(250, &mut failures);
                let places = network.positions(250);
                assert!(
                    places.iter().zip(&failures).all(|(place, failure)| place.failure == *failure)
                );
                failures.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            })
        };
        let one = on(1);
        assert_eq!(one.len(), 20_000);
        assert_eq!(one, on(2));
        assert_eq!(one, on(5));
    }
}

/// `placement` is the seed of places and ways alone: the same places for every seed of a run, and those that a run of that seed
/// has by itself; whether an upload arrives goes by the run's key.
#[test]
fn a_placement_has_its_own_seed() {
    for mobility in [Mobility::None, Mobility::Walk, Mobility::Waypoint] {
        let places = |placement: Option<u64>, seed: u64, round: u32| {
            let config = NetworkConfig { mobility, placement, ..Default::default() };
            let network = Network::new(&config, CLIENTS, 23_860, seed, ".".as_ref()).unwrap();
            let places: Vec<Point> = network.positions(round).iter().map(point).collect();
            let routes: Vec<Vec<Point>> =
                (0..CLIENTS).map(|client| network.layout().unwrap().route(round, client)).collect();
            (places, routes)
        };
        for round in [0, 300] {
            assert_eq!(places(Some(5), 1, round), places(None, 5, round));
            assert_eq!(places(Some(5), 1, round), places(Some(5), 2, round));
            assert_ne!(places(Some(5), 1, round), places(None, 1, round));
        }
    }
}

/// A walk by waypoints used to be followed leg by leg from its beginning: one question for the last round that a number
/// can name kept the live page busy for minutes.
#[test]
fn any_round_of_a_walk_is_found_at_once() {
    let network = network(Mobility::Waypoint);
    for round in [u32::MAX, u32::MAX - 1, 1 << 31] {
        let places = network.positions(round);
        assert!(places.iter().all(|place| place.x.hypot(place.y) <= 200.0 + 1e-9));
        assert_eq!(places, network.positions(round));
        let route = network.layout().unwrap().route(round, CLIENTS - 1);
        assert!(route.len() < 20_000, "{}", route.len());
    }
}

/// A building of 1e-200 m had walks without end.
#[test]
fn walks_in_the_smallest_building_end() {
    let config = |width| NetworkConfig {
        mobility: Mobility::Waypoint,
        building_width_m: width,
        building_depth_m: width,
        indoor_share: 1.0,
        speed_m_per_s: 300.0,
        ..Default::default()
    };
    let refused = Network::new(&config(1e-200), 3, 23_860, 5, ".".as_ref()).unwrap_err();
    assert!(refused.to_string().contains("building_width_m"), "{refused}");
    let network = Network::new(&config(1e-3), 20, 23_860, 5, ".".as_ref()).unwrap();
    for round in [1, 500, u32::MAX] {
        assert!(network.positions(round).iter().all(|place| place.indoor));
    }
}

/// Who walks for long is as likely here or there as before its walk began anew.
#[test]
fn walks_that_begin_anew_are_distributed_as_before() {
    let config =
        NetworkConfig { mobility: Mobility::Waypoint, moving_share: 1.0, ..Default::default() };
    let clients = 3000;
    let network = Network::new(&config, clients, 23_860, 5, ".".as_ref()).unwrap();
    let at = |round| {
        let places = network.positions(round);
        let mean =
            |value: &dyn Fn(&Place) -> f64| places.iter().map(value).sum::<f64>() / clients as f64;
        [
            mean(&|place| f64::from(place.indoor)),
            mean(&|place| place.x.hypot(place.y) / 200.0),
            mean(&|place| place.y / 200.0),
        ]
    };
    let before = at(20_000);
    for round in [70_000_001, 4_000_000_007] {
        for (one, two) in before.into_iter().zip(at(round)) {
            // Deviations are at most 0.5, hence standard errors of a difference below 0.013.
            assert!((one - two).abs() < 5.0 * 0.013, "{round}: {one} {two}");
        }
    }
}
