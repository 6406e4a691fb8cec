//! The live page as an enemy sees it: raw requests to the real command.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

#[path = "common/server.rs"]
mod server;

use server::{Server, status};

const JSON: &str = "content-type: application/json\r\n";
const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[test]
fn nothing_outside_the_folder_is_read_or_written() {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("runs");
    fs::create_dir_all(folder.join("run")).unwrap();
    fs::write(folder.join("run/scenario.toml"), "rounds = 1\nsecret = \"inside\"").unwrap();
    fs::create_dir(around.path().join("other")).unwrap();
    fs::write(around.path().join("other/scenario.toml"), "secret = \"outside\"").unwrap();
    #[cfg(unix)]
    {
        let other = around.path().join("other");
        std::os::unix::fs::symlink(&other, folder.join("link")).unwrap();
        fs::create_dir(folder.join("mixed")).unwrap();
        let scenario = other.join("scenario.toml");
        std::os::unix::fs::symlink(scenario, folder.join("mixed/scenario.toml")).unwrap();
    }
    let server = Server::start(&folder, &LOCAL);
    assert!(server.get("/runs/run/scenario.toml").contains("inside"));
    for path in [
        "/runs/../other/scenario.toml",
        "/runs/run/../../other/scenario.toml",
        "/runs/%2e%2e/scenario.toml",
        "/runs/..%2fother/scenario.toml",
        "/runs/%2e%2e%2fother/scenario.toml",
        "/runs/..%5cother/scenario.toml",
        "/runs/%252e%252e/scenario.toml",
        "/runs/%c0%ae%c0%ae/scenario.toml",
        "/runs/run/..%2f..%2fother%2fscenario.toml",
        "/runs/run/%2e%2e",
        "/runs/link/scenario.toml",
        "/runs/mixed/scenario.toml",
        "/runs/.",
        "/runs//etc/passwd",
        "/runs/run%00/scenario.toml",
        "/assets/../Cargo.toml",
        "//etc/passwd",
        "/api/runs/../../other/events",
        "/api/runs/%2e%2e%2fother/map?seed=1",
    ] {
        let answer = server.get(path);
        assert!(!answer.contains("outside") && !answer.contains("root:"), "{path}: {answer}");
        assert!(matches!(status(&answer), 400 | 404), "{path}: {answer}");
    }
    for name in ["../evil", "..", ".hidden", "a/b", "/tmp/evil", "a\\\\b", "link", "c:evil", ""] {
        let body = format!("{{\"name\":\"{name}\",\"preset\":\"quickstart\"}}");
        let answer = server.post("/api/runs", &body, JSON);
        assert_eq!(status(&answer), 422, "{name}: {answer}");
        assert!(answer.contains("\"field\":\"name\""), "{answer}");
    }
    let body = "{\"name\":\"x\",\"preset\":\"../other/scenario.toml\"}";
    assert_eq!(status(&server.post("/api/runs", body, JSON)), 422);
    let body = "{\"name\":\"x\",\"preset\":\"quickstart\",\"settings\":{\"data.path\":\"/etc\"}}";
    assert_eq!(status(&server.post("/api/runs", body, JSON)), 422);
    let mut left: Vec<_> =
        fs::read_dir(around.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["other", "runs"]);
    assert!(!folder.join("x").exists());
}

#[test]
fn other_sites_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &LOCAL);
    let question = "{\"selected\":2,\"clients\":[{\"id\":\"a\",\"labels\":[1],\"failure\":0.5}]}";
    let port = server.address.rsplit(':').next().unwrap();
    // Names bound anew to this machine stay names.
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1.evil.example",
        "",
        "localhost.evil",
    ] {
        let request =
            format!("GET /api/runs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        assert_eq!(status(&server.send(request.as_bytes())), 403, "{host}");
    }
    let request = "GET /api/runs HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert!(matches!(status(&server.send(request.as_bytes())), 400 | 403));
    let twice = "GET /api/runs HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert!(matches!(status(&server.send(twice.as_bytes())), 400 | 403));
    for host in ["localhost", "localhost:9999", "127.0.0.1", "[::1]:7"] {
        let request =
            format!("GET /api/runs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        assert_eq!(status(&server.send(request.as_bytes())), 200, "{host}");
    }
    for origin in
        ["http://evil.example", "null", "https://localhost", &format!("http://localhost:{port}")]
    {
        let answer =
            server.post("/api/playground", question, &format!("{JSON}origin: {origin}\r\n"));
        assert_eq!(status(&answer), 403, "{origin}: {answer}");
    }
    let own = format!("{JSON}origin: http://{}\r\n", server.address);
    assert_eq!(status(&server.post("/api/playground", question, &own)), 200);
    // A form of another site cannot even say that it sends JSON.
    let plain = "content-type: text/plain\r\n";
    assert_eq!(status(&server.post("/api/playground", question, plain)), 415);
    assert_eq!(status(&server.post("/api/playground", question, "")), 415);
    // Pictures and scripts of other sites do not make this one work; a link does.
    let from = |mode: &str| {
        format!(
            "sec-fetch-site: cross-site\r\nsec-fetch-mode: {mode}\r\nsec-fetch-dest: document\r\n"
        )
    };
    assert_eq!(status(&server.get_with("/api/runs", &from("no-cors"))), 403);
    assert_eq!(status(&server.get_with("/", &from("navigate"))), 200);
    let navigated =
        server.post("/api/playground", question, &format!("{JSON}{}", from("navigate")));
    assert_eq!(status(&navigated), 403);
    // Every answer is guarded.
    for answer in [server.get("/"), server.get("/nothing"), server.get("/api/runs")] {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.contains(header), "{header}: {answer}");
        }
        assert!(!answer.to_lowercase().contains("access-control-allow"));
    }
}

