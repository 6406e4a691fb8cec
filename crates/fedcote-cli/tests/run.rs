//! `fedcote run` as a user meets it: the real program, killed, interrupted, misused.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SCENARIO: &str = r#"
rounds = 60
clients = 6
selected = 4
seeds = [1, 2]
schemes = ["fedavg", "fedcote", "scaffold"]
evaluate_every = 5
checkpoint_every = 3
[data]
set = "synthetic"
samples = 600
features = 10
classes = 3
partition = "dirichlet"
[model]
kind = "mlp"
hidden = [8]
[training]
local_steps = 4
batch = 16
rate = 0.1
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
"#;

fn fedcote(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedcote"));
    command.current_dir(folder).args(words);
    command
}

fn output(folder: &Path, words: &[&str]) -> Output {
    fedcote(folder, words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.toml"), SCENARIO).unwrap();
    folder
}

/// Metrics and models of all runs.
fn results(out: &Path) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for scheme in ["fedavg", "fedcote", "scaffold"] {
        for seed in ["1", "2"] {
            for name in ["metrics.jsonl", "model.safetensors"] {
                files.push(fs::read(out.join(scheme).join(seed).join(name)).unwrap());
            }
        }
    }
    files
}

#[test]
fn a_comparison_prints_a_table_and_leaves_a_report() {
    let folder = folder();
    let done = output(folder.path(), &["run", "mine.toml"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let table = text(&done.stdout);
    for word in ["scheme", "fedavg", "fedcote", "scaffold", "tail acc %", "Report: "] {
        assert!(table.contains(word), "{word} in {table}");
    }
    let out = folder.path().join("runs/mine");
    for name in ["report.html", "summary.json", "summary.csv", "scenario.toml"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    // The folder of runs is no run; whoever names it is told of one.
    let refused = output(folder.path(), &["report", "runs"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).ends_with("; did you mean runs/mine?\n"),
        "{}",
        text(&refused.stderr)
    );
    // A second run takes a folder of its own.
    let again = output(folder.path(), &["run", "mine.toml", "--json", "--threads", "1"]);
    assert!(again.status.success() && again.stderr.is_empty(), "{}", text(&again.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(summary["schemes"][1]["name"], "fedcote");
    assert!(summary["schemes"][0]["tail_accuracy"]["mean"].as_f64().unwrap() > 0.3);
    assert_eq!(results(&out), results(&folder.path().join("runs/mine-2")));
}

/// Twenty kills at whatever moment, each followed by a resume: the same files as an undisturbed run.
#[test]
fn twenty_kills_change_nothing() {
    let folder = folder();
    let calm = output(folder.path(), &["run", "mine.toml", "--out", "calm", "--json"]);
    assert!(calm.status.success(), "{}", text(&calm.stderr));
    for kill in 0..20u64 {
        let mut child =
            fedcote(folder.path(), &["run", "mine.toml", "--out", "wild", "--resume", "--json"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
        // Moments spread over start-up, rounds and checkpoints, from 5 to 100 ms.
        std::thread::sleep(Duration::from_millis(5 + kill * 37 % 96));
        // SIGKILL; it fails only when the run has ended.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let done = output(folder.path(), &["run", "mine.toml", "--out", "wild", "--resume", "--json"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(results(&folder.path().join("calm")), results(&folder.path().join("wild")));
}

/// Metrics, models and event files of all runs below a folder, by path.
fn all_results(out: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![out.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if ["metrics.jsonl", "model.safetensors"].contains(&&*name)
                || name.contains("tfevents")
            {
                let place = path.strip_prefix(out).unwrap().to_string_lossy().into_owned();
                found.insert(place, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// A sweep killed at whatever moments and resumed, and one by three workers: the same files as an undisturbed one.
#[test]
fn a_sweep_survives_kills_and_is_divided() {
    let folder = folder();
    let swept = ["--sweep", "selected=2,4,6", "--set", "rounds=20", "--tensorboard"];
    let words =
        |out: &'static str| [&["run", "mine.toml", "--out", out, "--json"], &swept[..]].concat();
    let calm = output(folder.path(), &words("calm"));
    assert!(calm.status.success() && calm.stderr.is_empty(), "{}", text(&calm.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&calm.stdout).unwrap();
    assert_eq!(summary["points"][2]["settings"]["selected"], 6);
    assert_eq!(summary["points"][2]["folder"], "selected=6");
    let differences = &summary["points"][0]["schemes"][1]["differences"]["tail_accuracy"];
    assert!(differences["low"].as_f64() <= differences["mean"].as_f64(), "{differences}");
    let begin = || {
        let mut words = words("wild");
        words.push("--resume");
        fedcote(folder.path(), &words).stdout(Stdio::null()).spawn().unwrap()
    };
    for kill in 0..8u64 {
        let mut child = begin();
        std::thread::sleep(Duration::from_millis(20 + kill * 67 % 230));
        // SIGKILL; it fails only when the sweep has ended.
        let _ = child.kill();
        child.wait().unwrap();
    }
    // Its own file knows what it sweeps, if it got so far.
    assert!(begin().wait().unwrap().success());
    let resumed = output(folder.path(), &["run", "--resume", "--out", "wild", "--tensorboard"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert!(text(&resumed.stdout).contains("separable from fedavg"), "{}", text(&resumed.stdout));
    let calm = all_results(&folder.path().join("calm"));
    assert_eq!(calm.len(), 3 * 6 * 3);
    assert!(calm == all_results(&folder.path().join("wild")), "the same bits");
    for part in ["1/3", "2/3", "3/3"] {
        let part = output(folder.path(), &[&words("parts")[..], &["--shard", part]].concat());
        assert!(part.status.success(), "{}", text(&part.stderr));
    }
    assert!(calm == all_results(&folder.path().join("parts")), "the same bits");
    let tables = ["calm", "parts"].map(|out| {
        let text = fs::read_to_string(folder.path().join(out).join("sweep.csv")).unwrap();
        // Times differ.
        let at = text
            .lines()
            .next()
            .unwrap()
            .split(',')
            .position(|name| name == "seconds_mean")
            .unwrap();
        let cut = |line: &str| {
            line.split(',')
                .enumerate()
                .filter(|(c, _)| *c != at)
                .map(|(_, w)| w.to_owned())
                .collect::<Vec<_>>()
        };
        text.lines().map(cut).collect::<Vec<_>>()
    });
    assert_eq!(tables[0], tables[1]);
    assert_eq!(tables[0].len(), 1 + 3 * 3);
    // A part of every combination is an ordinary folder of runs.
    let report = output(folder.path(), &["report", "calm/selected=4"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let report = fs::read_to_string(folder.path().join("calm/report.html")).unwrap();
    assert!(report.contains("Test accuracy over the tail against selected"));
}

#[test]
fn two_keys_are_heat_maps() {
    let folder = folder();
    let sweep = "\n[sweep]\nselected = [2, 4]\n\"training.rate\" = [0.05, 0.1]\n";
    fs::write(folder.path().join("grid.toml"), format!("{SCENARIO}{sweep}")).unwrap();
    let done = output(folder.path(), &["run", "grid.toml", "--rounds", "4", "--out", "grid"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(folder.path().join("grid/selected=4,rate=0.05/fedavg/2/finished.json").is_file());
    let export = ["report", "grid", "--export", "figures"];
    assert!(output(folder.path(), &export).status.success());
    let svg = fs::read_to_string(folder.path().join("figures/tail_accuracy.svg")).unwrap();
    assert!(svg.contains("Heat map, scaffold, training.rate by selected"), "{svg}");
}

/// Two workers on one folder at the same time, one of them killed and started again: same bits as one command.
#[test]
fn two_shards_and_a_kill_are_one_command() {
    let folder = folder();
    let calm = output(folder.path(), &["run", "mine.toml", "--out", "calm", "--json"]);
    assert!(calm.status.success(), "{}", text(&calm.stderr));
    let worker = |shard: &str| {
        let words = ["run", "mine.toml", "--out", "shared", "--shard", shard, "--json"];
        let mut command = fedcote(folder.path(), &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (mut killed, steady) = (worker("1/2"), worker("2/2"));
    let metrics = folder.path().join("shared/fedavg/1/metrics.jsonl");
    while fs::metadata(&metrics).map_or(0, |file| file.len()) < 500
        && killed.try_wait().unwrap().is_none()
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = killed.kill();
    killed.wait().unwrap();
    let again = worker("1/2").wait_with_output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    let steady = steady.wait_with_output().unwrap();
    assert!(steady.status.success(), "{}", text(&steady.stderr));
    assert_eq!(results(&folder.path().join("calm")), results(&folder.path().join("shared")));
    // Whoever ended last has summed up everything.
    let sum = |out: &str| -> serde_json::Value {
        let file = folder.path().join(out).join("summary.json");
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    };
    let (one, two) = (sum("calm"), sum("shared"));
    assert_eq!(two.get("missing"), None);
    for scheme in 0..3 {
        for key in ["name", "test_accuracy", "tail_accuracy", "train_loss", "arrivals", "seeds"] {
            assert_eq!(one["schemes"][scheme][key], two["schemes"][scheme][key], "{key}");
        }
    }
    // A part without runs, and another scenario's part, are refused.
    let words = ["run", "mine.toml", "--out", "shared", "--shard"];
    let refused = |more: &[&str], expected: &str| {
        let done = output(folder.path(), &[&words, more].concat());
        assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
        assert!(text(&done.stderr).contains(expected), "{}", text(&done.stderr));
    };
    refused(&["7/7"], "--shard: this part is empty: the scenario has 6 runs");
    refused(&["2/2", "--set", "rounds=61"], "`rounds` differs");
    let begun = fs::read_to_string(folder.path().join("shared/scenario.toml")).unwrap();
    assert!(begun.contains("rounds = 60"), "{begun}");
    let part = output(folder.path(), &["run", "mine.toml", "--out", "part", "--shard", "1/2"]);
    assert!(text(&part.stdout).contains("3 runs have not finished yet"), "{}", text(&part.stdout));
    let words = ["run", "mine.toml", "--out", "part", "--shard", "2/2", "--set", "rounds=61"];
    let done = output(folder.path(), &words);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    let report = fs::read_to_string(folder.path().join("part/report.html")).unwrap();
    assert!(report.contains("3 runs not finished"));
    let wrong = output(folder.path(), &["run", "mine.toml", "--out", "shared", "--shard", "3/2"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("expected I/N with 1 <= I <= N"),
        "{}",
        text(&wrong.stderr)
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_how_to_go_on() {
    let folder = folder();
    let words = ["run", "mine.toml", "--set", "rounds=1000000", "--out", "long"];
    let mut child = fedcote(folder.path(), &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let metrics = folder.path().join("long/fedavg/1/metrics.jsonl");
    while fs::metadata(&metrics).map_or(0, |file| file.len()) < 1000 {
        assert!(child.try_wait().unwrap().is_none(), "it goes on until it is interrupted");
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    let told = text(&done.stderr);
    let advice = "interrupted; resume with: fedcote run --resume --out long";
    assert!(told.contains(advice), "{told}");
    assert!(folder.path().join("long/fedavg/1/checkpoint/state.safetensors").is_file());
}

#[test]
fn wrong_requests_get_one_line_and_status_2() {
    let folder = folder();
    fs::write(folder.path().join("bad.toml"), "rounds = 3\nschemes = [\"fedavg\"]\nclients = -3\n")
        .unwrap();
    fs::write(folder.path().join("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(folder.path().join("trace.csv"), "round,client,failure\n1,1,2\n").unwrap();
    let traced = SCENARIO.split("[network]").next().unwrap().to_owned()
        + "[network]\nkind = \"trace\"\nfile = \"trace.csv\"\n";
    fs::write(folder.path().join("traced.toml"), traced).unwrap();
    fs::create_dir_all(folder.path().join("used/fedavg/1")).unwrap();
    fs::write(folder.path().join("used/fedavg/1/config.toml"), "").unwrap();
    for (words, expected) in [
        (vec!["run", "nothing.toml"], "nothing.toml: no such file or preset"),
        (vec!["run", "bad.toml"], "bad.toml:3: clients: "),
        (vec!["run", "binary.toml"], "binary.toml: not a text file"),
        // Used to leave a folder, with a new number each time.
        (vec!["run", "traced.toml"], "trace.csv:2: failure \"2\" is not between 0 and 1"),
        (
            vec!["run", "mine.toml", "--set", "clients=601", "--set", "network.failure=0"],
            "data.partition",
        ),
        (vec!["run", "mine.toml", "--set", "rounds"], "--set rounds: expected key=value"),
        (vec!["run", "mine.toml", "--set", "tranining.rate=1"], "did you mean `training`?"),
        (vec!["run", "mine.toml", "--out", "used"], "used: has runs already; add --resume"),
        (
            vec!["run", "mine.toml", "--seeds", "x"],
            "as in 1,3 or 1-5, is `x`; see `fedcote run --help`",
        ),
        (vec!["run", "mine.toml", "--sweep", "selected"], "expected KEY=V1,V2,"),
        (vec!["run", "mine.toml", "--sweep", "seeds=1,2"], "--sweep seeds: is no setting to sweep"),
        (
            vec!["run", "mine.toml", "--sweep", "selected=2,2"],
            "--sweep selected: 2 is listed twice",
        ),
        (vec!["run", "mine.toml", "--sweep", "selected=2,0"], "sweep selected=0: must be"),
        (vec!["run", "mine.toml", "--sweep", "training.rat=2"], "did you mean `rate`?"),
        (
            vec!["run", "mine.toml", "--sweep", "selected=2", "--set", "selected=3"],
            "--sweep selected: --set selected is given, too; leave one of them out",
        ),
        (vec!["run", "mine.toml", "--sweep", "selected=2,3", "--out", "used"], "not of a sweep"),
        (vec!["run", "mine.toml", "--against", "fedcot"], "did you mean `fedcote`?"),
        (vec!["run", "mine.toml", "--seeds", "1,1"], "--seeds: 1 is given twice"),
        (vec!["run", "mine.toml", "--seeds", "-1"], "--seeds: must be seeds from 0"),
        (
            vec!["run", "mine.toml", "--threads", "-1"],
            "--threads: must be a whole number from 0 to 1024",
        ),
        (vec!["run", "mine.toml", "--rounds", "0"], "--rounds: must be a whole number from 1"),
        (
            vec!["run", "mine.toml", "--out", "bad.toml"],
            "bad.toml: is a file; --out needs a folder",
        ),
        (
            vec!["run", "mine.toml", "--out", "bad.toml/x"],
            "bad.toml: is a file; --out needs a folder",
        ),
        (
            vec!["run", "mine.toml", "--seed", "3"],
            "unexpected argument `--seed`; did you mean `--seeds`?",
        ),
        (vec!["run", "cifar10"], "get it with `fedcote data fetch cifar10 --into ./data/cifar10`"),
        (vec!["rum"], "no command `rum`; did you mean `run`?"),
        (vec!["serve", "--host", "http://x/"], "--host: must be a name such as lab.example.org"),
        (vec!["serve", "--host", "a b"], "--host: must be a name such as lab.example.org"),
        (
            vec!["report", "mine.toml", "--out", "used"],
            "used: is a folder; name a file in it with --out",
        ),
        (vec!["report", "used", "--out", "no/x.html"], "no: no such folder; make it"),
        (
            vec!["report", "used", "--export", "bad.toml"],
            "bad.toml: is a file; --export needs a folder",
        ),
        (vec!["report", "used", "./used"], "./used: is named twice"),
        (vec!["report"], "<DIR>...; see `fedcote report --help`"),
        (vec!["network", "--svg", "used"], "used: is a folder; name a file in it with --svg"),
        (vec!["network", "--svg", "no/x.svg"], "no: no such folder; make it"),
    ] {
        let refused = output(folder.path(), &words);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(expected), "{words:?}: {told}");
        assert!(refused.stdout.is_empty(), "{words:?}");
        assert!(told.starts_with("fedcote: ") && told.lines().count() == 1, "{told}");
    }
    assert!(!folder.path().join("runs").exists(), "nothing half-written");
}

#[test]
fn the_resolved_scenario_runs_the_same() {
    let folder = folder();
    let printed = output(folder.path(), &["run", "mine.toml", "--print-config"]);
    fs::write(folder.path().join("printed.toml"), printed.stdout).unwrap();
    for scenario in ["mine.toml", "printed.toml"] {
        let words = ["run", scenario, "--out", scenario.split('.').next().unwrap(), "--json"];
        let done = output(folder.path(), &words);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    assert_eq!(results(&folder.path().join("mine")), results(&folder.path().join("printed")));
}

/// `--rounds` and ranges of seeds say the same as the keys they stand for.
#[test]
fn shorthands_are_keys() {
    let folder = folder();
    let printed = |words: &[&str]| {
        text(&output(folder.path(), &[&["run", "--print-config"], words].concat()).stdout)
    };
    let keys = printed(&["--set", "rounds=7", "--set", "seeds=[4,1,2,3]"]);
    assert!(keys.contains("rounds = 7\n"), "{keys}");
    assert_eq!(printed(&["--rounds", "7", "--seeds", "4,1-3"]), keys);
}

#[test]
fn the_program_says_its_own_name() {
    let shown = text(&output(Path::new("."), &["-V"]).stdout);
    assert_eq!(shown, format!("fedcote {}\n", env!("CARGO_PKG_VERSION")));
}

/// A reader that had seen enough, or a full disk, used to end the program with a panic.
#[cfg(unix)]
#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let folder = folder();
    let fedcote = env!("CARGO_BIN_EXE_fedcote");
    let script = |script: String| {
        let done =
            Command::new("sh").current_dir(folder.path()).args(["-c", &script]).status().unwrap();
        (done.code(), fs::read_to_string(folder.path().join("err")).unwrap())
    };
    for words in [
        "run --print-config",
        "run mine.toml --json --set rounds=1 --out once",
        "network --json",
        "paper --list",
        "paper table-2",
        "completions bash",
        "run --help",
    ] {
        let (status, told) =
            script(format!("'{fedcote}' {words} 2>err | true; ! grep -v table-2 err"));
        assert_eq!(status, Some(0), "{words}: {told}");
        if cfg!(target_os = "linux") && !words.contains("once") {
            let (status, told) = script(format!("'{fedcote}' {words} >/dev/full 2>err"));
            assert_eq!(status, Some(1), "{words}: {told}");
            assert!(told.contains("fedcote: standard output: No space left"), "{words}: {told}");
        }
    }
}

/// Relative paths used to be printed as they were, and to mean something else in a file of another folder.
#[test]
fn the_resolved_scenario_can_be_used_from_another_folder() {
    let folder = folder();
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    let mut trace = "round,client,failure\n".to_owned();
    (1..=6).for_each(|client| trace += &format!("1,{client},0.5\n"));
    fs::write(folder.path().join("trace.csv"), trace).unwrap();
    let traced = SCENARIO.split("[network]").next().unwrap().to_owned()
        + "[network]\nkind = \"trace\"\nfile = \"trace.csv\"\n";
    fs::write(folder.path().join("traced.toml"), traced).unwrap();
    let printed = output(folder.path(), &["run", "traced.toml", "--print-config"]);
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    fs::write(folder.path().join("elsewhere/traced.toml"), printed.stdout).unwrap();
    let words = ["run", "elsewhere/traced.toml", "--set", "rounds=2", "--json"];
    let done = output(folder.path(), &words);
    assert!(done.status.success(), "{}", text(&done.stderr));
}

#[test]
fn a_portable_run_says_so_and_goes_on_only_as_one() {
    let folder = folder();
    let words = ["run", "mine.toml", "--rounds", "4", "--json", "--out", "out"];
    let run = |more: &[&str]| output(folder.path(), &[&words[..], more].concat());
    let made = run(&["--portable"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let finished = fs::read_to_string(folder.path().join("out/fedavg/1/finished.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(summary["instructions"], serde_json::json!(["portable"]), "{finished}");
    assert!(finished.contains("\"portable\""), "{finished}");
    let refused = run(&["--resume"]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("portable") && told.lines().count() == 1, "{told}");
    assert!(run(&["--portable", "--resume"]).status.success());
}

/// Regression: more threads than the system has, from the environment, ended in a panic.
#[test]
fn threads_without_bound_are_refused() {
    let folder = folder();
    let mut command = fedcote(folder.path(), &["run", "mine.toml", "--rounds", "1"]);
    let refused = command.env("RAYON_NUM_THREADS", "1000000").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let wanted =
        "fedcote: RAYON_NUM_THREADS: must be a whole number from 0 to 1024, is `1000000`\n";
    assert_eq!(text(&refused.stderr), wanted);
}
