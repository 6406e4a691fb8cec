//! What a round costs, worked by hand.

use std::sync::Arc;

use fedcote_sim::{Classification, Engine, Outcome, RoundReport, Scenario, World};

/// Three clients that are all drawn once (`gs`), on radio links that never or always fail: shadowing is off, and the
/// second client stands where its signal does not reach.
const THREE: &str = r#"
clients = 3
selected = 3
seeds = [1]
schemes = ["gs"]
[data]
set = "synthetic"
samples = 300
features = 2
classes = 2
partition = "iid"
[model]
kind = "softmax"
[training]
local_steps = 4
batch = 10
rate = 0.1
[network]
deadline_seconds = 0.2
retransmissions = 1
outdoor_excess_loss_db = 0
standard_order = ["4g", "5g", "4g"]
positions = [[1, 0], [2, 0], [3, 0]]
[network.standards.4g]
power_dbm = 20
shadowing = [{ sigma_db = 0 }]
[network.standards.5g]
power_dbm = 30
wall_loss_db = 0
exponent = 100
shadowing = [{ sigma_db = 0 }]
[clock]
seconds_per_sample = [0.001, 0.002, 0.003]
downlink_mbit_per_s = [0.0192, 0.0096, 0.00192]
"#;

fn engine(text: &str, scheme: &str) -> Engine {
    let scenario = Scenario::parse("test", text, &[], ".".as_ref()).unwrap();
    let task = Classification::load(&scenario, 1).unwrap();
    let world = World::new(Arc::new(scenario), Arc::new(task), 1).unwrap();
    let scheme = world.scenario.schemes.resolve(scheme).unwrap();
    Engine::new(Arc::new(world), scheme).unwrap()
}

fn play(engine: &mut Engine, round: u32) -> RoundReport {
    match engine.step(round).unwrap() {
        Outcome::Done(report) => report,
        Outcome::Diverged => panic!("diverged"),
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found} and {expected}");
}

/// The model has (2 + 1) · 2 = 6 parameters: 192 bits, 24 bytes. One of two transmissions takes 0.2/2 = 0.1 s, the rate
/// is 1920 bit/s.
///
/// | client | downlink | computes 4 · 10 samples | transmissions | on the air | done after | power |
/// |---|---|---|---|---|---|---|
/// | 1 | 192/19200 = 0.01 s | 0.04 s | 1 | 0.1 s | 0.15 s | 0.1 W |
/// | 2 | 192/9600 = 0.02 s | 0.08 s | 2, both lost | 0.2 s | 0.30 s | 1 W |
/// | 3 | 192/1920 = 0.1 s | 0.12 s | 1 | 0.1 s | 0.32 s | 0.1 W |
///
/// Before the first round each client tells its two label counts: 64 bits in 1/30 s.
#[test]
fn a_round_of_three_clients_is_as_by_hand() {
    let mut engine = engine(THREE, "gs");
    let first = play(&mut engine, 1);
    assert_eq!(first.arrived, [(0, 1), (2, 1)]);
    let labels = 64.0 / 1920.0;
    close(first.seconds.unwrap(), 0.32 + labels);
    assert_eq!(first.bytes_up, Some(24 * 4 + 3 * 8));
    assert_eq!(first.bytes_down, Some(24 * 3));
    let joules = 0.1 * 0.1 + 1.0 * 0.2 + 0.1 * 0.1;
    close(first.joules.unwrap(), joules + labels * (0.1 + 1.0 + 0.1));
    let second = play(&mut engine, 2);
    close(second.seconds.unwrap(), 0.32);
    close(second.joules.unwrap(), joules);
    assert_eq!((second.bytes_up, second.bytes_down), (Some(96), Some(72)));
}

/// SCAFFOLD sends two vectors each way: everything that is sent takes twice as long.
#[test]
fn scaffold_uploads_twice_as_much() {
    let text = format!(
        "{}[scheme.both]\nbase = \"gs\"\nlocal = \"scaffold\"\n",
        THREE.replace("\"gs\"", "\"both\"")
    );
    let mut engine = engine(&text, "both");
    play(&mut engine, 1);
    let round = play(&mut engine, 2);
    assert_eq!((round.bytes_up, round.bytes_down), (Some(2 * 96), Some(2 * 72)));
    // Client 2: 0.04 + 0.08 + 0.4; client 3: 0.2 + 0.12 + 0.2.
    close(round.seconds.unwrap(), 0.52);
    close(round.joules.unwrap(), 2.0 * 0.22);
}

/// The corrections of `control` go to clients that were heard before, from the second round on.
#[test]
fn control_sends_a_second_vector_down_to_whom_it_corrects() {
    let text = format!(
        "{}[scheme.both]\nbase = \"gs\"\naggregation = \"control\"\n",
        THREE.replace("\"gs\"", "\"both\"")
    );
    let mut engine = engine(&text, "both");
    assert_eq!(play(&mut engine, 1).bytes_down, Some(72));
    let round = play(&mut engine, 2);
    // Clients 1 and 3 were heard; client 2 never is.
    assert_eq!((round.bytes_up, round.bytes_down), (Some(96), Some(72 + 2 * 24)));
}

