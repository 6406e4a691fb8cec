//! The live page with hostile folders, slow requests, and requests that make it work.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "common/server.rs"]
mod server;

use server::{Server, status};

const JSON: &str = "content-type: application/json\r\n";
const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];
const PLAIN: &str = "rounds = 9\nclients = 3\nseeds = [1]\nschemes = [\"fedavg\"]\n";

/// A run folder with this scenario.
fn run(folder: &Path, name: &str, scenario: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.join("fedavg/1")).unwrap();
    fs::write(path.join("scenario.toml"), scenario).unwrap();
    path
}

/// The token used to be an argument only, which every user of the machine can see.
#[test]
fn the_token_may_come_from_the_environment_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let token = "a-token-of-my-own";
    let file = folder.path().join("token");
    fs::write(&file, format!("{token}\nnot this\n")).unwrap();
    let by_file = ["--listen", "127.0.0.1:0", "--token-file", file.to_str().unwrap()];
    let servers = [
        Server::start_with(&runs, &LOCAL, &[("FEDCOTE_TOKEN", token)]),
        // What is said on the command line counts.
        Server::start_with(&runs, &by_file, &[("FEDCOTE_TOKEN", "another-token-here")]),
    ];
    for server in servers {
        assert_eq!(status(&server.get("/")), 401);
        assert_eq!(status(&server.get(&format!("/?token={token}"))), 303);
    }
    fs::write(&file, "short\n").unwrap();
    // Regression: a variable that held nothing, or no text, was taken for none, and the page had no token.
    #[cfg(unix)]
    let no_text: std::ffi::OsString =
        std::os::unix::ffi::OsStringExt::from_vec(b"\xffabcdefghijklmnopq".to_vec());
    #[cfg(not(unix))]
    let no_text = std::ffi::OsString::from("spaces are not allowed");
    for (words, variable, reason) in [
        (vec![], "", "FEDCOTE_TOKEN: must have 16 to 200 characters"),
        (vec!["--token-file", file.to_str().unwrap()], "", "token: must have 16 to 200 characters"),
        (vec!["--token-file", "nowhere"], "", "--token-file nowhere: "),
        (vec![], "spaces are not allowed", "FEDCOTE_TOKEN: may have letters"),
        (vec!["--token-file", "x", "--token", "y"], "", "cannot be used with"),
    ]
    .map(|(words, variable, reason)| (words, std::ffi::OsString::from(variable), reason))
    .into_iter()
    .chain([(vec![], no_text, "FEDCOTE_TOKEN: ")])
    {
        let output = Command::new(env!("CARGO_BIN_EXE_fedcote"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(&words)
            .env("FEDCOTE_TOKEN", variable)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(reason) && error.trim().lines().count() == 1, "{words:?}: {error}");
    }
}

/// A frame on another site could make this machine work: any navigation from elsewhere was answered. Later, data whose
/// address was percent-encoded passed for a page, and the page of a combination of a sweep for data.
#[test]
fn other_sites_may_link_to_pages_and_to_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "one", PLAIN);
    run(folder.path(), "swept/rate=0.1", PLAIN);
    fs::write(folder.path().join("swept/sweep.toml"), PLAIN).unwrap();
    let server = Server::start(folder.path(), &LOCAL);
    let from = |site: &str, mode: &str, to: &str| {
        format!("sec-fetch-site: {site}\r\nsec-fetch-mode: {mode}\r\nsec-fetch-dest: {to}\r\n")
    };
    let link = from("cross-site", "navigate", "document");
    for path in ["/", "/runs/one", "/playground", "/runs/swept", "/runs/swept/rate=0.1"] {
        assert_eq!(status(&server.get_with(path, &link)), 200, "{path}");
        for to in ["iframe", "frame", "object", "embed", "empty"] {
            let framed = from("cross-site", "navigate", to);
            assert_eq!(status(&server.get_with(path, &framed)), 403, "{path} {to}");
        }
    }
    for path in [
        "/api/runs",
        "/api/runs/one/places?seed=1&round=3",
        "/runs/one/report.html",
        "/runs/one/rounds.csv",
        "/%61pi/runs/one/series",
        "/%72uns/one/report.html",
        "/runs/swept/report.html",
        "/runs/swept/rate=0.1/report.html",
    ] {
        assert_eq!(status(&server.get_with(path, &link)), 403, "{path}");
        let neighbour = from("same-site", "navigate", "document");
        assert_eq!(status(&server.get_with(path, &neighbour)), 403, "{path}");
        let own = from("same-origin", "cors", "empty");
        assert_ne!(status(&server.get_with(path, &own)), 403, "{path}");
    }
    drop(server);
    // Which combinations there are is not told without the token.
    let words = [&LOCAL[..], &["--token", "a-token-of-my-own"]].concat();
    let server = Server::start(folder.path(), &words);
    for path in ["/runs/swept/rate=0.1", "/runs/swept/rate=0.2"] {
        assert_eq!(status(&server.get_with(path, &link)), 401, "{path}");
    }
}

