//! The pages in a real browser. Needs Chromium, hence ignored unless asked for: `cargo xtask test browser`.

mod chromium;
mod clients;
mod findings;
mod folder;
mod live;
mod look;
mod runs;
mod screenshots;
mod server;
mod sweep;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use chromium::Browser;
use serde_json::Value;
use server::Server;

/// Starts a run from the form of the page that is open.
fn start(browser: &mut Browser, name: &str, settings: &[(&str, &str)], schemes: &[&str]) {
    browser.wait("document.querySelectorAll('#preset option').length > 0");
    browser.eval(&format!("document.getElementById('name').value = '{name}'"));
    for (key, value) in settings {
        browser.eval(&format!("document.getElementById('{key}').value = '{value}'"));
    }
    browser.eval(&format!(
        "for (const check of document.querySelectorAll('#schemes input')) \
           check.checked = {}.includes(check.value)",
        serde_json::to_string(schemes).unwrap()
    ));
    browser.eval("document.getElementById('submit').click()");
}

fn points(scheme: &str) -> String {
    format!("Number(document.querySelector('#accuracy [data-scheme=\"{scheme}\"]').dataset.points)")
}

fn number(browser: &mut Browser, expression: &str) -> f64 {
    browser.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression}: no number"))
}

/// The rounds of a run on disk.
fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const STATE: &str = "document.getElementById('state').textContent";

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn a_run_is_started_watched_stopped_resumed_and_scrubbed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&server.address);
    // What is wrong is told at its field, by the same words as for a scenario file.
    let settings = [("rounds", "0"), ("seeds", "[1]"), ("evaluate_every", "2")];
    start(&mut browser, "watched", &settings, &["fedavg", "fedcote"]);
    browser.wait("document.getElementById('error-rounds')");
    let told = browser.text("document.getElementById('error-rounds').textContent");
    assert!(told.contains("rounds: must be at least 1"), "{told}");
    assert_eq!(browser.eval("document.activeElement.id"), "rounds");
    assert_eq!(
        browser.eval("document.getElementById('rounds').getAttribute('aria-invalid')"),
        "true"
    );
    assert!(!folder.path().join("watched").exists());
    // The refusal itself is in the browser's log; nothing else may be.
    assert!(browser.problems().iter().all(|problem| problem.contains("422")));

    let settings = [("rounds", "100000"), ("seeds", "[1]"), ("evaluate_every", "2")];
    start(&mut browser, "watched", &settings, &["fedavg", "fedcote"]);
    browser.wait("location.pathname === '/runs/watched'");
    browser.wait(&format!("{STATE} === 'running' && {} > 1", points("fedcote")));
    // Curves grow, and clients fail.
    let before = number(&mut browser, &points("fedcote"));
    browser.wait(&format!("{} > {before} + 2", points("fedcote")));
    browser.wait("document.querySelector('#map [data-fate=failed]') && document.querySelector('#map :is([data-fate=arrived], [data-fate=partly])')");
    // Reloaded in the middle, all of it is there again.
    let before = number(&mut browser, &points("fedcote"));
    browser.reload();
    browser.wait(&format!("{} >= {before}", points("fedcote")));

    browser.eval("document.getElementById('stop').click()");
    browser.wait(&format!("{STATE} === 'stopped'"));
    let saved = metrics(&folder.path().join("watched/fedcote/1")).len();
    browser.wait(&format!("document.querySelector('tr[data-scheme=fedcote]').lastChild.textContent.startsWith('{saved} /')"));
    assert_eq!(browser.eval("document.getElementById('stop').hidden"), true);

    // Scrubbed back with the keyboard, the page shows what the file has.
    browser.eval("document.querySelector('[data-run=\"fedcote/1\"]').click()");
    browser.eval("document.getElementById('round').focus()");
    browser.press("Home");
    browser.press("ArrowRight");
    browser.wait("document.getElementById('shown').textContent.startsWith('2 of')");
    browser.wait("document.getElementById('round-text').textContent.startsWith('Round 2:')");
    let second = &metrics(&folder.path().join("watched/fedcote/1"))[1];
    let of = |key: &str| -> Vec<u64> {
        let list = second[key].as_array().unwrap();
        let mut clients: Vec<u64> = list.iter().map(|pair| pair[0].as_u64().unwrap() + 1).collect();
        clients.sort();
        clients
    };
    // One question for all marks: the map of another run may be replaced between two of them.
    browser.wait("document.getElementById('map').dataset.round === '2' && document.querySelectorAll('#map [data-fate]').length === 20");
    let marks = browser.eval(
        "[...document.querySelectorAll('#map [data-fate]')].map((mark) => [Number(mark.dataset.client), mark.dataset.fate])",
    );
    let marks: Vec<(u64, String)> = serde_json::from_value(marks).unwrap();
    let marked = |fates: &[&str]| -> Vec<u64> {
        let of_these = marks.iter().filter(|(_, fate)| fates.contains(&fate.as_str()));
        let mut clients: Vec<u64> = of_these.map(|(client, _)| *client).collect();
        clients.sort();
        clients
    };
    let arrived = of("arrived");
    assert_eq!(marked(&["arrived", "partly"]), arrived);
    let failed: Vec<u64> = of("selected").into_iter().filter(|c| !arrived.contains(c)).collect();
    assert_eq!(marked(&["failed"]), failed);

    // It goes on where it was.
    browser.eval("document.getElementById('resume').click()");
    browser.wait(&format!("{STATE} === 'running'"));
    browser.wait(&format!("parseInt(document.querySelector('tr[data-scheme=fedcote]').lastChild.textContent) > {saved}"));
    assert_eq!(
        browser.text("document.getElementById('shown').textContent"),
        "2 of 100000",
        "stays where it was put"
    );
    browser.eval("document.getElementById('follow').click()");
    browser.wait(&format!("Number(document.getElementById('round').value) > {saved}"));
    browser.eval("document.getElementById('stop').click()");
    browser.wait(&format!("{STATE} === 'stopped'"));
    let rounds = metrics(&folder.path().join("watched/fedcote/1"));
    assert!(rounds.len() > saved);
    assert!(rounds.iter().enumerate().all(|(at, round)| round["round"] == at as u64 + 1));
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn a_run_of_walking_clients_finishes_and_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#preset option').length > 0");
    browser.eval("document.getElementById('preset').value = 'quickstart-dynamic'");
    browser.eval("document.getElementById('preset').dispatchEvent(new Event('change'))");
    let settings = [("rounds", "60"), ("seeds", "[3, 4]"), ("evaluate_every", "10")];
    start(&mut browser, "a short one", &settings, &["fedavg", "fedcote"]);
    browser.wait(&format!("{STATE} === 'finished'"));
    assert_eq!(number(&mut browser, &points("fedavg")), 6.0);
    // Clients walk: somebody is elsewhere in the first round than in the last.
    let places = "JSON.stringify([...document.querySelectorAll('#map .client-mark')].map((m) => [m.dataset.client, m.style.transform]).sort())";
    browser.wait("document.querySelectorAll('#map .client-mark').length === 20");
    let last = browser.text(places);
    browser.eval("document.getElementById('round').focus()");
    browser.press("Home");
    browser.wait(&format!("{places} !== {}", serde_json::to_string(&last).unwrap()));
    // What can be saved can be fetched, and is what it says.
    browser.wait("document.querySelectorAll('#downloads a').length > 5");
    let files = browser.eval(
        "Promise.all([...document.querySelectorAll('#downloads a')].map(async (link) => \
           [link.getAttribute('href'), (await fetch(link.href)).status, (await (await fetch(link.href)).text()).slice(0, 60)]))",
    );
    for file in files.as_array().unwrap() {
        assert_eq!(file[1], 200, "{file}");
        let (name, text) = (file[0].as_str().unwrap(), file[2].as_str().unwrap());
        assert!(name.starts_with("/runs/a%20short%20one/"), "{name}");
        let expected = match name.rsplit('.').next().unwrap() {
            "svg" => "<svg",
            "html" => "<!doctype html>",
            "csv" => "scheme,",
            _ => "# fedcote run quickstart-dynamic --set ",
        };
        assert!(text.starts_with(expected), "{file}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
    // The list has it, too.
    browser.open(&server.address);
    browser.wait("document.querySelector('#runs .state').textContent === 'finished'");
    // The report of the same folder stands alone: from its file, without a network.
    browser.offline();
    let report = folder.path().join("a short one/report.html");
    browser.open(&format!("file://{}", report.display().to_string().replace(' ', "%20")));
    browser.wait("document.querySelectorAll('svg.fig').length > 5");
    for (width, scheme) in [(1280, "light"), (390, "dark")] {
        browser.size(width, 800);
        browser.prefer(scheme);
        assert_eq!(browser.overflow(), None, "{width}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_playground_says_what_the_command_says() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&format!("{}/playground", server.address));
    // The answer to the last change is shown. Comparing the text of the question used to take a page whose rows were made
    // again for the same question, and still empty, for one that shows the answer.
    let settled = "document.body.dataset.asked && document.body.dataset.asked === document.body.dataset.answered";
    browser.wait(settled);
    let before =
        browser.text("document.querySelector('#clients li:nth-child(3) b.selection').textContent");
    // With the keyboard, as with the mouse.
    browser.eval("document.getElementById('failure-2').focus()");
    browser.press("End");
    browser.press("ArrowLeft");
    for _ in 0..24 {
        browser.press("ArrowLeft");
    }
    browser
        .wait("document.querySelector('#clients li:nth-child(3) output').textContent === '0.75'");
    browser.wait(settled);
    let after =
        browser.text("document.querySelector('#clients li:nth-child(3) b.selection').textContent");
    assert_ne!(before, after);
    for (labels, count, draws) in [("one", 10, 10), ("two", 7, 3), ("rare", 20, 25), ("all", 2, 1)]
    {
        browser.eval(&format!(
            "for (const [id, value] of [['labels', '{labels}'], ['count', {count}], ['draws', {draws}]]) {{ \
               const input = document.getElementById(id); input.value = value; \
               input.dispatchEvent(new Event(id === 'labels' ? 'change' : 'input')); }}"
        ));
        browser.wait(settled);
        let document = browser.text("document.getElementById('document').textContent");
        let said = select(&document);
        let read = |browser: &mut Browser, kind: &str| -> Vec<f64> {
            let values = browser.eval(&format!(
                "[...document.querySelectorAll('#clients b.{kind}')].map((cell) => Number(cell.dataset.fedcote))"
            ));
            serde_json::from_value(values).unwrap()
        };
        let clients = said["clients"].as_array().unwrap();
        assert_eq!(clients.len(), count);
        for kind in ["selection", "appearance"] {
            let shown = read(&mut browser, kind);
            let expected: Vec<f64> = clients.iter().map(|c| c[kind].as_f64().unwrap()).collect();
            assert_eq!(shown, expected, "{kind}, {labels}");
        }
        let divergence = "Number(document.getElementById('fedcote-divergence').dataset.value)";
        assert_eq!(number(&mut browser, divergence), said["label_divergence"].as_f64().unwrap());
    }
    // Nobody ever arrives: a sentence, no crash.
    browser.eval("for (const slider of document.querySelectorAll('#clients input')) { slider.value = 1; slider.dispatchEvent(new Event('input')); }");
    browser.wait("!document.getElementById('problem').hidden");
    browser.eval("document.getElementById('reliable').click()");
    browser.wait("document.getElementById('problem').hidden");
    // Shared by its address.
    browser.wait(settled);
    let before = browser.text("document.getElementById('document').textContent");
    browser.reload();
    browser.wait(settled);
    assert_eq!(browser.text("document.getElementById('document').textContent"), before);
    assert!(browser.problems().iter().all(|problem| problem.contains("422")));
}

/// The answer of the real command.
fn select(document: &str) -> Value {
    let mut process = Command::new(env!("CARGO_BIN_EXE_fedcote"))
        .args(["select", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn pages_fit_phones_and_follow_light_and_dark() {
    let folder = tempfile::tempdir().unwrap();
    screenshots::short_run(&folder.path().join("short"), "20");
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    for (path, ready) in [
        (
            "/",
            "document.querySelectorAll('#runs tbody tr').length === 1 && document.querySelector('#preset option')",
        ),
        ("/playground", "document.querySelector('#mix svg')"),
        (
            "/runs/short",
            "document.querySelectorAll('#labels svg').length === 5 && document.querySelector('#map svg')",
        ),
    ] {
        let mut papers = Vec::new();
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            for width in [1280, 390] {
                browser.size(width, 844);
                browser.open(&format!("{}{path}", server.address));
                browser.wait(ready);
                assert_eq!(browser.overflow(), None, "{path} at {width}");
                // The preset's field was once hidden on phones by a class of the report's style.
                let hidden = "[...document.querySelectorAll('main > *, main > section > *, #form > .fields > *')] \
                    .filter((e) => !e.hidden && !e.parentElement.hidden && !e.matches('.problem, .heads') && e.textContent.trim() && !e.offsetParent) \
                    .map((e) => e.outerHTML.slice(0, 100))";
                assert_eq!(browser.eval(hidden), serde_json::json!([]), "{path} at {width}");
            }
            papers.push(browser.text("getComputedStyle(document.documentElement).backgroundColor"));
        }
        assert_ne!(papers[0], papers[1], "{path}");
        // Everything that can be operated has a name.
        let nameless = browser.eval(
            "[...document.querySelectorAll('input, select, button, a, svg[role=img]')].filter((e) => \
               !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML)",
        );
        assert_eq!(nameless, serde_json::json!([]), "{path}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}
