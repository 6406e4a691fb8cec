//! The schemes for clients that come and go, on a problem that can be worked by hand: two clients with the losses (w − u)²/2, u = 0 and 10, one step of
//! rate 0.1, w = 5 at first. Arrivals: the first client in rounds 1 and 2, both in round 3, the second in round 4, nobody in round 5. Where
//! probabilities are needed they are 0.8 and 0.5.

use std::sync::Arc;

use fedcote::random::{Key, Stream};
use fedcote_learn::models::Parameter;
use fedcote_radio::{Network, Source};
use fedcote_sim::task::{Job, LabelCounts, Scores, Task};
use fedcote_sim::{Engine, Error, Outcome, Scenario, World};

const ARRIVALS: [[bool; 2]; 5] =
    [[true, false], [true, false], [true, true], [false, true], [false, false]];

struct Toy {
    parameters: Vec<Parameter>,
}

impl Task for Toy {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn label_counts(&self) -> LabelCounts {
        LabelCounts { classes: 2, counts: vec![4.0, 0.0, 0.0, 4.0] }
    }

    fn initial(&self, _key: Key) -> Result<Vec<f32>, Error> {
        Ok(vec![5.0])
    }

    fn train(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error> {
        for job in jobs {
            let goal = 10.0 * job.client as f32;
            let mut model = job.start.map_or_else(|| global.to_vec(), <[f32]>::to_vec);
            for _ in 0..job.steps {
                let mut gradient = [model[0] - goal];
                job.correction.apply(&model, global, &mut gradient);
                model[0] -= job.rate * gradient[0];
            }
            (job.model, job.finite) = (model, true);
        }
        Ok(())
    }

    fn losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        let loss = |&client: &u32| (f64::from(model[0]) - 10.0 * f64::from(client)).powi(2) / 2.0;
        Ok(clients.iter().map(loss).collect())
    }

    fn rms_losses(&self, _model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        let squares: f64 = [1.0, 2.0, 3.0, 0.5].iter().map(|loss: &f64| loss * loss).sum();
        Ok(vec![(squares / 4.0).sqrt(); clients.len()])
    }

    fn evaluate(&self, model: &[f32], _on_training_data: bool) -> Result<Scores, Error> {
        Ok(vec![("value".to_owned(), model[0].into())])
    }
}

/// Who arrives is written down; what the server knows are the probabilities, or who is there.
#[derive(Debug)]
struct Script {
    shows: bool,
}

impl Source for Script {
    fn clients(&self) -> usize {
        2
    }

    fn failure(&self, round: u32, client: usize) -> f64 {
        match self.shows {
            true => f64::from(u8::from(!ARRIVALS[round as usize - 1][client])),
            false => [0.2, 0.5][client],
        }
    }

    fn arrives(&self, round: u32, client: usize, _stream: &mut Stream) -> bool {
        ARRIVALS[round as usize - 1][client]
    }

    fn moves(&self) -> bool {
        true
    }
}

fn engine(scheme: &str, table: &str, selected: &str, shows: bool) -> Engine {
    let text = format!(
        "rounds = 5\nclients = 2\nselected = {selected}\nschemes = [\"{scheme}\"]\n\
         [training]\nlocal_steps = 1\nbatch = 4\nrate = 0.1\n\
         [network]\nkind = \"fixed\"\nfailure = [0.2, 0.5]\n[scheme.{scheme}]\n{table}"
    );
    let scenario = Scenario::parse("test", &text, &[], ".".as_ref()).unwrap();
    let parameters = vec![Parameter { name: "w".into(), shape: vec![1], offset: 0 }];
    let scheme = scenario.schemes.resolve(scheme).unwrap();
    let mut world = World::new(Arc::new(scenario), Arc::new(Toy { parameters }), 1).unwrap();
    world.network = Network::from_source(Box::new(Script { shows }), 1e6);
    Engine::new(Arc::new(world), scheme).unwrap()
}

