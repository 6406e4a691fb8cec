//! The table of runs: sorting, searching, comparing, deleting, running again.

use crate::chromium::Browser;
use crate::folder::Comparison;
use crate::server::Server;

const NAMES: &str =
    "[...document.querySelectorAll('#runs tbody th')].map((cell) => cell.textContent).join()";

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn runs_are_sorted_searched_compared_deleted_and_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rounds) in [("b", 5), ("a", 7), ("c", 6)] {
        let mut run =
            Comparison::begin(folder.path(), name, &["fedavg", "fedcote"], &[1, 2], rounds);
        for (scheme, seed) in [("fedavg", 1), ("fedavg", 2), ("fedcote", 1), ("fedcote", 2)] {
            run.play(scheme, seed, 1..=rounds, 0.1);
        }
        run.stop();
    }
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 3");
    browser.eval("document.querySelector('[data-sort=name] button').click()");
    browser.wait(&format!("{NAMES} === 'a,b,c'"));
    assert_eq!(
        browser.eval("document.querySelector('[data-sort=name]').getAttribute('aria-sort')"),
        "ascending"
    );
    browser.eval("document.querySelector('[data-sort=size] button').click()");
    browser.wait(&format!("{NAMES} === 'a,c,b'"));
    let search = |browser: &mut Browser, text: &str| {
        browser.eval(&format!("(() => {{ const s = document.getElementById('search'); s.value = '{text}'; s.dispatchEvent(new Event('input')); }})()"));
    };
    search(&mut browser, "c");
    browser.wait(&format!("{NAMES} === 'a,c,b' || {NAMES} === 'c'"));
    search(&mut browser, "nothing like it");
    browser.wait(&format!("{NAMES} === ''"));
    search(&mut browser, "");
    browser.wait(&format!("{NAMES} === 'a,c,b'"));
    // Reloaded, it is sorted as it was.
    browser.reload();
    browser.wait(&format!("{NAMES} === 'a,c,b'"));
    // Two are ticked and overlaid; what differs is told.
    browser.eval("['a', 'b'].forEach((name) => document.querySelector(`[aria-label=\"Compare ${name}\"]`).click())");
    browser.wait("document.getElementById('compare').textContent === 'Compare 2 runs'");
    browser.eval("document.getElementById('compare').click()");
    browser.wait("location.pathname === '/compare' && document.body.dataset.ready");
    assert_eq!(browser.eval("document.querySelectorAll('#chart [data-points]').length"), 4);
    let settings =
        browser.text("document.getElementById('settings').innerText.replace(/\\s+/g, ' ')");
    assert!(settings.contains("rounds 7 5") && !settings.contains("clients"), "{settings}");
    // One is begun from, with a change; what is not touched is not set.
    browser.open(&format!("{}/?again=a", server.address));
    browser.wait("document.getElementById('preset').value === 'like a' && document.getElementById('rounds').value === '7'");
    assert_eq!(browser.eval("document.getElementById('seeds').value"), "1, 2");
    browser.eval("(() => { for (const [id, value] of [['rounds', '2'], ['seeds', '1-2'], ['name', 'again']]) { const f = document.getElementById(id); f.value = value; f.dispatchEvent(new Event('input', { bubbles: true })); } })()");
    browser.eval("document.getElementById('submit').click()");
    browser.wait("location.pathname === '/runs/again'");
    browser.wait("document.getElementById('state').textContent === 'finished'");
    let text = std::fs::read_to_string(folder.path().join("again/scenario.toml")).unwrap();
    assert!(
        text.starts_with("# fedcote run a/scenario.toml --set rounds=2 --set 'seeds=[1, 2]'\n"),
        "{text}"
    );
    // Deleted: gone from the table, and in the bin.
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 4");
    browser.eval("window.confirm = () => true; document.querySelector('[aria-label=\"Move b to the bin\"]').click()");
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 3");
    assert!(
        !folder.path().join("b").exists() && folder.path().join(".bin/b/scenario.toml").exists()
    );
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// Another preset used to discard what was written, and schemes were put in another order although untouched.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_form_keeps_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#preset option').length > 0");
    browser.eval("(() => { const f = document.getElementById('rounds'); f.value = '3'; f.dispatchEvent(new Event('input', { bubbles: true })); })()");
    browser.eval("(() => { const p = document.getElementById('preset'); p.value = 'paper-calibrated'; p.dispatchEvent(new Event('change')); })()");
    browser.wait("document.getElementById('summary').textContent.length > 10");
    assert_eq!(browser.eval("document.getElementById('rounds').value"), "3");
    // What schemes do can be read, not only hovered over.
    assert_eq!(browser.eval("[...document.querySelectorAll('#schemes label')].every((l) => l.textContent.trim().length > l.querySelector('b').textContent.length + 5)"), true);
    // No two fields have one name.
    let twice = browser.eval("(() => { const names = [...document.querySelectorAll('#form label')].filter((l) => l.htmlFor).map((l) => l.textContent); return names.filter((n, at) => names.indexOf(n) !== at); })()");
    assert_eq!(twice, serde_json::json!([]));
    browser.eval("(() => { const f = document.getElementById('seeds'); f.value = '5-1'; document.getElementById('submit').click(); })()");
    browser.wait(
        "document.getElementById('error-seeds').textContent.includes('starts after its end')",
    );
    browser.problems();
}
