//! The events of a run, kept once for all browsers.
//!
//! The log only grows; each browser reads it at its own pace from its own place. There are no queues that a slow
//! browser could fill, and one that comes back says where it was.

use std::sync::Mutex;

use hyper::body::Bytes;
use tokio::sync::watch;

/// The most bytes of events that one answer piece carries.
pub const PIECE: usize = 256 * 1024;

/// A log that grows.
#[derive(Debug)]
pub struct Log {
    /// Tells this log from others, so that a browser from before a restart begins again.
    epoch: String,
    entries: Mutex<Entries>,
    length: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Entries {
    events: Vec<Bytes>,
    bytes: usize,
}

impl Log {
    /// An empty log.
    pub fn new(epoch: String) -> Self {
        Self { epoch, entries: Mutex::default(), length: watch::Sender::new(0) }
    }

    /// Adds events, each a kind and a JSON document.
    pub fn add(&self, events: impl IntoIterator<Item = (&'static str, String)>) {
        let mut entries = self.entries.lock().expect("no panic while held");
        let before = entries.events.len();
        for (kind, data) in events {
            let id = entries.events.len() + 1;
            let event = format!("id: {}-{id}\nevent: {kind}\ndata: {data}\n\n", self.epoch);
            entries.bytes += event.len();
            entries.events.push(event.into());
        }
        let length = entries.events.len();
        drop(entries);
        if length > before {
            self.length.send_replace(length);
        }
    }

    /// The size of all events.
    pub fn bytes(&self) -> usize {
        self.entries.lock().expect("no panic while held").bytes
    }

    /// A reader's place: after the event that it saw last, or at the beginning.
    pub fn place(&self, last_event: Option<&str>) -> usize {
        let number = last_event.and_then(|id| id.rsplit_once('-'));
        let number = number.filter(|(epoch, _)| *epoch == self.epoch);
        let seen = number.and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
        if seen > *self.length.borrow() { 0 } else { seen }
    }

    /// The next events from a place on as one piece, and the place after them. Empty when there are none.
    pub fn piece(&self, mut place: usize) -> (Bytes, usize) {
        let entries = self.entries.lock().expect("no panic while held");
        let mut piece = Vec::new();
        if place == 0 && !entries.events.is_empty() {
            // Whatever the browser has from before is void.
            piece.extend_from_slice(b"event: reset\ndata: {}\n\n");
        }
        while let Some(event) = entries.events.get(place).filter(|_| piece.len() < PIECE) {
            piece.extend_from_slice(event);
            place += 1;
        }
        (piece.into(), place)
    }

    /// Tells of growth.
    pub fn growth(&self) -> watch::Receiver<usize> {
        self.length.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_go_on_where_they_were() {
        let log = Log::new("7".into());
        log.add([("a", "1".into()), ("b", "2".into())]);
        let (piece, place) = log.piece(log.place(None));
        let text = "event: reset\ndata: {}\n\nid: 7-1\nevent: a\ndata: 1\n\nid: 7-2\nevent: b\ndata: 2\n\n";
        assert_eq!((&piece[..], place), (text.as_bytes(), 2));
        assert_eq!(log.piece(2).0.len(), 0);
        log.add([("c", "3".into())]);
        assert_eq!(&log.piece(log.place(Some("7-2"))).0[..], b"id: 7-3\nevent: c\ndata: 3\n\n");
        // Another log, a place that is not there yet, nonsense: from the beginning.
        for id in ["8-2", "7-4", "7-x", "", "7"] {
            assert_eq!(log.place(Some(id)), 0, "{id}");
        }
        let mut growth = log.growth();
        assert!(!growth.has_changed().unwrap() && *growth.borrow_and_update() == 3);
        log.add([]);
        assert!(!growth.has_changed().unwrap());
    }

    #[test]
    fn pieces_are_bounded() {
        let log = Log::new("1".into());
        log.add((0..100).map(|_| ("a", "x".repeat(10_000))));
        let (piece, place) = log.piece(0);
        assert!(piece.len() < PIECE + 11_000 && place < 100);
        assert!(log.piece(place).1 > place);
    }
}
