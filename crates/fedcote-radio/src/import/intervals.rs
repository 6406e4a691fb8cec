//! Lines of `client,on,off`: the client is on line from one second to the other.

use std::collections::BTreeMap;

use super::Wrong;
use super::presence::Presence;

/// One presence for each client, in the order of first mention; all repeat after the last second of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Presence>, Wrong> {
    let text = std::str::from_utf8(bytes).map_err(|_| Wrong::whole("not a text file"))?;
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut period: f64 = 0.0;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if at == 0 && fields == ["client", "on", "off"] {
            continue;
        }
        let [client, on, off] = fields[..] else {
            let reason = format!("{} values instead of client,on,off", fields.len());
            return Err(Wrong::line(at + 1, reason));
        };
        let seconds = |name: &str, text: &str| {
            let value = text.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
            value.ok_or_else(|| {
                Wrong::line(at + 1, format!("{name}: {text:?} is no time in seconds"))
            })
        };
        let (on, off) = (seconds("on", on)?, seconds("off", off)?);
        if off <= on {
            return Err(Wrong::line(at + 1, format!("off: {off} is not after on, {on}")));
        }
        let next = places.len();
        let place = *places.entry(client).or_insert(next);
        all.resize_with(places.len(), Vec::new);
        if all[place].last().is_some_and(|last: &(f64, f64)| on < last.1) {
            let reason =
                format!("on: {on} is before the end of the interval above of client {client:?}");
            return Err(Wrong::line(at + 1, reason));
        }
        all[place].push((on, off));
        period = period.max(off);
    }
    Ok(all.into_iter().filter_map(|intervals| Presence::new(intervals, period)).collect())
}
