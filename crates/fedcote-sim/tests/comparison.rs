//! Whole comparisons in a folder: threads, interruptions, refusals.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fedcote_sim::comparison::{Control, Event, Listener, RunId, Shard};
use fedcote_sim::summary::Summary;
use fedcote_sim::{Classifications, Error, Scenario, comparison};

const TEXT: &str = r#"
rounds = 12
clients = 6
selected = 4
seeds = [1, 2]
schemes = ["fedavg", "scaffold", "fedcote-memory", "newt"]
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
local_steps = [1, 4]
batch = 8
rate = 0.1
flip = true
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
knowledge = "estimated"
[server]
exploration = 0.05
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text, &[], ".".as_ref()).unwrap()
}

fn control(threads: usize, resume: bool, stop: &AtomicBool) -> Control<'_> {
    Control {
        threads,
        remote: None,
        resume,
        shard: Shard::ALL,
        stop,
        command: "fedcote run".to_owned(),
        tensorboard: false,
    }
}

/// A comparison of the built-in tasks.
fn compare(
    scenario: &Scenario,
    out: &Path,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Option<Summary>, Error> {
    comparison::compare(scenario, &Classifications::load(scenario)?, out, control, listener)
}

fn finish(text: &str, out: &Path, threads: usize, resume: bool) -> Summary {
    let stop = AtomicBool::new(false);
    compare(&scenario(text), out, &control(threads, resume, &stop), &|_: &RunId, _: Event| {})
        .unwrap()
        .expect("nobody interrupts")
}

/// All files of the runs that must not depend on threads or interruptions.
fn results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for scheme in ["fedavg", "scaffold", "fedcote-memory", "newt"] {
        for seed in ["1", "2"] {
            for name in ["metrics.jsonl", "model.safetensors", "clients.json", "config.toml"] {
                let path = out.join(scheme).join(seed).join(name);
                files.push((
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    fs::read(path).unwrap(),
                ));
            }
        }
    }
    files
}

#[test]
fn neither_threads_nor_interruptions_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two, broken) =
        (folder.path().join("one"), folder.path().join("two"), folder.path().join("broken"));
    finish(TEXT, &one, 1, false);
    finish(TEXT, &two, 2, false);
    assert_eq!(results(&one), results(&two));
    // Stop after a few rounds, again and again, until it is through.
    let mut stops = 0;
    loop {
        let stop = AtomicBool::new(false);
        let rounds = AtomicU32::new(0);
        let listener = |_: &RunId, event: Event| {
            if matches!(event, Event::Round(_)) && rounds.fetch_add(1, Ordering::Relaxed) > 6 {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let control = control(2, true, &stop);
        if compare(&scenario(TEXT), &broken, &control, &listener).unwrap().is_some() {
            break;
        }
        stops += 1;
        assert!(stops < 100, "it never ends");
    }
    assert!(stops > 5, "{stops}");
    assert_eq!(results(&one), results(&broken));
}

#[test]
fn finished_runs_are_skipped_and_damaged_checkpoints_cost_only_time() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let before = finish(TEXT, out, 2, false);
    let stop = AtomicBool::new(false);
    let skipped = AtomicU32::new(0);
    let listener = |_: &RunId, event: Event| match event {
        Event::Skipped(_) => {
            skipped.fetch_add(1, Ordering::Relaxed);
        }
        other => panic!("{other:?}"),
    };
    let again =
        compare(&scenario(TEXT), out, &control(2, true, &stop), &listener).unwrap().unwrap();
    assert_eq!(skipped.into_inner(), 8);
    assert_eq!(again, before);
    // A run that lost its end and has a damaged checkpoint begins anew and ends the same.
    let expected = results(out);
    let run = out.join("scaffold").join("2");
    fs::remove_file(run.join("finished.json")).unwrap();
    fs::create_dir(run.join("checkpoint")).unwrap();
    fs::write(run.join("checkpoint").join("state.safetensors"), b"not a checkpoint").unwrap();
    finish(TEXT, out, 2, true);
    assert_eq!(results(out), expected);
}

