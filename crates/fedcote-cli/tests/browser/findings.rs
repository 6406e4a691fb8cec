//! What pages and report once got wrong, each with a test of its own.

use std::fs;

use serde_json::json;

use crate::chromium::Browser;
use crate::folder::Comparison;
use crate::server::Server;

/// χ² had five names and different values; the report praised the best of one seed; warnings were in the terminal only; one bad
/// line of one run cost the whole report and both tables.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn page_and_report_say_the_same_and_no_more_than_they_know() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Comparison::begin(folder.path(), "same", &["fedavg", "fedcote"], &[1], 10);
    run.play("fedavg", 1, 1..=10, 0.1);
    run.play("fedcote", 1, 1..=10, 0.3);
    run.stop();
    let mut ill = Comparison::begin(folder.path(), "ill", &["fedavg", "fedcote"], &[1], 10);
    ill.play("fedavg", 1, 1..=10, 0.1);
    ill.play("fedcote", 1, 1..=10, 0.3);
    let metrics = ill.path.join("fedavg/1/metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap().replacen("\"round\":3", "\"round\":\"x\"", 1);
    fs::write(&metrics, text).unwrap();
    ill.stop();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&format!("{}/runs/same", server.address));
    browser.wait("document.getElementById('state').textContent === 'stopped' && document.querySelectorAll('#table tbody tr').length === 2 && document.querySelector('#warnings li')");
    let column = |table: &str, name: &str| {
        format!(
            "(() => {{ const t = document.querySelector('{table}'); const at = [...t.tHead.rows[0].cells].findIndex((c) => c.textContent === '{name}'); return at < 0 ? null : Number(t.tBodies[0].rows[1].cells[at].textContent); }})()"
        )
    };
    let shown: Vec<_> = ["label χ², expected", "label χ², realised"]
        .map(|name| browser.eval(&column("#table", name)))
        .to_vec();
    assert_eq!(shown, [json!(0.25), json!(0.5)]);
    browser.open(&format!("{}/runs/same/report.html", server.address));
    browser.wait("!document.getElementById('explore-section').hidden");
    let told: Vec<_> = ["label χ², expected", "label χ², realised"]
        .map(|name| browser.eval(&column("main table", name)))
        .to_vec();
    assert_eq!(told, shown);
    assert!(
        browser
            .text("document.querySelector('details').textContent")
            .contains("client 3 is not drawn")
    );
    let facts = browser.text("document.querySelector('header .facts').textContent");
    assert!(facts.contains("written 20") && facts.contains("10 rounds"), "{facts}");
    // One seed: nothing is best, nothing is bold.
    assert_eq!(browser.eval("document.querySelectorAll('#summary ~ .scroll strong').length"), 0);
    let summary = browser.text("document.querySelector('main section').innerText");
    assert!(!summary.contains("Best") && summary.contains("the tail"), "{summary}");
    browser.open(&format!("{}/runs/ill/report.html", server.address));
    browser.wait("!document.getElementById('explore-section').hidden");
    let summary = browser.text("document.querySelector('main section').innerText");
    assert!(summary.contains("Left out:") && summary.contains("metrics.jsonl"), "{summary}");
    assert_eq!(browser.eval("document.querySelector('main table').tBodies[0].rows.length"), 1);
    for file in ["summary.csv", "rounds.csv"] {
        // The report's sandbox asks for nothing: the page of the run does.
        browser.open(&format!("{}/runs/ill", server.address));
        let text =
            browser.text(&format!("fetch('/runs/ill/{file}').then((answer) => answer.text())"));
        assert!(text.contains("fedcote"), "{file}: {text}");
    }
    browser.wait("document.getElementById('problem').textContent.includes('metrics.jsonl:3')");
    browser.problems();
}

