//! `fedcote data`, run as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn fedcote(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text(arguments: &[&str]) -> String {
    let output = fedcote(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The one line on standard error of a refused request.
fn refusal(arguments: &[&str]) -> String {
    let output = fedcote(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

fn idx(path: &Path, dimensions: &[u32], values: &[u8]) {
    let mut bytes = vec![0, 0, 8, dimensions.len() as u8];
    bytes.extend(dimensions.iter().flat_map(|size| size.to_be_bytes()));
    bytes.extend(values);
    fs::write(path, bytes).expect("a file");
}

#[test]
fn sets_are_listed() {
    for set in ["mnist", "cifar10", "idx", "synthetic"] {
        assert!(text(&["data", "list"]).lines().any(|line| line.starts_with(set)));
    }
    let list: serde_json::Value =
        serde_json::from_str(&text(&["data", "list", "--json"])).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(4));
}

/// The exported images are the published file, byte for byte.
#[test]
fn the_embedded_set_is_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("digits");
    let into = into.to_str().expect("text");
    assert!(text(&["data", "export", "mnist", "--into", into]).contains("10 classes"));
    let images = fs::read(Path::new(into).join("train-images-idx3-ubyte")).expect("images");
    assert_eq!(fedcote_learn::data::md5::md5(&images), "6bbc9ace898e44ae57da46a324031adb");
    assert_eq!(fs::read_dir(into).expect("a folder").count(), 4);
    // Changes used to be overwritten by a second export.
    let labels = Path::new(into).join("train-labels-idx1-ubyte");
    fs::write(&labels, "mine").expect("a file");
    assert!(refusal(&["data", "export", "mnist", "--into", into]).contains("add --force"));
    assert_eq!(fs::read(&labels).expect("labels"), b"mine");
    text(&["data", "export", "mnist", "--into", into, "--force"]);
    assert_eq!(fs::read(&labels).expect("labels").len(), 60_008);
    assert!(refusal(&["data", "export", "/nowhere", "--into", into]).contains("/nowhere"));
}

#[test]
fn the_embedded_set_is_whole() {
    let found: serde_json::Value =
        serde_json::from_str(&text(&["data", "check", "mnist", "--json"])).expect("JSON");
    // Class sizes as published.
    assert_eq!(
        found["train"],
        serde_json::json!([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    );
    assert_eq!(
        found["test"],
        serde_json::json!([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])
    );
}

#[test]
fn a_folder_is_checked_and_damage_is_located() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    idx(&path("train-images-idx3-ubyte"), &[3, 1, 2], &[0, 255, 0, 255, 0, 255]);
    idx(&path("train-labels-idx1-ubyte"), &[3], &[4, 9, 4]);
    idx(&path("t10k-images-idx3-ubyte"), &[1, 1, 2], &[7, 7]);
    idx(&path("t10k-labels-idx1-ubyte"), &[1], &[9]);
    let argument = folder.path().to_str().expect("a path");
    let shown = text(&["data", "check", argument]);
    assert!(shown.contains("(idx): 1×2×1, 2 classes\n"), "{shown}");
    assert!(
        shown.contains("channel 0: standardised by mean 0.5000, deviation 0.5000\n"),
        "{shown}"
    );
    idx(&path("t10k-labels-idx1-ubyte"), &[1], &[5]);
    let line = refusal(&["data", "check", argument]);
    assert!(line.contains("t10k-labels-idx1-ubyte: at byte 8: label 5 does not occur"), "{line}");
}

#[test]
fn wrong_requests() {
    for (set, expected) in [
        ("/nowhere", "neither `mnist` nor `cifar10` nor a folder"),
        ("synthetic", "synthetic: is made from the keys of each scenario"),
        ("idx", "idx: is any folder"),
        ("cifar10", "get it with `fedcote data fetch cifar10 --into data/cifar10`"),
    ] {
        let line = refusal(&["data", "check", set]);
        assert!(line.contains(expected), "{line}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("archive");
    fs::write(&archive, b"abc").expect("a file");
    let into = folder.path().join("into");
    // RFC 1321 gives this digest of "abc".
    for (from, expected) in [
        (archive, "md5 900150983cd24fb0d6963f7d28e17f72; "),
        (folder.path().join("no.tgz"), "no.tgz: No such file"),
    ] {
        let (into, from) = (into.to_str().expect("a path"), from.to_str().expect("a path"));
        let line = refusal(&["data", "fetch", "cifar10", "--into", into, "--from", from]);
        assert!(line.contains(expected), "{line}");
    }
    assert!(!into.exists(), "nothing is made for what is refused");
}
