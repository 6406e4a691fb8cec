//! A task of one's own, without data set or model, plays whole comparisons through the public API only: folders, resume,
//! refusals, report.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fedcote_sim::comparison::{Control, Event, RunId, Shard, compare, summarise};
use fedcote_sim::task::{Job, LabelCounts, Parameter, Scores};
use fedcote_sim::{Error, Scenario, Task, Tasks};

/// Client i minimises a_i/2 ‖w − m_i‖² over two parameters; gradients are exact.
struct Quadratics {
    parameters: Vec<Parameter>,
    curvature: Vec<f32>,
    minimum: Vec<f32>,
}

impl Quadratics {
    fn new() -> Self {
        Self {
            parameters: Parameter::table([("w".to_owned(), vec![2])]),
            curvature: vec![1.0, 3.0, 2.0],
            minimum: vec![0.0, 1.0, -1.0],
        }
    }

    fn loss(&self, client: usize, model: &[f32]) -> f64 {
        let distance = |&w: &f32| f64::from(w - self.minimum[client]).powi(2);
        f64::from(self.curvature[client]) / 2.0 * model.iter().map(distance).sum::<f64>()
    }
}

impl Task for Quadratics {
    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn label_counts(&self) -> LabelCounts {
        LabelCounts { classes: 3, counts: vec![5.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 5.0] }
    }

    fn initial(&self, key: fedcote::random::Key) -> Result<Vec<f32>, Error> {
        use rand::RngExt;
        let mut stream = key.stream();
        Ok(vec![stream.random(), stream.random()])
    }

    fn train(&self, global: &Arc<Vec<f32>>, jobs: &mut [Job<'_>]) -> Result<(), Error> {
        for job in jobs {
            let client = job.client as usize;
            job.model = job.start.unwrap_or(global).to_vec();
            for _ in 0..job.steps {
                let slope = |w: &f32| self.curvature[client] * (w - self.minimum[client]);
                let mut gradient: Vec<f32> = job.model.iter().map(slope).collect();
                job.correction.apply(&job.model, global, &mut gradient);
                for (w, slope) in job.model.iter_mut().zip(&gradient) {
                    *w -= job.rate * slope;
                }
            }
            job.finite = job.model.iter().all(|w| w.is_finite());
        }
        Ok(())
    }

    fn losses(&self, model: &[f32], clients: &[u32]) -> Result<Vec<f64>, Error> {
        Ok(clients.iter().map(|&client| self.loss(client as usize, model)).collect())
    }

    fn evaluate(&self, model: &[f32], _on_training_data: bool) -> Result<Scores, Error> {
        let loss = (0..3).map(|client| self.loss(client, model)).sum::<f64>() / 3.0;
        let distance = f64::from((model[0] - 1.0 / 6.0).abs());
        Ok(vec![("loss".to_owned(), loss), ("distance".to_owned(), distance)])
    }
}

/// The same task for every seed.
struct Same(&'static str);

impl Tasks for Same {
    fn task(&self, _seed: u64) -> Result<Arc<dyn Task>, Error> {
        Ok(Arc::new(Quadratics::new()))
    }

    fn identity(&self) -> Option<String> {
        Some(self.0.to_owned())
    }
}

const TEXT: &str = r#"
rounds = 120
clients = 3
selected = 3
seeds = [1, 2]
schemes = ["fedavg", "power-of-choice", "fedprox", "scaffold", "fedcote", "fedcote-memory", "fedcote-control", "ideal-scaffold"]
evaluate_every = 5
checkpoint_every = 7
[training]
local_steps = 4
rate = 0.1
[network]
kind = "fixed"
failure = [0.5, 0.1, 0.3]
[scheme.fedcote-control]
correction = "full"
[scheme.ideal-scaffold]
base = "scaffold"
selection = "gs"
failures = "none"
"#;

fn control<'a>(stop: &'a AtomicBool, resume: bool, shard: Shard) -> Control<'a> {
    Control {
        threads: 2,
        remote: None,
        resume,
        shard,
        stop,
        command: "a test".to_owned(),
        tensorboard: false,
    }
}

fn scenario() -> Scenario {
    Scenario::parse("test", TEXT, &[], ".".as_ref()).unwrap()
}

fn silent(_: &RunId, _: Event) {}

