use std::fs;
use std::io::Write;

use super::*;
use crate::report::RoundReport;
use crate::saved::Saved;
use crate::scenario::Scenario;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text, &[], Path::new(".")).unwrap()
}

fn report(round: u32) -> RoundReport {
    RoundReport {
        round,
        selected: vec![(1, 2)],
        arrived: vec![(1, 1)],
        attempts: 1,
        label_divergence_wanted: Some(0.1),
        ..RoundReport::default()
    }
}

fn finished() -> Finished {
    Finished {
        rounds: 3,
        diverged_at: None,
        seconds: 0.5,
        classes: Some(10),
        server_memory: 0,
        instructions: Default::default(),
        metrics_checksum: String::new(),
        checksums: Seals::default(),
    }
}

#[test]
fn a_folder_of_another_scenario_is_refused_by_key() {
    let out = tempfile::tempdir().unwrap();
    RunFolder::open(out.path(), &scenario("rounds = 3"), "fedavg", 1).unwrap();
    RunFolder::open(out.path(), &scenario("rounds = 3"), "fedavg", 1).unwrap();
    // Other seeds, other schemes and how often is saved change nothing in this run.
    let other = "rounds = 3\nseeds = [1, 2]\ncheckpoint_every = 7\nschemes = [\"fedavg\", \"fedprox\"]\n\
                 [scheme.fedprox]\nmu = 0.5\n";
    RunFolder::open(out.path(), &scenario(other), "fedavg", 1).unwrap();
    let error =
        RunFolder::open(out.path(), &scenario("rounds = 3\n[training]\nrate = 0.1"), "fedavg", 1);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`training.rate` differs"), "{error}");
}

#[test]
fn metrics_are_cut_back_to_the_checkpoint() {
    let out = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(out.path(), &scenario("rounds = 5"), "fedavg", 1).unwrap();
    let (mut metrics, resumed) = folder.resume().unwrap();
    assert!(resumed.is_none());
    (1..=2).for_each(|round| metrics.add(&report(round)).unwrap());
    let mut saved = Saved::default();
    saved.put("global", &[1.0]);
    let mut seals = Seals::default();
    seals.set("metrics.jsonl", metrics.checksum());
    let at = Checkpoint { round: 2, saved: saved.clone(), seals, ..Checkpoint::default() };
    folder.checkpoint(&at).unwrap();
    metrics.add(&report(3)).unwrap();
    // Half a line, as a kill leaves it.
    fs::OpenOptions::new()
        .append(true)
        .open(folder.path().join("metrics.jsonl"))
        .unwrap()
        .write_all(b"{\"round\":4,\"sel")
        .unwrap();
    let resumed = folder.resume().unwrap().1.unwrap();
    assert_eq!((resumed.round, &resumed.saved), (2, &saved));
    let text = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 2);
    // Metrics that lost a round before the checkpoint cannot be repaired: the run begins again.
    fs::write(folder.path().join("metrics.jsonl"), text.lines().next().unwrap()).unwrap();
    assert!(folder.resume().unwrap().1.is_none());
    assert_eq!(fs::read(folder.path().join("metrics.jsonl")).unwrap(), b"");
}

