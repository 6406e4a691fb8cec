//! `fedcote network`, the real command.

use std::path::Path;
use std::process::{Command, Output};

fn fedcote(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = fedcote(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&done(folder, arguments)).unwrap()
}

/// The one line on standard error of a refused request.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = fedcote(folder, arguments);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(output.stdout.is_empty());
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().to_owned()
}

#[test]
fn json_has_every_client_of_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let document = json(folder.path(), &["network", "paper-literal", "--seed", "1", "--json"]);
    assert_eq!(document["round"], 0);
    assert_eq!(document["rate_bps"], 7635200.0);
    let clients = document["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 20);
    for (index, client) in clients.iter().enumerate() {
        assert_eq!(client["id"], (index + 1).to_string());
        assert_eq!(client["standard"], ["wifi24", "wifi5", "4g", "5g"][index % 4]);
        assert_eq!(client["indoor"], index < 8);
        for key in ["x", "y", "distance", "margin_db", "failure"] {
            assert!(client[key].is_number(), "{client}");
        }
    }
    // Client 1 from a computation that shares no code: see the oracle of the fedcote-radio crate.
    assert!((clients[0]["x"].as_f64().unwrap() - 26.50077328776259).abs() < 1e-9);
    assert!((clients[0]["margin_db"].as_f64().unwrap() - 70.99737485296511).abs() < 1e-9);
}

#[test]
fn both_tasks_have_the_rate_of_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let document = json(folder.path(), &["network", "cifar10", "--json"]);
    assert_eq!(document["rate_bps"], 8631104.0);
}

#[test]
fn the_table_names_standard_place_distance_margin_and_failure() {
    let folder = tempfile::tempdir().unwrap();
    let text = done(folder.path(), &["network", "paper-calibrated"]);
    let header: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["client", "standard", "place", "distance", "margin", "failure"]);
    assert!(text.contains("outdoors") && text.contains("Uploads at 7.635 Mbit/s."), "{text}");
    let crowd = done(folder.path(), &["network", "--set", "clients=1000"]);
    assert!(crowd.contains("… and 960 more (--json prints all)"), "{crowd}");
}

#[test]
fn walkers_are_somewhere_else_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = |round: &str| {
        json(folder.path(), &["network", "paper-dynamic", "--round", round, "--json"])
    };
    let (start, later) = (at("0"), at("40"));
    let place = |document: &serde_json::Value, client: usize, key: &str| {
        document["clients"][client][key].as_f64().unwrap()
    };
    let moved: Vec<f64> = (0..20)
        .map(|client| {
            let way = |key| place(&later, client, key) - place(&start, client, key);
            way("x").hypot(way("y"))
        })
        .filter(|way| *way > 0.0)
        .collect();
    assert_eq!(moved.len(), 10);
    // Forty rounds of a second at 1.5 m/s, less for those who turned round.
    assert!(moved.iter().all(|way| *way <= 60.0 + 1e-9), "{moved:?}");
    assert!(moved.iter().filter(|way| (*way - 60.0).abs() < 1e-9).count() >= 5, "{moved:?}");
}

