//! One client at a time, in the report and in the playground; the live map's is in `live.rs`.

use crate::chromium::Browser;
use crate::folder::Comparison;
use crate::server::Server;

const PANEL: &str = "document.getElementById('client-panel').innerText";

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_report_tells_of_every_client() {
    let folder = tempfile::tempdir().unwrap();
    let mut run =
        Comparison::begin(folder.path(), "told", &["fedavg", "fedcote-memory"], &[1, 2], 20);
    run.play("fedavg", 1, 1..=20, 0.1);
    run.play("fedcote-memory", 1, 1..=10, 0.1);
    run.play("fedcote-memory", 2, 1..=20, 0.1);
    run.stop();
    let file = folder.path().join("report.html");
    fedcote_plot::report::write(&[run.path.clone()], Some(&file)).unwrap();
    let mut browser = Browser::start();
    browser.offline();
    browser.open(&format!("file://{}", file.display()));
    browser.wait("!document.getElementById('each-client-section').hidden");
    let runs = browser
        .eval("[...document.getElementById('each-run').options].map((o) => o.textContent).join()");
    assert_eq!(runs, "fedavg, seed 1,fedcote-memory, seed 1,fedcote-memory, seed 2");
    // A click on a client in a figure shows it; the run is chosen by keyboard as well as by mouse.
    browser.eval("document.querySelector('figure [data-client=\"1\"]').dispatchEvent(new MouseEvent('click', { bubbles: true }))");
    browser.wait("document.getElementById('client-panel').dataset.shown === 'fedavg/1/1'");
    let panel = browser.text(PANEL);
    for part in ["100 times in 20 rounds", "20, 80 (80.0 % failed)", "50.00 %"] {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    assert!(!panel.contains("remembers"), "{panel}");
    browser.eval("(() => { const s = document.getElementById('each-run'); s.selectedIndex = 1; s.dispatchEvent(new Event('change')); })()");
    browser.wait("document.getElementById('client-panel').dataset.shown === 'fedcote-memory/1/1'");
    let panel = browser.text(PANEL);
    assert!(panel.contains("its update of round 10, 0 rounds old"), "{panel}");
    browser.eval("(() => { const s = document.getElementById('each-client-name'); s.value = '3'; s.dispatchEvent(new Event('change')); })()");
    browser.wait("document.getElementById('client-panel').dataset.shown === 'fedcote-memory/1/3'");
    let panel = browser.text(PANEL);
    for part in ["above the threshold", "nothing yet", "0, 10 (100.0 % failed)", "never"] {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    // A permalink.
    assert_eq!(browser.eval("location.hash"), "#run=fedcote-memory&seed=1&client=3");
    browser.reload();
    browser.wait("document.getElementById('client-panel').dataset.shown === 'fedcote-memory/1/3'");
    for width in [1280, 390] {
        browser.size(width, 844);
        assert_eq!(browser.overflow(), None, "{width}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_playground_tells_of_every_client() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    let settled = "document.body.dataset.asked && document.body.dataset.asked === document.body.dataset.answered";
    browser.open(&format!("{}/playground?server=memory", server.address));
    browser.wait(settled);
    assert_eq!(browser.eval("document.getElementById('client-section').hidden"), true);
    // By keyboard, as by mouse. Client 3 fails with 0.05.
    browser.eval("document.querySelector('[aria-label=\"Look at client 3\"]').focus()");
    browser.press("Enter");
    browser.wait("document.getElementById('h-client').textContent === 'Client 3' && !document.getElementById('client-section').hidden");
    let panel = browser.text(PANEL);
    for part in ["in 100 rounds", "fails with probability\t0.05", "rounds old", "10.00 %"] {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    // Over a hundred rounds of ten draws the realised share is near the expected one.
    let share = |browser: &mut Browser, kind: &str| -> f64 {
        let text = browser.text(&format!("[...document.querySelectorAll('#client-panel tr')].find((r) => r.textContent.includes('{kind}')).cells[1].textContent"));
        text.trim_end_matches(" %").parse().unwrap()
    };
    let (expected, realised) = (share(&mut browser, "expected"), share(&mut browser, "realised"));
    // A binomial share of about 0.1 in some 600 arrivals has a deviation of 1.2 points.
    assert!((expected - realised).abs() < 5.0, "{expected} {realised}");
    assert!(browser.text("location.search").contains("client=3"));
    // One that fails more often than the threshold is left out, and says why; its address is kept.
    browser.eval("document.querySelector('[aria-label=\"Look at client 2\"]').click()");
    browser.wait("document.getElementById('h-client').textContent === 'Client 2'");
    browser.reload();
    browser.wait(&format!(
        "{settled} && document.getElementById('h-client').textContent === 'Client 2'"
    ));
    browser.eval("(() => { const s = document.getElementById('failure-1'); s.value = 0.95; s.dispatchEvent(new Event('input')); })()");
    browser.wait(&format!("{settled} && {PANEL}.includes('0.95')"));
    let panel = browser.text(PANEL);
    assert!(panel.contains("It is left out") && panel.contains("above the threshold"), "{panel}");
    assert!(panel.contains("0 times in 100 rounds") && panel.contains("nothing yet"), "{panel}");
    // Drawn by amount of data it is not.
    browser.eval("(() => { const s = document.getElementById('client-scheme'); s.value = 'fedavg'; s.dispatchEvent(new Event('change')); })()");
    browser.wait(&format!("!{PANEL}.includes('left out')"));
    assert_eq!(browser.problems(), Vec::<String>::new());
}
