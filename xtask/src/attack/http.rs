//! Requests to a real `fedcote serve` on loopback.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Answer;
use super::mutate::{mutated, word};
use crate::torture::Chance;

/// Nothing may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a browser, or somebody else, may ask for. `HOST` is the server's address. Nothing here starts a run.
const REQUESTS: [&str; 24] = [
    "GET / HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /playground HTTP/1.1\r\nhost: HOST\r\naccept: text/html\r\n\r\n",
    "GET /api/runs HTTP/1.1\r\nhost: HOST\r\nsec-fetch-site: same-origin\r\n\r\n",
    "GET /api/choices HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /runs/one HTTP/1.1\r\nhost: HOST\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n\r\n",
    "GET /runs/one/report.html HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /runs/one/rounds.csv HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /runs/one/summary.csv HTTP/1.0\r\nhost: HOST\r\n\r\n",
    "GET /runs/one/accuracy.svg HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /runs/one/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/one/events?last=3-1 HTTP/1.1\r\nhost: HOST\r\nlast-event-id: 7-2\r\n\r\n",
    "GET /api/runs/one/map?seed=1 HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/walking/places?seed=1&round=4294967295 HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/one/series HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/one/settings HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer 0123456789abcdef\r\n\r\n",
    "GET /api/runs/many/events HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/sparse/series HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/damaged/map?seed=1 HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /api/runs/swept/sweep HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "GET /runs/swept/report.html HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "HEAD /api/runs/pipe/figures HTTP/1.1\r\nhost: HOST\r\n\r\n",
    "POST /api/playground HTTP/1.1\r\nhost: HOST\r\norigin: http://HOST\r\ncontent-type: application/json\r\ncontent-length: 96\r\n\r\n\
     {\"selected\":2,\"clients\":[{\"id\":\"a\",\"labels\":[3,1],\"failure\":0.1},{\"id\":\"b\",\"labels\":[0,4],\"failure\":0.6}]}",
    "POST /api/runs/gone/stop HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "POST /api/runs/gone/delete HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
];

/// Keys that the form does not have.
const OTHERS: [&str; 3] = ["data.folder", "task.python", ""];

/// The keys of the form, with the most that it takes where there is a bound.
const FORM: [(&str, Option<u64>); 17] = [
    ("rounds", Some(100_000)),
    ("clients", Some(100_000)),
    ("selected", Some(1_000_000)),
    ("seeds", None),
    ("schemes", None),
    ("evaluate_every", None),
    ("data.set", None),
    ("model.kind", None),
    ("data.partition", None),
    ("data.unbalance", None),
    ("training.rate", None),
    ("training.local_steps", Some(100_000)),
    ("training.batch", Some(100_000)),
    ("network.outdoor_excess_loss_db", None),
    ("network.mobility", None),
    ("network.knowledge", None),
    ("network.deadline_seconds", None),
];

/// Whole numbers on both sides of the bounds, as TOML may spell them.
const NUMBERS: [&str; 12] = [
    "3",
    "0x10",
    "0b101",
    "0o17",
    "100_000",
    "100_001",
    "4_000_000_000",
    "0x3b9aca00",
    "+7",
    "0o777_777",
    "0b1111_1111_1111_1111_1111",
    "1_000_001",
];

/// `fedcote serve` on a folder.
pub struct Server {
    process: Child,
    pub address: String,
}

impl Server {
    pub fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("fedcote serve: {error}");
        let mut command = Command::new(program);
        command.arg("serve").arg(folder).args(["--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let mut line = String::new();
        let out = process.stdout.take().ok_or("fedcote serve: no output")?;
        BufReader::new(out).read_line(&mut line).map_err(failed)?;
        let address = line.trim().rsplit("http://").next().unwrap_or_default();
        let address = address.trim_end_matches('/').to_owned();
        let server = Self { process, address };
        server.is_well()?;
        Ok(server)
    }

    /// Whether the page answers as it should.
    pub fn is_well(&self) -> Result<(), String> {
        for path in ["/", "/api/runs"] {
            let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address);
            let status = self.send(request.as_bytes())?.0;
            if status != 200 {
                return Err(format!("{path} is answered with {status}: the page is not well"));
            }
        }
        Ok(())
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends bytes; the status of the answer, 0 for a connection that was closed, and the beginning of the body.
    fn send(&self, bytes: &[u8]) -> Result<(u16, String), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.address);
        let mut stream = TcpStream::connect(&self.address).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        // A server that has refused may close while more is on its way.
        let _ = stream.write_all(bytes);
        // The rest of what is not whole would be waited for, by right; a whole request is answered.
        if !is_whole(bytes) {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while !answer.windows(4).any(|four| four == b"\r\n\r\n") && answer.len() < 1 << 16 {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => answer.extend(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(format!("no answer within {PATIENCE:?}: {error}")),
            }
        }
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Ok((status, text))
    }

