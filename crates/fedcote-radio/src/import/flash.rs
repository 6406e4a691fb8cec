//! FLASH's `state_traces.json` (Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale
//! Smartphone Data", WWW 2021): what happened on each phone, as lines of time stamp, tab, state.
//!
//! A phone is ready while it is locked, charging and on Wi-Fi. Its trace lasts from its first to its last time stamp. All phones have one
//! clock, so that a night is a night for all of them. FLASH counts from a fixed date, 2020-01-02; here the clock begins at the last midnight
//! before the first time stamp of all, so that files of other weeks are not first repeated up to their own dates.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Wrong;
use super::presence::{Client, Presence};

#[derive(Deserialize)]
#[serde(expecting = "a phone, an object with `messages`")]
struct Phone {
    messages: String,
}

const DAY: f64 = 86_400.0;

/// One presence for each phone that is ever ready, in the order of their names, with the second of its first time stamp.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<(f64, Presence)>, Wrong> {
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
            let begin = first.unwrap_or(0.0);
            found.extend(Presence::new(intervals, last).map(|presence| (begin, presence)));
        }
    }
    Ok(found)
}

/// The phones of all files on one clock.
pub(super) fn clients(phones: Vec<(f64, Presence)>) -> impl Iterator<Item = Client> {
    let first = phones.iter().map(|(begin, _)| *begin).fold(f64::INFINITY, f64::min);
    let midnight = (first / DAY).floor() * DAY;
    let of = move |(begin, presence)| Client { presence, begin: begin - midnight, strict: false };
    phones.into_iter().map(of)
}

/// Seconds from some fixed midnight.
fn seconds(stamp: &str) -> Option<f64> {
    let (date, time) = stamp.trim().split_once(' ')?;
    let parts = |text: &str, between: char| -> Option<[i64; 3]> {
        let mut parts = text.split(between).map(|part| part.parse::<i64>().ok());
        let found = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(found)
    };
    let ([year, month, day], [hour, minute, second]) = (parts(date, '-')?, parts(time, ':')?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let legal = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=last).contains(&day)
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