/// Metrics and models of all runs.
fn results(out: &Path) -> Vec<Vec<u8>> {
    let scenario = scenario();
    let mut files = Vec::new();
    for run in fedcote_sim::comparison::plan(&scenario) {
        for name in ["metrics.jsonl", "model.safetensors", "config.toml"] {
            let path = out.join(&run.scheme).join(run.seed.to_string()).join(name);
            files.push(std::fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn a_whole_comparison_with_interruptions_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let never = AtomicBool::new(false);
    let summary = compare(
        &scenario(),
        &Same("quadratics"),
        &whole,
        &control(&never, false, Shard::ALL),
        &silent,
    )
    .unwrap()
    .unwrap();
    let loss = |name: &str| {
        let scheme = summary.schemes.iter().find(|scheme| scheme.name == name).unwrap();
        scheme.test_loss.unwrap().mean
    };
    // The optimum is (0·1 + 1·3 − 1·2)/6 = 1/6 in both coordinates, where the mean loss is 29/18; control variates reach
    // it, plain local steps do not.
    let quadratics = Quadratics::new();
    let optimum = (0..3).map(|client| quadratics.loss(client, &[1.0 / 6.0; 2])).sum::<f64>() / 3.0;
    assert!((optimum - 29.0 / 18.0).abs() < 1e-6, "{optimum}");
    assert!((loss("ideal-scaffold") - optimum).abs() < 1e-6, "{}", loss("ideal-scaffold"));
    // The server's own control variates do it although uploads fail.
    assert!((loss("fedcote-control") - optimum).abs() < 1e-5, "{}", loss("fedcote-control"));
    assert!(loss("fedcote-memory") > optimum + 1e-4, "{}", loss("fedcote-memory"));
    assert!(loss("fedavg") > optimum + 1e-4, "{}", loss("fedavg"));
    let mut stops = 0;
    loop {
        let stop = AtomicBool::new(false);
        let rounds = AtomicU32::new(0);
        let listener = |_: &RunId, event: Event| {
            if matches!(event, Event::Round(_)) && rounds.fetch_add(1, Ordering::Relaxed) > 40 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let control = control(&stop, true, Shard::ALL);
        if compare(&scenario(), &Same("quadratics"), &broken, &control, &listener)
            .unwrap()
            .is_some()
        {
            break;
        }
        stops += 1;
        assert!(stops < 100, "it never ends");
    }
    assert!(stops > 3, "{stops}");
    assert_eq!(results(&whole), results(&broken));
    let report = fedcote_plot::report::write(std::slice::from_ref(&whole), None).unwrap();
    let text = std::fs::read_to_string(report).unwrap();
    assert!(text.contains("ideal-scaffold") && text.contains("<svg"), "{}", text.len());
}

#[test]
fn another_task_is_refused_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(true);
    let control = control(&stop, true, Shard::ALL);
    compare(&scenario(), &Same("quadratics"), folder.path(), &control, &silent).unwrap();
    let error =
        compare(&scenario(), &Same("cubics"), folder.path(), &control, &silent).unwrap_err();
    assert!(error.to_string().contains("`task` differs"), "{error}");
    assert!(error.is_request());
}

#[test]
fn a_task_with_another_number_of_clients_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let stop = AtomicBool::new(false);
    let mut scenario = scenario();
    scenario.general.clients = 4;
    scenario.network.failure = None;
    let error = compare(&scenario, &Same("x"), &out, &control(&stop, false, Shard::ALL), &silent);
    assert_eq!(error.unwrap_err().to_string(), "clients: the task has 3 clients, the scenario 4");
    assert!(!out.exists());
}

/// Two workers on one folder, each with its shard: same bits as one command, summed up by whoever comes last.
#[test]
fn two_shards_are_one_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, shared) = (folder.path().join("whole"), folder.path().join("shared"));
    let never = AtomicBool::new(false);
    let play = |out: &Path, shard: &str| {
        let control = control(&never, false, shard.parse().unwrap());
        compare(&scenario(), &Same("quadratics"), out, &control, &silent).unwrap().unwrap()
    };
    let expected = play(&whole, "1/1");
    std::thread::scope(|scope| {
        scope.spawn(|| play(&shared, "1/2"));
        scope.spawn(|| play(&shared, "2/2"));
    });
    assert_eq!(results(&whole), results(&shared));
    let summary = summarise(&shared).unwrap();
    assert_eq!(summary.missing, 0);
    let plain = |summary: &fedcote_sim::summary::Summary| -> Vec<_> {
        summary.schemes.iter().map(|s| (s.name.clone(), s.test_loss, s.arrivals, s.seeds)).collect()
    };
    assert_eq!(plain(&summary), plain(&expected));
    // A worker that is alone has its part summed up, and says how much is missing.
    let alone = play(&folder.path().join("alone"), "1/2");
    assert_eq!(alone.missing, 8);
    assert_eq!(alone.schemes.iter().map(|scheme| scheme.seeds).sum::<usize>(), 8);
}
