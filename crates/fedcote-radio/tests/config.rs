//! Descriptions of networks: what is read, what is refused and why.

use std::io::Write;

use fedcote::SettingError;
use fedcote_radio::{ComputeTime, Error, Kind, Network, NetworkConfig, PerClient};
use proptest::prelude::*;

fn read(text: &str) -> NetworkConfig {
    toml::from_str(text).unwrap()
}

fn refusal(text: &str) -> SettingError {
    read(text).check(4).unwrap_err()
}

#[test]
fn nothing_given_is_the_cell_of_the_paper() {
    assert_eq!(read(""), NetworkConfig::default());
    NetworkConfig::default().check(20).unwrap();
}

#[test]
fn what_is_written_reads_back() {
    let config = read(
        r#"
        kind = "radio"
        positions = [[0, 1], [2.5, -3], [30, 0], [30, 1]]
        device_failure = [0, 0.1, 0.2, 1]
        standard_order = ["mine", "4g"]
        stragglers = { compute = "log-normal", mean_seconds = 0.2 }
        stations.roof = { x_m = 30, y_m = 0, height_m = 12 }
        [standards.4g]
        power_dbm = 10
        [standards.mine]
        like = "5g"
        station = "roof"
        shadowing = [{ to_m = 50, sigma_db = 3 }, { from_m = 50, sigma_db = 6 }]
        "#,
    );
    config.check(4).unwrap();
    assert_eq!(config.stragglers.compute, ComputeTime::LogNormal);
    let text = toml::to_string(&config).unwrap();
    assert_eq!(read(&text), config, "{text}");
    assert_eq!(
        read(&toml::to_string(&NetworkConfig::default()).unwrap()),
        NetworkConfig::default()
    );
}

/// Such keys used to be accepted and ignored.
#[test]
fn keys_of_another_kind_are_refused() {
    for (text, key, reason) in [
        ("failure = 0.5", "failure", "it belongs to kind = \"fixed\""),
        ("file = \"trace.csv\"", "file", "it belongs to kind = \"trace\""),
        ("after_trace = \"hold\"", "after_trace", "it belongs to kind = \"trace\""),
        ("kind = \"fixed\"\nfailure = 0\nfile = \"a\"", "file", "it belongs to kind = \"trace\""),
        (
            "kind = \"trace\"\nfile = \"a\"\nfailure = 0",
            "failure",
            "it belongs to kind = \"fixed\"",
        ),
        (
            "kind = \"perfect\"\ncell_radius_m = 100",
            "cell_radius_m",
            "it belongs to kind = \"radio\"",
        ),
        ("kind = \"perfect\"\nmobility = \"walk\"", "mobility", "it belongs to kind = \"radio\""),
        (
            "kind = \"fixed\"\nfailure = 0\nstandards.4g.power_dbm = 1",
            "standards",
            "it belongs to kind = \"radio\"",
        ),
        (
            "kind = \"perfect\"\ndevice_failure = 0.1",
            "device_failure",
            "with kind = \"perfect\" every upload arrives",
        ),
        (
            "kind = \"perfect\"\nstragglers.compute = \"exponential\"",
            "stragglers",
            "with kind = \"perfect\" every upload arrives",
        ),
    ] {
        let expected =
            SettingError::new(format!("network.{key}"), format!("has no effect here: {reason}"));
        assert_eq!(refusal(text), expected, "{text}");
    }
}

/// What the program writes has all keys at their defaults, those of other kinds too.
#[test]
fn defaults_of_other_kinds_are_accepted() {
    for text in
        ["kind = \"perfect\"", "kind = \"fixed\"\nfailure = 0.5", "kind = \"trace\"\nfile = \"a\""]
    {
        let written = toml::to_string(&read(text)).unwrap();
        assert!(written.contains("cell_radius_m"));
        read(&written).check(4).unwrap();
    }
    // What every kind reads.
    let text = "kind = \"fixed\"\nfailure = 0.5\ndevice_failure = 0.1\ndeadline_seconds = 0.2\nbits_per_parameter = 8";
    read(text).check(4).unwrap();
}