fn play(engine: &mut Engine) -> Vec<(f32, f32)> {
    let mut values = Vec::new();
    for round in 1..=5 {
        let Outcome::Done(report) = engine.step(round).unwrap() else { panic!("diverged") };
        let arrived = ARRIVALS[round as usize - 1].iter().filter(|arrived| **arrived).count();
        assert!(report.arrived.len() <= arrived);
        values.push((engine.global()[0], engine.model()[0]));
    }
    values
}

/// Half a unit of the sixth decimal, as which the values are given, and one unit of single precision between 4 and 8, 4.8e-7.
fn near(found: impl Into<f64>, wanted: f64, what: &str) {
    let found = found.into();
    assert!((found - wanted).abs() < 1e-6, "{what}: {found} instead of {wanted}");
}

#[test]
fn global_models_are_as_by_hand() {
    for (scheme, table, wanted) in [
        ("fedavg-all", "", [4.75, 4.5125, 4.56125, 4.833188, 4.833188]),
        ("fedavg-known", "", [4.6875, 4.394531, 4.680420, 5.212378, 5.212378]),
        // Keeps both in every round, with the weights 0.5/0.8 and 0.5/0.5: with equal losses leaving one out costs a quarter of the largest.
        ("ca-fed", "", [4.6875, 4.394531, 4.680420, 5.212378, 5.212378]),
        ("fedawe", "clip = 0", [4.5, 4.05, 5.0725, 5.56525, 5.56525]),
        ("fedawe", "", [4.5, 4.05, 5.025, 5.5225, 5.5225]),
        ("fedpbc", "", [4.5, 4.05, 5.0, 5.5, 5.5]),
        ("fedstale", "", [4.6875, 4.425781, 4.735889, 5.012300, 5.012300]),
        ("fedstale", "stale = 1", [4.6875, 4.457031, 4.791357, 4.812222, 4.812222]),
        ("fedstale", "stale = 0", [4.6875, 4.394531, 4.680420, 5.212378, 5.212378]),
        ("amplified-fedavg", "every = 2\namplification = 2", [4.5, 3.1, 3.29, 4.822, 4.822]),
        ("amplified-scaffold", "every = 2", [4.5, 3.575, 3.7175, 4.374875, 4.374875]),
        ("feddyn", "alpha = 1", [4.25, 3.4375, 3.4, 4.054063, 4.054063]),
    ] {
        let mut engine = engine(scheme, table, "\"all\"", false);
        for (round, ((global, _), wanted)) in play(&mut engine).into_iter().zip(wanted).enumerate()
        {
            near(global, wanted, &format!("{scheme} {table}, round {}", round + 1));
        }
    }
}

/// Averages of what arrives, and of everyone's latest update. The server sees that nobody is there in round 5, in which neither steps. (FedAR
/// with ψ = 1 is another scheme: as `mifa` up to round 4, but it steps in round 5, too, to 4.3255.)
#[test]
fn means_of_arrivals_and_of_memories_are_as_by_hand() {
    for (scheme, wanted) in [
        ("fedavg", [4.5, 4.05, 4.145, 4.7305, 4.7305]),
        ("mifa", [4.5, 4.05, 4.145, 4.23525, 4.23525]),
    ] {
        let mut engine = engine(scheme, "", "\"all\"", true);
        for (round, ((global, _), wanted)) in play(&mut engine).into_iter().zip(wanted).enumerate()
        {
            near(global, wanted, &format!("{scheme}, round {}", round + 1));
        }
    }
}

/// Four samples with the losses 1, 2, 3 and 0.5: U = 4 √((1 + 4 + 9 + 0.25)/4).
#[test]
fn the_utility_of_oort_is_as_by_hand() {
    let mut engine = engine("oort", "", "1", true);
    engine.step(1).unwrap();
    let saved = engine.save().into_owned();
    let tried: serde_json::Value = saved.get_value("oort.tried").unwrap();
    near(tried["clients"][0][0].as_f64().unwrap(), 7.549834, "U");
}

