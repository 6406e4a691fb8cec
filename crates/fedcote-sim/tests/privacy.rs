//! Differential privacy: what one client can do to a released model, measured, against the noise that it gets.

use std::sync::Arc;

use fedcote::random::{Key, Purpose};
use fedcote_sim::{Classification, Engine, Outcome, RoundReport, Scenario, World};
use rand::RngExt;
use rand_distr::StandardNormal;

const SEED: u64 = 5;

/// Six clients of which four are drawn; the noise multiplier z and more tables follow.
fn engine(scheme: &str, noise: f64, extra: &str) -> Engine {
    let text = format!(
        r#"
clients = 6
selected = 4
schemes = ["{scheme}"]
[data]
set = "synthetic"
samples = 600
features = 4
classes = 3
partition = "dirichlet"
[model]
kind = "softmax"
[training]
local_steps = [2, 5]
batch = 20
rate = 0.2
[network]
kind = "fixed"
failure = [0.1, 0.5, 0.4, 0.3, 0.0, 0.2]
[server]
clip = 0.05
noise_multiplier = {noise}
{extra}"#
    );
    let scenario = Scenario::parse("test", &text, &[], ".".as_ref()).unwrap();
    let task = Arc::new(Classification::load(&scenario, SEED).unwrap());
    let scheme = scenario.schemes.resolve(scheme).unwrap();
    Engine::new(Arc::new(World::new(Arc::new(scenario), task, SEED).unwrap()), scheme).unwrap()
}

fn play(engine: &mut Engine, round: u32) -> RoundReport {
    match engine.step(round).unwrap() {
        Outcome::Done(report) => report,
        Outcome::Diverged => panic!("diverged in round {round}"),
    }
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

/// One client's update is replaced by a hostile one, with the same noise: no release moves by more than twice the sensitivity that the
/// noise is made for, nor by more than once if it is replaced by nothing. The sensitivity is what another noise multiplier changes.
/// In the first round, and in the fourth, when schemes with memory have something to remember: up to there all is the same.
#[test]
fn one_client_moves_a_release_no_further_than_the_sensitivity() {
    for scheme in [
        "fedavg",
        "fedcote",
        "fedcote-memory",
        "mifa",
        "fedprox",
        "fednova",
        "fedau",
        "fedavg-all",
        "fedavg-known",
        "f3ast",
        "gs",
        "fedcote-matched",
    ] {
        for round in [1, 4] {
            sensitivity_of(scheme, round);
        }
    }
}

fn sensitivity_of(scheme: &str, round: u32) {
    let release = |noise: f64, extra: &str| {
        let mut before = engine(scheme, 0.01, "");
        (1..round).for_each(|round| drop(play(&mut before, round)));
        let mut engine = engine(scheme, noise, extra);
        engine.restore(&mut before.save()).unwrap();
        let report = play(&mut engine, round);
        (engine.global().to_vec(), report.arrived)
    };
    // Small noise, so that single precision does not hide what is compared.
    let (honest, arrived) = release(0.01, "");
    let victim = arrived[0].0;
    let mut stream = Key::new(SEED, Purpose::UpdateNoise).round(round).stream();
    let noise: Vec<f32> =
        honest.iter().map(|_| stream.sample::<f64, _>(StandardNormal) as f32).collect();
    let length = distance(&noise, &vec![0.0; noise.len()]);
    let (other, _) = release(0.02, "");
    let sensitivity = distance(&honest, &other) / (0.01 * length);
    assert!(
        sensitivity > 0.0 && sensitivity <= 0.05 * 1.0001,
        "{scheme}, round {round}: {sensitivity}"
    );
    let mut moved = Vec::new();
    for (hostile, times) in [
        ("kind = \"scaled\"\nfactor = 1e9\n", 2.0),
        ("kind = \"scaled\"\nfactor = -1e9\n", 2.0),
        ("kind = \"nan\"\n", 1.0),
        ("kind = \"infinite\"\n", 1.0),
    ] {
        let table = format!("[hostile]\nclients = [{}]\n{hostile}", victim + 1);
        let (attacked, who) = release(0.01, &table);
        assert_eq!(who, arrived, "{scheme}: who takes part must not depend on updates");
        moved.push(distance(&attacked, &honest));
        assert!(
            moved[moved.len() - 1] <= times * sensitivity * 1.001,
            "{scheme}, round {round}: {moved:?} {sensitivity}"
        );
    }
    assert!(moved[1] > 0.0 && moved[2] > 0.0, "{scheme}, round {round}: {moved:?}");
}

#[test]
fn epsilon_grows_with_releases_and_outlives_an_interruption() {
    for scheme in ["fedavg", "fedcote-memory"] {
        let mut whole = engine(scheme, 2.0, "delta = 1e-6\n");
        let told: Vec<f64> =
            (1..=10).map(|round| play(&mut whole, round).scores["epsilon"]).collect();
        assert!(told.is_sorted() && told[0] > 0.0 && told[9] > told[0], "{told:?}");
        // No client can have spent more than one full share a round: μ ≤ √10/2.
        assert!(
            told[9] <= fedcote::privacy::gaussian_epsilon(10f64.sqrt() / 2.0, 1e-6).unwrap() + 1e-9
        );
        let mut first = engine(scheme, 2.0, "delta = 1e-6\n");
        (1..=4).for_each(|round| drop(play(&mut first, round)));
        let mut second = engine(scheme, 2.0, "delta = 1e-6\n");
        second.restore(&mut first.save()).unwrap();
        let rest: Vec<f64> =
            (5..=10).map(|round| play(&mut second, round).scores["epsilon"]).collect();
        assert_eq!(rest, told[4..], "{scheme}");
        assert_eq!(second.save(), whole.save(), "{scheme}");
    }
}

#[test]
fn wrong_settings_are_refused_where_they_stand() {
    let refusal =
        |text: &str| Scenario::parse("mine.toml", text, &[], ".".as_ref()).unwrap_err().to_string();
    assert_eq!(
        refusal("[server]\nnoise_multiplier = 1.0\n"),
        "mine.toml:2: server.noise_multiplier: needs server.clip, the norm that an update may have"
    );
    assert_eq!(
        refusal("[server]\nclip = 1.0\nnoise_multiplier = 0\n"),
        "mine.toml:3: server.noise_multiplier: must be a positive number"
    );
    assert_eq!(
        refusal("[server]\nclip = 1.0\ndelta = 0.1\n"),
        "mine.toml:3: server.delta: has no effect without server.noise_multiplier"
    );
    assert_eq!(
        refusal("[server]\nclip = 1.0\nnoise_multiplier = 1\nmax_share = 1.5\n"),
        "mine.toml:4: server.max_share: must be above 0 and at most 1"
    );
    assert_eq!(
        refusal(
            "schemes = [\"fedavg\", \"scaffold\"]\n[server]\nclip = 1.0\nnoise_multiplier = 1\n"
        ),
        "mine.toml:4: server.noise_multiplier: not for scheme `scaffold`: control variates disclose updates without noise"
    );
    assert_eq!(
        refusal(
            "selected = 4\nschemes = [\"x\"]\n[scheme.x]\naggregation = \"krum\"\nbyzantine = 1\n"
        ),
        "mine.toml:5: scheme.x.byzantine: needs 5 clients a round (2f + 3), at most 4 arrive"
    );
}