#[test]
fn a_standard_of_ones_own_has_the_failure_worked_by_hand() {
    // 1 MHz at 1 Mbit/s needs a ratio of one, 0 dB. Noise: −174 + 60 = −114 dBm. Reference loss at 1 GHz and
    // 10 m: −40 + 60 + 32.44 = 52.44 dB, and 20 dB more at 100 m. 10 dBm − 72.44 + 114 = 51.56 dB; the wall
    // takes 41.56 dB and leaves 10 dB, two deviations: Φ(−2).
    let config = read(
        r#"
        standard_order = ["mine"]
        positions = [[30, 0]]
        deadline_seconds = 1
        building_width_m = 4
        building_depth_m = 4
        device_height_m = 0
        stations.mast = { x_m = 30, y_m = 100, height_m = 0 }
        [standards.mine]
        station = "mast"
        bandwidth_hz = 1e6
        power_dbm = 10
        carrier_hz = 1e9
        reference_m = 10
        exponent = 2
        wall_loss_db = 41.56
        shadowing = [{ sigma_db = 5 }]
        "#,
    );
    let network = Network::new(&config, 1, 31_250, 1, ".".as_ref()).unwrap();
    assert_eq!(network.rate_bps(), 1e6);
    let place = network.positions(0)[0];
    assert!((place.margin_db - 10.0).abs() < 1e-9, "{place:?}");
    assert!((place.failure - 0.022750131948179).abs() < 1e-12, "{place:?}");
    let layout = network.layout().unwrap();
    assert_eq!(layout.stations()[0].0, "mast");
}

