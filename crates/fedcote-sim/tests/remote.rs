//! Runs whose rounds are computed elsewhere: same bits, whatever is lost, repeated or answered in another order.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fedcote_sim::comparison::{Control, Event, RunId, Shard, compare};
use fedcote_sim::remote::{Piece, Remote};
use fedcote_sim::stretch::State;
use fedcote_sim::worker::Worker;
use fedcote_sim::{Classifications, Error, Scenario, Tasks};

const TEXT: &str = r#"
rounds = 11
clients = 6
selected = 4
seeds = [1, 2]
schemes = ["fedavg", "scaffold", "fedcote-memory", "fedcote-control"]
evaluate_every = 3
checkpoint_every = 4
[data]
set = "synthetic"
samples = 300
features = 6
classes = 3
partition = "dirichlet"
[model]
kind = "mlp"
hidden = [5]
[training]
batch = 8
rate = 0.1
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
knowledge = "estimated"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text, &[], ".".as_ref()).unwrap()
}

/// A piece of work on its way.
struct Sent {
    number: usize,
    scenario: String,
    run: RunId,
    state: Option<State>,
    rounds: u32,
}

/// Another machine, which answers the newest piece first, computes every third one twice, and fails when told to.
struct Elsewhere {
    worker: Worker,
    rounds: Option<u32>,
    sent: Mutex<Vec<Sent>>,
    answers: AtomicUsize,
    /// The answer that is an error instead.
    fails_at: usize,
}

impl Elsewhere {
    fn new(rounds: Option<u32>) -> Self {
        let worker = Worker::new(1).unwrap();
        let (sent, answers) = (Mutex::default(), AtomicUsize::new(0));
        Self { worker, rounds, sent, answers, fails_at: usize::MAX }
    }
}

fn built_in(scenario: &Scenario) -> Result<Box<dyn Tasks>, Error> {
    Ok(Box::new(Classifications::later(scenario)))
}

impl Remote for Elsewhere {
    fn rounds(&self) -> Option<u32> {
        self.rounds
    }

    fn room(&self) -> Result<usize, Error> {
        Ok(3)
    }

    fn submit(&self, number: usize, piece: &Piece) -> Result<(), Error> {
        let (scenario, run) = (piece.scenario.to_owned(), piece.run.clone());
        let state = piece.state.map(|state| State::from_bytes(state.as_bytes()));
        let rounds = piece.rounds;
        self.sent.lock().unwrap().push(Sent { number, scenario, run, state, rounds });
        assert!(self.sent.lock().unwrap().len() <= 3);
        Ok(())
    }

    fn wait(&self) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        let Some(sent) = self.sent.lock().unwrap().pop() else { return Ok(Vec::new()) };
        let count = self.answers.fetch_add(1, Ordering::Relaxed);
        if count == self.fails_at {
            return Err(Error::remote("node 7: it burns"));
        }
        let Sent { number, scenario, run, state, rounds } = sent;
        let play = || self.worker.play(&scenario, &built_in, &run, state.as_ref(), rounds);
        let answer = play()?;
        if count.is_multiple_of(3) {
            let again = play()?.to_bytes();
            // All but the seconds, of which both have as many bytes or nearly so.
            assert_eq!(again.last_chunk::<64>(), answer.to_bytes().last_chunk::<64>());
        }
        Ok(vec![(number, answer.to_bytes())])
    }

    fn cancel(&self) {
        self.sent.lock().unwrap().clear();
    }
}

/// A comparison, here or elsewhere; false when it was interrupted.
fn perform(
    text: &str,
    out: &Path,
    remote: Option<&dyn Remote>,
    most_rounds: usize,
) -> Result<bool, Error> {
    let scenario = scenario(text);
    let stop = AtomicBool::new(false);
    let played = AtomicUsize::new(0);
    let listener = |_: &RunId, event: Event| {
        if let Event::Round(_) = event {
            let played = played.fetch_add(1, Ordering::Relaxed) + 1;
            stop.fetch_or(played >= most_rounds, Ordering::Relaxed);
        }
    };
    let control = Control {
        threads: 1,
        remote,
        resume: true,
        shard: Shard::ALL,
        stop: &stop,
        command: "a test".to_owned(),
        tensorboard: false,
    };
    let tasks = Classifications::later(&scenario);
    Ok(compare(&scenario, &tasks, out, &control, &listener)?.is_some())
}

