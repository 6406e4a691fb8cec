//! A million simulated attempts a setting against the closed form.

use fedcote::random::{Key, Purpose};
use fedcote_radio::{
    ComputeTime, Network, NetworkConfig, PerClient, Standard, StandardConfig, Stragglers, Upload,
};
use rayon::prelude::*;

const ATTEMPTS: u32 = 1_000_000;

/// How many standard errors the share of failed attempts lies from the closed form.
fn deviation(network: &Network, client: usize, round: u32) -> f64 {
    let mut failures = Vec::new();
    network.failures(round, &mut failures);
    let failure = failures[client];
    let key = Key::new(1, Purpose::Upload).client(client as u64).round(round);
    let failed = (0..ATTEMPTS)
        .into_par_iter()
        .filter(|&attempt| !network.arrives(round, client, key.attempt(attempt)))
        .count();
    let count = f64::from(ATTEMPTS);
    let error = (failure * (1.0 - failure) / count).sqrt();
    assert!((0.001..0.999).contains(&failure), "a setting that shows nothing: {failure}");
    (failed as f64 / count - failure) / error
}

/// Every standard, both sides of the wall, both shadowing ranges, both tasks. Powers are lowered so that each
/// link has a margin that shadowing can use up.
fn settings(rayleigh: bool) -> Vec<(NetworkConfig, usize)> {
    let mut settings = Vec::new();
    for (parameters, deadline_seconds) in [(23_860, 0.1), (269_722, 1.0)] {
        for name in ["wifi24", "wifi5", "4g", "5g"] {
            let points: [[f64; 2]; 4] = match name.starts_with("wifi") {
                true => [[260.0, 0.0], [440.0, 0.0], [250.0, 50.0], [250.0, 300.0]],
                false => [[60.0, 0.0], [300.0, 0.0], [0.0, 50.0], [0.0, 500.0]],
            };
            for (point, wanted_margin_db) in points.into_iter().zip([6.0, 5.0, -3.0, 12.0]) {
                let mut config = NetworkConfig {
                    rayleigh,
                    deadline_seconds,
                    outdoor_excess_loss_db: 5.0,
                    cell_radius_m: 1000.0,
                    building_width_m: 400.0,
                    building_depth_m: 40.0,
                    separation_m: 250.0,
                    standard_order: vec![name.into()],
                    positions: Some(vec![point]),
                    ..Default::default()
                };
                let network = Network::new(&config, 1, parameters, 1, ".".as_ref()).unwrap();
                let surplus = network.positions(0)[0].margin_db - wanted_margin_db;
                let power = Standard::preset(name).unwrap().power_dbm - surplus;
                let standard = StandardConfig { power_dbm: Some(power), ..Default::default() };
                config.standards.insert(name.into(), standard);
                settings.push((config, parameters));
            }
        }
    }
    settings
}

fn agree(rayleigh: bool) {
    let mut squares = 0.0;
    let settings = settings(rayleigh);
    for (index, (config, parameters)) in settings.iter().enumerate() {
        let network = Network::new(config, 1, *parameters, 1, ".".as_ref()).unwrap();
        // The setting's index as round: every setting has its own attempts.
        let deviation = deviation(&network, 0, index as u32);
        println!("{:?} {deviation:.2}", config.standard_order);
        assert!(deviation.abs() < 3.0, "{config:?}: {deviation} standard errors");
        squares += deviation * deviation;
    }
    // All together: chi square with 32 degrees of freedom, 99.9 % within these bounds.
    assert_eq!(settings.len(), 32);
    assert!((10.4..65.0).contains(&squares), "{squares}");
}

#[test]
fn attempts_agree_with_the_outage() {
    agree(false);
}

#[test]
fn attempts_agree_with_the_outage_under_rayleigh_fading() {
    agree(true);
}

#[test]
fn devices_and_stragglers_fail_on_top() {
    for (compute, expected_late) in [
        // Time to compute: 1.0 − 0.1 s. exp(−0.9/0.4), and 1 − Φ((ln 0.9 − (ln 0.5 − 0.18))/0.6).
        (ComputeTime::Exponential, 0.105399224561864),
        (ComputeTime::LogNormal, 0.100335106231020),
    ] {
        let mean = if compute == ComputeTime::Exponential { 0.4 } else { 0.5 };
        let config = NetworkConfig {
            outdoor_excess_loss_db: 22.0,
            standard_order: vec!["4g".into()],
            positions: Some(vec![[0.0, 90.0], [30.0, 0.0]]),
            device_failure: PerClient::Each(vec![0.0, 0.2]),
            stragglers: Stragglers {
                compute,
                mean_seconds: PerClient::Each(vec![1e-6, mean]),
                spread: 0.6,
                limit_seconds: None,
            },
            ..Default::default()
        };
        let network = Network::new(&config, 2, 23_860, 1, ".".as_ref()).unwrap();
        let mut failures = Vec::new();
        network.failures(0, &mut failures);
        // Client 2 is indoors with a link that holds; device and lateness remain.
        assert!((failures[1] - (1.0 - 0.8 * (1.0 - expected_late))).abs() < 1e-6, "{failures:?}");
        for client in 0..2 {
            let deviation = deviation(&network, client, 0);
            assert!(deviation.abs() < 3.0, "{compute:?} {client}: {deviation}");
        }
    }
}

/// With M retransmissions an upload is lost when M + 1 transmissions fail, each at M + 1 times the rate.
#[test]
fn retransmissions_share_the_time_of_an_upload() {
    let plain = NetworkConfig { outdoor_excess_loss_db: 20.0, ..Default::default() };
    let config = NetworkConfig { retransmissions: 2, ..plain.clone() };
    let hasty = NetworkConfig { deadline_seconds: plain.deadline_seconds / 3.0, ..plain };
    let [network, hasty] =
        [config, hasty].map(|config| Network::new(&config, 20, 23_860, 1, ".".as_ref()).unwrap());
    assert_eq!(network.rate_bps(), hasty.rate_bps());
    let (mut all, mut one) = (Vec::new(), Vec::new());
    network.failures(0, &mut all);
    hasty.failures(0, &mut one);
    for client in 0..20 {
        assert!((all[client] - one[client].powi(3)).abs() < 1e-12, "{client}");
        assert_eq!(network.positions(0)[client].failure, all[client]);
        let uploads: Vec<Upload> = (0..2000)
            .map(|attempt| {
                let key = Key::new(7, Purpose::Upload).client(client as u64).attempt(attempt);
                network.upload(0, client, key)
            })
            .collect();
        let count = uploads.len() as f64;
        let lost = uploads.iter().filter(|upload| !upload.arrived).count() as f64 / count;
        let error = (all[client] * (1.0 - all[client]) / count).sqrt();
        assert!(
            (lost - all[client]).abs() <= 4.5 * error + 1e-9,
            "{client}: {lost} {}",
            all[client]
        );
        // Every transmission fails with the probability of one, and its margin says so.
        let failed: u32 = uploads.iter().map(|upload| upload.failed).sum();
        let made = f64::from(failed) + count * (1.0 - lost);
        let error = (one[client] * (1.0 - one[client]) / made).sqrt();
        let share = f64::from(failed) / made;
        assert!((share - one[client]).abs() <= 4.5 * error + 1e-9, "{client}: {share}");
        for upload in &uploads {
            assert_eq!(upload.margin_db.unwrap() > 0.0, upload.arrived, "{upload:?}");
            assert!(upload.failed <= 3 && (upload.failed == 3) != upload.arrived, "{upload:?}");
        }
    }
}
