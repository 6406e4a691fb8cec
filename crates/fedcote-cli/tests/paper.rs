//! `fedcote paper` as a user meets it: the real program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

fn paper(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedcote"));
    command.current_dir(folder).arg("paper").args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn finished(out: &Path, share: &str, scheme: &str) -> std::path::PathBuf {
    let variant = format!("runs/calibrated-mnist-{share}-u0.5-k10-r2");
    out.join(variant).join(scheme).join("1/finished.json")
}

const SMALL: [&str; 5] = ["--rounds", "2", "--seeds", "1", "--schemes"];

#[test]
fn a_table_is_made_and_no_finished_run_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let words = [&["table-4"], &SMALL[..], &["fedavg,ideal"]].concat();
    // A seed is a seed, here as in `fedcote run`: seed 7 is another one run a scheme.
    let list = |seeds: &str| text(&paper(folder.path(), &["--list", "--seeds", seeds]).stdout);
    assert_eq!(list("7"), list("1"));
    let done = paper(folder.path(), &words);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let out = folder.path().join("paper");
    let page = fs::read_to_string(out.join("calibrated-cut-r2/table-4.md")).unwrap();
    for word in [
        "# table-4: MNIST, balanced",
        "(cut down: 2 rounds, 1 seed, 2 schemes)",
        "| 80.89 ± 3.61 |",
        "| 91.27 ± 1.36 |",
        "fedcote paper table-4 --rounds 2",
    ] {
        assert!(page.contains(word), "{word} in {page}");
    }
    for ending in ["tex", "csv", "json"] {
        assert!(out.join(format!("calibrated-cut-r2/table-4.{ending}")).is_file(), "{ending}");
    }
    let modified = |path| fs::metadata(path).unwrap().modified().unwrap();
    let all = [("iid", "fedavg"), ("iid", "ideal"), ("pairs", "fedavg"), ("pairs", "ideal")];
    let before: Vec<SystemTime> =
        all.iter().map(|(share, scheme)| modified(finished(&out, share, scheme))).collect();
    // One run is lost; the same command makes that one again and no other.
    fs::remove_dir_all(finished(&out, "pairs", "ideal").parent().unwrap()).unwrap();
    let again = paper(folder.path(), &words);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("calibrated-mnist-pairs-u0.5-k10-r2 (1 runs)"));
    for ((share, scheme), before) in all.iter().zip(before).take(3) {
        assert_eq!(modified(finished(&out, share, scheme)), before, "{share} {scheme}");
    }
    assert_eq!(fs::read_to_string(out.join("calibrated-cut-r2/table-4.md")).unwrap(), page);
}

#[test]
fn parts_of_the_runs_merge_to_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        |more: &[&'static str]| [&["table-12"], &SMALL[..], &["fedavg,ideal"], more].concat();
    for part in ["1/2", "2/2"] {
        let out = if part == "1/2" { "one" } else { "two" };
        let done = paper(folder.path(), &words(&["--shard", part, "--out", out]));
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(text(&done.stderr).contains("1 of 2 runs are missing"), "{}", text(&done.stderr));
        assert!(!folder.path().join(out).join("calibrated-cut-r2").exists());
    }
    let runs = "runs/calibrated-mnist-pairs-u0.5-k10-walking-r2/ideal";
    fs::rename(folder.path().join("two").join(runs), folder.path().join("one").join(runs)).unwrap();
    let done = paper(folder.path(), &words(&["--out", "one"]));
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(!text(&done.stderr).contains("runs)"), "nothing is played: {}", text(&done.stderr));
    assert!(folder.path().join("one/calibrated-cut-r2/table-12.md").is_file());
}