#[test]
fn wrong_values_are_refused_by_key() {
    for (text, key, reason) in [
        ("standards.4g.bandwidth_hz = -1", "standards.4g.bandwidth_hz", "must be above 0, not -1"),
        ("standards.4g.carrier_hz = nan", "standards.4g.carrier_hz", "must be above 0, not NaN"),
        ("standards.4g.exponent = -2", "standards.4g.exponent", "must be 0 or more, not -2"),
        ("standard_order = []", "standard_order", "must name at least one standard"),
        (
            "standard_order = ['5gg']",
            "standard_order",
            "unknown standard `5gg`; did you mean `5g`?",
        ),
        (
            "standard_order = ['bluetooth']",
            "standard_order",
            "unknown standard `bluetooth`; expected one of wifi24, wifi5, 4g, 5g",
        ),
        (
            "standards.mine.power_dbm = 3",
            "standards.mine.station",
            "is missing: give it, or name a preset with like = \"…\"",
        ),
        (
            "standards.mine.like = 'wifi42'",
            "standards.mine.like",
            "unknown preset `wifi42`; did you mean `wifi24`?",
        ),
        (
            "standards.4g.station = 'base-station'",
            "standards.4g.station",
            "unknown station `base-station`; did you mean `base_station`?",
        ),
        (
            "stations.access_point.x_m = 3",
            "stations.access_point",
            "is placed by separation_m and its height key: choose another name",
        ),
        (
            "standards.4g.shadowing = [{to_m = 100, sigma_db = 4}, {from_m = 80, sigma_db = 8}]",
            "standards.4g.shadowing",
            "range 2: starts at 80 m and overlaps the range before, which ends at 100 m",
        ),
        (
            "standards.4g.shadowing = [{to_m = 100, sigma_db = 4}, {from_m = 120, sigma_db = 8}]",
            "standards.4g.shadowing",
            "range 2: starts at 120 m and leaves a gap: distances up to 100 m are covered",
        ),
        (
            "standards.4g.shadowing = [{to_m = 100, sigma_db = 4}]",
            "standards.4g.shadowing",
            "distances beyond 100 m are not covered: leave out the last to_m",
        ),
        (
            "standards.4g.shadowing = [{sigma_db = -4}]",
            "standards.4g.shadowing",
            "range 1: sigma_db must be between 0 and 100, not -4",
        ),
        (
            "standards.4g.shadowing = []",
            "standards.4g.shadowing",
            "must have at least one range of distances",
        ),
        ("deadline_seconds = 0", "deadline_seconds", "must be above 0, not 0"),
        (
            "outdoor_excess_loss_db = inf",
            "outdoor_excess_loss_db",
            "must be a finite number, not inf",
        ),
        ("indoor_share = 1.5", "indoor_share", "must be between 0 and 1, not 1.5"),
        ("cell_radius_m = 1e7", "cell_radius_m", "must be at most 1e6, not 10000000"),
        (
            "separation_m = 195",
            "separation_m",
            "the building reaches 205.2 m from the base station, beyond cell_radius_m = 200",
        ),
        ("positions = [[0, 0]]", "positions", "has 1 points for 4 clients"),
        (
            "positions = [[0, 0], [0, 300]]",
            "positions",
            "client 2 at [0, 300] is outside the cell, cell_radius_m = 200",
        ),
        (
            "positions = [[0, nan]]",
            "positions",
            "client 1 at [0, NaN] is outside the cell, cell_radius_m = 200",
        ),
        ("mobility = 'walk'\nspeed_m_per_s = 0", "speed_m_per_s", "must be above 0, not 0"),
        (
            "mobility = 'waypoint'\nround_seconds = 3600",
            "round_seconds",
            "a client would walk 5400 m in a round, further than across the cell",
        ),
        ("device_failure = -0.1", "device_failure", "must be between 0 and 1, not -0.1"),
        ("device_failure = [0.1]", "device_failure", "has 1 values for 4 clients"),
        (
            "kind = 'fixed'\nfailure = [0, 0, 2, 0]",
            "failure",
            "client 3: must be between 0 and 1, not 2",
        ),
        (
            "kind = 'fixed'",
            "failure",
            "is missing: kind = \"fixed\" needs a failure probability, or a list with one per client",
        ),
        (
            "kind = 'trace'",
            "file",
            "is missing: kind = \"trace\" needs a CSV file of round,client,failure",
        ),
        (
            "stragglers.compute = 'exponential'\nstragglers.limit_seconds = 0.1",
            "stragglers.limit_seconds",
            "must be above deadline_seconds = 0.1, the time of the upload, not 0.1",
        ),
    ] {
        let error = refusal(text);
        assert_eq!(
            (error.key, error.reason.as_str()),
            (format!("network.{key}"), reason),
            "{text}"
        );
    }
}

#[test]
fn unknown_keys_and_wrong_types_are_refused() {
    for text in [
        "bandwith = 3",
        "standards.4g.bandwidth = 3",
        "kind = 'wired'",
        "device_failure = 'often'",
        "device_failure = ['often']",
        "stations.a.z_m = 1",
        "stragglers.mean = 1",
    ] {
        assert!(toml::from_str::<NetworkConfig>(text).is_err(), "{text}");
    }
    let error = toml::from_str::<NetworkConfig>("device_failure = 'often'").unwrap_err();
    assert!(
        error.message().contains("a number, or a list with a number for each client"),
        "{error}"
    );
}

#[test]
fn fixed_and_perfect_fail_as_told() {
    let mut failures = Vec::new();
    let fixed = read("kind = 'fixed'\nfailure = [0, 0.25, 1]\ndevice_failure = 0.5");
    let network = Network::new(&fixed, 3, 10, 1, ".".as_ref()).unwrap();
    network.failures(9, &mut failures);
    assert_eq!(failures, [0.5, 0.625, 1.0]);
    assert!(!network.moves() && network.positions(0).is_empty() && network.layout().is_none());

    let perfect = NetworkConfig { kind: Kind::Perfect, ..NetworkConfig::default() };
    Network::new(&perfect, 3, 10, 1, ".".as_ref()).unwrap().failures(9, &mut failures);
    assert_eq!(failures, [0.0; 3]);
}

