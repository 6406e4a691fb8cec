//! Run folders written by hand, so that a test decides what grows when.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fedcote_sim::folder::Lock;
use serde_json::{Value, json};

/// A comparison of some schemes over some seeds, four clients and two labels.
pub struct Comparison {
    pub path: PathBuf,
    lock: Option<Lock>,
}

impl Comparison {
    /// Begins one that a command seems to be working on.
    pub fn begin(folder: &Path, name: &str, schemes: &[&str], seeds: &[u64], rounds: u32) -> Self {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        let text = format!(
            "rounds = {rounds}\nclients = 4\nselected = 7\nseeds = {seeds:?}\nschemes = {schemes:?}\nevaluate_every = 1\n\
             [data]\nset = \"synthetic\"\nclasses = 2\n[network]\nkind = \"fixed\"\nfailure = [0.1, 0.2, 0.9, 0.0]\n"
        );
        fs::write(path.join("scenario.toml"), text).unwrap();
        let lock = Some(Lock::take(&path).unwrap());
        Self { path, lock }
    }

    /// The command is gone.
    pub fn stop(&mut self) {
        self.lock = None;
    }

    fn run(&self, scheme: &str, seed: u64) -> PathBuf {
        self.path.join(scheme).join(seed.to_string())
    }

    /// Plays rounds of a run: client 1 is drawn five times and arrives once, client 2 arrives, client 3 fails.
    /// Accuracy is `base` plus a hundredth for each round.
    pub fn play(&self, scheme: &str, seed: u64, rounds: std::ops::RangeInclusive<u32>, base: f64) {
        let run = self.run(scheme, seed);
        if !run.join("clients.json").exists() {
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("clients.json"), clients().to_string()).unwrap();
        }
        let mut lines = String::new();
        for round in rounds {
            let report = json!({
                "round": round, "selected": [[0, 5], [1, 1], [2, 1]], "arrived": [[0, 1], [1, 1]], "attempts": 1,
                "label_divergence_wanted": 0.25, "label_divergence_realised": 0.5,
                "train_loss": 2.0 / f64::from(round), "test_loss": 3.0 / f64::from(round),
                "test_accuracy": (base + f64::from(round) / 100.0).min(1.0),
            });
            let _ = writeln!(lines, "{report}");
        }
        let metrics = run.join("metrics.jsonl");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(metrics).unwrap();
        file.write_all(lines.as_bytes()).unwrap();
    }
}

fn clients() -> Value {
    let client = |id: &str, labels: [f64; 2], failure: f64, selection: f64| json!({ "id": id, "labels": labels, "failure": failure, "weight": 0.25, "selection": selection, "appearance": selection });
    json!({
        "classes": 2, "global_labels": [0.5, 0.5],
        "clients": [client("1", [1.0, 0.0], 0.1, 0.5), client("2", [0.0, 1.0], 0.2, 0.5),
                    client("3", [0.5, 0.5], 0.9, 0.0), client("4", [1.0, 0.0], 0.0, 0.0)],
        "warnings": ["client 3 is not drawn: it fails with probability 0.9, above the threshold"],
    })
}