/// Two questions for a late round of a walk kept the page from answering anything for minutes.
#[test]
fn a_round_that_no_run_has_is_answered_as_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let walk = "[network]\nmobility = \"waypoint\"\n";
    run(folder.path(), "walk", &format!("{PLAIN}{walk}"));
    let long = format!("{PLAIN}{walk}").replace("rounds = 9", "rounds = 4294967295");
    run(folder.path(), "long", &long);
    let server = Server::start(folder.path(), &LOCAL);
    let places = |name: &str, round: u64| {
        let answer = server.get(&format!("/api/runs/{name}/places?seed=1&round={round}"));
        assert_eq!(status(&answer), 200, "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    assert_eq!(places("walk", 4_294_967_295), places("walk", 9));
    assert_ne!(places("walk", 4), places("walk", 9));
    assert_eq!(places("long", u64::MAX), places("long", 4_294_967_295));
    assert_eq!(status(&server.get("/api/runs")), 200);
}

/// 256 requests whose bodies never came kept everybody else out for ten seconds, and again.
#[test]
fn slow_bodies_do_not_keep_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &LOCAL);
    let head = format!(
        "POST /api/playground HTTP/1.1\r\nhost: {}\r\n{JSON}content-length: 1000\r\n\r\n{{",
        server.address
    );
    let slow: Vec<_> = (0..400)
        .map(|_| {
            let mut stream = server.connect();
            // The server may have let it go already, which is its right.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(status(&server.get("/api/runs")), 200);
    }
    drop(slow);
}

/// Nine million runs in one scenario, three gigabytes of nothing, a pipe in the place of a lock, and a damaged sweep, which was
/// told to be a fault of the page.
#[test]
fn hostile_folders_do_not_stop_the_page() {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("runs");
    let many =
        |what: &str| -> Vec<String> { (0..3000).map(|at| format!("{what}{at}{what}")).collect() };
    let many = format!(
        "rounds = 9\nseeds = [{}]\nschemes = [{}]\n",
        many("").join(","),
        many("\"").join(",")
    );
    run(&folder, "many", &many);
    let sparse = run(&folder, "sparse", PLAIN).join("fedavg/1/metrics.jsonl");
    fs::File::create(sparse).unwrap().set_len(3 << 30).unwrap();
    let pipe = run(&folder, "pipe", PLAIN);
    if cfg!(unix) {
        for place in [".lock", "fedavg/1/.lock", "fedavg/1/metrics.jsonl"] {
            assert!(Command::new("mkfifo").arg(pipe.join(place)).status().unwrap().success());
        }
    }
    let damaged = "rounds = 9\nclients = \"many\"\n[network\n";
    run(&folder, "damaged", damaged);
    fs::create_dir(folder.join("swept")).unwrap();
    fs::write(folder.join("swept/sweep.toml"), damaged).unwrap();
    let server = Server::start(&folder, &LOCAL);
    let list = server.get("/api/runs");
    assert_eq!(status(&list), 200, "{list}");
    assert!(list.contains("too many runs"), "{list}");
    for name in ["many", "sparse", "pipe", "damaged", "swept"] {
        for what in [
            format!("/api/runs/{name}/map?seed=1"),
            format!("/api/runs/{name}/places?seed=1&round=1"),
            format!("/api/runs/{name}/series"),
            format!("/api/runs/{name}/settings"),
            format!("/api/runs/{name}/choices"),
            format!("/api/runs/{name}/figures"),
            format!("/api/runs/{name}/sweep"),
            format!("/runs/{name}/report.html"),
            format!("/runs/{name}/rounds.csv"),
        ] {
            let answer = server.get(&what);
            assert!(matches!(status(&answer), 200 | 400..500), "{what}: {answer}");
            // Where the folder is on this machine used to be told.
            let path = folder.canonicalize().unwrap();
            assert!(!answer.contains(path.to_str().unwrap()), "{what}: {answer}");
        }
    }
    assert_eq!(status(&server.get("/api/runs/damaged/map?seed=1")), 422);
    assert_eq!(status(&server.get("/api/runs/swept/sweep")), 422);
    assert_eq!(status(&server.get("/runs/sparse/report.html")), 413);
    drop(server);
    // The command does not wait for ever either.
    let mut report = Command::new(env!("CARGO_BIN_EXE_fedcote"));
    let output = report.args(["report", "pipe"]).current_dir(&folder).output().unwrap();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
}

