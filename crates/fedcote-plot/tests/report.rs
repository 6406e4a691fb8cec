//! Reports of whole run folders, good and bad.

#[path = "../examples/synthetic.rs"]
mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};

use fedcote_plot::Error;
use fedcote_plot::folder::Run;
use fedcote_plot::report;
use synthetic::Size;

const SMALL: Size = Size { schemes: 3, seeds: 2, rounds: 30, clients: 20, evaluate_every: 10 };

fn folder(size: &Size) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    synthetic::write(folder.path(), size).unwrap();
    folder
}

/// Every figure of a page, parsed as XML.
fn check_figures(html: &str) -> usize {
    let mut count = 0;
    for part in html.split("<svg ").skip(1) {
        let svg = format!("<svg {}</svg>", part.split("</svg>").next().unwrap());
        let tree =
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
        let root = tree.root_element();
        let child = |name: &str| root.children().find(|node| node.tag_name().name() == name);
        assert_eq!(root.attribute("role"), Some("img"));
        assert!(child("title").and_then(|node| node.text()).is_some_and(|text| !text.is_empty()));
        assert!(child("desc").and_then(|node| node.text()).is_some_and(|text| !text.is_empty()));
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
        count += 1;
    }
    count
}

fn ids(html: &str) -> Vec<&str> {
    html.split(" id=\"").skip(1).map(|part| part.split('"').next().unwrap()).collect()
}

/// A line of `metrics.jsonl`.
fn line(round: u32, accuracy: f64) -> String {
    format!(
        "{{\"round\":{round},\"selected\":[],\"arrived\":[],\"attempts\":1,\"test_accuracy\":{accuracy}}}\n"
    )
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_report_has_every_section_and_needs_no_network() {
    let folder = folder(&SMALL);
    let path = report::write(&[folder.path().into()], None).unwrap();
    assert_eq!(path, folder.path().join("report.html"));
    let html = fs::read_to_string(path).unwrap();
    for id in [
        "summary", "accuracy", "loss", "labels", "clients", "network", "arrivals", "scenario",
        "repeat",
    ] {
        assert!(html.contains(&format!(" id=\"{id}\"")), "no section {id}");
        assert!(html.contains(&format!("href=\"#{id}\"")), "{id} is not in the contents");
    }
    // Nine figures for two widths.
    assert_eq!(check_figures(&html), 18);
    let addresses = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http:") && !addresses.contains("https:"));
    let mut all = ids(&html);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an id occurs twice");
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

#[test]
fn the_table_has_the_numbers_of_the_summary() {
    let folder = folder(&SMALL);
    let summary = r#"{"schemes": [
        {"name": "fedcote", "test_accuracy": {"mean": 0.91271, "std": 0.0136}, "tail_accuracy": {"mean": 0.9052, "std": 0.0007},
         "train_loss": {"mean": 0.30125, "std": 0.01}, "rounds_to_90": null, "diverged": 0, "seeds": 2,
         "leads": ["test_accuracy"], "differences": {"tail_accuracy": {"mean": -0.0000049, "low": -0.18, "high": 0.18, "above": 1,
         "below": 1, "seeds": 2, "separable": false}}},
        {"name": "fedavg", "test_accuracy": {"mean": 0.8089, "std": 0.0361}, "tail_accuracy": {"mean": 0.9052049, "std": 0.02},
         "train_loss": {"mean": 0.5, "std": 0.0}, "rounds_to_90": null, "diverged": 0, "seeds": 2}],
        "rounds": 30, "command": "fedcote run x --set 'a=<b>'", "version": "0.1.0"}"#;
    put(folder.path(), "summary.json", summary);
    let mut run = Run::read(folder.path()).unwrap();
    let names: Vec<&str> = run.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    assert_eq!(names, ["fedavg", "fedcote", "ideal"]);
    // A summary may be older than the runs: the runs count.
    let stale = serde_json::from_str::<fedcote_sim::summary::Summary>(summary).unwrap().schemes;
    assert_ne!(run.schemes[1].summary.test_accuracy, stale[0].test_accuracy);
    for (scheme, summary) in [(1, &stale[0]), (0, &stale[1])] {
        run.schemes[scheme].summary = summary.clone();
    }
    let markdown = report::table(std::slice::from_ref(&run)).markdown();
    let fedcote = markdown.lines().find(|line| line.contains("fedcote")).unwrap();
    assert!(
        fedcote.starts_with(
            "| fedcote | 90.52 ± 0.07 | -0.00 [-18.00, +18.00], not separable | **91.27 ± 1.36** | – | 0.301 ± 0.010 |"
        ),
        "{fedcote}"
    );
    assert!(
        markdown.contains("| fedavg | 90.52 ± 2.00 | – | 80.89 ± 3.61 |"),
        "the highest mean alone is not bold: {markdown}"
    );
    assert!(markdown.contains("difference from fedavg (points)"), "{markdown}");
    let html = report::html(&[run]);
    assert!(html.contains("Over the tail the schemes are not separable with 2 seeds."));
    assert!(html.contains("fedcote run x --set &#39;a=&lt;b&gt;&#39;"));
}

