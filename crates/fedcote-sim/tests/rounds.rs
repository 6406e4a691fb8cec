//! Rounds on tiny federations, against what the mathematics says.

use std::sync::Arc;

use fedcote::random::Key;
use fedcote_learn::models::{Batch, Model, Parameter, Workspace};
use fedcote_sim::task::{Job, LabelCounts, Scores, Task};
use fedcote_sim::{Classification, Engine, Error, Outcome, RoundReport, Scenario, World};

fn world(text: &str) -> World {
    world_with(text, None)
}

/// The world of a scenario, with another model than it names.
fn world_with(text: &str, model: Option<Box<dyn Model>>) -> World {
    let scenario = Scenario::parse("test", text, &[], ".".as_ref()).unwrap();
    let mut task = Classification::load(&scenario, 1).unwrap();
    task.model = model.unwrap_or(task.model);
    World::new(Arc::new(scenario), Arc::new(task), 1).unwrap()
}

fn engine(world: World, scheme: &str) -> Engine {
    let scheme = world.scenario.schemes.resolve(scheme).unwrap();
    Engine::new(Arc::new(world), scheme).unwrap()
}

fn play(engine: &mut Engine, round: u32) -> RoundReport {
    match engine.step(round).unwrap() {
        Outcome::Done(report) => report,
        Outcome::Diverged => panic!("diverged in round {round}"),
    }
}

/// A quadratic a client: the loss of a sample with label y is ½ a_y (w − b_y)².
struct Quadratic {
    parameters: Vec<Parameter>,
    curvature: [f32; 2],
    minimum: [f32; 2],
}

impl Quadratic {
    fn new(curvature: [f32; 2], minimum: [f32; 2]) -> Box<Self> {
        let parameters = Parameter::table([("w".to_owned(), vec![1])]);
        Box::new(Self { parameters, curvature, minimum })
    }
}

impl Model for Quadratic {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn inputs(&self) -> usize {
        2
    }

    fn classes(&self) -> usize {
        2
    }

    fn initialise(&self, _key: Key) -> Vec<f32> {
        vec![0.0]
    }

    fn workspace(&self, _batch: usize) -> Workspace {
        Workspace::new(())
    }

    fn loss_and_gradient(
        &self,
        weights: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
        _workspace: &mut Workspace,
    ) -> f32 {
        gradient[0] = 0.0;
        let mut loss = 0.0;
        for &label in batch.labels {
            let (a, b) = (self.curvature[usize::from(label)], self.minimum[usize::from(label)]);
            gradient[0] += a * (weights[0] - b) / batch.labels.len() as f32;
            loss += 0.5 * a * (weights[0] - b).powi(2) / batch.labels.len() as f32;
        }
        loss
    }

    fn logits<'w>(&self, _: &[f32], _: &Batch, _: &'w mut Workspace) -> &'w [f32] {
        &[]
    }
}

/// Four clients with one label each, two of either label.
const ONE_LABEL: &str = r#"
clients = 4
selected = 4
schemes = ["everyone", "everyone-scaffold"]
[data]
set = "synthetic"
samples = 80
features = 2
classes = 2
partition = "one-label"
[model]
kind = "softmax"
[training]
local_steps = 10
batch = 20
rate = 0.1
[network]
kind = "perfect"
[scheme.everyone]
base = "gs"
[scheme.everyone-scaffold]
base = "gs"
local = "scaffold"
"#;