/// Regression: nothing was said, the status was 0, and measurements of gradients trained.
#[test]
fn what_is_not_there_is_told_and_nothing_is_trained() {
    let folder = tempfile::tempdir().unwrap();
    let done = paper(folder.path(), &["table-5", "figure-3", "theorem-2", "--existing"]);
    let told = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    for line in [
        "table-5: 170 of 170 runs are missing; it is left out",
        "seed1.json is missing; it is left out",
        "nothing was made: paper has none of the runs",
    ] {
        assert!(told.contains(line), "{line} in {told}");
    }
    assert_eq!(told.matches("it is left out").count(), 3, "{told}");
    assert!(!folder.path().join("paper/gradients").exists());
    let done = paper(folder.path(), &["table-5", "table-8", "--existing"]);
    let told = text(&done.stderr);
    assert!(done.status.success(), "{told}");
    assert!(told.contains("table-5: 170 of 170 runs are missing; it is left out"), "{told}");
    // A page of the same name, with other schemes, is not replaced in silence.
    let words = |schemes| [&["table-12"], &SMALL[..], &[schemes]].concat();
    let one = paper(folder.path(), &words("fedavg"));
    assert!(one.status.success() && !text(&one.stderr).contains("replaces"));
    let two = text(&paper(folder.path(), &words("fedavg,ideal")).stderr);
    assert!(two.contains("table-12: replaces \"table-12: walking clients"), "{two}");
}

#[test]
fn the_enumeration_is_as_in_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let done = paper(folder.path(), &["table-8"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let printed = text(&done.stdout);
    for ratio in ["0.0010", "0.0442", "0.8842", "11.0837"] {
        assert!(
            printed.contains(&format!("| {ratio} | {ratio} | 0.0000 |")),
            "{ratio} in {printed}"
        );
    }
}

#[test]
fn the_list_names_everything() {
    let folder = tempfile::tempdir().unwrap();
    let done = paper(folder.path(), &["--list"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let list = text(&done.stdout);
    for number in 2..=13 {
        assert!(list.contains(&format!("table-{number} ")), "table-{number} in {list}");
    }
    for number in 2..=9 {
        assert!(list.contains(&format!("figure-{number} ")), "figure-{number} in {list}");
    }
    assert!(!folder.path().join("paper").exists(), "nothing is written");
}

#[test]
fn wrong_requests_have_status_2() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (words, expected) in [
        (vec!["tabel-4"], "ARTEFACT: `tabel-4` is not known; did you mean `table-4`?"),
        (vec![], "name an artefact"),
        (vec!["table-4", "--schemes", "fedavgg"], "its schemes are fedavg, power-of-choice"),
        (vec!["table-4", "--shard", "3/2"], "expected I/N"),
        (vec!["table-4", "--rounds", "0"], "--rounds: must be a whole number from 1"),
        (vec!["theorem-1", "--smoothness", "0"], "--smoothness"),
        (vec!["theorem-1", "--smoothness", "-1"], "--smoothness: must be above 0"),
        // Numbers of seeds without bound used to end in a panic.
        (vec!["--list", "--seeds", "18446744073709551614"], "--seeds: must be seeds from 0 to"),
        (vec!["table-4", "--seeds", "1-99999999999"], "--seeds: must be at most 1000 seeds"),
        (vec!["table-4", "--threads", "99999999999"], "--threads: must be a whole number"),
        // What has no effect used to be accepted.
        (vec!["table-8", "--seeds", "3"], "--seeds: has no effect on table-8"),
        (vec!["table-8", "--task", "cifar10"], "--task: has no effect on table-8"),
        (vec!["table-8", "--smoothness", "3"], "--smoothness: has no effect here"),
        (vec!["rivals", "--network", "harsh"], "--network: has no effect on rivals"),
        // Its name had a comma, which ends a name here.
        (vec!["rivals", "--schemes", "fedavgg"], "fedawe, fedawe without clip, fedcote-matched"),
        (vec!["table-4", "--task", "cifar10"], "--task: table-4 is about mnist, not cifar10"),
        (vec!["table-8", "--out", "file"], "file: is a file; --out needs a folder"),
        // Used to leave folders with locks.
        (vec!["table-11", "--task", "cifar10"], "get it with `fedcote data fetch cifar10"),
    ] {
        let refused = paper(folder.path(), &words);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(expected), "{words:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    assert!(!folder.path().join("paper").exists(), "nothing is written");
}
