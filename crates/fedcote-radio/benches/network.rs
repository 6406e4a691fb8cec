//! A million clients: how long it takes to place them, and to know where they are and how they fail in a round.
//! `cargo bench -p fedcote-radio --bench network`

use std::time::Instant;

use fedcote_radio::{Mobility, Network, NetworkConfig};

const CLIENTS: usize = 1_000_000;
const REPEATS: usize = 7;

/// The shortest of several times, in milliseconds.
fn best(mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..REPEATS).map(time).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!(
        "{CLIENTS} clients, {} threads, best of {REPEATS}, in ms",
        rayon::current_num_threads()
    );
    println!(
        "{:<28}{:>8}{:>10}{:>12}{:>26}",
        "network", "make", "failures", "positions", "positions and failures"
    );
    for (name, mobility, rayleigh, round) in [
        ("standing", Mobility::None, false, 0),
        ("walk, round 500", Mobility::Walk, false, 500),
        ("waypoint, round 500", Mobility::Waypoint, false, 500),
        ("standing, Rayleigh fading", Mobility::None, true, 0),
    ] {
        let config = NetworkConfig { mobility, rayleigh, ..Default::default() };
        let make = || {
            Network::new(&config, CLIENTS, 23_860, 1, ".".as_ref()).expect("a valid configuration")
        };
        let making = best(|| drop(make()));
        let network = make();
        let mut failures = Vec::new();
        let failing = best(|| network.failures(round, &mut failures));
        let placing = best(|| assert_eq!(network.positions(round).len(), CLIENTS));
        let both = best(|| {
            network.failures(round, &mut failures);
            assert_eq!(network.positions(round).len(), CLIENTS);
        });
        println!("{name:<28}{making:>8.0}{failing:>10.0}{placing:>12.0}{both:>26.0}");
    }
}