/// With curvatures 1 and 3 and minima 0 and 1 the optimum is 3/4. Ten local steps pull FedAvg towards the mean of the
/// clients' own minima; SCAFFOLD's control variates take that away.
#[test]
fn scaffold_reaches_the_optimum_where_fedavg_is_biased() {
    let last = |scheme: &str| {
        let world = world_with(ONE_LABEL, Some(Quadratic::new([1.0, 3.0], [0.0, 1.0])));
        let mut engine = engine(world, scheme);
        for round in 1..=200 {
            assert_eq!(play(&mut engine, round).arrived.len(), 4);
        }
        f64::from(engine.global()[0])
    };
    // FedAvg's fixed point: (1 − r₁) w + (1 − r₃)(w − 1) = 0 with r_a = (1 − 0.1 a)^10.
    let (one, three) = (1.0 - 0.9f64.powi(10), 1.0 - 0.7f64.powi(10));
    let biased = three / (one + three);
    assert!((last("everyone") - biased).abs() < 1e-5, "{} {biased}", last("everyone"));
    assert!((last("everyone-scaffold") - 0.75).abs() < 1e-5, "{}", last("everyone-scaffold"));
    assert!((biased - 0.75).abs() > 0.1);
}

#[test]
fn an_update_that_is_no_number_is_a_failed_upload() {
    let world = world_with(ONE_LABEL, Some(Quadratic::new([f32::NAN, 1.0], [0.0, 1.0])));
    let healthy: Vec<u32> =
        (0..4).filter(|&client| world.federation.labels(client as usize)[1] == 1.0).collect();
    let mut engine = engine(world, "everyone");
    let arrived: Vec<u32> =
        play(&mut engine, 1).arrived.iter().map(|(client, _)| *client).collect();
    assert_eq!(arrived, healthy);
    assert!(engine.global()[0].is_finite());
}

#[test]
fn when_every_update_is_no_number_the_run_has_diverged() {
    let world = world_with(ONE_LABEL, Some(Quadratic::new([f32::NAN, f32::NAN], [0.0, 1.0])));
    let mut engine = engine(world, "everyone");
    assert!(matches!(engine.step(1).unwrap(), Outcome::Diverged));
}

/// Five clients of which some fail often; K = 3, so retries happen.
fn lossy(extra: &str, failure: &str) -> String {
    format!(
        r#"
clients = 5
selected = 3
schemes = ["fedavg", "fedcote"]
[data]
set = "synthetic"
samples = 100
features = 2
classes = 2
partition = "dirichlet"
concentration = 1.0
[model]
kind = "softmax"
[training]
local_steps = 1
batch = 1
rate = 0.01
[network]
kind = "fixed"
failure = {failure}
{extra}
"#
    )
}

/// Over many rounds a client's share of the aggregate is the appearance that the library computes.
#[test]
fn shares_in_the_aggregate_are_the_effective_appearance() {
    const ROUNDS: u32 = 40_000;
    for (uploads, draws, scheme) in [
        ("per-draw", "independent", "fedavg"),
        ("per-draw", "independent", "fedcote"),
        ("per-draw", "systematic", "fedcote"),
        ("per-client", "independent", "fedcote"),
        ("per-client", "systematic", "fedavg"),
    ] {
        let extra = format!("uploads = \"{uploads}\"\n[scheme.{scheme}]\ndraws = \"{draws}\"\n");
        let mut engine = engine(world(&lossy(&extra, "[0.05, 0.9, 0.5, 0.7, 0.3]")), scheme);
        let mut sum = [0.0; 5];
        let mut squares = [0.0; 5];
        let mut retried = 0;
        for round in 1..=ROUNDS {
            let report = play(&mut engine, round);
            retried += u32::from(report.attempts > 1);
            let total: u32 = report.arrived.iter().map(|(_, copies)| copies).sum();
            for (client, copies) in report.arrived {
                let share = f64::from(copies) / f64::from(total);
                sum[client as usize] += share;
                squares[client as usize] += share * share;
            }
        }
        assert!(retried > 100, "{scheme} {uploads} {draws}: retries must happen to be tested");
        let rounds = f64::from(ROUNDS);
        for (client, expected) in engine.probabilities().unwrap().appearance.iter().enumerate() {
            let mean = sum[client] / rounds;
            let error = ((squares[client] / rounds - mean * mean) / rounds).sqrt();
            // Five means a case and five cases: 4.5 standard errors are exceeded once in 6,000 such tests.
            assert!(
                (mean - expected).abs() <= 4.5 * error + 1e-12,
                "{scheme} {uploads} {draws} client {client}: {mean} ± {error}, expected {expected}"
            );
        }
    }
}