#[test]
fn the_map_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    done(folder.path(), &["network", "paper-dynamic", "--svg", "map.svg"]);
    let text = std::fs::read_to_string(folder.path().join("map.svg")).unwrap();
    assert!(text.starts_with("<svg") && text.ends_with("</svg>"));
    assert!(text.contains("<desc") && text.contains("10 clients move"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let refused = refusal(folder.path(), &["network", "--svg", "nowhere/map.svg"]);
    assert!(refused.starts_with("fedcote: nowhere: no such folder"), "{refused}");
}

#[test]
fn networks_without_places_have_failures_only() {
    let folder = tempfile::tempdir().unwrap();
    let text = "clients = 2\nselected = 1\n[network]\nkind = \"fixed\"\nfailure = [0.25, 1]\n";
    std::fs::write(folder.path().join("fixed.toml"), text).unwrap();
    let document = json(folder.path(), &["network", "fixed.toml", "--json"]);
    let expected = serde_json::json!([{"id": "1", "failure": 0.25}, {"id": "2", "failure": 1.0}]);
    assert_eq!(document["clients"], expected);
    let line = refusal(folder.path(), &["network", "fixed.toml", "--svg", "map.svg"]);
    assert_eq!(
        line,
        "fedcote: --svg: this network has no places to draw: its kind is not \"radio\""
    );
}

#[test]
fn wrong_networks_are_refused_with_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    for (network, expected) in [
        (
            "standards.4g.bandwidth_hz = -1.8e6",
            "s.toml:4: network.standards.4g.bandwidth_hz: must be above 0, not -1800000",
        ),
        (
            "standard_order = [\"wifi24\", \"6g\"]",
            "s.toml:4: network.standard_order: unknown standard `6g`; did you mean `4g`?",
        ),
        (
            "[network.standards.5g]\nshadowing = [{ to_m = 100, sigma_db = 4 }, { from_m = 90, sigma_db = 8 }]",
            "s.toml:5: network.standards.5g.shadowing: range 2: starts at 90 m and overlaps the range before, which ends at 100 m",
        ),
        (
            "rayleigh = true\noutdoor_exces_loss_db = 22",
            "s.toml:5: unknown key `network.outdoor_exces_loss_db`; did you mean `outdoor_excess_loss_db`?",
        ),
        (
            "[network.standards.5g]\npower_db = 3",
            "s.toml:5: unknown key `network.standards.5g.power_db`; did you mean `power_dbm`?",
        ),
        (
            "kind = \"radioo\"",
            "s.toml:4: network.kind: `radioo` is not known; did you mean `radio`?",
        ),
    ] {
        std::fs::write(&file, format!("clients = 2\nselected = 1\n[network]\n{network}\n"))
            .unwrap();
        assert_eq!(refusal(folder.path(), &["network", "s.toml"]), format!("fedcote: {expected}"));
    }
}

#[test]
fn wrong_traces_are_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "clients = 2\nselected = 1\n[network]\nkind = \"trace\"\nfile = \"t.csv\"\n";
    std::fs::write(folder.path().join("s.toml"), scenario).unwrap();
    let line = refusal(folder.path(), &["network", "s.toml"]);
    assert!(line.starts_with("fedcote: t.csv: "), "{line}");
    for (rows, expected) in [
        (
            "1,1,0\n2,1,0\n2,2,0\n",
            "t.csv:3: round 2, client 1 leaves a hole: round 1, client 2 is due",
        ),
        ("1,2,0\n1,1,0\n", "t.csv:2: round 1, client 2 leaves a hole: round 1, client 1 is due"),
        (
            "1,1,0\n1,1,0\n1,2,0\n",
            "t.csv:3: round 1, client 1 repeats or is out of order: round 1, client 2 is due",
        ),
        ("1,1,0\n1,2,7\n", "t.csv:3: failure \"7\" is not between 0 and 1"),
    ] {
        std::fs::write(folder.path().join("t.csv"), format!("round,client,failure\n{rows}"))
            .unwrap();
        assert_eq!(refusal(folder.path(), &["network", "s.toml"]), format!("fedcote: {expected}"));
    }
    std::fs::write(
        folder.path().join("t.csv"),
        "round,client,failure\n1,1,0.5\n1,2,0\n2,1,1\n2,2,0\n",
    )
    .unwrap();
    let document = json(folder.path(), &["network", "s.toml", "--round", "2", "--json"]);
    assert_eq!(document["clients"][0]["failure"], 1.0);
}

#[test]
fn the_examples_of_the_guide_work() {
    let folder = tempfile::tempdir().unwrap();
    let guide = include_str!("../../../docs/guide/network.md");
    let blocks = |language: &str| {
        let start = format!("```{language}\n");
        guide
            .split(&start)
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap())
            .collect::<Vec<_>>()
    };
    std::fs::write(folder.path().join("trace.csv"), blocks("csv")[0]).unwrap();
    std::fs::write(folder.path().join("mine.toml"), blocks("toml")[0]).unwrap();
    assert!(blocks("toml").len() >= 4);
    for example in blocks("toml") {
        std::fs::write(folder.path().join("example.toml"), example).unwrap();
        done(folder.path(), &["network", "example.toml"]);
    }
    let commands: Vec<&str> = blocks("sh")[0].lines().collect();
    assert_eq!(commands.len(), 3);
    for command in commands {
        let words: Vec<&str> =
            command.split('#').next().unwrap().split_whitespace().skip(1).collect();
        done(folder.path(), &words);
    }
}

/// A negative round used to be taken for an unknown flag.
#[test]
fn a_negative_round_is_refused_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let refused = refusal(folder.path(), &["network", "--round", "-1"]);
    assert!(
        refused
            .starts_with("fedcote: --round: must be a whole number from 0 to 4294967295, is `-1`"),
        "{refused}"
    );
}

