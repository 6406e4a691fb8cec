//! FLASH's `state_traces.json` (Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale
//! Smartphone Data", WWW 2021): what happened on each phone, as lines of time stamp, tab, state.
//!
//! A phone is ready while it is locked, charging and on Wi-Fi. Its trace lasts from its first to its last time stamp.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Wrong;
use super::presence::Presence;

#[derive(Deserialize)]
#[serde(expecting = "a phone, an object with `messages`")]
struct Phone {
    messages: String,
}

/// One presence for each phone that is ever ready, in the order of their names.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Presence>, Wrong> {
    let phones: BTreeMap<String, Phone> = serde_json::from_slice(bytes)
        .map_err(|error| Wrong::line(error.line(), error.to_string()))?;
    let mut found = Vec::new();
    for (name, phone) in &phones {
        let wrong = |at: usize, reason: String| {
            Wrong::whole(format!("phone {name:?}, messages, line {}: {reason}", at + 1))
        };
        let (mut locked, mut wifi, mut charging) = (false, false, false);
        let (mut first, mut last): (Option<f64>, f64) = (None, 0.0);
        let mut since = None;
        let mut intervals = Vec::new();
        for (at, line) in phone.messages.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let parts = line.split_once('\t');
            let (stamp, state) =
                parts.ok_or_else(|| wrong(at, "no time stamp, tab, state".into()))?;
            let time = seconds(stamp).ok_or_else(|| {
                wrong(at, format!("{stamp:?} is no time stamp YYYY-MM-DD HH:MM:SS"))
            })?;
            let time = time - *first.get_or_insert(time);
            if time < last {
                return Err(wrong(at, format!("{stamp} is before the line above")));
            }
            last = time;
            match state.trim().to_lowercase().as_str() {
                "battery_charged_on" => charging = true,
                "battery_charged_off" => charging = false,
                "wifi" => wifi = true,
                "2g" | "3g" | "4g" | "5g" | "unknown" => wifi = false,
                "screen_lock" => locked = true,
                "screen_unlock" => locked = false,
                "screen_on" | "screen_off" => {}
                // The level of the battery.
                level
                    if level.strip_suffix('%').is_some_and(|l| l.trim().parse::<f64>().is_ok()) => {
                }
                other => return Err(wrong(at, format!("unknown state {other:?}"))),
            }
            match (locked && wifi && charging, since) {
                (true, None) => since = Some(time),
                (false, Some(on)) => {
                    intervals.push((on, time));
                    since = None;
                }
                _ => {}
            }
        }
        intervals.extend(since.map(|on| (on, last)));
        if intervals.iter().any(|(on, off)| off > on) {
            found.extend(Presence::new(intervals, last));
        }
    }
    Ok(found)
}

/// Seconds from some fixed moment.
fn seconds(stamp: &str) -> Option<f64> {
    let (date, time) = stamp.trim().split_once(' ')?;
    let parts = |text: &str, between: char| -> Option<[i64; 3]> {
        let mut parts = text.split(between).map(|part| part.parse::<i64>().ok());
        let found = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(found)
    };
    let ([year, month, day], [hour, minute, second]) = (parts(date, '-')?, parts(time, ':')?);
    let legal = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !legal {
        return None;
    }
    // Days of the civil calendar, years that begin in March.
    let (shifted, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days =
        365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * months + 2) / 5 + day;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) as f64)
}