#[test]
fn f3ast_chooses_and_weighs_as_by_hand() {
    let mut engine = engine("f3ast", "smoothing = 0.1", "1", true);
    let wanted = [4.545455, 4.163484, 4.791742, 5.294421, 5.294421];
    let asked: [&[(u32, u32)]; 5] = [&[(0, 1)], &[(0, 1)], &[(1, 1)], &[(1, 1)], &[]];
    for (round, (wanted, asked)) in wanted.into_iter().zip(asked).enumerate() {
        let Outcome::Done(report) = engine.step(round as u32 + 1).unwrap() else { panic!() };
        assert_eq!(report.selected, asked, "{round}");
        near(engine.global()[0], wanted, "f3ast");
    }
    let saved = engine.save();
    for name in ["f3ast.arrived", "f3ast.selected"] {
        let rates: Vec<f64> = saved.get_value(name).unwrap();
        near(rates[0], 0.433755, name);
        near(rates[1], 0.466245, name);
    }
}

/// What is remembered, and the models that are evaluated.
#[test]
fn states_are_as_by_hand() {
    let state = |scheme: &str, table: &str| {
        let mut engine = engine(scheme, table, "\"all\"", false);
        let values = play(&mut engine);
        let models: Vec<f32> = values.into_iter().map(|(_, model)| model).collect();
        (models, engine.save().into_owned())
    };
    let (models, saved) = state("fedawe", "clip = 0");
    near(models[4], 5.318875, "the mean of 5.0725 and 5.56525");
    let mut versions = saved.tensors["fedawe.models"].to_vec();
    versions.sort_by(f32::total_cmp);
    near(versions[0], 5.0725, "the first client's model");
    near(versions[1], 5.56525, "the second client's model");
    let (models, saved) = state("fedpbc", "");
    models.iter().for_each(|model| near(*model, 5.0, "the mean of FedPBC"));
    // The first client was trained first: round by round rows are added as clients are heard.
    let mut own = saved.tensors["fedpbc.models"].to_vec();
    own.sort_by(f32::total_cmp);
    near(own[0], 4.05, "FedPBC's first model");
    near(own[1], 5.95, "FedPBC's second model");
    let (_, saved) = state("fedstale", "");
    near(saved.tensors["fedstale.updates"][0], -0.442578, "h of the first client");
    near(saved.tensors["fedstale.updates"][1], 0.526411, "h of the second client");
    let (_, saved) = state("amplified-scaffold", "every = 2");
    near(saved.tensors["amplified.clients"][0], 3.575, "c of the first client");
    near(saved.tensors["amplified.clients"][1], -6.35375, "c of the second client");
    near(saved.tensors["amplified.server"][0], -1.389375, "c");
    let (models, saved) = state("feddyn", "alpha = 1");
    near(saved.tensors["feddyn.clients"][0], -1.13125, "λ of the first client");
    near(saved.tensors["feddyn.clients"][1], 1.250625, "λ of the second client");
    // The mean of what arrived: the global model without λ̄.
    near(models[4], 4.054063 - 0.5 * (1.250625 - 1.13125), "FedDyn's model");
}

/// In each round in which a client arrives, the echoes of FedAWE so far add up to the round's number.
#[test]
fn echoes_make_up_for_every_round_missed() {
    let mut echoes = [0u32; 2];
    let mut last = [0u32; 2];
    let mut engine = engine("fedawe", "clip = 0", "\"all\"", false);
    for round in 1..=5u32 {
        let before = engine.save().into_owned();
        engine.step(round).unwrap();
        for client in 0..2 {
            if ARRIVALS[round as usize - 1][client] {
                let known: Vec<u32> = before.get_value("fedawe.last").unwrap();
                assert_eq!(known.get(client).copied().unwrap_or(0), last[client]);
                echoes[client] += round - last[client];
                last[client] = round;
                assert_eq!(echoes[client], round);
            }
        }
    }
}