#[test]
fn several_folders_are_compared() {
    let (one, two) = (folder(&SMALL), folder(&SMALL));
    let out = one.path().join("comparison.html");
    report::write(&[one.path().into(), two.path().into()], Some(&out)).unwrap();
    let html = fs::read_to_string(&out).unwrap();
    assert!(html.contains("Comparison of 2 runs") && html.contains("id=\"run2-labels\""));
    // Two figures of the comparison, for two widths, and eight a folder.
    assert_eq!(check_figures(&html), 4 + 2 * 16);
}

#[test]
fn hostile_names_stay_text() {
    let folder = folder(&Size { schemes: 1, ..SMALL });
    let hostile = "<script>alert('x')</script>\"&";
    let path = folder.path().join("fedavg/1/clients.json");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replacen(
        "\"id\":\"1\"",
        &format!("\"id\":{}", serde_json::to_string(hostile).unwrap()),
        1,
    );
    assert!(text.contains("<script>"));
    fs::write(path, text).unwrap();
    fs::rename(folder.path().join("fedavg"), folder.path().join("<img src=x onerror=alert(1)>"))
        .unwrap();
    put(folder.path(), "scenario.toml", "name = \"</code></pre><script>alert(1)</script>\"");
    let html = report::html(&[Run::read(folder.path()).unwrap()]);
    check_figures(&html);
    // Its own three elements (curves, clients, the script), and nothing that the folder put there.
    assert!(html.matches("<script").count() == 3 && !html.contains("<img"));
    assert!(html.matches("</script").count() == 3 && html.contains("script-src 'sha256-"));
    assert!(html.contains("&lt;script&gt;"));
}

fn message(folders: &[PathBuf]) -> String {
    let error = report::write(folders, None).unwrap_err();
    assert!(error.is_request(), "{error:?}");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn missing_and_empty_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = message(&[folder.path().join("nowhere")]);
    assert!(text.contains("nowhere: no such folder"), "{text}");
    let text = message(&[folder.path().into()]);
    assert!(text.contains("no runs in this folder"), "{text}");
    put(folder.path(), "file", "");
    assert!(message(&[folder.path().join("file")]).contains("not a folder"));
}

#[test]
fn damaged_files_are_named_with_their_line() {
    let cases = [
        (
            "metrics.jsonl",
            &*(line(1, 0.5) + "{\"round\":oops}\n"),
            "metrics.jsonl:2: expected value",
        ),
        ("metrics.jsonl", &line(2, 0.5).repeat(2), "metrics.jsonl:2: round 2 after round 2"),
        ("metrics.jsonl", &line(1, 91.0), "metrics.jsonl:1: test_accuracy 91 is not"),
        ("metrics.jsonl", "{\"selected\":[]}\n", "metrics.jsonl:1: missing field `round`"),
        ("metrics.jsonl", "{\"round\":1,\"arrived\":[[0,-1]]}\n", "metrics.jsonl:1: invalid value"),
        ("clients.json", "{\"classes\":10,\n\"clients\":[]", "clients.json:2: EOF"),
        (
            "clients.json",
            "{\"classes\":2,\"global_labels\":[1],\"clients\":[]}",
            "clients.json: 1 global labels for 2 classes",
        ),
        (
            "clients.json",
            "{\"classes\":1,\"global_labels\":[1],\"clients\":[{\"id\":\"a\",\"weight\":1,\"failure\":1.5}]}",
            "client \"a\": 1.5 is not a share",
        ),
    ];
    for (name, text, expected) in cases {
        let folder = folder(&SMALL);
        put(&folder.path().join("fedavg/2"), name, text);
        // That run is left out, and the report says so; one bad line used to cost the whole of it.
        let run = Run::read(folder.path()).unwrap();
        assert_eq!((run.schemes.len(), run.damaged.len()), (3, 1));
        assert!(run.damaged[0].contains(expected), "{:?}", run.damaged);
        let html = report::html(&[run]);
        assert!(html.contains("<strong>Left out:</strong>"), "{expected}");
        check_figures(&html);
    }
    let folder = folder(&SMALL);
    for seed in ["1", "2"] {
        let damaged = folder.path().join("fedavg").join(seed).join("metrics.jsonl");
        fs::write(damaged, [0xff, 0xfe]).unwrap();
    }
    let run = Run::read(folder.path()).unwrap();
    assert!(run.damaged[1].contains("metrics.jsonl:1: not UTF-8 text"), "{:?}", run.damaged);
    assert_eq!(run.schemes.len(), 2, "nothing is left of a scheme");
    put(folder.path(), "summary.json", "{\"schemes\":3}");
    let run = Run::read(folder.path()).unwrap();
    assert!(run.damaged[0].contains("summary.json:1: invalid type"), "{:?}", run.damaged);
}