    /// Sends bytes and judges the answer.
    fn judge(&self, bytes: &[u8]) -> Answer {
        let (status, text) = self.send(bytes)?;
        Self::judged(bytes, status, &text)
    }

    /// Judges an answer.
    fn judged(bytes: &[u8], status: u16, text: &str) -> Answer {
        let shown = || String::from_utf8_lossy(bytes).into_owned();
        let busy = status == 503 && text.contains("too many browsers");
        if (status >= 500 && !busy) || text.contains("root:x:") {
            return Err(format!("{:?} is answered with {text:?}", shown()));
        }
        Ok(match status {
            0 => "closed".to_owned(),
            200..300 => "answered".to_owned(),
            300..400 => "sent on".to_owned(),
            503 => "too many watch".to_owned(),
            _ => "refused".to_owned(),
        })
    }

    pub fn request(&self, chance: &mut Chance) -> Answer {
        let sample = chance.one(&REQUESTS).replace("HOST", &self.address);
        let bytes = match chance.below(10) {
            0 => sample.into_bytes(),
            // Only the address is hostile: the rest gets it past the first checks.
            1..5 => {
                let (head, rest) = sample.split_once(" HTTP").unwrap_or((&sample, ""));
                let (method, path) = head.split_once(' ').unwrap_or((head, "/"));
                let path = mutated(path.as_bytes(), chance);
                [method.as_bytes(), b" ", &path, b" HTTP", rest.as_bytes()].concat()
            }
            // Only the body is.
            5..7 if sample.starts_with("POST /api/playground") => {
                let (head, body) = sample.split_once("\r\n\r\n").unwrap_or((&sample, ""));
                let body = mutated(body.as_bytes(), chance);
                let head =
                    head.replace("content-length: 96", &format!("content-length: {}", body.len()));
                [head.as_bytes(), b"\r\n\r\n", &body].concat()
            }
            _ => mutated(sample.as_bytes(), chance),
        };
        self.judge(&bytes)
    }