/// Both of two candidates are sent the model and tell a loss, one of them is drawn and has the model already.
#[test]
fn candidates_are_sent_the_model_and_tell_their_loss() {
    let text = r#"
clients = 2
selected = 1
seeds = [1]
schemes = ["power-of-choice"]
[data]
set = "synthetic"
samples = 60
features = 2
classes = 2
partition = "iid"
[model]
kind = "softmax"
[training]
local_steps = 1
batch = 10
[network]
kind = "perfect"
deadline_seconds = 0.1
[clock]
seconds_per_sample = 0.001
downlink_mbit_per_s = 0.0192
[scheme.power-of-choice]
candidates = 2
"#;
    let mut engine = engine(text, "power-of-choice");
    play(&mut engine, 1);
    let round = play(&mut engine, 2);
    assert_eq!((round.bytes_up, round.bytes_down), (Some(24 + 2 * 4), Some(2 * 24)));
    assert_eq!(round.joules, None);
    // Asking: 0.01 s down, a third of 30 samples, 32 bits up; then ten samples and the upload.
    close(round.seconds.unwrap(), 0.01 + 0.01 + 32.0 / 1920.0 + 0.01 + 0.1);
}

/// Without compute time everything is a matter of the link: an attempt takes the deadline, and attempts add up.
#[test]
fn attempts_that_bring_nothing_take_their_time() {
    let text = r#"
clients = 1
selected = 2
seeds = [1]
schemes = ["fedavg"]
[data]
set = "synthetic"
samples = 60
features = 2
classes = 2
partition = "iid"
[model]
kind = "softmax"
[network]
kind = "fixed"
failure = 0.8
deadline_seconds = 0.1
[clock]
seconds_per_sample = 0
downlink_mbit_per_s = 0.0192
"#;
    let mut engine = engine(text, "fedavg");
    play(&mut engine, 1);
    let mut most = 0;
    for number in 2..=10 {
        let round = play(&mut engine, number);
        // The client was drawn twice: two uploads, one after the other.
        close(round.seconds.unwrap(), 0.01 + 0.2 * f64::from(round.attempts));
        assert_eq!(round.bytes_up, Some(2 * 24 * u64::from(round.attempts)));
        assert_eq!(round.bytes_down, Some(24));
        most = most.max(round.attempts);
    }
    assert!(most > 1, "some round has more than one attempt");
}

/// Who is late is not waited for.
#[test]
fn the_limit_of_late_clients_ends_the_round() {
    let text = r#"
clients = 4
selected = 8
seeds = [1]
schemes = ["fedavg"]
[data]
set = "synthetic"
samples = 60
features = 2
classes = 2
partition = "iid"
[model]
kind = "softmax"
[network]
kind = "fixed"
failure = 0
deadline_seconds = 0.01
[network.stragglers]
compute = "exponential"
mean_seconds = 1
limit_seconds = 0.5
[clock]
downlink_mbit_per_s = 0.0192
"#;
    let mut engine = engine(text, "fedavg");
    play(&mut engine, 1);
    let round = play(&mut engine, 2);
    assert!(round.arrivals() < round.draws(), "somebody is late");
    close(round.seconds.unwrap(), 0.01 + 0.5 * f64::from(round.attempts));
}

#[test]
fn devices_are_drawn_in_proportion_to_their_shares() {
    let text = r#"
clients = 300
selected = 1
seeds = [1]
schemes = ["fedavg"]
[data]
set = "synthetic"
samples = 3000
features = 2
classes = 2
partition = "iid"
[model]
kind = "softmax"
[training]
local_steps = 1
batch = 1
[network]
kind = "perfect"
deadline_seconds = 0.001
[clock]
devices = [{ share = 3, seconds_per_sample = 1 }, { share = 1, seconds_per_sample = 10 }]
"#;
    let mut engine = engine(text, "fedavg");
    let slow = (1..=400).filter(|&round| play(&mut engine, round).seconds.unwrap() > 5.0).count();
    // A quarter of 400, with a deviation of √(400 · 3/16) from the draws and as much from the devices.
    assert!((60..=140).contains(&slow), "{slow}");
}

#[test]
fn wrong_clocks_are_refused_with_their_key() {
    for (clock, place) in [
        ("seconds_per_sample = -1", "clock.seconds_per_sample"),
        ("seconds_per_sample = [1, 2]", "clock.seconds_per_sample"),
        ("downlink_mbit_per_s = 0", "clock.downlink_mbit_per_s"),
        ("spread = -0.5", "clock.spread"),
        ("devices = [{ share = 1 }]", "clock.devices"),
        ("devices = [{ seconds_per_sample = 1, share = 0 }]", "clock.devices"),
        ("seconds_per_sample = 1\ndevices = [{ seconds_per_sample = 1 }]", "clock.devices"),
        ("spread = 1\n[network.stragglers]\ncompute = \"exponential\"", "clock.spread"),
        ("second_per_sample = 1", "clock"),
    ] {
        let text = format!("[clock]\n{clock}\n");
        let error = Scenario::parse("test", &text, &[], ".".as_ref()).unwrap_err().to_string();
        assert!(error.contains(place), "{clock}: {error}");
    }
    let error = Scenario::parse("test", "target_accuracy = 90", &[], ".".as_ref()).unwrap_err();
    assert!(error.to_string().contains("target_accuracy"), "{error}");
}
