//! The page of a run: what it shows is what it says.

use crate::chromium::Browser;
use crate::folder::Comparison;
use crate::server::Server;

const SHOWN: &str = "document.getElementById('shown').textContent";

fn pressed(run: &str) -> String {
    format!(
        "document.querySelector('[data-run=\"{run}\"]').getAttribute('aria-pressed') === 'true'"
    )
}

/// "Follow live" used to stay with the first seed, progress and warnings were in the terminal only, seeds of different
/// rounds were averaged, and a round that a run had not played showed another round's rings.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_page_follows_the_run_that_grows_and_shows_the_round_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Comparison::begin(folder.path(), "grows", &["fedavg", "fedcote"], &[1, 2], 20);
    run.play("fedavg", 1, 1..=5, 0.1);
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&format!("{}/runs/grows", server.address));
    browser.wait(&pressed("fedavg/1"));
    browser.wait(&format!("{SHOWN} === '5 of 20'"));
    // 5 of 80 rounds, and the thumb is a quarter of the way along.
    browser.wait("document.getElementById('pace').textContent.startsWith('6 % · 5 of 80 rounds')");
    assert_eq!(browser.eval("document.getElementById('round').max"), "20");
    // Another run grows: the page goes along with it.
    run.play("fedavg", 1, 6..=20, 0.1);
    run.play("fedcote", 2, 1..=3, 0.3);
    browser.wait(&pressed("fedcote/2"));
    browser.wait(&format!("{SHOWN} === '3 of 20'"));
    browser
        .wait("document.querySelector('.cell[data-run=\"fedavg/1\"]').dataset.standing === 'done'");
    let standing = "Object.fromEntries([...document.querySelectorAll('.cell')].map((c) => [c.dataset.run, c.dataset.standing]))";
    let cells = browser.eval(standing);
    assert_eq!((&cells["fedavg/1"], &cells["fedcote/2"]), (&"done".into(), &"running".into()));
    assert_eq!((&cells["fedavg/2"], &cells["fedcote/1"]), (&"waiting".into(), &"waiting".into()));
    // Means are of the seeds that reached the round, and say how many.
    run.play("fedavg", 2, 1..=3, 0.5);
    browser
        .wait("document.querySelector('tr[data-scheme=fedavg]').cells[5].textContent === '2 of 2'");
    let accuracy = "document.querySelector('tr[data-scheme=fedavg]').cells[1].textContent";
    assert_eq!(browser.text(accuracy), "33.00 % ± 28.28 %"); // of 0.13 and 0.53
    browser.wait(
        "document.querySelector('#warnings li').textContent.includes('client 3 is not drawn')",
    );
    // Chosen by hand, it stays; a round that is not there is not shown as another.
    browser.eval("document.querySelector('[data-run=\"fedavg/1\"]').click()");
    browser.wait(&pressed("fedavg/1"));
    // A run that has not begun has no map; the one before it used to have none either when it was looked at again.
    browser.eval("document.querySelector('[data-run=\"fedcote/1\"]').click()");
    browser.wait("document.getElementById('round-text').textContent.includes('has not begun') && !document.querySelector('#map .client-mark')");
    browser.eval("document.querySelector('[data-run=\"fedavg/1\"]').click()");
    browser.wait("document.getElementById('map').dataset.round === '20' && document.querySelectorAll('#map .client-mark').length === 4");
    browser.eval("document.querySelector('[data-run=\"fedcote/2\"]').click()");
    browser.eval("(() => { const s = document.getElementById('round'); s.value = 12; s.dispatchEvent(new Event('input')); })()");
    browser.wait(
        "document.getElementById('round-text').textContent.includes('round 12 is not among them')",
    );
    browser.wait("document.querySelectorAll('#map .client-mark').length === 4 && document.querySelectorAll('#map [data-fate=idle]').length === 4");
    browser
        .wait("document.querySelector('tr[data-scheme=fedavg]').cells[5].textContent === '1 of 2'");
    // A permalink: reloaded, all of it is as it was.
    let address = browser.text("location.search");
    for part in ["scheme=fedcote", "seed=2", "round=12"] {
        assert!(address.contains(part), "{address}");
    }
    browser.reload();
    browser.wait(&format!("{SHOWN} === '12 of 20' && {}", pressed("fedcote/2")));
    run.play("fedcote", 2, 4..=6, 0.3);
    browser.wait(
        "document.querySelector('tr[data-scheme=fedcote]').lastChild.textContent === '6 / 40'",
    );
    assert_eq!(browser.text(SHOWN), "12 of 20", "stays where it was put");
    // Followed again.
    browser.eval("document.getElementById('follow').click()");
    browser.wait(&format!("{SHOWN} === '6 of 20'"));
    // A finished run is played, not followed.
    run.stop();
    browser.wait("document.getElementById('state').textContent === 'stopped' && document.getElementById('follow').hidden");
    // Rounds pass quickly: the page itself keeps note of them.
    browser.eval("window.seen = []; new MutationObserver(() => seen.push(parseInt(document.getElementById('shown').textContent))).observe(document.getElementById('shown'), { childList: true, characterData: true, subtree: true })");
    browser.eval("document.getElementById('play').click()");
    browser.wait("seen.some((round) => round < 6) && seen.at(-1) === 6 && document.getElementById('play').textContent === 'Play'");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// A client of which one upload of five arrived used to have the ring of success, and details were for the mouse only.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn clients_tell_their_fate_and_their_history() {
    let folder = tempfile::tempdir().unwrap();
    let run = Comparison::begin(folder.path(), "clients", &["fedcote-memory"], &[1], 20);
    run.play("fedcote-memory", 1, 1..=10, 0.1);
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&format!("{}/runs/clients", server.address));
    browser.wait("document.querySelector('#map [data-client=\"1\"]').dataset.fate === 'partly'");
    let fates = browser.eval("[2, 3, 4].map((id) => document.querySelector(`#map [data-client=\"${id}\"]`).dataset.fate)");
    assert_eq!(fates, serde_json::json!(["arrived", "failed", "idle"]));
    // Its failure colour stays although it failed.
    assert_eq!(
        browser.eval(
            "document.querySelector('#map [data-client=\"3\"] .pin').classList.contains('f5')"
        ),
        true
    );
    browser.eval("document.querySelector('#map [data-client=\"1\"]').focus()");
    browser.press("Enter");
    browser.wait("!document.getElementById('client-section').hidden");
    let panel = browser.text("document.getElementById('client-panel').innerText");
    for part in
        ["50 times in 10 rounds", "10, 40 (80.0 % failed)", "its update of round 10", "50.00 %"]
    {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    browser.eval("(() => { const i = document.getElementById('client'); i.value = '3'; i.dispatchEvent(new Event('change')); })()");
    browser.wait("document.getElementById('h-client').textContent === 'Client 3'");
    let panel = browser.text("document.getElementById('client-panel').innerText");
    assert!(panel.contains("above the threshold") && panel.contains("nothing yet"), "{panel}");
    assert!(browser.text("location.search").contains("client=3"));
    // Read aloud when it changes, not four times a second.
    assert_eq!(browser.eval("document.getElementById('shown').getAttribute('aria-live')"), "off");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_chart_tells_values_zooms_smooths_hides_and_saves() {
    let folder = tempfile::tempdir().unwrap();
    let run = Comparison::begin(folder.path(), "chart", &["fedavg", "fedcote"], &[1, 2], 20);
    for (scheme, seed, base) in
        [("fedavg", 1, 0.1), ("fedavg", 2, 0.3), ("fedcote", 1, 0.5), ("fedcote", 2, 0.6)]
    {
        run.play(scheme, seed, 1..=20, base);
    }
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&format!("{}/runs/chart?round=20", server.address));
    browser.wait("document.querySelectorAll('#accuracy [data-points=\"20\"]').length === 2");
    browser.wait("!document.querySelector('.loading')");
    // Names stand at the ends of lines.
    let names = "[...document.querySelectorAll('#accuracy svg text')].map((t) => t.textContent)";
    let texts = browser.eval(names);
    assert!(texts.as_array().unwrap().contains(&"fedavg".into()), "{texts}");
    // By keyboard: the crosshair has all values, with their spread and number.
    browser.eval("document.querySelector('#accuracy .plot').focus()");
    browser.press("Home");
    browser.press("ArrowRight");
    browser.wait("document.querySelector('#accuracy .readout').dataset.x === '2'");
    let readout = browser.text("document.querySelector('#accuracy .readout').innerText");
    for part in ["57.00 % ± 7.07 %", "22.00 % ± 14.14 %", "n = 2 of 2"] {
        assert!(readout.contains(part), "{part}: {readout}");
    }
    // By mouse: a drag zooms, a double click shows all.
    let mut drag = |from: f64, to: f64| {
        let edges = browser.eval("(() => { const b = document.querySelector('#accuracy svg').getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]; })()");
        let at = |share: f64| edges[0].as_f64().unwrap() + share * edges[1].as_f64().unwrap();
        let y = edges[2].as_f64().unwrap();
        for (kind, x) in
            [("mousePressed", at(from)), ("mouseMoved", at(to)), ("mouseReleased", at(to))]
        {
            browser.call("Input.dispatchMouseEvent", serde_json::json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 }));
        }
    };
    drag(0.3, 0.5);
    browser.wait("[...document.querySelectorAll('#accuracy .chart-bar button')].some((b) => b.textContent === 'Whole range' && !b.hidden)");
    browser.eval(
        "document.querySelector('#accuracy .plot').dispatchEvent(new MouseEvent('dblclick'))",
    );
    browser.wait("[...document.querySelectorAll('#accuracy .chart-bar button')].every((b) => b.textContent !== 'Whole range' || b.hidden)");
    // Another measure; hidden curves; a logarithmic axis says so.
    browser.eval("(() => { const s = document.querySelector('#accuracy select'); s.value = 'test_loss'; s.dispatchEvent(new Event('change')); })()");
    browser.wait("document.querySelector('#accuracy svg').getAttribute('aria-label').startsWith('test loss over round')");
    browser.eval("document.querySelector('[data-curve=fedavg]').click()");
    browser.wait("!document.querySelector('#accuracy [data-scheme=fedavg]') && document.querySelector('#accuracy [data-scheme=fedcote]')");
    browser.eval("[...document.querySelectorAll('#accuracy .chart-bar button')].find((b) => b.textContent === 'Log').click()");
    browser.wait("[...document.querySelectorAll('#accuracy svg text')].some((t) => t.textContent === 'test loss (logarithmic)')");
    let search = browser.text("location.search");
    assert!(search.contains("measure=test_loss") && search.contains("hide=fedavg"), "{search}");
    // Files: what would be saved.
    browser.eval(
        "window.saved = []; HTMLAnchorElement.prototype.click = () => {}; URL.createObjectURL = (blob) => (saved.push(blob), 'data:,')",
    );
    browser.eval(
        "[...document.querySelectorAll('#accuracy .files button')].forEach((b) => b.click())",
    );
    browser.wait("window.saved.length === 3");
    let kinds = browser.eval("saved.map((blob) => blob.type).sort()");
    assert_eq!(kinds, serde_json::json!(["image/png", "image/svg+xml", "text/csv"]));
    let csv = browser.text("saved.find((b) => b.type === 'text/csv').text()");
    assert!(csv.starts_with("series,seed,round,test_loss\nfedcote,1,1,3\n"), "{csv}");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

