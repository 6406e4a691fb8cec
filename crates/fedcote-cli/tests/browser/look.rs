//! How pages look: contrast, targets, and whether things jump while a page loads.

use crate::chromium::Browser;
use crate::folder::Comparison;
use crate::server::Server;

/// Contrast of two colours as `getComputedStyle` writes them.
const CONTRAST: &str = "((one, two) => { \
    const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map((n) => { n /= 255; return n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05; }; \
    const [a, b] = [light(one), light(two)].sort((x, y) => y - x); return a / b; })";

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn contrast_and_targets_are_as_the_guidelines_ask_and_nothing_jumps() {
    let folder = tempfile::tempdir().unwrap();
    let run = Comparison::begin(folder.path(), "look", &["fedavg", "fedcote"], &[1], 20);
    run.play("fedavg", 1, 1..=20, 0.1);
    run.play("fedcote", 1, 1..=20, 0.3);
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    // Adds up what moves without the reader's doing, as browsers measure it.
    let shifts = "window.shift = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value; }).observe({ type: 'layout-shift', buffered: true })";
    browser.call("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({ "source": shifts }));
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for width in [1280, 390] {
            browser.size(width, 844);
            browser.open(&format!("{}/runs/look", server.address));
            browser.wait("document.querySelectorAll('#labels svg').length === 2 && document.querySelectorAll('#map .client-mark').length === 4");
            browser.eval(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
            );
            let shift = browser.eval("window.shift").as_f64().unwrap();
            println!("layout shift at {width}, {scheme}: {shift:.3}");
            assert!(shift < 0.1, "{width} {scheme}: {shift}");
            let paper = "getComputedStyle(document.documentElement).backgroundColor";
            for (what, value) in [
                (
                    "borders of fields",
                    "getComputedStyle(document.getElementById('client')).borderTopColor",
                ),
                ("bars of labels", "getComputedStyle(document.querySelector('#labels .bar')).fill"),
                (
                    "outlines of idle clients",
                    "getComputedStyle(document.querySelector('#map [data-fate=idle] .pin')).stroke",
                ),
                (
                    "buttons of the chart",
                    "getComputedStyle(document.querySelector('.chart-bar button')).borderTopColor",
                ),
            ] {
                let contrast =
                    browser.eval(&format!("{CONTRAST}({value}, {paper})")).as_f64().unwrap();
                println!("{what}, {scheme}: {contrast:.2}");
                assert!(contrast >= 3.0, "{what}, {scheme}: {contrast}");
            }
            let low = browser.eval("[...document.querySelectorAll('a, button, input, select')].filter((e) => e.offsetParent && !e.closest('.skip') && e.type !== 'checkbox' && e.getBoundingClientRect().height < 23.5).map((e) => e.outerHTML.slice(0, 80))");
            assert_eq!(low, serde_json::json!([]), "{width}");
        }
    }
    for (path, ready) in [
        (
            "/",
            "document.querySelectorAll('#runs tbody tr').length === 1 && document.querySelector('#preset option')",
        ),
        ("/playground", "document.body.dataset.answered && document.querySelector('#mix svg')"),
        ("/compare?run=look", "document.body.dataset.ready"),
    ] {
        for width in [1280, 390] {
            browser.size(width, 844);
            browser.open(&format!("{}{path}", server.address));
            browser.wait(ready);
            browser.eval(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
            );
            let shift = browser.eval("window.shift").as_f64().unwrap();
            println!("layout shift of {path} at {width}: {shift:.3}");
            assert!(shift < 0.1, "{path} {width}: {shift}");
        }
    }
    browser.open(&format!("{}/runs/look", server.address));
    browser.wait("document.querySelectorAll('#labels svg').length === 2");
    // Forced colours leave the colours that mean something.
    browser.call(
        "Emulation.setEmulatedMedia",
        serde_json::json!({ "features": [{ "name": "forced-colors", "value": "active" }] }),
    );
    assert_eq!(
        browser.eval("getComputedStyle(document.querySelector('.swatch')).forcedColorAdjust"),
        "none"
    );
    // Tables have names.
    let nameless = browser.eval("[...document.querySelectorAll('table')].filter((t) => !t.caption?.textContent.trim()).map((t) => t.id)");
    assert_eq!(nameless, serde_json::json!([]));
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// The report's chart works from its file, without a network, under a policy that allows its script alone.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_report_can_be_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Comparison::begin(folder.path(), "report", &["fedavg", "fedcote"], &[1, 2], 20);
    for (scheme, seed) in [("fedavg", 1), ("fedavg", 2), ("fedcote", 1), ("fedcote", 2)] {
        run.play(scheme, seed, 1..=20, 0.1 * seed as f64);
    }
    run.stop();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    // Served first, where a header guards it as well; then its file.
    let served = format!("{}/runs/report/report.html", server.address);
    browser.open(&served);
    let ready = "document.querySelectorAll('#chart [data-points=\"20\"]').length === 2 && !document.getElementById('explore-section').hidden";
    browser.wait(ready);
    let file = folder.path().join("report/report.html");
    fedcote_plot::report::write(&[run.path.clone()], Some(&file)).unwrap();
    browser.offline();
    browser.open(&format!("file://{}", file.display()));
    browser.wait(ready);
    browser.eval("document.querySelector('#chart .plot').focus()");
    browser.press("End");
    browser
        .wait("document.querySelector('#chart .readout').innerText.includes('35.00 % ± 7.07 %')");
    // Another script is refused.
    browser.eval("(() => { const s = document.createElement('script'); s.textContent = 'window.foreign = 1'; document.body.append(s); })()");
    assert_eq!(browser.eval("window.foreign === undefined"), true);
    let problems = browser.problems();
    assert!(
        problems.iter().all(|problem| problem.contains("Content Security Policy")),
        "{problems:?}"
    );
}