/// Each panel of labels had a scale of its own, a hundred labels were a smear, and above 2,000 clients there was no map.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn many_labels_and_many_clients_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let run = Comparison::begin(folder.path(), "many", &["fedavg", "fedcote"], &[1], 10);
    let scenario = run.path.join("scenario.toml");
    let text = fs::read_to_string(&scenario).unwrap().replace("clients = 4", "clients = 3000");
    fs::write(&scenario, text.replace("failure = [0.1, 0.2, 0.9, 0.0]", "failure = 0.1")).unwrap();
    for (scheme, share) in [("fedavg", 0.5), ("fedcote", 0.01)] {
        // The first two clients, who arrive, hold more of the first label under one scheme than under the other.
        let labels = |client: usize| -> Vec<f64> {
            let first = if client < 2 { share } else { 0.01 };
            (0..100).map(|label| if label == 0 { first } else { (1.0 - first) / 99.0 }).collect()
        };
        let client = |at: usize| json!({ "id": (at + 1).to_string(), "labels": labels(at), "failure": 0.1, "weight": 1.0 / 3000.0 });
        let all: Vec<_> = (0..3000).map(client).collect();
        let file = json!({ "classes": 100, "global_labels": vec![0.01; 100], "clients": all, "warnings": [] });
        let folder = run.path.join(scheme).join("1");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("clients.json"), file.to_string()).unwrap();
        run.play(scheme, 1, 1..=10, 0.1);
    }
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&format!("{}/runs/many?scheme=fedcote&seed=1&round=7", server.address));
    browser.wait("document.querySelectorAll('#labels svg').length === 2 && document.querySelector('#map canvas')?.dataset.drawn === '3'");
    assert_eq!(browser.eval("document.getElementById('map').dataset.round"), "7");
    let heights = browser.eval("[...document.querySelectorAll('#labels svg')].map((s) => Math.round(Number(s.querySelectorAll('.bar')[0].getAttribute('height'))))");
    let [high, low] = [0, 1].map(|at| heights[at].as_f64().unwrap());
    assert!(high > 20.0 * low && low >= 1.0, "one scale: {heights}");
    let names = browser.eval("[...document.querySelectorAll('#labels svg')].map((s) => s.querySelectorAll('text[text-anchor=middle]').length)");
    assert!(names[0].as_u64().unwrap() < 20, "names do not touch: {names}");
    // One of them is looked at by its name.
    browser.eval("(() => { const i = document.getElementById('client'); i.value = '2999'; i.dispatchEvent(new Event('change')); })()");
    browser.wait("document.getElementById('h-client').textContent === 'Client 2999'");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// Problems stayed when they were over, pages gave no sign of loading, and with many runs the form was far down.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn a_lost_server_is_told_and_forgotten_and_many_runs_leave_the_form_near() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..60 {
        let mut run =
            Comparison::begin(folder.path(), &format!("run-{number}"), &["fedavg"], &[1], 5);
        if number == 0 {
            run.play("fedavg", 1, 1..=5, 0.1);
        }
        run.stop();
    }
    let server = Server::start(folder.path());
    let address = server.address.clone();
    let mut browser = Browser::start();
    // What the page says before anything has come.
    let note = "addEventListener('DOMContentLoaded', () => { window.first = [document.getElementById('pace')?.textContent, document.getElementById('main')?.className]; })";
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": note }));
    browser.open(&format!("{address}/runs/run-0"));
    browser.wait("document.getElementById('state').textContent === 'stopped'");
    assert_eq!(browser.eval("window.first"), json!(["Loading…", "loading"]));
    browser.wait("!document.querySelector('.loading')");
    drop(server);
    browser.wait("!document.getElementById('connection').hidden && document.getElementById('connection').textContent.includes('connection is gone')");
    let _server = Server::at(folder.path(), address.trim_start_matches("http://"));
    browser.wait("document.getElementById('connection').hidden");
    browser.wait("document.getElementById('state').textContent === 'stopped' && document.getElementById('problem').hidden");
    browser.open(&address);
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 50 && !document.getElementById('all').hidden");
    browser.eval("document.getElementById('all').click()");
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 60");
    // Of a playground where nothing can arrive no number is left.
    browser.open(&format!("{address}/playground?clients=2&fail=100.100"));
    browser.wait("!document.getElementById('problem').hidden");
    let numbers = browser
        .eval("[...document.querySelectorAll('#numbers td')].map((cell) => cell.textContent)");
    assert_eq!(numbers, json!(["–", "–", "–", "–"]));
    assert_eq!(browser.eval("document.querySelector('#mix svg')"), serde_json::Value::Null);
    // It is explained what a threshold, memory and control are, and the chart stays beside the sliders.
    let terms = browser.text("document.querySelector('.terms').textContent");
    assert!(["threshold", "memory", "control"].iter().all(|term| terms.contains(term)), "{terms}");
    assert_eq!(
        browser.eval("getComputedStyle(document.querySelector('.beside')).position"),
        "sticky"
    );
    browser.problems();
}