/// Damage and deletion used to pass silently, and problems stayed after they were gone.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn damage_and_deletion_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Comparison::begin(folder.path(), "ill", &["fedavg"], &[1], 5);
    run.play("fedavg", 1, 1..=5, 0.1);
    std::fs::write(run.path.join("fedavg/1/finished.json"), [0xff, 0x00]).unwrap();
    run.stop();
    let other = folder.path().join("unreadable");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("scenario.toml"), [0xff, 0x00, 0xfe]).unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&server.address);
    let state = |name: &str| {
        format!(
            "[...document.querySelectorAll('#runs tbody tr')].find((r) => r.cells[1].textContent === '{name}').cells[2].innerText"
        )
    };
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 2");
    for (name, words) in [
        ("ill", "1 run has damaged or altered files"),
        ("unreadable", "scenario.toml cannot be read"),
    ] {
        let told = browser.text(&state(name));
        assert!(told.starts_with("damaged") && told.contains(words), "{told}");
    }
    browser.open(&format!("{}/runs/unreadable", server.address));
    browser.wait(
        "document.getElementById('problem').textContent.includes('scenario.toml cannot be read')",
    );
    browser.open(&format!("{}/runs/ill", server.address));
    browser.wait("document.getElementById('state').textContent === 'damaged'");
    std::fs::remove_dir_all(&run.path).unwrap();
    browser.wait("document.getElementById('state').textContent === 'deleted' && document.getElementById('resume').hidden");
    browser.wait("document.getElementById('problem').textContent.includes('is gone')");
    // Errors are pages.
    browser.open(&format!("{}/runs/nowhere", server.address));
    browser.wait("document.querySelector('.problem').textContent === 'no such run' && document.querySelector('a[href=\"/\"]')");
    browser.problems();
}