/// `cargo xtask bench page`: how soon the page of a large run is there, and how long a move of the slider takes.
#[test]
#[ignore = "a benchmark: cargo xtask bench page"]
fn bench_of_a_large_run() {
    let Some(runs) = std::env::var_os("FEDCOTE_BENCH_RUNS").map(std::path::PathBuf::from) else {
        return;
    };
    let server = Server::start(&runs);
    let mut browser = Browser::start();
    let whole = "!document.querySelector('.loading') && document.getElementById('state').textContent && document.getElementById('pace').textContent.startsWith('100 %') && document.querySelectorAll('#accuracy [data-points]').length === 12";
    // The page itself takes the time: from when it began to load until all of it stands, in the next frame.
    let watch = format!(
        "(() => {{ const look = () => {{ try {{ if ({whole}) return requestAnimationFrame(() => (window.whole = performance.now())); }} catch {{}} requestAnimationFrame(look); }}; look(); \
           addEventListener('DOMContentLoaded', () => (window.sign = performance.now())); }})()"
    );
    browser.call("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({ "source": watch }));
    let mut opened = Vec::new();
    for _ in 0..5 {
        browser.open(&format!("{}/runs/large", server.address));
        browser.wait("window.whole");
        opened.push(browser.eval("[window.sign, window.whole]"));
    }
    let mut times: Vec<f64> = opened.iter().map(|time| time[1].as_f64().unwrap()).collect();
    let mut signs: Vec<f64> = opened.iter().map(|time| time[0].as_f64().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    signs.sort_by(f64::total_cmp);
    println!(
        "page of 12 schemes × 5 seeds × 500 rounds, of five openings: whole after {:.2} s in the median ({:.2} to {:.2}), `Loading…` after {:.2} s",
        times[2] / 1e3,
        times[0] / 1e3,
        times[4] / 1e3,
        signs[2] / 1e3
    );
    // From the event until its frame was drawn.
    let moves = browser.eval(
        "(async () => { const slider = document.getElementById('round'); const times = []; \
           for (let at = 1; at <= 60; at++) { const begun = performance.now(); slider.value = 1 + ((at * 97) % 500); slider.dispatchEvent(new Event('input')); \
             await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); times.push(performance.now() - begun); } \
           return times.sort((a, b) => a - b); })()",
    );
    let at = |place: usize| moves[place].as_f64().unwrap();
    println!(
        "a move of the slider: {:.0} ms in the median of 60, {:.0} ms at most",
        at(30),
        at(59)
    );
}
