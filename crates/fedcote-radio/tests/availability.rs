//! Who is there when: long-run shares and correlations against their formulas, patterns by hand, and what is refused.

use fedcote::random::{Key, Purpose};
use fedcote_radio::{Labels, Network, NetworkConfig};

/// Two classes; the first client has only the first, the second only the second, the third both.
const COUNTS: [f64; 6] = [10.0, 0.0, 0.0, 30.0, 20.0, 20.0];

fn config(availability: &str) -> NetworkConfig {
    let text = format!("kind = \"perfect\"\n[availability]\n{availability}");
    toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn network(availability: &str, clients: usize) -> Network {
    Network::new(&config(availability), clients, 10, 3, ".".as_ref()).unwrap()
}

fn labelled(availability: &str, classes: usize, counts: &[f64], seed: u64) -> Network {
    let labels = Some(Labels { classes, counts });
    let clients = counts.len() / classes;
    Network::with_labels(&config(availability), clients, 10, seed, ".".as_ref(), labels).unwrap()
}

fn probability(network: &Network, round: u32, client: usize) -> f64 {
    network.availability().unwrap().probability(round, client)
}

/// The mean of 0s and 1s, and the correlation of neighbours.
fn moments(series: &[bool]) -> (f64, f64) {
    let number = |there: &bool| f64::from(u8::from(*there));
    let mean = series.iter().map(number).sum::<f64>() / series.len() as f64;
    let product = |pair: &[bool]| (number(&pair[0]) - mean) * (number(&pair[1]) - mean);
    let covariance = series.windows(2).map(product).sum::<f64>() / (series.len() - 1) as f64;
    (mean, covariance / (mean * (1.0 - mean)))
}

fn series(network: &Network, client: usize, rounds: u32) -> Vec<bool> {
    (1..=rounds).map(|round| network.available(round, client)).collect()
}

/// Share of rounds and correlation of neighbours. The mean of a chain has variance π(1 − π)/n · (1 + λ)/(1 − λ).
#[test]
fn chains_have_the_share_and_the_correlation_they_are_given() {
    const ROUNDS: u32 = 40_000;
    let cases = [
        ("kind = \"markov\"\nprobability = 0.3\ncorrelation = 0.9", 0.3, 0.9),
        ("kind = \"markov\"\nprobability = 0.5\ncorrelation = -0.9", 0.5, -0.9),
        ("kind = \"markov\"\nprobability = 0.9", 0.9, 0.0),
        // FedAU's chain: comes back with probability 0.05, so λ = 1 − 0.05/0.1 = 0.5.
        ("kind = \"markov\"\nprobability = 0.1\nabsence_rounds = 20", 0.1, 0.5),
        // Too rare for that: the smallest λ there is, −π/(1 − π).
        ("kind = \"markov\"\nprobability = 0.04\nabsence_rounds = 20", 0.04, -0.04 / 0.96),
        // Good for 0.7 of the rounds: 0.7·0.9 + 0.3·0.2 = 0.69; λ (0.9 − 0.2)² 0.7·0.3 / (0.69·0.31).
        (
            "kind = \"gilbert-elliott\"\nprobability = 0.7\ncorrelation = 0.8\ngood = 0.9\nbad = 0.2",
            0.69,
            0.8 * 0.49 * 0.21 / (0.69 * 0.31),
        ),
    ];
    for (text, share, lambda) in cases {
        let network = network(text, 2);
        let found = network.availability().unwrap();
        assert!((found.correlation(1) - lambda).abs() < 1e-12, "{text}");
        assert!((found.probability(77, 1) - share).abs() < 1e-12, "{text}");
        let (mean, correlation) = moments(&series(&network, 1, ROUNDS));
        let slow = (1.0 + lambda) / (1.0 - lambda);
        let error = (share * (1.0 - share) / f64::from(ROUNDS) * slow.max(1.0)).sqrt();
        assert!((mean - share).abs() < 4.0 * error, "{text}: {mean}");
        assert!((correlation - lambda).abs() < 0.04, "{text}: {correlation} and {lambda}");
    }
}

/// Over many clients each round has the stationary share, the first one, too; and a client's rounds a distance k apart
/// have the correlation λ^k.
#[test]
fn a_chain_is_stationary_from_the_first_round_on() {
    const CLIENTS: usize = 20_000;
    let text = "kind = \"markov\"\nprobability = 0.3\ncorrelation = 0.8";
    let network = network(text, CLIENTS);
    let at = |round: u32| -> Vec<bool> {
        (0..CLIENTS).map(|client| network.available(round, client)).collect()
    };
    let first = at(1);
    for round in [1, 2, 4, 9] {
        let now = at(round);
        let share = now.iter().filter(|there| **there).count() as f64 / CLIENTS as f64;
        assert!((share - 0.3).abs() < 4.0 * (0.21 / CLIENTS as f64).sqrt(), "{round}: {share}");
        let both = first.iter().zip(&now).filter(|(a, b)| **a && **b).count() as f64;
        let correlation = (both / CLIENTS as f64 - 0.09) / 0.21;
        let wanted = 0.8f64.powi(round as i32 - 1);
        assert!((correlation - wanted).abs() < 0.03, "{round}: {correlation} and {wanted}");
    }
}

/// Regression: a chain of correlation 1 looked back to the first round at every question. What is remembered on the way changes nothing, in
/// whatever order rounds are asked for: each answer is that of a network that is asked for nothing else.
#[test]
fn what_chains_remember_changes_no_state() {
    for lambda in ["1.0", "0.9999", "0.99", "-0.4"] {
        let text = format!("kind = \"markov\"\nprobability = 0.6\ncorrelation = {lambda}");
        let asked = network(&text, 3);
        let there: Vec<Vec<bool>> = (0..3).map(|client| series(&asked, client, 1000)).collect();
        let order = (0..1000u32).map(|step| step * 617 % 1000 + 1);
        for round in order.filter(|round| round % 7 == 0) {
            for (client, there) in there.iter().enumerate() {
                let state = there[round as usize - 1];
                assert_eq!(asked.available(round, client), state, "{lambda} {round} {client}");
                let alone = network(&text, 3).available(round, client);
                assert_eq!(alone, state, "{lambda} {round} {client}");
            }
        }
        let constant = |there: &Vec<bool>| there.iter().all(|state| *state == there[0]);
        assert!(lambda != "1.0" || there.iter().all(constant));
    }
}

#[test]
fn independent_rounds_have_their_probability_and_no_correlation() {
    let network = network("kind = \"bernoulli\"\nprobability = [0.2, 0.7]", 2);
    for (client, share) in [(0, 0.2), (1, 0.7)] {
        let (mean, correlation) = moments(&series(&network, client, 20_000));
        assert!(
            (mean - share).abs() < 4.0 * (share * (1.0 - share) / 20_000.0f64).sqrt(),
            "{mean}"
        );
        assert!(correlation.abs() < 0.03, "{correlation}");
        assert_eq!(network.availability().unwrap().correlation(client), 0.0);
    }
    // Whether both are there: independent.
    let both = (1..=20_000).filter(|&r| network.available(r, 0) && network.available(r, 1)).count();
    assert!((both as f64 / 20_000.0 - 0.14).abs() < 0.01, "{both}");
}

#[test]
fn patterns_are_as_by_hand() {
    let at = |text: &str, round: u32| {
        probability(
            &network(&format!("kind = \"bernoulli\"\nprobability = 0.5\n{text}"), 1),
            round,
            0,
        )
    };
    let near =
        |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    // r = 0, 5, 15 of a period of 20: sin 0, 1, −1.
    for (round, factor) in [(1, 0.7), (6, 1.0), (16, 0.4), (21, 0.7)] {
        near(at("pattern = \"sine\"", round), 0.5 * factor);
    }
    for (round, factor) in [(1, 1.0), (10, 1.0), (11, 0.4), (20, 0.4), (21, 1.0)] {
        near(at("pattern = \"staircase\"", round), 0.5 * factor);
    }
    // 0.5·0.4 = 0.2 is below a cutoff of 0.25.
    near(at("pattern = \"interleaved-sine\"\ncutoff = 0.25", 16), 0.0);
    near(at("pattern = \"interleaved-sine\"\ncutoff = 0.25", 6), 0.5);
    near(at("pattern = \"sine\"\namplitude = 0.1\nperiod = 4", 2), 0.5);
    near(at("pattern = \"day\"", 1), 0.25);
    near(at("pattern = \"day\"", 25), 0.25);
    let sin = (std::f64::consts::TAU * 6.0 / 23.0).sin();
    near(at("pattern = \"day\"", 7), 0.5 * (0.4 * sin + 0.5));
}

#[test]
fn cycles_and_turns_have_their_rounds() {
    // 30 of every 100 rounds in one piece; everybody starts away.
    let cyclic = network("kind = \"cyclic\"\nprobability = [0.3, 0.001, 1.0]", 3);
    for (client, present) in [(0, 30), (1, 1), (2, 99)] {
        let series = series(&cyclic, client, 300);
        assert!(!series[0], "{client}");
        assert_eq!(series.iter().filter(|there| **there).count(), 3 * present, "{client}");
        assert_eq!(series[..100], series[100..200], "{client}");
        let changes = series.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((5..=6).contains(&changes), "{client}: {changes}");
        assert_eq!(probability(&cyclic, 5, client), present as f64 / 100.0);
    }
    // (29/100 − 0.09) / 0.21
    let found = cyclic.availability().unwrap().correlation(0);
    assert!((found - 0.2 / 0.21).abs() < 1e-12, "{found}");
    let turns = network("kind = \"in-turn\"\ncycle = 20", 10);
    let mut times = [0; 10];
    for round in 1..=40 {
        let there: Vec<usize> = (0..10).filter(|&client| turns.available(round, client)).collect();
        assert_eq!(there.len(), 2);
        assert_eq!((there[0] / 2, there[1] / 2), (there[0] / 2, there[0] / 2));
        there.into_iter().for_each(|client| times[client] += 1);
    }
    assert_eq!(times, [8; 10]);
}

#[test]
fn recipes_follow_the_labels() {
    let mut means = (0.0, 0.0);
    for seed in 0..400 {
        let fedawe = labelled("kind = \"label-coupled\"", 2, &COUNTS, seed);
        let b: Vec<f64> = (0..3).map(|client| probability(&fedawe, 1, client)).collect();
        assert!(b[0] <= 1.0 && b[1] <= 0.5);
        assert!((b[2] - 0.5 * (b[0] + b[1])).abs() < 1e-12, "half of each label: {b:?}");
        means.0 += b[0] / 400.0;
        means.1 += b[1] / 400.0;
        let fedau = labelled("kind = \"bernoulli\"\nprobability = \"fedau\"", 2, &COUNTS, seed);
        let b: Vec<f64> = (0..3).map(|client| probability(&fedau, 1, client)).collect();
        // φ sums to 1: 0.1·2 in all, but nobody below 0.02.
        assert!(b.iter().all(|b| (0.02..=0.2).contains(b)), "{b:?}");
        assert!(b[0] + b[1] <= 0.22 + 1e-12 && (b[2] - 0.1).abs() < 1e-12, "{b:?}");
        let fedpbc = labelled("kind = \"markov\"\nprobability = \"fedpbc\"", 2, &COUNTS, seed);
        assert!((probability(&fedpbc, 1, 2) - 0.5).abs() < 1e-12);
    }
    // Uniform in (0, 1) and in (0, 0.5).
    assert!((means.0 - 0.5).abs() < 0.06 && (means.1 - 0.25).abs() < 0.03, "{means:?}");
    let mifa = labelled("kind = \"bernoulli\"\nprobability = \"mifa\"", 2, &COUNTS, 1);
    assert_eq!([0, 1, 2].map(|client| probability(&mifa, 1, client)), [0.1, 1.0, 0.1]);
}

#[test]
fn the_modes_of_flgo_are_as_by_hand() {
    let counts = [0.0, 16.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    let at = |mode: &str, round: u32| {
        let network = labelled(&format!("kind = \"flgo\"\nmode = \"{mode}\""), 4, &counts, 1);
        [probability(&network, round, 0), probability(&network, round, 1)]
    };
    let near = |found: [f64; 2], wanted: [f64; 2]| {
        let gap = |at: usize| (found[at] - wanted[at]).abs();
        assert!(gap(0) < 1e-12 && gap(1) < 1e-12, "{found:?} {wanted:?}");
    };
    near(at("idl", 1), [1.0, 1.0]);
    near(at("homo", 1), [0.8, 0.8]);
    near(at("ymf", 1), [0.1 / 3.0 + 0.9, 0.9]);
    near(at("yff", 1), [0.2 / 4.0 + 0.8, 1.0]);
    near(at("mdf", 1), [1.0, 4f64.powf(0.0001) / 16f64.powf(0.0001)]);
    near(at("ldf", 1), [0.5, 1.0]);
    // Label 1 of 0 … 3: there for certain only when the hour is 8 of 24.
    near(at("yc", 1), [0.5, 1.0]);
    near(at("yc", 8), [1.0, 1.0]);
    let log_normal = at("ln", 1);
    assert!(log_normal[0].max(log_normal[1]) == 1.0 && log_normal[0].min(log_normal[1]) > 0.5);
    near(at("sln", 25), log_normal.map(|b| 0.5 * b));
}

/// On top of another network: who is away cannot upload, and being away and a failing link are independent.
#[test]
fn availability_comes_on_top_of_any_network() {
    let text =
        "kind = \"fixed\"\nfailure = 0.5\n[availability]\nkind = \"bernoulli\"\nprobability = 0.4";
    let network = |known: &str| {
        Network::new(&toml::from_str(&format!("{text}\n{known}")).unwrap(), 2, 10, 1, ".".as_ref())
            .unwrap()
    };
    let unknown = network("");
    let mut failures = Vec::new();
    unknown.failures(1, &mut failures);
    assert!(failures.iter().all(|failure| (failure - 0.8).abs() < 1e-12), "{failures:?}");
    assert!(!unknown.moves());
    let mut arrived = 0;
    for round in 1..=10_000 {
        let key = Key::new(1, Purpose::Upload).round(round);
        let uploads = (0..3).filter(|&attempt| unknown.arrives(round, 0, key.attempt(attempt)));
        let uploads = uploads.count();
        assert!(uploads == 0 || unknown.available(round, 0), "{round}");
        arrived += uploads;
    }
    assert!((arrived as f64 / 30_000.0 - 0.2).abs() < 0.015, "{arrived}");
    // The server that knows who is there.
    let known = network("known = \"now\"");
    assert!(known.moves());
    for round in 1..=20 {
        known.failures(round, &mut failures);
        for (client, &failure) in failures.iter().enumerate() {
            assert_eq!(known.available(round, client), unknown.available(round, client));
            assert_eq!(failure, if known.available(round, client) { 0.5 } else { 1.0 });
        }
    }
}

#[test]
fn what_cannot_be_is_refused_by_key() {
    for (text, message) in [
        (
            "kind = \"markov\"\nprobability = 0.8\ncorrelation = -0.3",
            "network.availability.correlation: -0.3 is too small for probability 0.8: no such chain, at least -0.25",
        ),
        (
            "kind = \"gilbert-elliott\"\nprobability = [0.5, 0.1]\ncorrelation = -0.5",
            "network.availability.correlation: client 2: -0.5 is too small for probability 0.1: no such chain, at least -0.1111",
        ),
        (
            "probability = 0.5",
            "network.availability.probability: has no effect on availability of this kind",
        ),
        (
            "kind = \"markov\"\npattern = \"sine\"",
            "network.availability.pattern: has no effect on availability of this kind",
        ),
        (
            "kind = \"bernoulli\"\nprobability = 1.5",
            "network.availability.probability: must be between 0 and 1, not 1.5",
        ),
        (
            "kind = \"in-turn\"\ncycle = 7\ngroups = 2",
            "network.availability.cycle: must be a multiple of groups = 2",
        ),
        (
            "kind = \"markov\"\nabsence_rounds = 0.5",
            "network.availability.absence_rounds: must be at least 1",
        ),
        (
            "kind = \"label-coupled\"",
            "network.availability: depends on the labels that clients hold, which only a run has (`fedcote run`)",
        ),
    ] {
        let error = Network::new(&config(text), 2, 10, 1, ".".as_ref()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let wrong = toml::from_str::<NetworkConfig>("[availability]\nprobability = \"fedawee\"");
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("unknown recipe `fedawee`") && wrong.contains("`fedawe`"), "{wrong}");
}
