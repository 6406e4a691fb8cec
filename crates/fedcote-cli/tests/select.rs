//! `fedcote select` and `fedcote evaluate`, run as a user runs them.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the command with this standard input.
fn fedcote(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that refuses early closes its end.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("the writer ends");
    output
}

fn json(arguments: &[&str], input: &str) -> Value {
    let output = fedcote(arguments, input.as_bytes());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.is_empty(), "{error}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON document")
}

/// The one line on standard error of a refused request.
fn refusal(arguments: &[&str], input: &[u8]) -> String {
    let output = fedcote(arguments, input);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(output.stdout.is_empty(), "nothing on standard output");
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    error.trim_end().strip_prefix("fedcote: ").expect("the command's name").to_owned()
}

const PAIR: &str = r#"{"selected": 2, "clients": [
    {"id": "a", "labels": [30, 10], "failure": 0.1, "selection": 0.5},
    {"id": "b", "labels": [0, 40], "failure": 0.6, "selection": 0.5}]}"#;

#[test]
fn select_prints_one_json_document() {
    let document = json(&["select", "--json"], PAIR);
    assert_eq!(document["method"], "exact");
    assert_eq!(document["selected"], 2);
    assert_eq!(document["warnings"].as_array().expect("a list").len(), 0);
    let clients = document["clients"].as_array().expect("a list");
    assert_eq!(clients.len(), 2);
    let number = |client: usize, field: &str| clients[client][field].as_f64().expect("a number");
    for client in clients {
        assert!((client["appearance"].as_f64().expect("a number") - 0.5).abs() < 1e-9);
        assert_eq!(client["eligible"], true);
    }
    // By hand, K = 2: β̄_a = s² + 2 s (1−s) · 0.9·1.6 / (2 (1 − 0.06)) = ½.
    let s = number(0, "selection");
    assert!((s * s + 2.0 * s * (1.0 - s) * 0.9 * 1.6 / (2.0 * 0.94) - 0.5).abs() < 1e-9);
    let arrivals = document["expected_arrivals"].as_f64().expect("a number");
    assert!((arrivals - 2.0 * (0.9 * s + 0.4 * (1.0 - s))).abs() < 1e-9);
    assert!(document["optimality"].as_f64().expect("a number") < 1e-10);
    assert!(document["label_divergence"].as_f64().expect("a number") < 1e-12);
}

#[test]
fn evaluate_says_what_given_probabilities_lead_to() {
    let document = json(&["evaluate", "--json"], PAIR);
    assert_eq!(document["method"], "given");
    assert!(document.get("optimality").is_none());
    let appearance = document["clients"][0]["appearance"].as_f64().expect("a number");
    assert!((appearance - (0.25 + 0.5 * 0.9 * 1.6 / (2.0 * 0.94))).abs() < 1e-12);
    assert!((document["expected_arrivals"].as_f64().expect("a number") - 1.3).abs() < 1e-12);
}

#[test]
fn csv_and_json_say_the_same() {
    let csv = "id,failure,label_0,label_1\na,0.1,30,10\n\nb,0.6,0,40\n";
    let arguments = ["select", "--selected", "2", "--json"];
    assert_eq!(json(&arguments, csv), json(&["select", "--json"], PAIR));
    let csv =
        "\u{feff}id, failure, selection, label_0, label_1\r\na,0.1,0.5,30,10\r\nb,0.6,0.5,0,40\r\n";
    let arguments = ["evaluate", "--selected", "2", "--json"];
    assert_eq!(json(&arguments, csv), json(&["evaluate", "--json"], PAIR));

    let output = fedcote(&["select", "--csv"], PAIR.as_bytes());
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "id,weight,failure,eligible,selection,appearance");
    assert!(lines[1].starts_with("a,0.5,0.1,true,0.") && lines.len() == 3);
}

