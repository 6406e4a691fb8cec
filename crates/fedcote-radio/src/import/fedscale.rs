//! FedScale's pickles (Lai et al., "FedScale: Benchmarking Model and System Performance of Federated Learning at Scale",
//! ICML 2022): when phones are there (`active`, `inactive`, `finish_time`), and how fast they are (`computation`, milliseconds of
//! inference per sample, and `communication`, kbit/s).
//!
//! Training takes three times as long as inference; a kbit is 1024 bits, up and down. Client `j` gets entry `j` of each table.

use super::pickle::{Pickle, Value};
use super::presence::Presence;
use super::{Place, Recorded, Request, Wrong};

/// How often training is slower than inference.
const TRAINING: f64 = 3.0;

/// The most numbers of all traces together: one pickle may refer to the same list often.
const MOST: usize = 50_000_000;

/// What the files say.
#[derive(Default)]
pub(super) struct Tables {
    presences: Vec<Presence>,
    /// Milliseconds of inference per sample, kbit/s.
    capacities: Vec<(f64, f64)>,
}

impl Tables {
    /// Adds what a file says.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        let pickle = Pickle::parse(bytes)
            .map_err(|(byte, reason)| Wrong { place: Place::Byte(byte), reason })?;
        let Value::Dictionary(clients) = pickle.root() else {
            return Err(Wrong::whole("the pickle is no dictionary of clients"));
        };
        let mut numbers = 0;
        for (at, (_, record)) in clients.iter().enumerate() {
            let wrong =
                |reason: String| Wrong::whole(format!("client {} of the pickle: {reason}", at + 1));
            let Value::Dictionary(record) = pickle.get(*record) else {
                return Err(wrong("is no dictionary".into()));
            };
            let number = |key: &str| match pickle.find(record, key) {
                Some(Value::Number(number)) if number.is_finite() && *number >= 0.0 => Ok(*number),
                Some(_) => Err(wrong(format!("{key} is no number of 0 or more"))),
                None => Err(wrong(format!("{key} is missing"))),
            };
            if pickle.find(record, "computation").is_some() {
                let (computation, communication) =
                    (number("computation")?, number("communication")?);
                if communication == 0.0 {
                    return Err(wrong("communication must be above 0".into()));
                }
                self.capacities.push((computation, communication));
                continue;
            }
            let list = |key: &str| match pickle.find(record, key) {
                Some(Value::List(items)) => Ok(items),
                Some(_) => Err(wrong(format!("{key} is no list"))),
                None => Err(wrong(format!("{key} is missing: neither availability nor capacity"))),
            };
            let (active, inactive) = (list("active")?, list("inactive")?);
            numbers += active.len() + inactive.len();
            if numbers > MOST {
                return Err(wrong("more than 50 million times together".into()));
            }
            if active.len() != inactive.len() {
                let (on, off) = (active.len(), inactive.len());
                return Err(wrong(format!("{on} times in active, {off} in inactive")));
            }
            let time = |place: &usize, key: &str| match pickle.get(*place) {
                Value::Number(time) if time.is_finite() && *time >= 0.0 => Ok(*time),
                _ => Err(wrong(format!("{key} has something that is no time in seconds"))),
            };
            let intervals = active
                .iter()
                .zip(inactive)
                .map(|(on, off)| Ok((time(on, "active")?, time(off, "inactive")?)))
                .collect::<Result<Vec<_>, Wrong>>()?;
            if let Some((on, off)) = intervals.iter().find(|(on, off)| off < on) {
                return Err(wrong(format!("inactive at {off}, before active at {on}")));
            }
            let presence = Presence::new(intervals, number("finish_time")?);
            self.presences
                .push(presence.ok_or_else(|| wrong("finish_time must be above 0".into()))?);
        }
        Ok(())
    }

    /// One trace for each client: as many as the longer table has.
    pub(super) fn traces(self, request: &Request) -> Vec<Phone> {
        let Self { presences, capacities } = self;
        let seconds = |(computation, communication): &(f64, f64)| {
            let kbit = 2.0 * request.bits / 1024.0;
            TRAINING * request.samples * computation / 1000.0 + kbit / communication
        };
        let (phones, each) = (presences.len().max(capacities.len()), presences.len().max(1));
        (0..phones)
            .map(|at| Phone {
                before: at / each,
                sharing: (phones - at % each).div_ceil(each),
                presence: (!presences.is_empty()).then(|| presences[at % presences.len()].clone()),
                seconds: (!capacities.is_empty())
                    .then(|| seconds(&capacities[at % capacities.len()])),
            })
            .collect()
    }
}

/// A phone.
pub(super) struct Phone {
    presence: Option<Presence>,
    /// How many phones before this one have the same presence.
    before: usize,
    /// How many have it in all.
    sharing: usize,
    /// What a round takes it, if that is known.
    seconds: Option<f64>,
}

impl Recorded for Phone {
    fn period(&self) -> f64 {
        self.presence.as_ref().map_or(1.0, |presence| presence.period)
    }

    fn uses(&self, times: usize) -> usize {
        times * self.sharing + self.before
    }

    fn fails(&self, start: f64, request: &Request) -> bool {
        let needed = self.seconds.unwrap_or(request.deadline);
        let gone = self.presence.as_ref().is_some_and(|presence| !presence.stays(start, needed));
        needed > request.deadline || gone
    }
}
