//! Fuzz target: requests, as a browser or anyone else may send them, answered without a socket. No answer is an error of
//! the server's own, and nothing outside the folder is ever shown.

use std::fs;

use fedcote_serve::{Guard, Site};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;

#[path = "../../../fuzz/mutate.rs"]
mod mutate;

const SECRET: &str = "what is outside stays outside";

const SEEDS: [&[u8]; 12] = [
    b"GET /\nhost: localhost\n\n",
    b"GET /api/runs\nhost: 127.0.0.1:8080\n\n",
    b"GET /runs/one/report.html\nhost: localhost\nsec-fetch-site: same-origin\n\n",
    b"GET /runs/one/../../secret.txt\nhost: localhost\n\n",
    b"GET /runs/one/%2e%2e%2f%2e%2e%2fsecret.txt\nhost: localhost\n\n",
    b"GET /runs/..%2fsecret.txt/summary.csv\nhost: localhost\n\n",
    b"HEAD /api/runs/one/map?seed=1\nhost: localhost\n\n",
    b"GET /api/runs/one/places?seed=1&round=18446744073709551615\nhost: localhost\n\n",
    b"GET /api/runs/one/events?last=3\nhost: localhost\nlast-event-id: 7-2\n\n",
    b"POST /api/playground\nhost: localhost\norigin: http://localhost\ncontent-type: application/json\n\n\
      {\"selected\":4,\"clients\":[{\"id\":\"a\",\"labels\":[3,1],\"failure\":0.1},\
      {\"id\":\"b\",\"labels\":[0,4],\"failure\":0.6}]}",
    b"POST /api/runs\nhost: localhost\norigin: http://localhost\ncontent-type: application/json\n\n\
      {\"name\":\"new\",\"preset\":\"quickstart\",\"settings\":{\"rounds\":\"3\"}}",
    b"POST /api/runs/one/stop\nhost: localhost\norigin: http://localhost\ncontent-type: application/json\n\n{}",
];
const WORDS: [&str; 12] = [
    "../",
    "%2e%2e",
    "%2f",
    "%00",
    "//",
    "?",
    "&seed=",
    "%",
    "\\",
    "/runs/one/",
    "null",
    "{\"a\":",
];

/// Method and address, headers, an empty line, the body; `None` for what no HTTP library lets through.
fn request(bytes: &[u8]) -> Option<Request<Full<Bytes>>> {
    let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let mut lines = bytes[..end].split(|&byte| byte == b'\n');
    let mut first = lines.next()?.splitn(2, |&byte| byte == b' ');
    let mut request = Request::builder().method(first.next()?).uri(first.next()?);
    // Every other request comes as our own page would send it, so that it gets past the guard.
    if bytes.len().is_multiple_of(2) {
        request = request
            .header("host", "localhost")
            .header("origin", "http://localhost")
            .header("content-type", "application/json");
    } else {
        for line in lines {
            let at = line.iter().position(|&byte| byte == b':')?;
            request = request.header(&line[..at], line[at + 1..].trim_ascii());
        }
    }
    let body = bytes.get(end + 2..).unwrap_or_default();
    request.body(Full::new(Bytes::copy_from_slice(body))).ok()
}

#[test]
fn requests() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret.txt"), SECRET).unwrap();
    let run = folder.path().join("runs/one/fedavg/1");
    fs::create_dir_all(&run).unwrap();
    let scenario = "rounds = 2\nschemes = [\"fedavg\"]\nseeds = [1]\n";
    fs::write(folder.path().join("runs/one/scenario.toml"), scenario).unwrap();
    let line = "{\"round\":1,\"selected\":[[1,2]],\"arrived\":[[1,1]],\"attempts\":1}\n";
    fs::write(run.join("metrics.jsonl"), line).unwrap();
    // A program that does nothing: starting a run from the page starts nothing here.
    let program = vec!["/bin/true".into()];
    let runs = folder.path().join("runs");
    let site = Site::new(&runs, program, Guard { port: 80, ..Default::default() }).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut answered = 0_u64;
    mutate::fuzz(&SEEDS, &WORDS, |bytes| {
        let Some(request) = request(bytes) else { return };
        let text = runtime.block_on(async {
            let response = site.respond(request).await;
            let status = response.status();
            assert_ne!(status.as_u16(), 500, "an error of the server's own");
            answered += u64::from(status.is_success());
            let events = response
                .headers()
                .get("content-type")
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
            // Events do not end by themselves.
            if events {
                Bytes::new()
            } else {
                response.into_body().collect().await.unwrap().to_bytes()
            }
        });
        assert!(!text.windows(SECRET.len()).any(|piece| piece == SECRET.as_bytes()));
    });
    assert!(
        answered * 20 > mutate::runs(),
        "{answered} answers: the seeds are refused, nothing is tested"
    );
}
