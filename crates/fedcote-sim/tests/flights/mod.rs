//! FedBuff's events from what chance decided: who starts next, and whose upload gets through. For `replay.rs` and `examples/draws.rs`.

use fedcote::random::Purpose;
use fedcote_sim::World;
use rand::RngExt;

/// Clients under way at a time, and updates in a buffer: K and half of it.
const UNDER_WAY: usize = 4;
const BUFFER: usize = 2;

/// A client under way.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub client: u32,
    /// How many started before it.
    pub number: u32,
    /// The step of the server that it starts from.
    pub version: usize,
    pub arrives: bool,
    end: f64,
}

/// What happens until the server steps.
pub struct Round {
    pub started: Vec<Flight>,
    /// Those whose updates are in the buffer.
    pub ended: Vec<Flight>,
}

/// A server that never waits for a round to end, and how long its clients take.
pub struct Server<'a> {
    pub now: f64,
    seconds: &'a [f64],
    flights: Vec<Flight>,
    started: u32,
}

impl<'a> Server<'a> {
    pub fn new(seconds: &'a [f64]) -> Self {
        Self { now: 0.0, seconds, flights: Vec::new(), started: 0 }
    }

    /// Ends and starts clients until the buffer is full.
    pub fn round(&mut self, world: &World, round: u32) -> Round {
        let (mut started, mut ended) = (Vec::new(), Vec::new());
        while ended.len() < BUFFER {
            while self.flights.len() < UNDER_WAY {
                started.push(self.start(world, round));
            }
            let next = |a: &&Flight, b: &&Flight| {
                (a.end, a.client).partial_cmp(&(b.end, b.client)).unwrap()
            };
            let first = *self.flights.iter().min_by(next).unwrap();
            self.flights.retain(|flight| flight.number != first.number);
            self.now = first.end;
            ended.extend(first.arrives.then_some(first));
        }
        Round { started, ended }
    }

    fn start(&mut self, world: &World, round: u32) -> Flight {
        let under_way = |client: &u32| self.flights.iter().any(|flight| flight.client == *client);
        let idle: Vec<u32> = (0..6).filter(|client| !under_way(client)).collect();
        let number = self.started;
        let key = world.key(Purpose::Selection).round(round).attempt(number);
        let client = idle[key.stream().random_range(0..idle.len())];
        let key = world.key(Purpose::Upload).round(round).client(client.into());
        let arrives = world.network.arrives(round, client as usize, key.copy(0).attempt(number));
        let end = self.now + self.seconds[client as usize];
        let flight = Flight { client, number, version: round as usize - 1, arrives, end };
        self.flights.push(flight);
        self.started += 1;
        flight
    }
}

/// Clients in order, and how often each is there.
pub fn counts(clients: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    clients.for_each(|client| *counts.entry(client).or_insert(0) += 1);
    counts.into_iter().collect()
}