/// A mixture of `ideal` under another name used to compete with schemes that meet failures.
#[test]
fn a_reference_is_known_by_its_failures_not_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let text = TEXT.replace("seeds = [1, 2]", "seeds = [1]").replace("rounds = 12", "rounds = 1");
    let schemes = "[\"fedavg\", \"scaffold\", \"fedcote-memory\", \"newt\"]";
    let text = text.replace(schemes, "[\"fedavg\", \"ideal\", \"x\"]");
    let text = text + "[scheme.x]\nbase = \"ideal\"\naggregation = \"memory\"\n";
    let summary = finish(&text, folder.path(), 2, false);
    let references: Vec<bool> = summary.schemes.iter().map(|scheme| scheme.reference).collect();
    assert_eq!(references, [false, true, true]);
}

/// A changed definition of a named scheme used to go on with runs of the old one.
#[test]
fn a_run_by_another_definition_of_its_scheme_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    finish(TEXT, out, 2, false);
    let file = out.join("fedcote-memory").join("1").join("config.toml");
    let config = fs::read_to_string(&file).unwrap();
    assert!(
        config.contains("threshold = 0.95\n") && config.contains("kappa = 1000.0\n"),
        "{config}"
    );
    // What is written out is a scenario, of the same scheme.
    let again = scenario(&config).schemes.resolve("fedcote-memory").unwrap();
    assert_eq!(again, scenario(TEXT).schemes.resolve("fedcote-memory").unwrap());
    fs::write(&file, config.replace("threshold = 0.95\n", "threshold = 0.9\n")).unwrap();
    let stop = AtomicBool::new(false);
    let listener = |_: &RunId, _: Event| {};
    let told = compare(&scenario(TEXT), out, &control(1, true, &stop), &listener).unwrap_err();
    let told = told.to_string();
    assert!(told.contains("`scheme.fedcote-memory.threshold` differs"), "{told}");
}

#[test]
fn used_folders_and_other_scenarios_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    finish(TEXT, out, 2, false);
    let refusal = |text: &str, resume: bool| {
        let stop = AtomicBool::new(false);
        compare(&scenario(text), out, &control(1, resume, &stop), &|_: &RunId, _: Event| {})
            .unwrap_err()
            .to_string()
    };
    assert!(refusal(TEXT, false).contains("add --resume"));
    let other = TEXT.replace("rate = 0.1", "rate = 0.2");
    assert!(refusal(&other, true).contains("`training.rate` differs"), "{}", refusal(&other, true));
    // Resumed with fewer schemes or seeds the comparison would forget runs that it has.
    let fewer = TEXT.replace("\"scaffold\", ", "");
    assert!(refusal(&fewer, true).contains("has a run of `scaffold` with seed"));
    assert!(refusal(&TEXT.replace("[1, 2]", "[1]"), true).contains("with seed 2"));
    finish(&TEXT.replace("[1, 2]", "[1, 2, 3]"), out, 2, true);
}

#[test]
fn what_is_refused_leaves_the_folder_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let refused = |text: &str, out: &Path| {
        compare(&scenario(text), out, &control(1, false, &stop), &|_: &RunId, _: Event| {})
            .unwrap_err();
    };
    // A network that cannot be made.
    let file = folder.path().join("trace.csv");
    fs::write(&file, "round,client,failure\n1,1,what\n").unwrap();
    let network = TEXT.split("[network]").next().unwrap().to_owned();
    let network = format!("{network}[network]\nkind = \"trace\"\nfile = {file:?}\n");
    refused(&network, &folder.path().join("out"));
    assert!(!folder.path().join("out").exists());
    // Files of others, whatever their names.
    let used = folder.path().join("used");
    finish(TEXT, &used, 2, false);
    let film = used.join(".film.mkv.part");
    fs::write(&film, "").unwrap();
    refused(TEXT, &used);
    finish(TEXT, &used, 2, true);
    assert!(film.exists());
}

