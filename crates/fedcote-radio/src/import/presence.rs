//! When a client is there: intervals of seconds, which repeat.

use super::{Recorded, Request};

/// When a client is there, within a period that repeats.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Presence {
    /// Ascending, without overlap, from 0 to the period.
    intervals: Vec<(f64, f64)>,
    pub(super) period: f64,
}

impl Presence {
    /// Of these intervals, which may touch, overlap and stand in any order; `None` without a period.
    pub(super) fn new(mut intervals: Vec<(f64, f64)>, period: f64) -> Option<Self> {
        if !(period > 0.0 && period.is_finite()) {
            return None;
        }
        intervals.retain(|(on, off)| off > on);
        intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(intervals.len());
        for (on, off) in intervals {
            let (on, off) = (on.max(0.0), off.min(period));
            match merged.last_mut() {
                Some(last) if on <= last.1 => last.1 = last.1.max(off),
                _ if off > on => merged.push((on, off)),
                _ => {}
            }
        }
        Some(Self { intervals: merged, period })
    }

    /// The interval that holds this time of the period.
    fn at(&self, time: f64) -> Option<(f64, f64)> {
        let after = self.intervals.partition_point(|(on, _)| *on <= time);
        let (on, off) = *self.intervals.get(after.checked_sub(1)?)?;
        (time < off).then_some((on, off))
    }

    /// Whether the client is there at a time.
    pub(super) fn is_on(&self, time: f64) -> bool {
        self.at(time.rem_euclid(self.period)).is_some()
    }

    /// Whether it stays for so many seconds from then on.
    pub(super) fn stays(&self, time: f64, seconds: f64) -> bool {
        let mut time = time.rem_euclid(self.period);
        let mut left = seconds;
        let mut whole = 0.0;
        while let Some((_, off)) = self.at(time) {
            if time + left < off || left <= 0.0 {
                return true;
            }
            // What ends with the period may go on with the next one.
            if off < self.period {
                return false;
            }
            left -= off - time;
            whole += off - time;
            if whole >= self.period {
                return true;
            }
            time = 0.0;
        }
        false
    }

    /// For how long it is there within so many seconds from then on.
    pub(super) fn within(&self, time: f64, seconds: f64) -> f64 {
        let all: f64 = self.intervals.iter().map(|(on, off)| off - on).sum();
        let until = |time: f64| {
            let part = time.rem_euclid(self.period);
            let periods = ((time - part) / self.period).round();
            let before = self.intervals.iter().map(|(on, off)| (off.min(part) - on).max(0.0));
            periods * all + before.sum::<f64>()
        };
        until(time + seconds) - until(time)
    }
}

/// A client of which is known when it is there.
pub(super) struct Client {
    pub(super) presence: Presence,
    /// The second at which its trace begins; before it the trace repeats, as after its end.
    pub(super) begin: f64,
    /// Whether it must stay for the whole round; else it may pause.
    pub(super) strict: bool,
}

impl Recorded for Client {
    fn period(&self) -> f64 {
        self.presence.period
    }

    fn fails(&self, start: f64, request: &Request) -> bool {
        let start = start - self.begin;
        if self.strict {
            return !self.presence.stays(start, request.deadline);
        }
        let enough = || self.presence.within(start, request.deadline) >= request.compute;
        !(self.presence.is_on(start) && request.compute <= request.deadline && enough())
    }
}
