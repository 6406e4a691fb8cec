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
/// What the server may have, in bytes.
const MOST_MEMORY: u64 = 256 << 20;
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

/// All visits and forms, then the ends of all runs.
fn visits(
    server: &Server,
    size: &Size,
    seed: u64,
    names: &[String],
    served: &Path,
) -> Result<Vec<(String, String)>, String> {
    let mut chance = Chance::of(seed, 0, 0);
    let (mut started, mut stopped, mut resumed) = (0, 0, 0);
    let (mut sizes, mut slowest) = (Vec::new(), Duration::ZERO);
    for visit in 0..size.visits {
        let path = chance.one(&PAGES);
        // The pages of a run are there as soon as it was started, its report when it has results.
        let run = match chance.below(started + 1) {
            number if number > 0 && !path.contains('.') => names[number as usize - 1].as_str(),
            _ => "first",
        };
        let begun = Instant::now();
        // A run that has just begun has no results to show.
        let wanted: &[u16] = if run == "first" { &[200] } else { &[200, 404] };
        get(server, &path.replace("RUN", run), wanted)?;
        slowest = slowest.max(begun.elapsed());
        // Runs are started evenly over all visits but the last fifth.
        let due = started < size.runs && visit * size.runs >= started * size.visits * 4 / 5;
        if due
            && post(
                server,
                "/api/runs",
                &format!("{{\"name\":\"run-{}\",\"like\":\"first\"}}", started + 1),
                &[201, 409],
            )? == 201
        {
            started += 1;
        }
        if started > 0 && chance.below(8) == 0 {
            let name = &names[chance.below(started) as usize];
            let what = if chance.below(2) == 0 { "stop" } else { "resume" };
            // Refused where it has ended, or is under way.
            let done = post(server, &format!("/api/runs/{name}/{what}"), "{}", &[200, 409])? == 200;
            stopped += u64::from(done && what == "stop");
            resumed += u64::from(done && what == "resume");
        }
        sizes.extend(resident(server));
    }
    // What is not there yet because four were under way, and what was stopped.
    let reference = comparable(&served.join("first"));
    until("all runs are whole", || {
        let mut whole = true;
        for (at, name) in names.iter().enumerate() {
            if comparable(&served.join(name)) == reference {
                continue;
            }
            whole = false;
            if at as u64 >= started {
                let body = format!("{{\"name\":\"{name}\",\"like\":\"first\"}}");
                started += u64::from(post(server, "/api/runs", &body, &[201, 409])? == 201);
            } else {
                let path = format!("/api/runs/{name}/resume");
                resumed += u64::from(post(server, &path, "{}", &[200, 409])? == 200);
            }
        }
        Ok(whole)
    })?;
    let mut found = vec![
        ("visits".to_owned(), size.visits.to_string()),
        ("slowest answer".to_owned(), format!("{:.1} s", slowest.as_secs_f64())),
        ("runs started, stopped, resumed".to_owned(), format!("{started}, {stopped}, {resumed}")),
        (
            "runs whole at the end".to_owned(),
            format!("{} of {}, to the bit", names.len(), names.len()),
        ),
    ];
    sizes.extend(resident(server));
    let largest = sizes.iter().copied().max().unwrap_or(0);
    if largest > MOST_MEMORY {
        return Err(format!("the server has {largest} bytes"));
    }
    let tenths = sizes.chunks(sizes.len().div_ceil(10).max(1)).filter_map(|part| part.last());
    let tenths: Vec<String> = tenths.map(|size| format!("{:.0}", *size as f64 / 1e6)).collect();
    found.push(("memory of the server in MB after every tenth".to_owned(), tenths.join(", ")));
    Ok(found)
}

/// Waits for a state.
fn until(what: &str, mut done: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let begun = Instant::now();
    while !done()? {
        if begun.elapsed() > PATIENCE {
            return Err(format!("within {PATIENCE:?} it did not come about that {what}"));
        }
        std::thread::sleep(Duration::from_millis(50));
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
                    let events = piece[..read].windows(6).filter(|six| six == b"data: ").count();
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
