//! Rounds of a scheme whose clients are always under way: a round lasts until a buffer of updates is full.

use std::collections::BTreeMap;
use std::sync::Arc;

use fedcote::random::Purpose;

use super::{Engine, MAX_REDRAWS, Update, Uploaded, accepted};
use crate::clock::Meter;
use crate::part::{Arrival, RoundContext};
use crate::selection::Flight;
use crate::task::Job;
use crate::{Error, vector};

impl Engine {
    /// Lets clients end and others start until enough updates are in the buffer; trains those who got through. `None` when
    /// none of them is a number. If nobody is there and those under way do not fill the buffer, what has arrived stays in it for
    /// later rounds.
    pub(super) fn fill_buffer(
        &mut self,
        context: &RoundContext,
        mut meter: Meter,
    ) -> Result<Option<Uploaded>, Error> {
        let Some(begun) = self.selection.buffered().map(|buffered| buffered.time()) else {
            return Ok(None);
        };
        let mut started: BTreeMap<u32, u32> = BTreeMap::new();
        let limit = MAX_REDRAWS.saturating_mul(context.world.scenario.general.max_attempts);
        for _ in 0..limit {
            while let Some((client, number)) =
                self.selection.buffered().and_then(|b| b.next(context))
            {
                let upload = self.upload(context, (client, 1), number)[0];
                let seconds = meter.flight(client, context.world.steps(client), &upload);
                *started.entry(client).or_default() += 1;
                if let Some(buffered) = self.selection.buffered() {
                    buffered.start(client, seconds, upload.arrived, context.global);
                }
            }
            let Some(buffered) = self.selection.buffered() else { break };
            let Some(flight) = buffered.end() else {
                // Nobody is under way, and nobody is there to start.
                buffered.wait_until(begun + meter.idle_seconds());
                meter.pass(buffered.time() - begun);
                let (selected, cost) = (started.into_iter().collect(), meter.cost());
                let (arrivals, lost) = (Vec::new(), Vec::new());
                return Ok(Some(Uploaded { selected, lost, attempts: 0, cost, arrivals }));
            };
            if flight.arrives {
                buffered.ended.push(flight);
            }
            if buffered.ended.len() >= buffered.size() {
                let now = buffered.time();
                let mut ended = std::mem::take(&mut buffered.ended);
                ended.sort_by_key(|flight| (flight.client, flight.number));
                let arrivals = self.train_ended(context, &ended)?;
                let hostile = |flight: &Flight| context.world.attack(flight.client).is_some();
                if arrivals.is_empty() && ended.iter().all(hostile) {
                    // What hostile clients send says nothing about the run.
                    continue;
                }
                meter.pass(now - begun);
                if let Some(buffered) = self.selection.buffered() {
                    buffered.step();
                }
                let selected = started.into_iter().collect();
                let uploaded = Uploaded {
                    selected,
                    lost: Vec::new(),
                    attempts: 1,
                    cost: meter.cost(),
                    arrivals,
                };
                return Ok(Some(uploaded).filter(|uploaded| !uploaded.arrivals.is_empty()));
            }
        }
        Err(Error::NothingArrives { round: context.round, attempts: limit })
    }

    /// The updates of clients that started from older models, as models that differ from the global one by what each counts.
    fn train_ended(
        &mut self,
        context: &RoundContext,
        ended: &[Flight],
    ) -> Result<Vec<Arrival>, Error> {
        let mut versions: Vec<u32> = ended.iter().map(|flight| flight.version).collect();
        versions.sort_unstable();
        versions.dedup();
        let mut arrivals: Vec<(u32, Arrival)> = Vec::new();
        for version in versions {
            let Some(buffered) = self.selection.buffered() else { break };
            let start = Arc::new(buffered.model(version).to_vec());
            let weight = buffered.weight(version);
            let context = RoundContext { global: &start, ..*context };
            let flights: Vec<&Flight> = ended.iter().filter(|f| f.version == version).collect();
            let job = |flight: &&Flight| {
                let job = context.world.job(version + 1, flight.client);
                let key = context.world.key(Purpose::Batch).round(flight.number);
                let correction = self.local.try_correction(&context, flight.client)?;
                Ok(Job { correction, key: key.client(flight.client.into()), ..job })
            };
            let mut jobs = flights.iter().map(job).collect::<Result<Vec<_>, Error>>()?;
            context.world.task.train(&start, &mut jobs)?;
            for (flight, job) in flights.iter().zip(jobs) {
                let Update::Sound(mut model) = accepted(&context, job) else { continue };
                for (value, start) in model.iter_mut().zip(start.iter()) {
                    *value = weight * (*value - start);
                }
                let (client, steps) = (flight.client, context.world.steps(flight.client));
                arrivals.push((flight.number, Arrival { client, copies: 1, steps, model }));
            }
        }
        arrivals.sort_by_key(|(number, arrival)| (arrival.client, *number));
        let mut arrivals: Vec<Arrival> = arrivals.into_iter().map(|(_, arrival)| arrival).collect();
        for arrival in &mut arrivals {
            vector::add(&mut arrival.model, 1.0, context.global);
        }
        Ok(arrivals)
    }
}