#[test]
fn who_can_never_arrive_is_drawn_over() {
    // Clients 1 to 4 are dead: many draws hold nobody who can arrive.
    let mut engine = engine(world(&lossy("", "[0.5, 1.0, 1.0, 1.0, 1.0]")), "fedavg");
    for round in 1..=50 {
        assert!(play(&mut engine, round).arrived.iter().all(|(client, _)| *client == 0));
    }
}

/// The mean error of what is estimated from signals after 40 rounds in which two of twenty clients are drawn.
fn signal_error(pilots: &str, scheme: &str, tables: &str) -> f64 {
    let text = format!(
        "clients = 20\nselected = 2\nschemes = [\"{scheme}\"]\n[data]\nset = \"synthetic\"\n[model]\nkind = \"softmax\"\n\
         [training]\nlocal_steps = 1\nbatch = 1\n[network]\nkind = \"radio\"\nplacement = 3\noutdoor_excess_loss_db = 26.0\n\
         knowledge = \"estimated\"\nestimator = \"signal\"\npilots = \"{pilots}\"\n{tables}"
    );
    let mut engine = engine(world(&text), scheme);
    for round in 1..=41 {
        play(&mut engine, round);
    }
    let gaps = engine.federation().failure().iter().zip(engine.failures());
    gaps.map(|(estimate, truth)| (estimate - truth).abs()).sum::<f64>() / 20.0
}

/// Who is not drawn shows its link only if everyone sends pilots: estimates of clients that are left out come close to the truth.
#[test]
fn pilots_of_everyone_show_the_links_of_clients_that_are_not_drawn() {
    let [drawn, everyone] = ["uploads", "everyone"].map(|who| signal_error(who, "fedavg", ""));
    assert!(everyone < 0.06 && everyone < 0.6 * drawn, "{drawn} and {everyone}");
}

/// Pilots used to teach a scheme whose uploads all fail equally often the links that it does not use.
#[test]
fn pilots_tell_nothing_where_uploads_do_not_go_over_these_links() {
    let scheme = "[scheme.equal]\nbase = \"fedavg\"\nfailures = \"equalised\"\n";
    let [drawn, everyone] = ["uploads", "everyone"].map(|who| signal_error(who, "equal", scheme));
    assert_eq!(drawn, everyone);
}

#[test]
fn a_network_without_hope_ends_with_an_error() {
    let scenario = lossy("", "[1.0, 1.0, 1.0, 1.0, 1.0]");
    for scheme in ["fedavg", "fedcote"] {
        let error = engine(world(&scenario), scheme).step(1).err().expect("nothing can arrive");
        assert!(
            matches!(
                error,
                Error::NobodyCanArrive { .. } | Error::NothingArrives { .. } | Error::Selection(_)
            ),
            "{error}"
        );
    }
}

/// All named schemes, and second readings of some, play, save and restore in the middle, and end with the same bits.
#[test]
fn every_scheme_goes_on_from_what_was_saved() {
    let readings = [
        ("scaffold", "advance = \"trained\""),
        ("newt", "differences = \"previous\""),
        ("power-of-choice", "loss = \"own\""),
        ("tf-aggregation", "renormalised = true\nretry = true"),
        ("fedcote", "solver = \"printed\""),
    ];
    let named = fedcote_sim::scheme::NAMED.iter().map(|named| (named.name, ""));
    for (name, reading) in named.chain(readings) {
        let extra = format!(
            "knowledge = \"estimated\"\n[server]\nexploration = 0.1\n[scheme.{name}]\n{reading}\n"
        );
        let text = lossy(&extra, "[0.05, 0.6, 0.5, 0.7, 0.3]");
        let mut whole = engine(world(&text), name);
        let mut reports: Vec<RoundReport> = (1..=12).map(|round| play(&mut whole, round)).collect();
        let mut first = engine(world(&text), name);
        (1..=5).for_each(|round| assert_eq!(play(&mut first, round), reports[round as usize - 1]));
        let mut second = engine(world(&text), name);
        second.restore(&mut first.save()).unwrap();
        for round in 6..=12 {
            assert_eq!(play(&mut second, round), reports[round as usize - 1], "{name} {round}");
        }
        assert_eq!(second.global(), whole.global(), "{name}");
        assert_eq!(second.save(), whole.save(), "{name}");
        reports.clear();
    }
}