#[test]
fn addresses_that_others_reach_ask_for_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--listen", "0.0.0.0:0"]);
    let token = server.line.trim().rsplit("?token=").next().unwrap().to_owned();
    assert!(token.len() == 32 && server.line.contains("http://127.0.0.1:"), "{}", server.line);
    for path in
        ["/", "/api/runs", "/assets/style.css", "/?token=", "/?token=0123456789abcdef", "/?tok=x"]
    {
        let answer = server.get(path);
        assert_eq!(status(&answer), 401, "{path}: {answer}");
        assert!(!answer.contains(&token));
    }
    let almost = format!("/?token={}0", &token[..31]);
    let almost = if almost.ends_with(&token) { format!("{almost}1") } else { almost };
    assert_eq!(status(&server.get(&almost)), 401);
    let welcome = server.get(&format!("/playground?token={token}"));
    assert_eq!(status(&welcome), 303, "{welcome}");
    assert!(welcome.contains("location: /playground\r\n"), "{welcome}");
    let cookie = welcome.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let with = |cookie: &str| server.get_with("/api/runs", &format!("cookie: a=b; {cookie}\r\n"));
    assert_eq!(status(&with(cookie)), 200);
    assert_eq!(status(&with(&format!("{}x", &cookie[..cookie.len() - 1]))), 401);
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(status(&server.get_with("/api/runs", &bearer)), 200);
    // A token alone does not make another site's request ours.
    let foreign = format!("{bearer}{JSON}origin: http://evil.example\r\n");
    assert_eq!(status(&server.post("/api/runs", "{}", &foreign)), 403);
    drop(server);

    let server =
        Server::start(folder.path(), &["--listen", "127.0.0.1:0", "--token", "a-token-of-my-own"]);
    assert_eq!(status(&server.get("/")), 401);
    assert_eq!(status(&server.get("/?token=a-token-of-my-own")), 303);
}

#[test]
fn large_and_odd_requests_are_refused_and_the_page_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &LOCAL);
    let host = &server.address;
    // A hundred megabytes, announced.
    let head = format!(
        "POST /api/playground HTTP/1.1\r\nhost: {host}\r\n{JSON}content-length: 104857600\r\n\r\n"
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    assert_eq!(status(&answer), 413);
    // And in pieces without an end: given up long before.
    let mut stream = server.connect();
    let head = format!(
        "POST /api/playground HTTP/1.1\r\nhost: {host}\r\n{JSON}transfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let sent = (0..1600).take_while(|_| stream.write_all(piece.as_bytes()).is_ok()).count();
    assert!(sent < 1600, "all hundred megabytes were taken");
    for odd in [
        format!(
            "GET /{} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n",
            "a".repeat(10_000)
        ),
        format!(
            "GET / HTTP/1.1\r\nhost: {host}\r\nx: {}\r\nconnection: close\r\n\r\n",
            "a".repeat(100_000)
        ),
        format!(
            "GET / HTTP/1.1\r\nhost: {host}\r\n{}connection: close\r\n\r\n",
            "x: y\r\n".repeat(500)
        ),
        format!("DELETE /api/runs HTTP/1.1\r\nhost: {host}\r\n{JSON}connection: close\r\n\r\n"),
        "\0\0\0\0\r\n\r\n".to_owned(),
        format!(
            "POST /api/playground HTTP/1.1\r\nhost: {host}\r\n{JSON}content-length: 2\r\ncontent-length: 5\r\nconnection: close\r\n\r\n{{}}abc"
        ),
    ] {
        let code = status(&server.send(odd.as_bytes()));
        assert!(matches!(code, 0 | 400..=431), "{code}: {}", &odd[..60.min(odd.len())]);
    }
    for body in [
        "",
        "{",
        "[]",
        "{\"selected\":-1,\"clients\":[]}",
        "{\"selected\":1e99,\"clients\":[]}",
        "\u{0}",
    ] {
        let code = status(&server.post("/api/playground", body, JSON));
        assert!(matches!(code, 400 | 422), "{body}: {code}");
    }
    let many: Vec<String> =
        (0..500).map(|id| format!("{{\"id\":\"{id}\",\"labels\":[1],\"failure\":0}}")).collect();
    let body = format!("{{\"selected\":5,\"clients\":[{}]}}", many.join(","));
    let answer = server.post("/api/playground", &body, JSON);
    assert!(status(&answer) == 422 && answer.contains("at most 100 clients"), "{answer}");
    assert_eq!(status(&server.get("/")), 200);
}

#[test]
fn idle_and_slow_connections_do_not_keep_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &LOCAL);
    // Half of them say nothing, half of them begin a request and never end it.
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\nx-slow: ", server.address);
    let mut idle = Vec::new();
    for number in 0..1000 {
        let Ok(mut stream) = TcpStream::connect(&server.address) else { continue };
        if number % 2 == 0 {
            // The server may have let it go already, which is its right.
            let _ = stream.write_all(head.as_bytes());
        }
        idle.push(stream);
    }
    assert!(idle.len() > 900, "only {} connections", idle.len());
    for _ in 0..20 {
        assert_eq!(status(&server.get("/api/runs")), 200);
    }
    // They go on, letter by letter, and still keep nobody out.
    for stream in &mut idle {
        let _ = stream.write_all(b"a");
    }
    assert_eq!(status(&server.get("/playground")), 200);
}