/// An accuracy altered in the files of a finished run was shown as the best; one in a combination of a sweep was not told.
#[test]
fn altered_results_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "rounds = 2\nclients = 3\nselected = 2\nseeds = [1]\nschemes = [\"fedavg\", \"fedcote\"]\n\
                    evaluate_every = 1\n[data]\nset = \"synthetic\"\nsamples = 60\n[model]\nkind = \"softmax\"\n\
                    [network]\nkind = \"fixed\"\nfailure = 0.1\n";
    fs::write(folder.path().join("mine.toml"), scenario).unwrap();
    let fedcote = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedcote"));
        command.args(words).current_dir(folder.path()).output().unwrap()
    };
    for name in ["rounds", "summary", "sound"] {
        let done = fedcote(&["run", "mine.toml", "--out", &format!("runs/{name}"), "--json"]);
        assert!(done.status.success(), "{done:?}");
    }
    for name in ["sweep", "sound-sweep"] {
        let out = format!("runs/{name}");
        let sweep = ["--sweep", "training.rate=0.05,0.1", "--out", &out, "--json"];
        let done = fedcote(&[&["run", "mine.toml"], &sweep[..]].concat());
        assert!(done.status.success(), "{done:?}");
    }
    let alter = |path: &str| {
        let path = folder.path().join("runs").join(path);
        let text = fs::read_to_string(&path).unwrap();
        let at = text.find("\"test_accuracy\":").unwrap();
        let digit = at + text[at..].find("0.").unwrap() + 2;
        let other = if &text[digit..=digit] == "9" { "8" } else { "9" };
        fs::write(path, format!("{}{other}{}", &text[..digit], &text[digit + 1..])).unwrap();
    };
    alter("rounds/fedavg/1/metrics.jsonl");
    alter("summary/summary.json");
    alter("sweep/rate=0.1/summary.json");
    let server = Server::start(&folder.path().join("runs"), &LOCAL);
    let list = server.get("/api/runs");
    let list: Vec<serde_json::Value> =
        serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
    let find = |name: &str| list.iter().find(|run| run["name"] == name).unwrap();
    assert_eq!(
        (&find("sound")["state"], &find("summary")["state"]),
        (&"finished".into(), &"damaged".into())
    );
    assert_eq!(
        (&find("sound-sweep")["state"], &find("sweep")["state"]),
        (&"finished".into(), &"damaged".into())
    );
    assert!(find("sound")["best"].is_object() && find("summary")["best"].is_null());
    // What is shown round by round says so, too.
    for (name, told) in [("rounds", true), ("sound", false)] {
        let mut stream = server.connect();
        let host = &server.address;
        write!(stream, "GET /api/runs/{name}/events HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
        let mut seen = String::new();
        let mut reader = BufReader::new(stream);
        while !seen.contains("\"state\":") {
            assert!(reader.read_line(&mut seen).unwrap() > 0, "{seen}");
        }
        assert_eq!(seen.contains("its checksum does not match"), told, "{name}: {seen}");
        let state = if told { "\"state\":\"damaged\"" } else { "\"state\":\"finished\"" };
        assert!(seen.contains(state), "{name}: {seen}");
    }
    drop(server);
    for (name, told) in
        [("rounds", "metrics.jsonl: is damaged"), ("summary", "summary.json: is damaged")]
    {
        let done = fedcote(&["report", &format!("runs/{name}")]);
        assert!(done.status.success(), "{done:?}");
        let report =
            fs::read_to_string(folder.path().join(format!("runs/{name}/report.html"))).unwrap();
        assert!(report.contains(told), "{name}");
    }
}