#[test]
fn an_interrupted_comparison_has_no_summary_and_keeps_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    finish(&TEXT.replace("[1, 2]", "[1]"), out, 2, false);
    let stop = AtomicBool::new(true);
    let mut control = control(1, true, &stop);
    control.command = "fedcote run --resume".into();
    let quiet = |_: &RunId, _: Event| {};
    assert!(compare(&scenario(TEXT), out, &control, &quiet).unwrap().is_none());
    assert!(!out.join("summary.json").exists(), "it would leave seed 2 out");
    assert_eq!(finish(TEXT, out, 2, true).command, "fedcote run");
    let text = fs::read_to_string(out.join("scenario.toml")).unwrap();
    assert!(text.starts_with("# fedcote run\n"), "{text}");
}

#[test]
fn a_folder_is_resumed_by_its_own_scenario_wherever_that_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace: String = (1..=6).map(|client| format!("1,{client},0.{client}\n")).collect();
    fs::write(folder.path().join("trace.csv"), format!("round,client,failure\n{trace}")).unwrap();
    let text = TEXT.split("[network]").next().unwrap().to_owned()
        + "[network]\nkind = \"trace\"\nfile = \"./trace.csv\"\n";
    let begun = Scenario::parse("test", &text, &[], folder.path()).unwrap();
    let out = folder.path().join("out");
    let quiet = |_: &RunId, _: Event| {};
    let stop = AtomicBool::new(true);
    assert!(compare(&begun, &out, &control(1, false, &stop), &quiet).unwrap().is_none());
    let own = Scenario::load(out.join("scenario.toml").to_str().unwrap(), &[]).unwrap();
    let stop = AtomicBool::new(false);
    assert!(compare(&own, &out, &control(2, true, &stop), &quiet).unwrap().is_some());
    // Another file is another scenario.
    let other = text.replace("trace.csv", "other.csv");
    fs::copy(folder.path().join("trace.csv"), folder.path().join("other.csv")).unwrap();
    let other = Scenario::parse("test", &other, &[], folder.path()).unwrap();
    let error = compare(&other, &out, &control(2, true, &stop), &quiet).unwrap_err().to_string();
    assert!(error.contains("`network.file` differs"), "{error}");
}

#[test]
fn a_run_that_blows_up_says_so_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let text = TEXT
        .replace("rate = 0.1", "rate = 1e30")
        .replace("\"scaffold\", \"fedcote-memory\", \"newt\"", "\"ideal\"");
    let summary = finish(&text, folder.path(), 2, false);
    for scheme in &summary.schemes {
        assert_eq!((scheme.diverged, scheme.seeds), (2, 2), "{scheme:?}");
        assert!((scheme.test_accuracy.unwrap().mean - 1.0 / 3.0).abs() < 1e-12);
    }
    let metrics = fs::read_to_string(folder.path().join("fedavg/1/metrics.jsonl")).unwrap();
    assert!(metrics.lines().last().unwrap().starts_with("{\"diverged_at\":"), "{metrics}");
}

#[test]
fn the_training_loss_can_be_rarer_and_changes_nothing_else() {
    let often = tempfile::tempdir().unwrap();
    let rare = tempfile::tempdir().unwrap();
    finish(TEXT, often.path(), 1, false);
    finish(&format!("train_loss_every = 6\n{TEXT}"), rare.path(), 1, false);
    let lines = |out: &Path| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(out.join("fedavg/1/metrics.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (mut often, rare) = (lines(often.path()), lines(rare.path()));
    for (round, line) in (1..).zip(&mut often) {
        if round % 6 != 0 {
            line.as_object_mut().unwrap().remove("train_loss");
        }
    }
    assert_eq!(often, rare);
    assert!(rare[11]["train_loss"].is_number() && rare[2]["test_accuracy"].is_number());
}
