//! Lines of `seconds Mbit/s`: the rate of a link up to each time stamp, from the one before.

use super::{Recorded, Request, Wrong};

/// The rate of one link over time.
#[derive(Debug)]
pub(super) struct Bandwidth {
    /// Time stamps, from 0, ascending.
    ends: Vec<f64>,
    /// Bits that were sent up to each of them.
    sent: Vec<f64>,
}

/// Understands a file.
pub(super) fn parse(bytes: &[u8]) -> Result<Bandwidth, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|_| Wrong::whole("not a text file"))?;
    let mut first: Option<f64> = None;
    let (mut ends, mut sent) = (Vec::new(), Vec::new());
    let (mut last, mut bits) = (0.0, 0.0);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split([' ', '\t', ',']).filter(|f| !f.is_empty()).collect();
        let [seconds, rate] = fields[..] else {
            let reason = format!("{} values instead of seconds and Mbit/s", fields.len());
            return Err(Wrong::line(at + 1, reason));
        };
        let number = |name: &str, text: &str| {
            let value = text.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
            value.ok_or_else(|| {
                Wrong::line(at + 1, format!("{name}: {text:?} is no number of 0 or more"))
            })
        };
        let (seconds, rate) = (number("seconds", seconds)?, number("Mbit/s", rate)?);
        // Some traces do not begin at 0; the first line only says where.
        let Some(first) = first else {
            first = Some(seconds);
            continue;
        };
        let time = seconds - first;
        if time <= last {
            return Err(Wrong::line(
                at + 1,
                format!("seconds: {seconds} is not after the line above"),
            ));
        }
        bits += 1e6 * rate * (time - last);
        last = time;
        ends.push(time);
        sent.push(bits);
    }
    if ends.is_empty() {
        return Err(Wrong::whole("needs at least two lines of seconds and Mbit/s"));
    }
    if !bits.is_finite() {
        return Err(Wrong::whole("the rates are too large to add up"));
    }
    Ok(Bandwidth { ends, sent })
}

impl Bandwidth {
    /// Bits that are sent from the start of the trace to a time, repeats included.
    fn until(&self, time: f64) -> f64 {
        let (period, all) = (self.period(), self.sent[self.sent.len() - 1]);
        let part = time.rem_euclid(period);
        let periods = ((time - part) / period).round();
        let at = self.ends.partition_point(|end| *end < part).min(self.ends.len() - 1);
        let (begin, before) = match at {
            0 => (0.0, 0.0),
            _ => (self.ends[at - 1], self.sent[at - 1]),
        };
        let share = (part - begin) / (self.ends[at] - begin);
        periods * all + before + share * (self.sent[at] - before)
    }
}

impl Recorded for Bandwidth {
    fn period(&self) -> f64 {
        self.ends[self.ends.len() - 1]
    }

    /// Enough is sent between the end of computing and the deadline.
    fn fails(&self, start: f64, request: &Request) -> bool {
        let (begin, end) = (start + request.compute, start + request.deadline);
        let sent = if end > begin { self.until(end) - self.until(begin) } else { 0.0 };
        request.compute > request.deadline || sent * (1.0 + 1e-12) < request.bits
    }
}