#[test]
fn traces_of_others_become_networks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("phones.csv"), "a,0,4000\na,7000,9000\nb,3000,12000\n").unwrap();
    let words = "network import intervals phones.csv --rounds 3 --slot 3600 --deadline 300";
    let words: Vec<&str> = words.split(' ').collect();
    let expected = "round,client,failure\n1,1,0\n1,2,1\n2,1,0\n2,2,0\n3,1,0\n3,2,0\n";
    assert_eq!(done(path, &words), expected);
    assert_eq!(done(path, &[&words[..], &["--out", "trace.csv"]].concat()), "");
    assert_eq!(std::fs::read_to_string(path.join("trace.csv")).unwrap(), expected);
    let set =
        ["--set", "network.kind=trace", "--set", "network.file=trace.csv", "--set", "clients=2"];
    let arguments = [&["network", "quickstart", "--round", "1", "--json"], &set[..]].concat();
    let network = json(path, &arguments);
    assert_eq!(network["clients"][1]["failure"], 1.0);

    std::fs::write(path.join("wrong.csv"), "a,0,4000\nb,9,3\n").unwrap();
    let wrong =
        refusal(path, &["network", "import", "intervals", "wrong.csv", "--out", "none.csv"]);
    assert_eq!(wrong, "fedcote: wrong.csv:2: off: 3 is not after on, 9");
    assert!(!path.join("none.csv").exists());
    let code = refusal(path, &["network", "import", "fedscale", "wrong.csv"]);
    assert!(code.starts_with("fedcote: wrong.csv: byte 0: "), "{code}");
    let missing = refusal(path, &["network", "import", "flash", "nowhere.json"]);
    assert!(missing.contains("nowhere.json"), "{missing}");
    let negative =
        refusal(path, &["network", "import", "intervals", "phones.csv", "--deadline", "-1"]);
    assert_eq!(negative, "fedcote: --deadline: must be 0 or more");
}

/// Regression: `--bits` with `flash`, which does not use it, changed nothing without a word.
#[test]
fn options_that_a_format_does_not_use_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (format, unused) in [
        ("fedscale", &["compute"][..]),
        ("flash", &["bits", "samples"]),
        ("bandwidth", &["samples"]),
        ("intervals", &["bits", "compute", "samples"]),
    ] {
        for name in ["bits", "compute", "samples"] {
            let option = format!("--{name}");
            let words = ["network", "import", format, "nowhere", &option, "7"];
            let line = refusal(folder.path(), &words);
            let idle = format!("fedcote: --{name}: has no effect on {format}: leave it out");
            assert_eq!(line == idle, unused.contains(&name), "{format} {name}: {line}");
        }
    }
}

#[test]
fn groups_that_are_wrong_are_refused_with_their_key() {
    let folder = tempfile::tempdir().unwrap();
    for (groups, reason) in [
        (
            "ap = { failure = 1.5, clients = [1] }",
            "network.groups.ap.failure: must be between 0 and 1, not 1.5",
        ),
        ("ap = { failure = 0.5 }", "network.groups.ap.clients: is missing"),
        // Regression: an empty list was accepted, without effect.
        ("ap = { failure = 0.5, clients = [] }", "network.groups.ap.clients: is empty"),
        (
            "ap = { failure = 0.5, clients = [21] }",
            "network.groups.ap.clients: client 21 is not one of 1 to 20",
        ),
        (
            "ap = { failure = 0.5, clients = [2, 2] }",
            "network.groups.ap.clients: client 2 is listed twice",
        ),
        (
            "ap = { failure = 0.5, clients = [2] }\nb = { clients = [2] }",
            "network.groups.b.clients: client 2 is in group ap already",
        ),
        (
            "ap = { failure = 0.5, station = \"acess_point\" }",
            "network.groups.ap.station: unknown station with clients `acess_point`",
        ),
        (
            "ap = { failure = 0.5, station = \"access_point\", clients = [1] }",
            "network.groups.ap.station: give either",
        ),
        ("ap = { chance = 0.5 }", "chance"),
    ] {
        std::fs::write(folder.path().join("mine.toml"), format!("[network.groups]\n{groups}\n"))
            .unwrap();
        let line = refusal(folder.path(), &["network", "mine.toml"]);
        assert!(line.contains(reason) && line.contains("mine.toml"), "{groups}: {line}");
    }
}