    /// A form of hostile settings. Its name is taken, so that none starts anything: one whose name alone is refused would
    /// have started, and must be within what the page bounds, however its numbers are spelt.
    pub fn form(&self, chance: &mut Chance) -> Answer {
        let quoted = |text: &str| {
            let escaped: String = text.chars().flat_map(escape).collect();
            format!("\"{escaped}\"")
        };
        let settings: BTreeMap<&str, String> = (0..chance.below(4))
            .map(|_| {
                let at = chance.below((FORM.len() + OTHERS.len()) as u64) as usize;
                let key = FORM.get(at).map_or_else(|| OTHERS[at - FORM.len()], |(key, _)| *key);
                let value = match chance.below(6) {
                    0 => "[\"fedavg\", \"fedcote\"]".to_owned(),
                    1 => format!("{}{}", word(chance), word(chance)),
                    2 => chance.below(u64::MAX).to_string(),
                    3 => word(chance).to_owned(),
                    _ => (*chance.one(&NUMBERS)).to_owned(),
                };
                (key, value)
            })
            .collect();
        let preset = *chance.one(&["quickstart", "paper-harsh", "quickstart-dynamic", "", "../x"]);
        let like = match chance.below(4) {
            0 => {
                format!(
                    ",\"like\":{}",
                    quoted(chance.one::<&str>(&["one", "damaged", "many", "..", ""]))
                )
            }
            _ => String::new(),
        };
        let written: Vec<String> = settings
            .iter()
            .map(|(key, value)| format!("{}:{}", quoted(key), quoted(value)))
            .collect();
        let body = format!(
            "{{\"name\":\"one\",\"preset\":{}{like},\"settings\":{{{}}}}}",
            quoted(preset),
            written.join(",")
        );
        let host = &self.address;
        let request = format!(
            "POST /api/runs HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, text) = self.send(request.as_bytes())?;
        let answer = Self::judged(request.as_bytes(), status, &text)?;
        if answer != "refused" {
            return Err(format!("{body} is {answer}, though its name is taken"));
        }
        if !text.contains("\"field\":\"name\"") {
            return Ok("refused for what they ask".to_owned());
        }
        for (key, value) in &settings {
            let Some((_, most)) = FORM.iter().find(|(known, _)| known == key) else {
                return Err(format!("{body} would start, though the form has no `{key}`"));
            };
            let (Some(most), found) = (most, whole(value)) else { continue };
            if found.is_none_or(|found| found > *most) {
                return Err(format!("{body} would start, though `{key}` is at most {most}"));
            }
        }
        Ok("refused for their name alone".to_owned())
    }
}

/// A whole number as TOML has it.
fn whole(text: &str) -> Option<u64> {
    let digits = text.trim().trim_start_matches('+').replace('_', "");
    let (digits, radix) = match digits.get(..2) {
        Some("0x") => (&digits[2..], 16),
        Some("0o") => (&digits[2..], 8),
        Some("0b") => (&digits[2..], 2),
        _ => (&digits[..], 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

/// Whether a request has all that it announces.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let announced = head
        .split("content-length:")
        .nth(1)
        .map(|rest| rest.lines().next().and_then(|length| length.trim().parse::<usize>().ok()));
    match announced {
        None => !head.contains("transfer-encoding") || bytes.ends_with(b"0\r\n\r\n"),
        Some(length) => length.is_some_and(|length| length <= bytes.len() - end - 4),
    }
}

/// A character as JSON has it.
fn escape(c: char) -> Vec<char> {
    match c {
        '"' | '\\' => vec!['\\', c],
        c if c.is_control() => format!("\\u{:04x}", c as u32).chars().collect(),
        c => vec![c],
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Adds hostile runs to a folder: too many runs, a sparse file, a pipe for a lock, a damaged scenario, a damaged sweep,
/// a long walk.
pub fn hostile(folder: &Path) -> std::io::Result<()> {
    let run = |name: &str, scenario: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.join("fedavg/1"))?;
        fs::write(path.join("scenario.toml"), scenario).map(|()| path)
    };
    let plain = "rounds = 9\nseeds = [1]\nschemes = [\"fedavg\"]\n";
    let names: Vec<String> = (0..3000).map(|number| format!("\"s{number}\"")).collect();
    let seeds: Vec<String> = (0..3000).map(|number| number.to_string()).collect();
    let many =
        format!("rounds = 9\nseeds = [{}]\nschemes = [{}]\n", seeds.join(","), names.join(","));
    run("many", &many)?;
    let sparse = run("sparse", plain)?.join("fedavg/1/metrics.jsonl");
    fs::File::create(sparse)?.set_len(3 << 30)?;
    let pipe = run("pipe", plain)?;
    for place in [pipe.join(".lock"), pipe.join("fedavg/1/.lock")] {
        // Where there are no pipes a plain folder will do.
        if !Command::new("mkfifo").arg(&place).status().is_ok_and(|status| status.success()) {
            fs::create_dir(&place)?;
        }
    }
    let damaged = "rounds = 9\nclients = \"many\"\n[network\n";
    run("damaged", damaged)?;
    fs::create_dir_all(folder.join("swept"))?;
    fs::write(folder.join("swept/sweep.toml"), damaged)?;
    let walk = "[network]\nmobility = \"waypoint\"\n";
    run(
        "walking",
        &format!(
            "rounds = 4294967295\nclients = 2000\nseeds = [1]\nschemes = [\"fedavg\"]\n{walk}"
        ),
    )?;
    Ok(())
}