/// All files of the runs, and how they ended without the seconds.
fn results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for RunId { scheme, seed } in fedcote_sim::comparison::plan(&scenario(TEXT)) {
        let run = out.join(&scheme).join(seed.to_string());
        for name in ["metrics.jsonl", "model.safetensors", "clients.json", "config.toml"] {
            files.push((format!("{scheme}/{seed}/{name}"), fs::read(run.join(name)).unwrap()));
        }
        let ended = fs::read(run.join("finished.json")).unwrap();
        let mut ended: serde_json::Value = serde_json::from_slice(&ended).unwrap();
        ended["seconds"] = 0.into();
        ended["checksums"]["finished.json"] = "".into();
        files.push((format!("{scheme}/{seed}"), ended.to_string().into_bytes()));
        assert!(!run.join("checkpoint").exists());
    }
    files
}

#[test]
fn what_is_computed_elsewhere_has_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    assert!(perform(TEXT, &here, None, usize::MAX).unwrap());
    for (name, rounds) in [("default", None), ("single", Some(1)), ("whole", Some(100))] {
        let out = folder.path().join(name);
        assert!(perform(TEXT, &out, Some(&Elsewhere::new(rounds)), usize::MAX).unwrap());
        assert_eq!(results(&out), results(&here), "{name}");
    }
}

#[test]
fn here_and_elsewhere_continue_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (here, mixed) = (folder.path().join("here"), folder.path().join("mixed"));
    assert!(perform(TEXT, &here, None, usize::MAX).unwrap());
    let elsewhere = Elsewhere::new(Some(3));
    let mut stops = 0;
    while !perform(TEXT, &mixed, [Some(&elsewhere as &dyn Remote), None][stops % 2], 7).unwrap() {
        stops += 1;
        assert!(stops < 100, "it never ends");
    }
    assert!(stops > 5, "{stops}");
    assert_eq!(results(&mixed), results(&here));
}

#[test]
fn what_fails_elsewhere_is_told_and_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (here, out) = (folder.path().join("here"), folder.path().join("out"));
    let failing = Elsewhere { fails_at: 0, ..Elsewhere::new(None) };
    let error = perform(TEXT, &out, Some(&failing), usize::MAX).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.is_request()), ("node 7: it burns", false));
    assert!(!out.exists(), "something was written before it was known that the work can begin");
    let failing = Elsewhere { fails_at: 9, ..Elsewhere::new(Some(2)) };
    assert!(perform(TEXT, &out, Some(&failing), usize::MAX).is_err());
    assert!(failing.sent.lock().unwrap().is_empty(), "nothing was cancelled");
    assert!(perform(TEXT, &out, None, usize::MAX).unwrap());
    assert!(perform(TEXT, &here, None, usize::MAX).unwrap());
    assert_eq!(results(&out), results(&here));
    // What the scenario names and the worker does not have.
    let text = TEXT.replace(
        "set = \"synthetic\"\nsamples = 300\nfeatures = 6\nclasses = 3",
        "set = \"idx\"\npath = \"/nowhere\"",
    );
    let out = folder.path().join("other");
    let error = perform(&text, &out, Some(&Elsewhere::new(None)), usize::MAX).unwrap_err();
    assert!(error.to_string().contains("/nowhere") && !out.exists(), "{error}");
}

#[test]
fn a_run_that_diverges_elsewhere_ends_as_it_does_here() {
    let folder = tempfile::tempdir().unwrap();
    let text = TEXT.replace("rate = 0.1", "rate = 1e30");
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    assert!(perform(&text, &here, None, usize::MAX).unwrap());
    assert!(perform(&text, &there, Some(&Elsewhere::new(Some(2))), usize::MAX).unwrap());
    assert_eq!(results(&there), results(&here));
}