/// A task that takes one job at a time.
struct OneByOne(Arc<dyn Task>);

impl Task for OneByOne {
    fn parameters(&self) -> &[Parameter] {
        self.0.parameters()
    }

    fn label_counts(&self) -> LabelCounts {
        self.0.label_counts()
    }

    fn initial(&self, key: Key) -> Result<Vec<f32>, Error> {
        self.0.initial(key)
    }

    fn train(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error> {
        assert_eq!(jobs.len(), 1);
        self.0.train(global, jobs)
    }

    fn jobs_at_once(&self) -> usize {
        1
    }

    fn losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        self.0.losses(model, clients)
    }

    fn rms_losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        self.0.rms_losses(model, clients)
    }

    fn evaluate(&self, model: &[f32], on_training_data: bool) -> Result<Scores, Error> {
        self.0.evaluate(model, on_training_data)
    }
}

/// Models of a round that are absorbed one by one, the next client's correction being worked out when the last model
/// is in its place, come to the same bits as all at once; also where a part besides the aggregation reads them, so that
/// nothing is absorbed (`scaffold` as the local rule).
#[test]
fn one_job_at_a_time_changes_no_bit() {
    let own = "[scheme.both]\nbase = \"fedcote-control\"\nlocal = \"scaffold\"\n\
               [scheme.labels]\nbase = \"fedcote-control\"\nmemory = \"labels\"\n";
    let text = format!("{}\n{own}", lossy("", "[0.05, 0.6, 0.5, 0.7, 0.3]"))
        .replace("local_steps = 1", "local_steps = 3")
        .replace("schemes = [", "schemes = [\"both\", \"labels\", ");
    let named = fedcote_sim::scheme::NAMED.iter().map(|named| named.name);
    for name in named.chain(["both", "labels"]) {
        let mut all = engine(world(&text), name);
        let mut single = world(&text);
        single.task = Arc::new(OneByOne(Arc::clone(&single.task)));
        let mut single = engine(single, name);
        for round in 1..=12 {
            assert_eq!(play(&mut all, round), play(&mut single, round), "{name} {round}");
        }
        assert_eq!(all.save(), single.save(), "{name}");
    }
}

/// Schemes meet the same network: whoever is drawn in the same round by two schemes fares the same.
#[test]
fn all_schemes_meet_the_same_network() {
    let text = lossy("", "[0.05, 0.6, 0.5, 0.7, 0.3]");
    let mut fedavg = engine(world(&text), "fedavg");
    let mut prox = engine(world(&text), "fedprox");
    for round in 1..=30 {
        let (one, two) = (play(&mut fedavg, round), play(&mut prox, round));
        assert_eq!(
            (one.selected, one.arrived, one.attempts),
            (two.selected, two.arrived, two.attempts)
        );
    }
}

/// With noise on label counts the server sees other counts than there are; what it realises is measured on the truth.
#[test]
fn label_privacy_blurs_what_the_server_sees() {
    let open = world(&lossy("", "[0.05, 0.6, 0.5, 0.7, 0.3]"));
    assert_eq!(open.reported.all_labels(), open.federation.all_labels());
    let blurred = world(&lossy("[server]\nlabel_privacy = 0.5", "[0.05, 0.6, 0.5, 0.7, 0.3]"));
    assert_eq!(blurred.federation.all_labels(), open.federation.all_labels());
    assert_ne!(blurred.reported.all_labels(), open.federation.all_labels());
    let again = world(&lossy("[server]\nlabel_privacy = 0.5", "[0.05, 0.6, 0.5, 0.7, 0.3]"));
    assert_eq!(again.reported.all_labels(), blurred.reported.all_labels());
    let mut engine = engine(blurred, "fedcote");
    assert!(play(&mut engine, 1).label_divergence_realised.is_some());
}