const AWAY: &str = r#"
clients = 8
schemes = ["fedavg"]
[data]
set = "synthetic"
samples = 160
features = 4
classes = 4
partition = "dirichlet-cut"
concentration = 1.0
[model]
kind = "softmax"
[training]
local_steps = 2
batch = 16
rate = 0.1
rate_decay = 0.1
[network]
kind = "fixed"
failure = 0.1
"#;

fn away(top: &str, extra: &str, scheme: &str) -> Engine {
    let text = format!("{top}{AWAY}{extra}");
    let scenario = Arc::new(Scenario::parse("test", &text, &[], ".".as_ref()).unwrap());
    let task = Arc::new(fedcote_sim::Classification::load(&scenario, 2).unwrap());
    let scheme = scenario.schemes.resolve(scheme).unwrap();
    Engine::new(Arc::new(World::new(scenario, task, 2).unwrap()), scheme).unwrap()
}

fn round(engine: &mut Engine, number: u32) -> fedcote_sim::RoundReport {
    match engine.step(number).unwrap() {
        Outcome::Done(report) => report,
        Outcome::Diverged => panic!("diverged in round {number}"),
    }
}

/// Everyone who is there is asked, nobody else; what arrives comes from them. Every scheme goes on from what was saved, whatever the server knows.
#[test]
fn every_scheme_meets_clients_that_come_and_go() {
    let kinds = [
        (
            "selected = \"all\"\n",
            "[network.availability]\nkind = \"label-coupled\"\npattern = \"sine\"\n",
        ),
        (
            "selected = \"all\"\n",
            "knowledge = \"estimated\"\n[network.availability]\nkind = \"markov\"\nprobability = 0.2\ncorrelation = 0.6\n",
        ),
        (
            "selected = 3\n",
            "[network.availability]\nkind = \"markov\"\nprobability = 0.2\ncorrelation = 0.6\nknown = \"now\"\n",
        ),
    ];
    for (top, extra) in kinds {
        let mut empty = 0;
        for named in fedcote_sim::scheme::NAMED {
            let name = named.name;
            let mut whole = away(top, extra, name);
            let reports: Vec<_> = (1..=12).map(|number| round(&mut whole, number)).collect();
            let network = &whole.world().network;
            for report in &reports {
                let there = |client: usize| network.available(report.round, client);
                empty += u32::from((0..8).all(|client| !there(client)));
                let meets = whole.world().scenario.schemes.resolve(name).unwrap().failures;
                if meets != fedcote_sim::scheme::FailureKind::Network {
                    continue;
                }
                // Who arrives at an asynchronous server was there when it began.
                let arrived = report.arrived.iter().all(|(client, _)| there(*client as usize));
                assert!(arrived || name == "fedbuff", "{name}");
                if top.contains("all") && ["fedavg", "fedcote", "fedawe", "mifa"].contains(&name) {
                    let asked: Vec<usize> =
                        report.selected.iter().map(|(client, _)| *client as usize).collect();
                    let wanted: Vec<usize> = (0..8).filter(|&client| there(client)).collect();
                    assert_eq!(asked, wanted, "{name} round {}", report.round);
                }
            }
            let mut first = away(top, extra, name);
            (1..=5).for_each(|number| drop(round(&mut first, number)));
            let mut second = away(top, extra, name);
            second.restore(&mut first.save()).unwrap();
            for number in 6..=12 {
                assert_eq!(round(&mut second, number), reports[number as usize - 1], "{name}");
            }
            assert_eq!(second.save(), whole.save(), "{name} {extra}");
            assert_eq!(second.model(), whole.model(), "{name} {extra}");
        }
        assert!(empty > 0 || !extra.contains("markov"), "rounds without anybody are tested");
    }
}

