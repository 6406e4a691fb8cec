//! Fuzz targets: traces of others.

use super::*;
use crate::trace::fuzz::mutate;

/// A short request: what is read is tried, too.
fn target(format: Format) -> impl FnMut(&[u8]) {
    let request = Request { rounds: 3, starts: 2, clients: Some(2), ..Request::default() };
    move |bytes| {
        let traces: Vec<Box<dyn Recorded>> = match format {
            Format::Fedscale => {
                let mut tables = fedscale::Tables::default();
                let Ok(()) = tables.add(bytes) else { return };
                let traces = tables.traces(&request).into_iter();
                traces.map(|trace| Box::new(trace) as Box<dyn Recorded>).collect()
            }
            Format::Bandwidth => bandwidth::parse(bytes)
                .into_iter()
                .map(|t| Box::new(t) as Box<dyn Recorded>)
                .collect(),
            Format::Flash => {
                let phones = flash::parse(bytes).unwrap_or_default();
                flash::clients(phones).map(|client| Box::new(client) as Box<dyn Recorded>).collect()
            }
            Format::Intervals => {
                let found = intervals::parse(bytes).unwrap_or_default().into_iter();
                let of = |presence| Client { presence, begin: 0.0, strict: true };
                found.map(|presence| Box::new(of(presence)) as Box<dyn Recorded>).collect()
            }
        };
        for trace in traces.iter().take(3) {
            assert!(trace.period() > 0.0 && trace.period().is_finite());
            trace.fails(0.0, &request);
            trace.fails(1e6, &request);
        }
    }
}

#[test]
fn pickles() {
    let seeds = [AVAILABILITY[0], AVAILABILITY[1], AVAILABILITY[2], CAPACITY, CODE];
    let words = [
        "active",
        "inactive",
        "finish_time",
        "computation",
        "(",
        "}",
        "]",
        "e",
        "u",
        "q\u{1}",
        "h\u{1}",
        ".",
    ];
    mutate::fuzz(&seeds, &words, target(Format::Fedscale));
}

#[test]
fn phones() {
    let words = [
        "messages",
        "\\t",
        "wifi",
        "screen_lock",
        "battery_charged_on",
        "2020-02-01 00:00:00",
        "%",
    ];
    mutate::fuzz(&[PHONES.as_bytes()], &words, target(Format::Flash));
}

#[test]
fn bandwidths() {
    mutate::fuzz(
        &[b"100\t0.5\n110\t1\n115\t3\n", b"0 1\n1,2\n"],
        &["\n", "\t", "1e9"],
        target(Format::Bandwidth),
    );
}

#[test]
fn interval_lists() {
    let seeds: [&[u8]; 2] = [b"client,on,off\nx,0,10\ny,5,20\nx,15,20\n", b"a,1,2\n"];
    mutate::fuzz(&seeds, &["\n", ",", "client", "0", "20"], target(Format::Intervals));
}