/// A trace with a round in which everyone fails used to end the whole comparison.
#[test]
fn a_dead_round_of_a_trace_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = String::from("round,client,failure\n");
    for round in 1..=3 {
        for client in 1..=5 {
            trace += &format!("{round},{client},{}\n", u8::from(round == 2));
        }
    }
    std::fs::write(folder.path().join("trace.csv"), trace).unwrap();
    let network = "kind = \"trace\"\nfile = \"trace.csv\"\n";
    let text = lossy("", "[]").replace("kind = \"fixed\"\nfailure = []\n", network);
    for scheme in ["fedavg", "fedcote", "fedcote-gradient", "tf-aggregation"] {
        let scenario = Scenario::parse("test", &text, &[], folder.path()).unwrap();
        let task = Arc::new(Classification::load(&scenario, 1).unwrap());
        let mut engine = engine(World::new(Arc::new(scenario), task, 1).unwrap(), scheme);
        assert!(!play(&mut engine, 1).arrived.is_empty(), "{scheme}");
        let before = engine.global().to_vec();
        assert!(play(&mut engine, 2).selected.is_empty(), "{scheme}");
        assert_eq!(engine.global(), before, "{scheme}");
        assert!(!play(&mut engine, 3).arrived.is_empty(), "{scheme}");
    }
}

/// Everyone above the threshold used to end the comparison of all schemes.
#[test]
fn a_threshold_that_nobody_meets_leaves_everyone_in() {
    for scheme in ["fedcote-gradient", "fedcote-ii", "tf-aggregation", "fedcote"] {
        let mut engine = engine(world(&lossy("", "[0.9, 0.9, 0.9, 0.9, 0.9]")), scheme);
        play(&mut engine, 1);
    }
}

/// With memory, who is asked decides how fresh updates are; the labels of the aggregate are those of the remembered.
#[test]
fn memory_reports_the_labels_that_it_leads_to() {
    for scheme in ["fedcote-memory", "mifa"] {
        let mut engine = engine(world(&lossy("", "[0.05, 0.9, 0.5, 0.7, 0.3]")), scheme);
        for round in 1..300 {
            play(&mut engine, round);
        }
        let report = play(&mut engine, 300);
        let (wanted, realised) =
            (report.label_divergence_wanted.unwrap(), report.label_divergence_realised.unwrap());
        assert!((wanted - realised).abs() < 1e-9, "{scheme}: {wanted} {realised}");
    }
}

/// With corrections switched off, and with one local step, in which nothing drifts, control variates on the server are
/// memory.
#[test]
fn control_without_corrections_is_memory_to_the_bit() {
    let final_models = |extra: &str, steps: &str| -> Vec<Vec<f32>> {
        let text = format!(
            "{}\n[scheme.off]\nbase = \"fedcote-control\"\n{extra}",
            lossy("", "[0.05, 0.9, 0.5, 0.7, 0.3]")
        );
        let text = text.replace("\"fedcote\"]", "\"fedcote\", \"off\"]");
        let text = text.replace("local_steps = 1", &format!("local_steps = {steps}"));
        ["fedcote-memory", "off"]
            .map(|scheme| {
                let mut engine = engine(world(&text), scheme);
                for round in 1..=15 {
                    play(&mut engine, round);
                }
                engine.global().to_vec()
            })
            .to_vec()
    };
    for (extra, steps) in
        [("correction = \"none\"\n", "4"), ("correction = \"none\"\n", "[2, 5]"), ("", "1")]
    {
        let models = final_models(extra, steps);
        assert_eq!(models[0], models[1], "{extra} {steps}");
    }
    let corrected = final_models("correction = \"full\"\n", "4");
    assert_ne!(corrected[0], corrected[1]);
}