#[test]
fn traces_repeat_or_hold() {
    let folder = std::env::temp_dir().join(format!("fedcote-radio-trace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut file = std::fs::File::create(folder.join("t.csv")).unwrap();
    file.write_all(b"round,client,failure\n0,1,0\n0,2,0.5\n1,1,1\n1,2,0.25\n").unwrap();
    let mut failures = Vec::new();
    // From round 0: round 2 is the first one after the trace.
    for (after, second) in [("repeat", [0.0, 0.5]), ("hold", [1.0, 0.25])] {
        let config = read(&format!("kind = 'trace'\nfile = 't.csv'\nafter_trace = '{after}'"));
        let network = Network::new(&config, 2, 10, 1, &folder).unwrap();
        assert!(network.moves());
        network.failures(1, &mut failures);
        assert_eq!(failures, [1.0, 0.25]);
        network.failures(2, &mut failures);
        assert_eq!(failures, second);
        let key = fedcote::random::Key::new(1, fedcote::random::Purpose::Upload);
        assert!(network.arrives(0, 0, key) && !network.arrives(1, 0, key));
    }
    // From round 1: round 0 is as round 1.
    std::fs::write(folder.join("one.csv"), "round,client,failure\n1,1,0.125\n2,1,1\n").unwrap();
    let config = read("kind = 'trace'\nfile = 'one.csv'");
    let network = Network::new(&config, 1, 10, 1, &folder).unwrap();
    for (round, failure) in [(0, 0.125), (1, 0.125), (2, 1.0), (3, 0.125), (4, 1.0)] {
        network.failures(round, &mut failures);
        assert_eq!(failures, [failure], "round {round}");
    }
    let config = read("kind = 'trace'\nfile = 't.csv'");
    let error = Network::new(&config, 3, 10, 1, &folder).unwrap_err();
    assert!(matches!(error, Error::Trace { line: 4, .. }), "{error}");
    let expected = format!(
        "{}:4: round 1, client 1 leaves a hole: round 0, client 3 is due",
        folder.join("t.csv").display()
    );
    assert_eq!(error.to_string(), expected);
    std::fs::remove_dir_all(&folder).unwrap();
    let error = Network::new(&config, 2, 10, 1, &folder).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

proptest! {
    #[test]
    fn failure_is_a_probability_that_grows_with_loss_and_distance(
        seed in 0u64..1000,
        excess in -20.0f64..60.0,
        more in 0.0f64..30.0,
        radius in 60.0f64..2000.0,
        rayleigh: bool,
        device in 0.0f64..1.0,
    ) {
        let config = |excess: f64| NetworkConfig {
            outdoor_excess_loss_db: excess,
            cell_radius_m: radius,
            rayleigh,
            device_failure: PerClient::All(device),
            ..Default::default()
        };
        let network = |excess: f64| Network::new(&config(excess), 40, 23_860, seed, ".".as_ref()).unwrap();
        let (less, lossier) = (network(excess), network(excess + more));
        let mut places = less.positions(0);
        for (a, b) in places.iter().zip(lossier.positions(0)) {
            prop_assert!((device..=1.0).contains(&a.failure));
            prop_assert!(b.failure >= a.failure - 1e-15);
            prop_assert!(!a.indoor || a.failure == b.failure);
        }
        places.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        for standard in ["wifi24", "wifi5", "4g", "5g"] {
            let outdoors: Vec<_> =
                places.iter().filter(|place| !place.indoor && place.standard == standard).collect();
            for pair in outdoors.windows(2) {
                prop_assert!(pair[0].margin_db >= pair[1].margin_db);
            }
        }
    }
}
