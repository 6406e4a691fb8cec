//! A real `fedcote serve` that many visit and watch, and that starts, stops and resumes runs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Size;
use crate::attack::http::Server;
use crate::torture::{Chance, comparable};

/// Nothing may take longer, all runs together.
const PATIENCE: Duration = Duration::from_secs(900);
/// What the server may have in bytes, and grow by once all runs have ended.
const MOST_MEMORY: u64 = 256 << 20;
const GROWTH: u64 = 32 << 20;
/// Descriptors that may be open after everybody has left: those of the start, and some that are about to close.
const OPEN: usize = 8;

const SCENARIO: &str = "clients = 6\nselected = 4\nseeds = [1]\nschemes = [\"fedavg\", \"fedcote-memory\"]\ncheckpoint_every = 20\n\
                        evaluate_every = 10\n[data]\nset = \"synthetic\"\nsamples = 300\n[model]\nkind = \"softmax\"\n[network]\nkind = \"radio\"\n";

/// Addresses below a run, and of the site. Each must be answered with 200 for a run that is there.
const PAGES: [&str; 17] = [
    "/",
    "/playground",
    "/api/runs",
    "/api/choices",
    "/runs/RUN",
    "/runs/RUN/scenario.toml",
    "/runs/RUN/rounds.csv",
    "/runs/RUN/summary.csv",
    "/runs/RUN/accuracy.svg",
    "/runs/RUN/report.html",
    "/api/runs/RUN/settings",
    "/api/runs/RUN/choices",
    "/api/runs/RUN/series",
    "/api/runs/RUN/figures",
    "/api/runs/RUN/map?seed=1",
    "/api/runs/RUN/places?seed=1&round=7",
    "/assets/style.css",
];

/// What the watchers have seen together.
#[derive(Default)]
struct Seen {
    over: AtomicBool,
    events: AtomicU64,
    connections: AtomicU64,
}

/// Plays it and tells the figures.
pub fn soak(
    program: &Path,
    folder: &Path,
    size: &Size,
    seed: u64,
) -> Result<Vec<(String, String)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let served = folder.join("served");
    fs::create_dir_all(&served).map_err(failed)?;
    let scenario = folder.join("scenario.toml");
    fs::write(&scenario, format!("rounds = {}\n{SCENARIO}", size.run_rounds)).map_err(failed)?;
    // The undisturbed run that all others must equal.
    let mut command = Command::new(program);
    command.arg("run").arg(&scenario).arg("--out").arg(served.join("first"));
    let done = command.output().map_err(failed)?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let server = Server::start(program, &served)?;
    let open = descriptors(&server);
    let names: Vec<String> = (1..=size.runs).map(|number| format!("run-{number}")).collect();
    let seen = Seen::default();
    let mut found = std::thread::scope(|threads| {
        for number in 0..size.watchers {
            let (address, seen, names) = (&server.address, &seen, &names);
            threads.spawn(move || watch(address, Chance::of(seed, 1, number as u64), names, seen));
        }
        let found = visits(&server, size, seed, &names, &served);
        seen.over.store(true, Ordering::Relaxed);
        found
    })?;
    let (events, connections) = (&seen.events, &seen.connections);
    if events.load(Ordering::Relaxed) < size.watchers as u64 {
        return Err("the watchers were told nothing".to_owned());
    }
    server.is_well()?;
    until("everybody has left", || {
        Ok(descriptors(&server).is_none_or(|now| now <= open.unwrap_or(now) + OPEN))
    })?;
    found.push(("watchers".to_owned(), size.watchers.to_string()));
    found.push((
        "connections of watchers".to_owned(),
        connections.load(Ordering::Relaxed).to_string(),
    ));
    found.push(("events they read".to_owned(), events.load(Ordering::Relaxed).to_string()));
    Ok(found)
}

/// Somebody who visits pages, and starts, stops and resumes runs.
struct Visitor<'a> {
    server: &'a Server,
    chance: Chance,
    names: &'a [String],
    started: u64,
    stopped: u64,
    resumed: u64,
    slowest: Duration,
    /// The memory of the server after each visit.
    sizes: Vec<u64>,
}

/// Half of the visits while runs are started, stopped and resumed; then the ends of all runs; then the other half, in
/// which the server may not grow any more.
fn visits(
    server: &Server,
    size: &Size,
    seed: u64,
    names: &[String],
    served: &Path,
) -> Result<Vec<(String, String)>, String> {
    let (chance, sizes, slowest) = (Chance::of(seed, 0, 0), Vec::new(), Duration::ZERO);
    let (started, stopped, resumed) = (0, 0, 0);
    let mut visitor = Visitor { server, chance, names, started, stopped, resumed, slowest, sizes };
    let half = size.visits / 2;
    for visit in 0..half {
        visitor.visit()?;
        if visitor.started * half <= visit * size.runs {
            visitor.start()?;
        }
    }
    let reference = comparable(&served.join("first"));
    let mut whole = vec![false; names.len()];
    until("all runs are whole", || {
        visitor.start()?;
        for (at, name) in names.iter().enumerate() {
            let run = served.join(name);
            // Its summary is written at its end.
            whole[at] |= run.join("summary.csv").exists() && comparable(&run) == reference;
            if !whole[at] && (at as u64) < visitor.started {
                visitor.tell(name, "resume")?;
            }
        }
        Ok(whole.iter().all(|whole| *whole))
    })?;
    let before = visitor.sizes.len();
    for _ in half..size.visits {
        visitor.visit()?;
    }
    let Visitor { started, stopped, resumed, slowest, sizes, .. } = visitor;
    let mut found = vec![
        ("visits".to_owned(), size.visits.to_string()),
        ("slowest answer".to_owned(), format!("{:.1} s", slowest.as_secs_f64())),
        ("runs started, stopped, resumed".to_owned(), format!("{started}, {stopped}, {resumed}")),
        ("runs whole at the end, to the bit".to_owned(), names.len().to_string()),
    ];
    // The pages are computed anew for each visitor: what they take is there after some visits.
    if let Some(&early) = sizes.get(before + before / 5) {
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let late = sizes[before..].iter().copied().max().unwrap_or(0);
        if largest > MOST_MEMORY || late > early + GROWTH {
            return Err(format!("the server has {largest} bytes, {early} → {late} at last"));
        }
        let tenths = sizes.chunks(sizes.len().div_ceil(10)).filter_map(|part| part.last());
        let tenths: Vec<String> = tenths.map(|size| format!("{:.0}", *size as f64 / 1e6)).collect();
        found.push(("memory of the server in MB after every tenth".to_owned(), tenths.join(", ")));
    }
    Ok(found)
}

