//! Traces of others, as traces of this program: who got through in which round.
//!
//! Round `r` of client `i` starts at `t = (r − 1) · slot`, plus a phase where several clients share one trace. From there the client has
//! `deadline` seconds. What counts as a failure depends on what a trace knows:
//!
//! | format | a round fails when |
//! |---|---|
//! | [`Format::Fedscale`] | the client is off line at some time of its round, or its capacity does not suffice for training and both transfers within the deadline |
//! | [`Format::Flash`] | the phone is not ready (locked, charging, on Wi-Fi) at the start, or not ready long enough within the deadline |
//! | [`Format::Bandwidth`] | computing and sending the model, at the bandwidth of the moment, take longer than the deadline |
//! | [`Format::Intervals`] | the client is off line at some time of its round |
//!
//! Traces repeat after their own period. With several `starts`, spread over the slot, a failure is the share of them that fails.

mod bandwidth;
mod fedscale;
mod flash;
mod intervals;
mod pickle;
mod presence;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use presence::Client;

/// Whose trace it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// FedScale's pickles: `client_behave_trace` (availability), `client_device_capacity`, or both.
    Fedscale,
    /// FLASH's `state_traces.json`.
    Flash,
    /// Lines of `seconds Mbit/s`, a file for each client.
    Bandwidth,
    /// Lines of `client,on,off`, in seconds.
    Intervals,
}

/// What is wanted of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Clients; by default as many as the trace has.
    pub clients: Option<usize>,
    /// Rounds.
    pub rounds: u32,
    /// Seconds from the start of one round to that of the next.
    pub slot: f64,
    /// Seconds from the start of a round to the end of the upload.
    pub deadline: f64,
    /// Bits of the model.
    pub bits: f64,
    /// Seconds of computing, for traces that do not say.
    pub compute: f64,
    /// Samples that a client trains on in a round, for traces that say how long one takes.
    pub samples: f64,
    /// Starts of a round, spread over its slot.
    pub starts: u32,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            clients: None,
            rounds: 100,
            slot: 600.0,
            deadline: 60.0,
            bits: 32.0 * 23_860.0,
            compute: 0.0,
            samples: 5.0 * 128.0,
            starts: 1,
        }
    }
}

/// The most cells of a trace.
const MOST: u64 = 100_000_000;

/// Golden ratio: phases of clients that share a trace are spread evenly, however many there are.
const PHASE: f64 = 0.618_033_988_749_895;

/// What one trace says about a round that starts at a time.
trait Recorded {
    /// The trace repeats after so many seconds.
    fn period(&self) -> f64;

    /// How many clients before this one have the same times, if so many of them have this trace.
    fn uses(&self, times: usize) -> usize {
        times
    }

    /// Whether a round that starts then fails.
    fn fails(&self, start: f64, request: &Request) -> bool;
}

/// A failure at a place of a file.
struct Wrong {
    place: Place,
    reason: String,
}

enum Place {
    Line(u64),
    Byte(usize),
    Whole,
}

impl Wrong {
    fn line(line: usize, reason: impl Into<String>) -> Self {
        Self { place: Place::Line(line as u64), reason: reason.into() }
    }

    fn whole(reason: impl Into<String>) -> Self {
        Self { place: Place::Whole, reason: reason.into() }
    }

    fn of(self, file: &Path) -> Error {
        let (file, reason) = (file.to_path_buf(), self.reason);
        match self.place {
            Place::Line(line) => Error::Trace { file, line, reason },
            Place::Byte(byte) => Error::Foreign { file, reason: format!("byte {byte}: {reason}") },
            Place::Whole => Error::Foreign { file, reason },
        }
    }
}

/// Reads traces and writes one of this program: lines of `round,client,failure`.
///
/// # Errors
/// When a file cannot be read or is wrong, with its line or byte; when the request makes no sense.
pub fn import(format: Format, files: &[PathBuf], request: &Request) -> Result<String, Error> {
    check(request)?;
    let read = |file: &PathBuf| {
        let bytes = std::fs::read(file);
        bytes.map_err(|source| Error::Read { file: file.clone(), source })
    };
    let wrong = |file: &PathBuf| {
        let file = file.clone();
        move |wrong: Wrong| wrong.of(&file)
    };
    let mut traces: Vec<Box<dyn Recorded>> = Vec::new();
    match format {
        Format::Fedscale => {
            let mut both = fedscale::Tables::default();
            for file in files {
                both.add(&read(file)?).map_err(wrong(file))?;
            }
            traces
                .extend(both.traces(request).into_iter().map(|t| Box::new(t) as Box<dyn Recorded>));
        }
        Format::Flash => {
            let mut phones = Vec::new();
            for file in files {
                phones.extend(flash::parse(&read(file)?).map_err(wrong(file))?);
            }
            let clients = flash::clients(phones);
            traces.extend(clients.map(|client| Box::new(client) as Box<dyn Recorded>));
        }
        Format::Intervals => {
            for file in files {
                let found = intervals::parse(&read(file)?).map_err(wrong(file))?;
                let of = |presence| Client { presence, begin: 0.0, strict: true };
                traces.extend(found.into_iter().map(|p| Box::new(of(p)) as Box<dyn Recorded>));
            }
        }
        Format::Bandwidth => {
            for file in files {
                let trace = bandwidth::parse(&read(file)?).map_err(wrong(file))?;
                traces.push(Box::new(trace));
            }
        }
    }
    let last = files.last().cloned().unwrap_or_default();
    if traces.is_empty() {
        return Err(Wrong::whole("no client has a trace here").of(&last));
    }
    let clients = request.clients.unwrap_or(traces.len());
    if clients as u64 * u64::from(request.rounds) > MOST {
        let reason =
            format!("{clients} clients in {} rounds are too many: say fewer", request.rounds);
        return Err(Wrong::whole(reason).of(&last));
    }
    let mut text = String::from("round,client,failure\n");
    for round in 1..=request.rounds {
        for client in 0..clients {
            let trace = &traces[client % traces.len()];
            let uses = trace.uses(client / traces.len());
            let phase = trace.period() * (PHASE * uses as f64).fract();
            let begin = f64::from(round - 1) * request.slot + phase;
            let step = request.slot / f64::from(request.starts);
            let fails = |at: &u32| trace.fails(begin + step * f64::from(*at), request);
            let failed = (0..request.starts).filter(fails).count();
            let failure = failed as f64 / f64::from(request.starts);
            let _ = writeln!(text, "{round},{},{failure}", client + 1);
        }
    }
    Ok(text)
}

fn check(request: &Request) -> Result<(), Error> {
    let wrong = |key: &str, reason: &str| Err(fedcote::SettingError::new(key, reason).into());
    let legal = |value: f64| value.is_finite() && value >= 0.0;
    if !legal(request.slot) || request.slot == 0.0 {
        return wrong("slot", "must be above 0");
    }
    for (key, value) in [
        ("deadline", request.deadline),
        ("bits", request.bits),
        ("compute", request.compute),
        ("samples", request.samples),
    ] {
        if !legal(value) {
            return wrong(key, "must be 0 or more");
        }
    }
    if request.rounds == 0 || request.starts == 0 || request.clients == Some(0) {
        return wrong("rounds", "rounds, starts and clients must be at least 1");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