#[test]
fn a_file_is_read_by_name_and_flags_override_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clients.json");
    fs::write(&path, PAIR).expect("written");
    let path = path.to_str().expect("text");
    assert_eq!(json(&["select", path, "--json"], ""), json(&["select", "-", "--json"], PAIR));
    assert_eq!(json(&["select", path, "--json", "--selected", "7"], "")["selected"], 7);
    let strict = json(&["select", path, "--json", "--threshold", "0.5", "--no-coverage"], "");
    assert_eq!(strict["clients"][1]["eligible"], false);
    assert_eq!(strict["clients"][1]["selection"], 0.0);
    let error = refusal(&["select", "no-such-file.json"], b"");
    assert!(error.starts_with("no-such-file.json: "), "{error}");
}

#[test]
fn methods_and_their_flags() {
    let gradient = json(&["select", "--method", "gradient", "--json"], PAIR);
    assert_eq!(gradient["method"], "gradient");
    let fewer = json(&["select", "--method", "gradient", "--k-apx", "1", "--json"], PAIR);
    // One draw appears as it is selected, so FedCote-II with K_apx = 1 selects by weight here.
    assert!((fewer["clients"][0]["selection"].as_f64().expect("a number") - 0.5).abs() < 1e-6);
    let cheap = json(&["select", "--efficiency", "1", "--json"], PAIR);
    let exact = json(&["select", "--kappa", "10", "--json"], PAIR);
    assert!(cheap["expected_arrivals"].as_f64() > exact["expected_arrivals"].as_f64());
    assert_eq!(
        refusal(&["select", "--k-apx", "4"], PAIR.as_bytes()),
        "--k-apx belongs to --method gradient"
    );
    assert_eq!(
        refusal(&["select", "--method", "gradient", "--kappa", "4"], PAIR.as_bytes()),
        "--kappa belongs to --method exact"
    );
}

#[test]
fn draws_and_uploads_change_the_appearance_and_are_corrected_for() {
    // Four systematic draws of two clients with selection ½ each are two draws each, always. With one upload per client,
    // by hand: a arrives with 0.9, b with 0.4; a alone in 0.9·0.6, both in 0.9·0.4, somebody in 0.94.
    let flags = ["--draws", "systematic", "--uploads", "per-client", "--selected", "4", "--json"];
    let given = json(&[&["evaluate"], &flags[..]].concat(), PAIR);
    let appearance = given["clients"][0]["appearance"].as_f64().expect("a number");
    assert!((appearance - (0.54 + 0.36 / 2.0) / 0.94).abs() < 1e-12, "{appearance}");
    for draws in ["independent", "systematic"] {
        for uploads in ["per-draw", "per-client"] {
            let flags = ["--draws", draws, "--uploads", uploads, "--selected", "9", "--json"];
            let found = json(&[&["select"], &flags[..]].concat(), PAIR);
            for client in found["clients"].as_array().expect("a list") {
                let appearance = client["appearance"].as_f64().expect("a number");
                assert!((appearance - 0.5).abs() < 1e-6, "{draws} {uploads} {appearance}");
            }
        }
    }
}

#[test]
fn a_label_is_kept_unless_told_otherwise() {
    let input = r#"{"selected": 4, "clients": [
        {"id": "near", "labels": [10, 0], "failure": 0.1},
        {"id": "far", "labels": [0, 10], "failure": 0.95}]}"#;
    let kept = json(&["select", "--json"], input);
    assert!(kept["clients"][1]["selection"].as_f64() > Some(0.5));
    let warning = kept["warnings"][0].as_str().expect("a sentence");
    assert!(warning.starts_with("label 1: ") && warning.contains("far"), "{warning}");
    let lost = json(&["select", "--json", "--no-coverage"], input);
    assert_eq!(lost["clients"][1]["selection"], 0.0);
    assert!(lost["warnings"][0].as_str().expect("a sentence").contains("lost"));
    let output = fedcote(&["select"], input.as_bytes());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("warning: label 1: "), "{text}");
}