impl Visitor<'_> {
    /// A page, and sometimes a button.
    fn visit(&mut self) -> Result<(), String> {
        let path = self.chance.one(&PAGES);
        let run = match self.chance.below(self.started + 1) {
            0 => "first",
            number => &self.names[number as usize - 1],
        };
        // A run that has just begun has no results to show.
        let wanted: &[u16] = if run == "first" { &[200] } else { &[200, 404] };
        let begun = Instant::now();
        get(self.server, &path.replace("RUN", run), wanted)?;
        self.slowest = self.slowest.max(begun.elapsed());
        if self.started > 0 && self.chance.below(8) == 0 {
            let name = self.names[self.chance.below(self.started) as usize].clone();
            let what = *self.chance.one(&["stop", "resume"]);
            self.tell(&name, what)?;
        }
        self.sizes.extend(resident(self.server));
        Ok(())
    }

    /// Starts the next run, unless as many as may be are under way.
    fn start(&mut self) -> Result<(), String> {
        if let Some(name) = self.names.get(self.started as usize) {
            let body = format!("{{\"name\":\"{name}\",\"like\":\"first\"}}");
            let status = post(self.server, "/api/runs", &body, &[201, 409])?;
            self.started += u64::from(status == 201);
        }
        Ok(())
    }

    /// Stops or resumes a run; refused where it has ended, or is under way.
    fn tell(&mut self, name: &str, what: &str) -> Result<(), String> {
        let status = post(self.server, &format!("/api/runs/{name}/{what}"), "{}", &[200, 409])?;
        let told = if what == "stop" { &mut self.stopped } else { &mut self.resumed };
        *told += u64::from(status == 200);
        Ok(())
    }
}

/// Waits for a state.
fn until(what: &str, mut done: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let begun = Instant::now();
    while !done()? {
        if begun.elapsed() > PATIENCE {
            return Err(format!("within {PATIENCE:?} it did not come about that {what}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn get(server: &Server, path: &str, wanted: &[u16]) -> Result<(), String> {
    match whole(server, &format!("GET {path}"), "")? {
        (status, _) if wanted.contains(&status) => Ok(()),
        (_, text) => Err(format!("{path} is answered with {text:?}")),
    }
}

/// The status of an answer, which must be one of these.
fn post(server: &Server, path: &str, body: &str, wanted: &[u16]) -> Result<u16, String> {
    match whole(server, &format!("POST {path}"), body)? {
        (status, _) if wanted.contains(&status) => Ok(status),
        (_, text) => Err(format!("{path} with {body} is answered with {text:?}")),
    }
}

/// Status and text of an answer, read to its end.
fn whole(server: &Server, what: &str, body: &str) -> Result<(u16, String), String> {
    let failed = |error: std::io::Error| format!("{what}: {error}");
    let mut stream = TcpStream::connect(&server.address).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(120))).map_err(failed)?;
    let (host, length) = (&server.address, body.len());
    let head = format!("{what} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    let kind = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(format!("{head}{kind}").as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Ok((status, text))
}

/// A browser that watches one run after another, for a while each; every fifth does not read what it is sent.
fn watch(address: &str, mut chance: Chance, names: &[String], seen: &Seen) {
    let deaf = chance.below(5) == 0;
    while !seen.over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let until = Instant::now() + Duration::from_millis(100 + chance.below(3000));
        let name = match chance.below(2) {
            0 => "first",
            _ => chance.one(names).as_str(),
        };
        let head = format!("GET /api/runs/{name}/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        // A server that has no room for one more says so, and a run that was not started yet is not there.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = stream.write_all(head.as_bytes());
        seen.connections.fetch_add(1, Ordering::Relaxed);
        let mut piece = [0; 1 << 16];
        while Instant::now() < until && !seen.over.load(Ordering::Relaxed) {
            if deaf {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    // Every event ends with an empty line.
                    let events = piece[..read].windows(2).filter(|two| two == b"\n\n").count();
                    seen.events.fetch_add(events as u64, Ordering::Relaxed);
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => break,
            }
        }
    }
}

/// The memory of the server in bytes, where the system tells it in /proc.
fn resident(server: &Server) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/status", server.id())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// How many descriptors the server has open.
fn descriptors(server: &Server) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{}/fd", server.id())).ok()?.count())
}
