use super::*;
use crate::engine::RoundReport;

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
        label_divergence_realised: None,
        evaluation: None,
    }
}

fn finished() -> Finished {
    Finished {
        rounds: 3,
        diverged_at: None,
        seconds: 0.5,
        classes: 10,
        server_memory: 0,
        metrics_checksum: String::new(),
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
    assert!(folder.resume().unwrap().is_none());
    let mut metrics = folder.metrics().unwrap();
    (1..=2).for_each(|round| metrics.add(&report(round)).unwrap());
    let mut saved = Saved::default();
    saved.put("global", &[1.0]);
    folder.checkpoint(2, 0.25, &saved).unwrap();
    metrics.add(&report(3)).unwrap();
    // Half a line, as a kill leaves it.
    fs::OpenOptions::new()
        .append(true)
        .open(folder.path().join("metrics.jsonl"))
        .unwrap()
        .write_all(b"{\"round\":4,\"sel")
        .unwrap();
    let resumed = folder.resume().unwrap().unwrap();
    assert_eq!((resumed.round, resumed.saved), (2, saved));
    let text = fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 2);
    // Metrics that lost a round before the checkpoint cannot be mended: the run begins anew.
    fs::write(folder.path().join("metrics.jsonl"), text.lines().next().unwrap()).unwrap();
    assert!(folder.resume().unwrap().is_none());
    assert_eq!(fs::read(folder.path().join("metrics.jsonl")).unwrap(), b"");
}

#[test]
fn a_finished_run_is_read_back_and_damage_is_noticed() {
    let out = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(out.path(), &scenario("rounds = 3"), "fedavg", 1).unwrap();
    assert!(folder.finished().unwrap().is_none());
    let mut metrics = folder.metrics().unwrap();
    (1..=3).for_each(|round| metrics.add(&report(round)).unwrap());
    folder.finish(finished()).unwrap();
    let (end, reports) = folder.finished().unwrap().unwrap();
    assert_eq!((end.rounds, reports.len()), (3, 3));
    let path = folder.path().join("metrics.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes[10] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = folder.finished().unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("remove"), "{error}");
}

#[test]
fn two_commands_in_one_folder_are_kept_apart() {
    let out = tempfile::tempdir().unwrap();
    let lock = Lock::take(out.path()).unwrap();
    let error = Lock::take(out.path()).err().unwrap().to_string();
    assert!(error.contains("another command is working in this folder"), "{error}");
    drop(lock);
    Lock::take(out.path()).unwrap();
}