/// By touch there was no zoom, and what a finger showed was gone when it was lifted; by keyboard nothing was tested but the crosshair.
#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn the_chart_works_by_touch_and_by_keyboard() {
    let folder = tempfile::tempdir().unwrap();
    let run = Comparison::begin(folder.path(), "touch", &["fedavg", "fedcote"], &[1], 20);
    run.play("fedavg", 1, 1..=20, 0.1);
    run.play("fedcote", 1, 1..=20, 0.3);
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.size(390, 844);
    browser.call(
        "Emulation.setTouchEmulationEnabled",
        serde_json::json!({ "enabled": true, "maxTouchPoints": 2 }),
    );
    browser.open(&format!("{}/runs/touch?round=20", server.address));
    browser.wait("document.querySelectorAll('#accuracy [data-points=\"20\"]').length === 2 && !document.querySelector('.loading')");
    browser.eval("document.querySelector('#accuracy .plot').scrollIntoView({ block: 'center', behavior: 'instant' })");
    let edges = browser.eval("(() => { const b = document.querySelector('#accuracy svg').getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]; })()");
    let [left, width, y] = [0, 1, 2].map(|at| edges[at].as_f64().unwrap());
    let touch = |browser: &mut Browser, kind: &str, shares: &[f64]| {
        let points: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(id, share)| serde_json::json!({ "x": left + share * width, "y": y, "id": id }))
            .collect();
        browser.call(
            "Input.dispatchTouchEvent",
            serde_json::json!({ "type": kind, "touchPoints": points }),
        );
    };
    // A finger shows the values under it; lifted, they stay.
    touch(&mut browser, "touchStart", &[0.5]);
    touch(&mut browser, "touchEnd", &[]);
    browser.wait("!document.querySelector('#accuracy .readout').hidden && Number(document.querySelector('#accuracy .readout').dataset.x) > 4");
    // Two fingers that part zoom in, two that meet zoom out.
    let whole = "[...document.querySelectorAll('#accuracy .chart-bar button')].find((b) => b.textContent === 'Whole range').hidden";
    touch(&mut browser, "touchStart", &[0.4, 0.6]);
    touch(&mut browser, "touchMove", &[0.3, 0.7]);
    touch(&mut browser, "touchMove", &[0.2, 0.8]);
    touch(&mut browser, "touchEnd", &[]);
    browser.wait(&format!("!{whole}"));
    touch(&mut browser, "touchStart", &[0.2, 0.9]);
    touch(&mut browser, "touchMove", &[0.4, 0.7]);
    touch(&mut browser, "touchMove", &[0.5, 0.6]);
    touch(&mut browser, "touchEnd", &[]);
    browser.wait(whole);
    // A tap on a name hides its curve. On a busy machine a finger may seem to rest: then it taps again.
    let shown = "Boolean(document.querySelector('#accuracy [data-scheme=fedavg]'))";
    let begun = std::time::Instant::now();
    while browser.eval(shown) == true {
        assert!(begun.elapsed() < crate::chromium::PATIENCE, "no tap on the name is heard");
        let name = browser.eval("(() => { const n = document.querySelector('[data-curve=fedavg]'); n.scrollIntoView({ block: 'center', behavior: 'instant' }); const b = n.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()");
        for (kind, points) in [
            ("touchStart", serde_json::json!([{ "x": name[0], "y": name[1] }])),
            ("touchEnd", serde_json::json!([])),
        ] {
            browser.call(
                "Input.dispatchTouchEvent",
                serde_json::json!({ "type": kind, "touchPoints": points }),
            );
        }
        browser.eval(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
        );
    }
    // By keyboard: the name again, then crosshair, zoom and all of it.
    browser.eval("document.querySelector('[data-curve=fedavg]').focus()");
    browser.press("Enter");
    browser.wait("document.querySelector('#accuracy [data-scheme=fedavg]') && document.activeElement.dataset.curve === 'fedavg'");
    browser.eval("document.querySelector('#accuracy .plot').focus()");
    browser.press("Home");
    browser.wait("document.querySelector('#accuracy .readout').dataset.x === '1'");
    browser.press("End");
    browser.press("ArrowLeft");
    browser.wait("document.querySelector('#accuracy .readout').dataset.x === '19'");
    browser.call(
        "Input.dispatchKeyEvent",
        serde_json::json!({ "type": "keyDown", "key": "+", "text": "+" }),
    );
    browser.call("Input.dispatchKeyEvent", serde_json::json!({ "type": "keyUp", "key": "+" }));
    browser.wait(&format!("!{whole} && document.activeElement.classList.contains('plot')"));
    browser.press("Escape");
    browser.wait(whole);
    assert_eq!(browser.problems(), Vec::<String>::new());
}