#[test]
fn a_run_in_progress_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "mine/7/metrics.jsonl", &(line(1, 0.5) + "{\"round\":2,\"sel"));
    let run = Run::read(folder.path()).unwrap();
    assert_eq!(run.schemes[0].seeds[0].rounds.len(), 1);
    check_figures(&report::html(&[run]));
    put(folder.path(), "mine/8/metrics.jsonl", "");
    assert_eq!(Run::read(folder.path()).unwrap().schemes[0].summary.seeds, 1, "one has begun");
    let html = report::html(&[Run::read(folder.path()).unwrap()]);
    check_figures(&html);
}

/// A task may have no accuracy, and report something else.
#[test]
fn a_run_without_accuracy_has_a_report() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = |round| {
        let scores = "\"test_loss\":0.5,\"scores\":{\"f1\":0.25}";
        format!(
            "{{\"round\":{round},\"selected\":[[0,1]],\"arrived\":[],\"attempts\":1,{scores}}}\n"
        )
    };
    for folder in [&one, &two] {
        put(folder.path(), "mine/1/metrics.jsonl", &(line(1) + &line(2)));
    }
    let read = |folder: &tempfile::TempDir| Run::read(folder.path()).unwrap();
    assert_eq!(read(&one).schemes[0].summary.scores["f1"].last.unwrap().mean, 0.25);
    let html = report::html(&[read(&one)]);
    assert!(check_figures(&html) > 0 && !html.contains("accuracy (%)"));
    check_figures(&report::html(&[read(&one), read(&two)]));
}

/// Schemes of a comparison that is under way used to be in the order of their names.
#[test]
fn a_comparison_under_way_is_shown_in_the_order_of_its_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let scenario =
        "# fedcote run mine.toml\nrounds = 9\nseeds = [1, 2]\nschemes = [\"mine\", \"a\", \"b\"]\n";
    put(folder.path(), "scenario.toml", scenario);
    put(folder.path(), "b/1/metrics.jsonl", &line(1, 0.5));
    put(folder.path(), "mine/2/metrics.jsonl", &(line(1, 0.5) + &line(2, 0.75)));
    put(folder.path(), "mine/1/metrics.jsonl", &line(1, 0.5));
    put(folder.path(), "other/1/metrics.jsonl", &line(1, 0.5));
    let run = Run::read(folder.path()).unwrap();
    let names: Vec<&str> = run.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    assert_eq!(names, ["mine", "b", "other"]);
    let seeds: Vec<u64> = run.schemes[0].seeds.iter().map(|seed| seed.seed).collect();
    assert_eq!((seeds, run.rounds), (vec![1, 2], 2));
    assert_eq!(run.command.as_deref(), Some("fedcote run mine.toml"));
}

#[test]
fn diverged_runs_do_not_win() {
    let folder = tempfile::tempdir().unwrap();
    let diverged = line(1, 0.9) + "{\"diverged_at\":1}\n";
    put(folder.path(), "good/1/metrics.jsonl", &(line(1, 0.5) + &line(2, 0.6)));
    put(folder.path(), "bad/1/metrics.jsonl", &diverged);
    put(folder.path(), "fair/1/metrics.jsonl", &(line(1, 0.4) + &line(2, 0.5)));
    let run = Run::read(folder.path()).unwrap();
    let markdown = report::table(&[run]).markdown();
    assert!(markdown.contains("| good | 60.00 |") && !markdown.contains("**"), "{markdown}");
    assert!(markdown.contains("1, 1 diverged"), "{markdown}");
}

#[test]
fn thousands_of_clients_and_rounds_stay_small() {
    let folder =
        folder(&Size { schemes: 2, seeds: 1, rounds: 3000, clients: 500, evaluate_every: 1 });
    let html = report::html(&[Run::read(folder.path()).unwrap()]);
    check_figures(&html);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}

#[test]
fn twelve_schemes_five_seeds_five_hundred_rounds_are_under_five_megabytes() {
    let folder =
        folder(&Size { schemes: 12, seeds: 5, rounds: 500, clients: 20, evaluate_every: 1 });
    let path = report::write(&[folder.path().into()], None).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    assert!(size < 5_000_000, "{size} bytes");
    check_figures(&fs::read_to_string(path).unwrap());
}

#[test]
fn tables_and_figures_are_exported() {
    let folder = folder(&SMALL);
    let out = folder.path().join("export/here");
    let written = report::export(&[folder.path().into()], &out).unwrap();
    assert!(written.iter().all(|path| path.is_file()));
    for name in [
        "summary.md",
        "summary.tex",
        "summary.csv",
        "summary.json",
        "accuracy.svg",
        "clients.svg",
        "network.svg",
    ] {
        assert!(out.join(name).is_file(), "no {name}");
    }
    roxmltree::Document::parse(&fs::read_to_string(out.join("labels.svg")).unwrap()).unwrap();
    assert_eq!(out.join("accuracy.png").is_file(), cfg!(feature = "png"));
}

#[test]
fn a_place_that_cannot_be_written_is_no_wrong_request() {
    let folder = folder(&Size { schemes: 1, seeds: 1, ..SMALL });
    let error =
        report::write(&[folder.path().into()], Some(&folder.path().join("no/such/report.html")))
            .unwrap_err();
    assert!(matches!(error, Error::File { .. }) && !error.is_request(), "{error}");
}
