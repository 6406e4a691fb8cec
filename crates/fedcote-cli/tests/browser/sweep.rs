//! Sweeps: started from the form, listed, looked into combination by combination.

use crate::chromium::Browser;
use crate::server::Server;

#[test]
#[ignore = "needs Chromium: cargo xtask test browser"]
fn a_sweep_is_started_listed_and_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut browser = Browser::start();
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#preset option').length > 0");
    let fill = |browser: &mut Browser, id: &str, value: &str| {
        browser.eval(&format!("(() => {{ const f = document.getElementById('{id}'); f.value = '{value}'; f.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"));
    };
    for (id, value) in
        [("name", "rates"), ("rounds", "4"), ("seeds", "1-2"), ("evaluate_every", "2")]
    {
        fill(&mut browser, id, value);
    }
    browser.eval("for (const check of document.querySelectorAll('#schemes input')) if (check.checked !== ['fedavg', 'fedcote'].includes(check.value)) check.click()");
    // Refused as the command refuses it, at its field.
    fill(&mut browser, "sweep", "training.rate");
    browser.eval("document.getElementById('submit').click()");
    browser
        .wait("document.getElementById('error-sweep').textContent.includes('expected KEY=V1,V2')");
    fill(&mut browser, "sweep", "training.rate=0.05,0.1");
    browser.eval("document.getElementById('submit').click()");
    browser.wait("location.pathname === '/runs/rates'");
    browser.wait("document.getElementById('state').textContent === 'finished'");
    browser.wait("document.querySelectorAll('#points tbody tr').length === 2 && document.querySelector('#figure svg')");
    let text = std::fs::read_to_string(folder.path().join("rates/sweep.toml")).unwrap();
    assert!(text.starts_with("# fedcote run "), "{text}");
    assert!(text.lines().next().unwrap().ends_with("--sweep training.rate=0.05,0.1"), "{text}");
    // The numbers are those of `sweep.json`, which the command wrote.
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("rates/sweep.json")).unwrap())
            .unwrap();
    let of = |point: usize, key: &str| {
        let spread = &written["points"][point]["schemes"][0][key];
        [spread["mean"].as_f64().unwrap(), spread["std"].as_f64().unwrap()]
    };
    let [mean, deviation] = of(1, "tail_accuracy");
    let cell =
        browser.text("document.querySelector('[data-point=\"rate=0.1\"]').cells[3].textContent");
    assert_eq!(cell, format!("{:.2} % ± {:.2} %", 100.0 * mean, 100.0 * deviation));
    // Another measure: table, figure and address go along.
    browser.eval("(() => { const s = document.getElementById('measure'); s.value = 'arrivals'; s.dispatchEvent(new Event('change')); })()");
    browser.wait("document.getElementById('figure').dataset.measure === 'arrivals' && location.search === '?measure=arrivals'");
    let files = browser.eval(
        "Promise.all([...document.querySelectorAll('#downloads a')].map(async (link) => [link.getAttribute('href'), (await fetch(link.href)).status]))",
    );
    assert_eq!(files.as_array().unwrap().len(), 4, "{files}");
    assert!(files.as_array().unwrap().iter().all(|file| file[1] == 200), "{files}");
    for (width, scheme) in [(1280, "light"), (390, "dark")] {
        browser.size(width, 844);
        browser.prefer(scheme);
        assert_eq!(browser.overflow(), None, "{width}");
    }
    browser.size(1280, 900);
    // Two combinations are overlaid; one is a run like others.
    browser.eval("document.querySelectorAll('#points input').forEach((tick) => tick.click())");
    browser.eval("document.getElementById('compare').click()");
    browser.wait("location.pathname === '/compare' && document.body.dataset.ready");
    assert_eq!(browser.eval("document.querySelectorAll('#chart [data-points]').length"), 4);
    assert!(
        browser.text("document.getElementById('settings').innerText").contains("training.rate")
    );
    browser.open(&format!("{}/runs/rates", server.address));
    browser.wait("document.querySelector('[data-point=\"rate=0.05\"] a')");
    browser.eval("document.querySelector('[data-point=\"rate=0.05\"] a').click()");
    browser.wait("location.pathname.startsWith('/runs/rates/') && document.getElementById('state').textContent === 'finished'");
    browser.wait("document.querySelectorAll('#map .client-mark').length === 20 && document.querySelector('#sweep a')");
    browser.wait("document.querySelectorAll('#downloads a').length > 5");
    let report = browser
        .eval("fetch(document.querySelector('#downloads a').href).then((answer) => answer.status)");
    assert_eq!(report, 200);
    // In the table of runs it is one line; it can be begun from, and deleted as a whole.
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 1");
    let row = browser.text("document.querySelector('#runs tbody tr').innerText");
    assert!(
        row.contains("sweep over training.rate: 2 combinations") && row.contains("finished"),
        "{row}"
    );
    browser.open(&format!("{}/?again=rates", server.address));
    browser.wait("document.getElementById('preset').value === 'like rates'");
    assert_eq!(browser.eval("document.getElementById('sweep').value"), "training.rate=0.05,0.1");
    let refused = browser.eval("fetch('/api/runs/rates/rate=0.05/delete', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then((answer) => answer.status)");
    assert_eq!(refused, 409);
    browser.open(&server.address);
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 1");
    browser.eval("window.confirm = () => true; document.querySelector('[aria-label=\"Move rates to the bin\"]').click()");
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 0");
    assert!(folder.path().join(".bin/rates/sweep.toml").exists());
    assert!(
        browser.problems().iter().all(|problem| problem.contains("422") || problem.contains("409"))
    );
}