#[test]
fn a_finished_run_is_read_back_and_damage_is_noticed() {
    let out = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(out.path(), &scenario("rounds = 3"), "fedavg", 1).unwrap();
    assert!(folder.finished().unwrap().is_none());
    let mut metrics = folder.resume().unwrap().0;
    (1..=3).for_each(|round| metrics.add(&report(round)).unwrap());
    folder.finish(Finished { metrics_checksum: metrics.checksum(), ..finished() }).unwrap();
    let (end, reports) = folder.finished().unwrap().unwrap();
    assert_eq!((end.rounds, reports.len()), (3, 3));
    let path = folder.path().join("metrics.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes[10] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = folder.finished().unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("remove"), "{error}");
}

/// A run of two rounds with a checkpoint after them, and all its files.
fn halfway(out: &Path) -> RunFolder {
    let folder = RunFolder::open(out, &scenario("rounds = 5"), "fedavg", 1).unwrap();
    let mut metrics = folder.resume().unwrap().0;
    (1..=2).for_each(|round| metrics.add(&report(round)).unwrap());
    folder.write_json("clients.json", &[1, 2, 3]).unwrap();
    let mut seals = Seals::default();
    seals.seal(folder.path(), "clients.json").unwrap();
    seals.set("metrics.jsonl", metrics.checksum());
    folder.checkpoint(&Checkpoint { round: 2, seals, ..Checkpoint::default() }).unwrap();
    folder
}

/// A digit changed in the metrics before the checkpoint used to be carried into the result.
#[test]
fn damage_in_files_that_go_with_a_checkpoint_begins_the_run_again() {
    for (name, from, to) in [("metrics.jsonl", "0.1", "0.3"), ("clients.json", "2", "6")] {
        let out = tempfile::tempdir().unwrap();
        let folder = halfway(out.path());
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        assert!(folder.resume().unwrap().1.is_none(), "{name}");
    }
    let out = tempfile::tempdir().unwrap();
    assert!(halfway(out.path()).resume().unwrap().1.is_some());
}

/// A flipped bit in a finished model, in the list of clients or in the seconds used to go unnoticed.
#[test]
fn damage_in_any_file_of_a_finished_run_is_noticed() {
    let out = tempfile::tempdir().unwrap();
    let folder = halfway(out.path());
    fs::write(folder.path().join("model.safetensors"), b"a model").unwrap();
    let mut checksums = Seals::default();
    checksums.seal(folder.path(), "model.safetensors").unwrap();
    checksums.seal(folder.path(), "clients.json").unwrap();
    let metrics_checksum = folder.resume().unwrap().0.checksum();
    folder.finish(Finished { metrics_checksum, checksums, ..finished() }).unwrap();
    assert!(folder.finished().unwrap().is_some());
    assert!(!folder.path().join("checkpoint").exists());
    let files = ["model.safetensors", "clients.json", "metrics.jsonl", "finished.json"];
    for name in files {
        let path = folder.path().join(name);
        let sound = fs::read(&path).unwrap();
        for bit in 0..sound.len() * 8 {
            let mut damaged = sound.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            let error = folder.finished().expect_err(name).to_string();
            assert!(error.contains("damaged") && error.contains("; remove "), "{error}");
        }
        if name != "finished.json" {
            fs::remove_file(&path).unwrap();
            let error = folder.finished().expect_err(name).to_string();
            assert!(error.contains("is missing") && error.contains("; remove "), "{error}");
        }
        fs::write(&path, sound).unwrap();
    }
    assert!(folder.finished().unwrap().is_some());
}

/// Folders of versions that did not write all checksums are still read.
#[test]
fn a_finished_run_of_an_early_version_is_still_read() {
    let out = tempfile::tempdir().unwrap();
    let folder = halfway(out.path());
    let sum = folder.resume().unwrap().0.checksum();
    let text = format!(
        r#"{{"rounds":2,"seconds":0.5,"classes":10,"server_memory":0,"metrics_checksum":"{sum}"}}"#
    );
    fs::write(folder.path().join("finished.json"), text).unwrap();
    assert_eq!(folder.finished().unwrap().unwrap().1.len(), 2);
}

/// Without its configuration a result used to be taken for one of whatever scenario was asked for.
#[test]
fn results_without_their_configuration_are_refused() {
    for (contents, told) in [(None, "is missing"), (Some([0xff, 0x00]), "is damaged")] {
        let out = tempfile::tempdir().unwrap();
        let file = halfway(out.path()).path().join("config.toml");
        match contents {
            None => fs::remove_file(&file).unwrap(),
            Some(contents) => fs::write(&file, contents).unwrap(),
        }
        let other = scenario("rounds = 5\n[training]\nrate = 0.7");
        let error = RunFolder::open(out.path(), &other, "fedavg", 1).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("; remove "), "{error}");
    }
}

/// A kill in the middle of a write used to leave its temporary file for ever.
#[test]
fn files_half_written_are_swept_away() {
    let out = tempfile::tempdir().unwrap();
    let folder = halfway(out.path());
    let litter = folder.path().join("checkpoint/.state.safetensors.7.0.part");
    fs::write(&litter, b"half").unwrap();
    folder.sweep().unwrap();
    assert!(!litter.exists() && folder.resume().unwrap().1.is_some());
}