/// `PAIR` with one piece of its text replaced.
fn with(from: &str, to: &str) -> Vec<u8> {
    assert!(PAIR.contains(from), "{from}");
    PAIR.replacen(from, to, 1).into_bytes()
}

#[test]
fn bad_input_is_refused_by_client_and_field() {
    for (input, expected) in [
        (with("0.6", "1.6"), r#"client "b": failure must be a probability from 0 to 1, is 1.6"#),
        (with("0.6", "-0.1"), r#"client "b": failure must be"#),
        (with("0.6", "NaN"), r#"client "b": failure: expected value at line 3"#),
        (with("0.6", "null"), r#"client "b": failure: null is not a number at line 3"#),
        (
            with("[0, 40]", "[0, -40]"),
            r#"client "b": labels [1] must be 0 or from 1e-9 to 2^53, is -40"#,
        ),
        // Used to be printed with all its 309 digits.
        (
            with("[0, 40]", "[0, 1e308]"),
            r#"client "b": labels [1] must be 0 or from 1e-9 to 2^53, is 1e308"#,
        ),
        (
            with("0.6", "1e308"),
            r#"client "b": failure must be a probability from 0 to 1, is 1e308"#,
        ),
        (with("[0, 40]", "[0, 1e999]"), r#"client "b": labels: number out of range"#),
        (with("[0, 40]", "[0, \"x\"]"), r#"client "b": labels: "x" is not a number at line 3"#),
        (with("[0, 40]", "[0, 0]"), r#"client "b": labels are all 0"#),
        (
            with("[0, 40]", "[40]"),
            r#"client "b": labels: expected 2 counts as for the first client, found 1"#,
        ),
        (with("[30, 10]", "[]"), r#"client "b": labels: expected 0"#),
        (with("\"b\"", "\"a\""), r#"client "a": id is used twice"#),
        (with("\"id\": \"b\", ", ""), "client 2: id: either every client has one or none"),
        (with("\"id\": \"a\", ", ""), "client 2: id: either every client has one or none"),
        (with("\"labels\": [0, 40], ", ""), r#"client "b": labels is missing"#),
        (with(", \"failure\": 0.6", ""), r#"client "b": failure is missing"#),
        (with("\"labels\": [0", "\"lables\": [0"), "unknown field `lables`"),
        (
            with("\"selected\": 2", "\"selected\": 0"),
            "selected: must be from 1 to 1000000000, is 0",
        ),
        (with("\"selected\": 2", "\"selected\": 1000000000000"), "selected: must be from 1 to"),
        (with("\"selected\": 2", "\"selected\": 2.5"), "selected: 2.5 is not a whole number"),
        (
            with("\"selected\": 2", "\"selected\": -3"),
            "selected: -3 is not a whole number of 0 or more",
        ),
        (with("\"selected\": 2", "\"threshold\": 0.5"), "selected: missing"),
        (
            with("\"selected\": 2", "\"selected\": 2, \"threshold\": 7"),
            "threshold: must be from 0 to 1, is 7",
        ),
        (
            br#"{"selected": 2, "clients": []}"#.to_vec(),
            "clients: there must be at least one client",
        ),
        (br#"{"selected": 2}"#.to_vec(), "missing field `clients`"),
        (br#"{"selected": 2, "clients": {}}"#.to_vec(), "a table is not a list of clients"),
        (b"".to_vec(), "is empty"),
        (b" \n\t ".to_vec(), "is empty"),
        (b"{".to_vec(), "EOF while parsing"),
        ([PAIR.as_bytes(), b"{}"].concat(), "trailing characters"),
        (vec![0x89, b'P', b'N', b'G', 0, 1, 2, 255], "is neither JSON nor CSV text"),
        (b"PK\x03\x04\x00\x00".to_vec(), "is neither JSON nor CSV text"),
        ([0xff, 0xfe].repeat(1000), "is neither JSON nor CSV text"),
        (b"{\"selected\": \"\xff\xfe\"}".to_vec(), "selected: "),
    ] {
        let error = refusal(&["select", "--json"], &input);
        let shown = String::from_utf8_lossy(&input).into_owned();
        assert!(error.contains(expected), "for {shown}\ngot {error}\nwant {expected}");
    }
    let dead = with("0.1", "1").into_iter().map(char::from).collect::<String>().replace("0.6", "1");
    for command in ["select", "evaluate"] {
        let error = refusal(&[command], dead.as_bytes());
        assert!(error.contains("no eligible client can ever arrive"), "{error}");
    }
    for (input, expected) in [
        (
            with("\"selection\": 0.5", "\"selection\": 0.4"),
            "selection: must sum to 1 within 1e-6, sums to 0.9",
        ),
        (
            with("\"selection\": 0.5", "\"selection\": 1.5"),
            r#"client "a": selection must be a probability"#,
        ),
        (with(", \"selection\": 0.5", ""), r#"client "a": selection is missing"#),
    ] {
        let error = refusal(&["evaluate", "--json"], &input);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn bad_csv_is_refused_by_line_and_field() {
    for (input, expected) in [
        ("id,failure\na,0.1\n", "line 1: the header must be id,failure,label_0"),
        ("name,failure,label_0\na,0.1,3\n", "line 1: the header must be"),
        ("id,failure,label_1\na,0.1,3\n", "line 1: the header must be"),
        ("hello\n", "line 1: the header must be"),
        (
            "id,failure,label_0\na,0.1,x\n",
            r#"line 2: client "a": label_0 must be a number, is "x""#,
        ),
        ("id,failure,label_0\na,,3\n", r#"line 2: client "a": failure must be a number, is """#),
        ("id,failure,label_0\na,nan,3\n", r#"client "a": failure must be a probability"#),
        ("id,failure,label_0\na,0.1,1e308\n", r#"client "a": labels [0] must"#),
        ("id,failure,label_0\na,0.1,3\nb,0.1\n", "line: 3"),
        ("id,failure,label_0\na,0.1,3\na,0.1,3\n", r#"client "a": id is used twice"#),
        ("id,failure,label_0\n", "clients: there must be at least one client"),
    ] {
        let error = refusal(&["select", "--selected", "3"], input.as_bytes());
        assert!(error.contains(expected), "for {input}\ngot {error}\nwant {expected}");
    }
    let error = refusal(&["select"], b"id,failure,label_0\na,0.1,3\n");
    assert!(error.starts_with("selected: missing"), "{error}");
}

#[test]
fn bad_flags_have_status_two() {
    let many = "must be a whole number from 1 to 1000000000, is";
    for (arguments, expected) in [
        (
            &["--method", "magic"][..],
            "--method: `magic` is not known; expected one of exact, gradient",
        ),
        (
            &["--selected", "many"],
            &format!("--selected: {many} `many`; see `fedcote select --help`"),
        ),
        (&["--selected", "-1"], &format!("--selected: {many} `-1`")),
        (&["--selected", "1000000000000"], &format!("--selected: {many} `1000000000000`")),
        (&["--method", "gradient", "--k-apx", "0"], &format!("--k-apx: {many} `0`")),
        (&["--kappa", "x"], "--kappa: must be a number, is `x`"),
        (&["--json", "--csv"], "the argument '--json' cannot be used with '--csv'"),
        (&["--no-such-flag"], "unexpected argument `--no-such-flag`; see `fedcote select --help`"),
        (&["--jsno"], "unexpected argument `--jsno`; did you mean `--json`?"),
    ] {
        let error = refusal(&[&["select"], arguments].concat(), PAIR.as_bytes());
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn long_federations_are_cut_in_the_table_only() {
    let mut input = String::from("id,failure,label_0,label_1\n");
    for client in 0..100 {
        input +=
            &format!("c{client},{},{},{}\n", f64::from(client) / 200.0, client + 1, 100 - client);
    }
    let output = fedcote(&["select", "--selected", "5"], input.as_bytes());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("… and 60 more clients"), "{text}");
    assert!(text.contains("c39 ") && !text.contains("c40 "));
    let all = json(&["select", "--selected", "5", "--json"], &input);
    assert_eq!(all["clients"].as_array().expect("a list").len(), 100);
}

/// The fenced block of a page that starts with this line.
fn block<'a>(page: &'a str, start: &str) -> &'a str {
    let from = page.find(start).unwrap_or_else(|| panic!("{start} is on the page")) + start.len();
    let rest = &page[from..];
    &rest[..rest.find("```").expect("the block ends")]
}

#[test]
fn the_worked_example_of_the_manual_is_true() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/select.md");
    let page = fs::read_to_string(path).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("example.json"), block(&page, "```json\n")).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(["select", "example.json"])
        .current_dir(folder.path())
        .output()
        .expect("the command runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(printed, block(&page, "```console\n$ fedcote select example.json\n"));
}

#[cfg(unix)]
#[test]
fn the_examples_of_the_help_work_when_pasted() {
    for command in ["select", "evaluate"] {
        let help = fedcote(&[command, "--help"], b"");
        let help = String::from_utf8(help.stdout).expect("text");
        let examples = help.split_once("Example").expect("examples").1;
        let examples = examples.split_once(":\n").expect("examples").1;
        let examples = examples.split_once("\n\n").expect("an end").0;
        let folder =
            std::path::Path::new(env!("CARGO_BIN_EXE_fedcote")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let status = Command::new("sh")
            .args(["-e", "-c", examples])
            .env("PATH", format!("{}:{path}", folder.display()))
            .stdout(Stdio::null())
            .status()
            .expect("a shell");
        assert!(status.success(), "{examples}");
    }
}

/// A price that swallows everything else used to be blamed on the failure probabilities, and a negative one on the flag.
#[test]
fn parameters_out_of_range_are_refused_by_name() {
    for (flag, value, expected) in [
        ("--efficiency", "1e300", "efficiency: must be from 0 to 1000000, is 1e300"),
        ("--efficiency", "-1", "efficiency: must be from 0 to 1000000, is -1"),
        ("--kappa", "-1", "kappa: must be"),
        ("--threshold", "1e308", "threshold: must be from 0 to 1, is 1e308"),
        ("--threshold", "-0.5", "threshold: must be from 0 to 1, is -0.5"),
    ] {
        let error = refusal(&["select", flag, value], PAIR.as_bytes());
        assert!(error.starts_with(&format!("--{expected}")), "{flag} {value}: {error}");
    }
}

/// Client c is above the threshold and the only holder of label 2.
const COVERED: &str = r#"{"selected": 5, "clients": [
    {"id": "a", "labels": [30, 10, 0], "failure": 0.1},
    {"id": "b", "labels": [0, 40, 0], "failure": 0.9},
    {"id": "c", "labels": [0, 0, 20], "failure": 0.95}]}"#;

/// `evaluate` left label coverage out: of `select`'s own probabilities it called the restored client not eligible.
#[test]
fn regression_evaluate_calls_eligible_whom_select_calls_eligible() {
    for flags in [
        &[][..],
        &["--no-coverage"],
        &["--threshold", "0.92"],
        &["--threshold", "0.05"],
        &["--aim", "freshness"],
    ] {
        let found = json(&[&["select", "--json"], flags].concat(), COVERED);
        let mut request: Value = serde_json::from_str(COVERED).expect("JSON");
        for client in 0..3 {
            request["clients"][client]["selection"] = found["clients"][client]["selection"].clone();
        }
        let flags: Vec<&str> =
            flags.iter().copied().filter(|flag| !["--aim", "freshness"].contains(flag)).collect();
        let again = json(&[&["evaluate", "--json"], &flags[..]].concat(), &request.to_string());
        for client in 0..3 {
            let (found, again) = (&found["clients"][client], &again["clients"][client]);
            assert_eq!(found["eligible"], again["eligible"], "{flags:?}: {found}");
        }
    }
    // Given probabilities can be shown though nobody is eligible.
    let document = json(&["evaluate", "--json", "--threshold", "0", "--no-coverage"], PAIR);
    assert_eq!(document["clients"][0]["eligible"], false);
}

#[test]
fn freshness_draws_by_the_square_root_of_arrivals() {
    let number = |document: &Value, client: usize, field: &str| {
        document["clients"][client][field].as_f64().expect("a number")
    };
    let plain = json(&["select", "--json", "--aim", "appearance"], PAIR);
    assert_eq!(plain, json(&["select", "--json"], PAIR));
    for draws in ["independent", "systematic"] {
        let fresh = json(&["select", "--json", "--aim", "freshness", "--draws", draws], PAIR);
        // Both within the threshold, equal weights: ½ / √(1 − 0.1) to ½ / √(1 − 0.6).
        let ratio = number(&fresh, 0, "selection") / number(&fresh, 1, "selection");
        assert!((ratio - (0.4f64 / 0.9).sqrt()).abs() < 1e-12, "{ratio}");
        assert!((number(&fresh, 0, "appearance") - 0.5).abs() < 1e-12);
    }
    assert!(
        refusal(&["select", "--aim", "speed"], PAIR.as_bytes()).contains("appearance, freshness")
    );
}

/// Which flag was wrong was read off the text of the error.
#[test]
fn regression_a_refusal_names_the_flag_only_where_it_was_given() {
    let all = with("\"failure\": 0.1", "\"failure\": 0.99");
    let all = String::from_utf8(all).expect("text").replace("0.6", "0.99");
    let flag = refusal(&["select", "--no-coverage", "--threshold", "0.9"], all.as_bytes());
    assert!(flag.starts_with("--threshold: every client's failure"), "{flag}");
    let file = refusal(&["select", "--no-coverage"], all.as_bytes());
    assert!(file.starts_with("standard input: threshold: every client's failure"), "{file}");
    let kappa = refusal(&["select", "--kappa", "-1"], PAIR.as_bytes());
    assert!(kappa.starts_with("--kappa: must be above 0"), "{kappa}");
}

const SHARED: &str = r#"{"selected": 3, "groups": {"ap": 0.2}, "clients": [
    {"id": "a", "labels": [300, 0], "failure": 0.1, "group": "ap"},
    {"id": "b", "labels": [0, 300], "failure": 0.3, "group": "ap"},
    {"id": "c", "labels": [150, 150], "failure": 0.5}]}"#;

#[test]
fn clients_that_fail_together_are_corrected_for() {
    let found = json(&["select", "--json"], SHARED);
    let client = |at: usize, key: &str| found["clients"][at][key].as_f64().unwrap();
    // 1 − 0.8 · 0.9, 1 − 0.8 · 0.7.
    assert!(
        (client(0, "failure") - 0.28).abs() < 1e-12 && (client(1, "failure") - 0.44).abs() < 1e-12
    );
    assert_eq!(client(2, "failure"), 0.5);
    assert!(found["label_divergence"].as_f64().unwrap() < 1e-9);
    // The same failures of clients that fail on their own lead to another selection.
    let alone = SHARED
        .replace(r#""groups": {"ap": 0.2},"#, "")
        .replace(r#", "group": "ap""#, "")
        .replace("0.1", "0.28")
        .replace("0.3,", "0.44,")
        .replace("0.3}", "0.44}");
    let other = json(&["select", "--json"], &alone);
    let difference = client(2, "selection") - other["clients"][2]["selection"].as_f64().unwrap();
    assert!(difference.abs() > 1e-3, "{difference}");
    // Whatever is drawn and uploaded, the model is that of clients that fail together.
    for flags in [
        ["--draws", "independent", "--uploads", "per-client"],
        ["--draws", "systematic", "--uploads", "per-draw"],
        ["--draws", "systematic", "--uploads", "per-client"],
    ] {
        let flags = [&["select", "--json"][..], &flags].concat();
        let (found, alone) = (json(&flags, SHARED), json(&flags, &alone));
        assert_eq!(found["warnings"], serde_json::json!([]), "{flags:?}");
        assert!(found["weight_divergence"].as_f64().unwrap() < 1e-9, "{flags:?}");
        assert_ne!(found["clients"], alone["clients"], "{flags:?}");
    }
    // CSV with flags is the same request.
    let csv = "id,failure,group,label_0,label_1\na,0.1,ap,300,0\nb,0.3,ap,0,300\nc,0.5,,150,150\n";
    let again = json(&["select", "--json", "--selected", "3", "--group", "ap=0.2"], csv);
    assert_eq!(again, found);
    // What the file says is overridden by the flag.
    let never = json(&["select", "--json", "--group", "ap=0"], SHARED);
    assert_eq!(never["clients"][0]["failure"], 0.1);
    // Evaluated with the group, the selection that ignores it misses the labels.
    let given = |solution: &Value| {
        let mut text = String::from("id,failure,selection,group,label_0,label_1\n");
        for (at, row) in
            ["a,0.1,{},ap,300,0\n", "b,0.3,{},ap,0,300\n", "c,0.5,{},,150,150\n"].iter().enumerate()
        {
            text += &row.replace("{}", &solution["clients"][at]["selection"].to_string());
        }
        let found = json(&["evaluate", "--json", "--selected", "3", "--group", "ap=0.2"], &text);
        found["weight_divergence"].as_f64().unwrap()
    };
    assert!(given(&found) < 1e-9 && given(&other) > 1e-6, "{} {}", given(&found), given(&other));
}

#[test]
fn unknown_groups_are_refused() {
    for (request, arguments, reason) in [
        (
            SHARED.replace("\"ap\": 0.2", "\"app\": 0.2"),
            vec![],
            "standard input: client \"a\": group: `ap` is not known; did you mean `app`?",
        ),
        (
            SHARED.replace("\"ap\": 0.2", "\"ap\": 1.2"),
            vec![],
            "standard input: groups: \"ap\" must be a probability from 0 to 1, is 1.2",
        ),
        (
            SHARED.replace("\"groups\": {\"ap\": 0.2},", ""),
            vec![],
            "standard input: client \"a\": group: `ap` is not known; say how often it is down in `groups`, or with --group NAME=PROBABILITY",
        ),
        (
            SHARED.to_owned(),
            vec!["--group", "cell=0.1"],
            "standard input: groups: no client is in group \"cell\"",
        ),
        // Regression: the last one counted, silently.
        (
            SHARED.replace(r#"{"ap": 0.2}"#, r#"{"ap": 0.2, "ap": 0.3}"#),
            vec![],
            "standard input: groups: \"ap\" is given twice",
        ),
        (
            SHARED.replace(r#"{"ap": 0.2},"#, r#"{"ap": 0.2}, "groups": {"ap": 0.3},"#),
            vec![],
            "standard input: duplicate field `groups`",
        ),
        (
            SHARED.replacen("\"group\": \"ap\"", "\"group\": \"pa\"", 1),
            vec![],
            "standard input: client \"a\": group: `pa` is not known",
        ),
    ] {
        let found = refusal(&[&["select"], &arguments[..]].concat(), request.as_bytes());
        assert!(found.starts_with(reason), "{found}");
    }
    let csv = "id,failure,group,label_0,label_1\na,0.1,ap,3,0\n\nb,0.1,app,0,3\n";
    let found = refusal(&["select", "--selected", "3", "--group", "ap=0.2"], csv.as_bytes());
    assert!(
        found.starts_with(
            "standard input: line 4: client \"b\": group: `app` is not known; did you mean `ap`?"
        ),
        "{found}"
    );
    for flag in ["ap", "ap=2", "=0.1", "ap=x"] {
        let found = refusal(&["select", "--group", flag], SHARED.as_bytes());
        assert!(found.contains("--group"), "{found}");
    }
}
