//! Fuzz targets: scenario files, checkpoints and the files of run folders.

use std::path::Path;
use std::sync::Arc;

use fedcote_learn::data::SetKind;

use crate::folder::{Checkpoint, Rounds, checkpoint, kept};
use crate::saved::Saved;
use crate::scenario::PRESETS;
use crate::{Classification, Scenario, World};

#[path = "../../../fuzz/mutate.rs"]
mod mutate;

const SCENARIO: &[u8] = br#"rounds = 3
clients = 6
selected = 4
seeds = [1, 2]
schemes = ["fedavg", "mine"]
[data]
set = "synthetic"
samples = 200
features = 4
partition = "dirichlet"
concentration = 0.5
[model]
kind = "mlp"
hidden = [8]
[training]
local_steps = [2, 5]
rate_changes = [[10, 0.1]]
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0]
knowledge = "estimated"
estimator = { kind = "window", rounds = 50 }
[server]
label_privacy = 1.0
clip = 2.0
[hostile]
clients = [4]
kind = "scaled"
factor = -100.0
[scheme.mine]
base = "fedcote"
local = "prox"
mu = 0.5
"#;
const WORDS: [&str; 14] = [
    "[network]",
    "[scheme.x]",
    "[[data]]",
    "kind = ",
    "\"walk\"",
    "mobility",
    "threshold = ",
    "true",
    "1979-05-27",
    "{ a = 1 }",
    "\n",
    "=",
    "\"\"\"",
    "''",
];

#[test]
fn scenarios() {
    let mut seeds = vec![SCENARIO];
    seeds.extend(PRESETS.iter().map(|preset| preset.text.as_bytes()));
    mutate::fuzz(&seeds, &WORDS, |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        match Scenario::parse("fuzzed", text, &[], Path::new(".")) {
            // What is printed reads back to the same scenario.
            Ok(scenario) => {
                let printed = scenario.to_toml();
                let again = Scenario::parse("printed", &printed, &[], Path::new("."));
                assert_eq!(again.expect("it was printed"), scenario);
                make(scenario);
            }
            Err(error) => assert!(error.to_string().starts_with("fuzzed"), "{error}"),
        }
    });
}

/// Makes the world of a small scenario: data, partition, model, network; it works or is refused.
fn make(scenario: Scenario) {
    let data = &scenario.data;
    let small = data.set == SetKind::Synthetic
        && data.samples.is_none_or(|samples| samples <= 1000)
        && data.features.is_none_or(|features| features <= 30)
        && scenario.general.clients <= 50
        && scenario.model.hidden.as_ref().is_none_or(|sizes| sizes.iter().sum::<usize>() < 100);
    // Traces are fuzzed where they are read.
    if small && scenario.network.file.is_none() {
        let data = fedcote_learn::data::load(data, &scenario.base).expect("its settings are right");
        let task = Classification::new(&scenario, data, 1);
        let world = task.and_then(|task| World::new(Arc::new(scenario), Arc::new(task), 1));
        if let Ok(world) = world {
            assert_eq!(world.federation.len(), world.scenario.general.clients);
        }
    }
}

#[test]
fn checkpoints() {
    let mut saved = Saved::default();
    saved.put("global", &[1.0, -2.5, 3.0]);
    saved.put_value("numbers", &[0.1, 1e-300]);
    let begun = Checkpoint { round: 7, saved: saved.clone(), ..Checkpoint::default() };
    let sound = checkpoint::contents(&begun).unwrap();
    let empty = checkpoint::contents(&Checkpoint::default()).unwrap();
    let words = ["\"F64\"", "values.json", "__metadata__", "[0,12]", "global", "checksums"];
    mutate::fuzz(&[&sound, &empty], &words, |bytes| {
        if let Some(resumed) = checkpoint::understand(bytes) {
            // Only what the checksums do not cover may differ: the layout of the header.
            let state = if resumed.round == 7 { &saved } else { &Saved::default() };
            assert_eq!(&resumed.saved, state);
        }
    });
}

#[test]
fn metrics() {
    let lines: &[u8] = b"{\"round\":1,\"selected\":[[1,2]],\"arrived\":[[1,1]],\"attempts\":1}\n\
        {\"round\":2,\"selected\":[[0,4]],\"arrived\":[],\"attempts\":1000,\"train_loss\":0.5,\
        \"test_loss\":1e-3,\"test_accuracy\":1.0,\"scores\":{\"f1\":0.5,\"auc\":null}}\n{\"round\":3,\"sel";
    let words = ["null", "\"round\":", "{", "}\n", "[[", "\"diverged_at\":3"];
    mutate::fuzz(&[lines], &words, |bytes| {
        for round in 0..4 {
            if let Some(kept) = kept(bytes, round) {
                let text = str::from_utf8(&bytes[..kept]).expect("lines that were read");
                assert_eq!(text.lines().count(), round as usize);
            }
        }
        // What is understood is written and understood again, to the same.
        match Rounds::parse(Path::new("fuzzed"), bytes) {
            Ok(rounds) => {
                let lines = rounds.reports.iter().map(serde_json::to_string);
                let text: String = lines.map(|line| line.unwrap() + "\n").collect();
                let again = Rounds::parse(Path::new("written"), text.as_bytes()).unwrap();
                assert_eq!(again.reports, rounds.reports);
            }
            Err(error) => assert!(error.to_string().starts_with("fuzzed:"), "{error}"),
        }
    });
}