#[test]
fn events_come_to_many_go_on_where_they_were_and_need_no_reader() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let scheme = run.join("fedavg/1");
    fs::create_dir_all(&scheme).unwrap();
    let scenario = "rounds = 9\nclients = 2\nselected = 2\nseeds = [1]\nschemes = [\"fedavg\"]\n";
    fs::write(run.join("scenario.toml"), scenario).unwrap();
    let line = |round: u32| {
        format!("{{\"round\":{round},\"selected\":[[0,2]],\"arrived\":[[0,1]],\"attempts\":1}}\n")
    };
    fs::write(scheme.join("metrics.jsonl"), line(1) + &line(2)).unwrap();
    let server = Server::start(folder.path(), &LOCAL);
    let listen = |last: &str| {
        let mut stream = server.connect();
        let head =
            format!("GET /api/runs/run/events HTTP/1.1\r\nhost: {}\r\n{last}\r\n", server.address);
        stream.write_all(head.as_bytes()).unwrap();
        BufReader::new(stream)
    };
    // Somebody who never reads.
    let _deaf = listen("");
    let mut readers: Vec<_> = (0..10).map(|_| listen("")).collect();
    let until = |reader: &mut BufReader<TcpStream>, wanted: &str| {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            assert!(reader.read_line(&mut seen).unwrap() > 0, "{wanted}: {seen}");
        }
        seen
    };
    let mut last = String::new();
    for reader in &mut readers {
        let seen = until(reader, "\"round\":2");
        assert!(seen.contains("200 OK") && seen.contains("event: reset"), "{seen}");
        let id = seen.lines().rev().find(|line| line.starts_with("id: ")).unwrap();
        last = id.trim_start_matches("id: ").to_owned();
    }
    let mut metrics =
        fs::OpenOptions::new().append(true).open(scheme.join("metrics.jsonl")).unwrap();
    metrics.write_all(line(3).as_bytes()).unwrap();
    for reader in &mut readers {
        let seen = until(reader, "\"round\":3");
        assert!(!seen.contains("\"round\":2"), "told twice: {seen}");
    }
    // Back after a break: only what is new.
    let mut again = listen(&format!("last-event-id: {last}\r\n"));
    let seen = until(&mut again, "\"round\":3");
    assert!(!seen.contains("event: reset") && !seen.contains("\"round\":2"), "{seen}");
    // An interrupted run that goes on from round 1: told to take two rounds back.
    fs::write(scheme.join("metrics.jsonl"), line(1)).unwrap();
    let seen = until(&mut again, "event: cut");
    assert!(!seen.contains("event: reset"), "{seen}");
    assert!(until(&mut again, "\"round\":1}").contains("\"run\":\"fedavg/1\""));
}

#[test]
fn wrong_requests_end_with_status_2_and_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    for (words, reason) in [
        (vec!["serve", "--listen", "nowhere"], "expected an address and a port"),
        (vec!["serve", "--listen", "127.0.0.1:0", "--token", "short"], "16 to 200 characters"),
        (
            vec!["serve", "--listen", "127.0.0.1:0", "--token", "spaces are not allowed"],
            "letters, digits",
        ),
        (vec!["serve", file, "--listen", "127.0.0.1:0"], "file"),
        (vec!["serve", "--listen", &taken], "another program listens there"),
        (vec!["run", "--listen", "127.0.0.1:0"], "belong to --serve"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fedcote"))
            .args(&words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(reason) && error.trim().lines().count() == 1, "{words:?}: {error}");
    }
    drop(holder);
}