/// Steps are too long: corrections end, the server is back where it began, remembering nobody; with steps a tenth as long they
/// begin again. What is saved anywhere on the way goes on to the same bits.
#[test]
fn control_ends_where_it_is_unstable_and_begins_again_with_shorter_steps() {
    let text = format!("{}\n", lossy("", "[0.05, 0.5, 0.3, 0.2, 0.1]")).replace(
        "local_steps = 1",
        "local_steps = 3\nrate_changes = [[1, 40.0], [40, 4.0], [41, 0.005]]",
    );
    let mut whole = engine(world(&text), "fedcote-control");
    let initial = whole.global().to_vec();
    let (mut corrected, mut saved, mut ended) = (Vec::new(), Vec::new(), None);
    for round in 1..=80 {
        let sent = play(&mut whole, round).scores["corrected"] == 1.0;
        corrected.push(sent);
        saved.push(whole.save().into_owned());
        if sent && ended.is_none() && whole.global() == initial {
            ended = Some(round as usize);
        }
    }
    let ended = ended.expect("the steps are too long");
    assert!((6..30).contains(&ended), "{ended}");
    assert!(corrected[1..ended].iter().any(|sent| *sent), "{corrected:?}");
    assert!(corrected[ended..40].iter().all(|sent| !*sent), "{corrected:?}");
    assert!(corrected[42..].iter().any(|sent| *sent), "{corrected:?}");
    for after in [1, ended - 1, ended, ended + 1, 39, 40, 41, 60] {
        let mut again = engine(world(&text), "fedcote-control");
        again.restore(&mut saved[after - 1].clone()).unwrap();
        for round in after as u32 + 1..=80 {
            play(&mut again, round);
        }
        assert_eq!(again.global(), whole.global(), "{after}");
    }
}

/// A buffer of two and two clients, who take 1 s and 2.5 s from the minima −5 and 5; a maker of engines, and the number of the fast client.
fn two_under_way(availability: &str) -> (impl Fn() -> Engine, u32) {
    let availability = availability.to_owned();
    let text = move |times: &str| {
        format!(
            r#"
clients = 2
selected = 2
schemes = ["fedbuff"]
[data]
set = "synthetic"
samples = 80
features = 2
classes = 2
partition = "one-label"
[model]
kind = "softmax"
[training]
local_steps = 1
batch = 20
rate = 0.1
[network]
kind = "perfect"
deadline_seconds = 0.25
[clock]
seconds_per_sample = {times}
downlink_mbit_per_s = 0.000128
[scheme.fedbuff]
buffer = 2
{availability}
"#
        )
    };
    let quadratic = || Some(Quadratic::new([1.0, 1.0], [-5.0, 5.0]) as Box<dyn Model>);
    let made = move |times: &str| engine(world_with(&text(times), quadratic()), "fedbuff");
    let first = made("1").world().federation.labels(0)[0] == 1.0;
    let times = if first { "[0.025, 0.1]" } else { "[0.1, 0.025]" };
    (move || made(times), u32::from(!first))
}