/// Regression: where nobody is ever there all rounds were played without any arrival.
#[test]
fn who_is_never_there_is_not_waited_for() {
    for (extra, hopeless) in [
        ("kind = \"bernoulli\"\nprobability = 0.0", true),
        ("kind = \"markov\"\nprobability = 0.0\ncorrelation = 0.5", true),
        ("kind = \"gilbert-elliott\"\ngood = 0.0\nbad = 0.0", true),
        (
            "kind = \"bernoulli\"\nprobability = 0.5\npattern = \"interleaved-sine\"\ncutoff = 0.6",
            true,
        ),
        // Away in the first round, but not in the second.
        (
            "kind = \"bernoulli\"\nprobability = 1.0\npattern = \"sine\"\namplitude = 1.0\nperiod = 4",
            false,
        ),
    ] {
        for scheme in ["fedavg", "fedawe", "fedcote", "fedbuff"] {
            let table = format!("[network.availability]\n{extra}\n");
            let mut engine = away("selected = \"all\"\n", &table, scheme);
            let refused = matches!(engine.step(1), Err(Error::NobodyCanArrive { round: 1 }));
            assert_eq!(refused, hopeless, "{scheme} {extra}");
        }
    }
}

/// Regression: chains that cannot have the correlation asked for got another one without a word. Coming back and going away have the
/// probabilities (1 − λ)π and (1 − λ)(1 − π), of which neither is above 1.
#[test]
fn chains_of_another_correlation_are_told() {
    let table = "[network.availability]\nkind = \"markov\"\nprobability = \"mifa\"\ncorrelation = ";
    let warnings = |lambda: f64| {
        let engine = away("selected = \"all\"\n", &format!("{table}{lambda:?}\n"), "fedavg");
        let availability = engine.world().network.availability().unwrap();
        let share = |client: usize| availability.probability(1, client);
        let impossible =
            (0..8).filter(|&client| (1.0 - lambda) * share(client).max(1.0 - share(client)) > 1.0);
        let names: Vec<String> = impossible.map(|client| (client + 1).to_string()).collect();
        (names.join(", "), engine.warnings())
    };
    let (names, told) = warnings(-0.9);
    assert!(!names.is_empty());
    let wanted = format!(
        "network.availability.correlation: no such chain for the probabilities of clients {names}; they have the smallest correlation there is"
    );
    assert_eq!(told, [wanted]);
    assert_eq!(warnings(0.5), (String::new(), Vec::new()));
}

/// Where everyone is asked there is nothing to select: FedCote's schemes are those of the weights.
#[test]
fn asking_everyone_leaves_nothing_to_select() {
    let extra = "[network.availability]\nkind = \"label-coupled\"\n";
    for (one, two) in [("fedcote", "fedavg"), ("fedcote-memory", "mifa")] {
        let [one, two] = [one, two].map(|scheme| {
            let mut engine = away("selected = \"all\"\n", extra, scheme);
            (1..=8).for_each(|number| drop(round(&mut engine, number)));
            engine.global().to_vec()
        });
        assert_eq!(one, two);
    }
}

/// The rate of round r is divided by √(1 + (r − 1)/10): FedAWE's η₀/√(t/10 + 1), t from 0.
#[test]
fn the_rate_falls_by_the_square_root() {
    let engine = away("selected = \"all\"\n", "", "fedavg");
    let training = &engine.world().scenario.training;
    for (round, wanted) in [(1, 0.1), (11, 0.1 / 2f64.sqrt()), (91, 0.1 / 10f64.sqrt())] {
        assert!((f64::from(training.rate_in(round)) - wanted).abs() < 1e-8, "{round}");
    }
}

/// The network of FedAWE's code: 896 + 9,248 + 524,544 + 16,448 + 650 parameters.
#[test]
fn the_preset_has_fedawes_network() {
    let scenario = Scenario::load("fedawe", &[]).unwrap();
    assert_eq!(scenario.model_parameters().unwrap(), 551_786);
    let small = Scenario::load("fedawe-mnist", &[]).unwrap();
    assert_eq!(scenario.network, small.network);
    assert_eq!(scenario.general.schemes, small.general.schemes);
}