/// FedBuff with a buffer of two and two clients under way, who take 1 s and 2.5 s from the minima −5 and 5. The fast one ends at 1 and at 2,
/// twice with −0.5: w = −0.5. The slow one, which started from 0, ends at 2.5 with 0.5 / √2, the fast one at 3 with −0.45:
/// w = −0.5 + (0.353553 − 0.45)/2 = −0.548223.
#[test]
fn buffered_updates_are_as_by_hand() {
    let (made, fast) = two_under_way("");
    let mut engine = made();
    let report = play(&mut engine, 1);
    assert!((engine.global()[0] + 0.5).abs() < 1e-6, "{}", engine.global()[0]);
    assert_eq!(report.arrived, [(fast, 2)]);
    // Before it each client has told how many samples it has, in 0.25 s.
    assert!((report.seconds.unwrap() - 2.25).abs() < 1e-9, "{:?}", report.seconds);
    assert_eq!((report.bytes_down, report.bytes_up), (Some(3 * 4), Some(3 * 4 + 2 * 4)));
    // What is saved goes on as if nothing had happened.
    let mut again = made();
    again.restore(&mut engine.save()).unwrap();
    for engine in [&mut engine, &mut again] {
        let report = play(engine, 2);
        assert!((engine.global()[0] + 0.548_223_3).abs() < 1e-6, "{}", engine.global()[0]);
        let mut arrived = report.arrived.clone();
        arrived.sort_unstable();
        assert_eq!(arrived, [(0, 1), (1, 1)]);
        assert!((report.seconds.unwrap() - 1.0).abs() < 1e-9, "{:?}", report.seconds);
    }
    assert_eq!(engine.global(), again.global());
}

/// Regression: a round with nobody there was skipped although an upload was under way, and took no time on the clock of those under way. The first
/// two rounds of four are those of `buffered_updates_are_as_by_hand`; the slow client starts again at 2.5 s, from −0.5, and ends at 5 s, in round
/// 3. Nothing happens in round 4, whose deadline of 0.25 s passes. In round 5 the fast one ends after another second:
/// w = −0.548223 + (0.55/√2 − 0.445178)/2 = −0.576358.
#[test]
fn those_under_way_end_in_rounds_with_nobody_there() {
    let (made, _) = two_under_way(
        "[network.availability]\nkind = \"bernoulli\"\nprobability = 1.0\npattern = \"staircase\"\nperiod = 4\nlow = 0.0",
    );
    let mut engine = made();
    let expected = [2.25, 1.0, 2.0, 0.25, 1.0];
    for (round, seconds) in (1..).zip(expected) {
        let mut again = made();
        if round > 1 {
            again.restore(&mut engine.save()).unwrap();
        }
        let report = play(&mut engine, round);
        assert_eq!(play(&mut again, round), report, "what is saved goes on");
        assert!((report.seconds.unwrap() - seconds).abs() < 1e-9, "{round}: {:?}", report.seconds);
        assert_eq!(report.arrived.is_empty(), round == 3 || round == 4, "{round}");
        if round == 5 {
            let mut arrived = report.arrived.clone();
            arrived.sort_unstable();
            assert_eq!(arrived, [(0, 1), (1, 1)]);
            assert_eq!(report.draws(), 2);
        }
    }
    assert!((engine.global()[0] + 0.576_357_7).abs() < 1e-6, "{}", engine.global()[0]);
}

/// An upload that is lost frees its place and takes its time.
#[test]
fn lost_uploads_cost_a_buffer_time() {
    let text = ONE_LABEL.replace("kind = \"perfect\"", "kind = \"fixed\"\nfailure = 0.5");
    let text = format!(
        "{}[scheme.fedbuff]\nbuffer = 2\n",
        text.replace("\"everyone\",", "\"everyone\", \"fedbuff\",")
    );
    let mut engine =
        engine(world_with(&text, Some(Quadratic::new([1.0, 3.0], [0.0, 1.0]))), "fedbuff");
    let reports: Vec<RoundReport> = (1..=200).map(|round| play(&mut engine, round)).collect();
    assert!(reports.iter().all(|report| report.arrivals() == 2));
    // Every other upload is lost: 800 start for 400 that arrive, with a deviation of 28.
    let started: u64 = reports.iter().map(|report| report.draws()).sum();
    assert!((700..=900).contains(&started), "{started}");
}

#[test]
fn corrections_do_not_go_with_a_buffer() {
    for (table, place) in [
        ("local = \"scaffold\"", "scheme.fedbuff.local"),
        ("aggregation = \"memory\"", "scheme.fedbuff.aggregation"),
    ] {
        let text = format!("schemes = [\"fedbuff\"]\n[scheme.fedbuff]\n{table}\n");
        let error = Scenario::parse("test", &text, &[], ".".as_ref()).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}
