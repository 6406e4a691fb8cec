//! What the page knows: the folder, the runs started here, the logs that browsers read.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::children::Children;
use crate::guard::Guard;
use crate::log::{Log, PIECE};
use crate::map::Networks;
use crate::reply::{Body, Refusal};
use crate::root::Root;
use crate::sweeps::Sweeps;
use crate::{Error, runs, tail};

/// So many browsers may watch at once.
const MOST_WATCHERS: usize = 64;
/// So many reports, tables or playground questions are computed at once.
const MOST_WORK: usize = 2;
/// The list of runs is read from the disk at most so often.
const LIST_EVERY: Duration = Duration::from_millis(700);
/// A browser gets what grows in at most ten pieces of events a second.
const PIECE_EVERY: Duration = Duration::from_millis(100);
/// A sign of life on a quiet line, so that a vanished browser is noticed.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// A browser that takes nothing for so long is let go.
const STUCK: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// A folder of runs as a web site.
#[derive(Debug)]
pub struct Site {
    pub(crate) root: Root,
    pub(crate) guard: Guard,
    pub(crate) children: Arc<Children>,
    pub(crate) networks: Networks,
    sweeps: Arc<tokio::sync::Mutex<Sweeps>>,
    work: Arc<Semaphore>,
    /// Apart from other work, so that the list of runs is there whatever else is computed.
    listing: Arc<Semaphore>,
    watchers: Arc<Semaphore>,
    logs: Mutex<HashMap<String, Weak<Log>>>,
    list: tokio::sync::Mutex<Option<(Instant, Bytes)>>,
}

impl Site {
    /// The runs in a folder, which is made if it is not there; `program` is the `fedcote` command, to start runs with: its
    /// path, and words that come before all others.
    pub fn new(folder: &Path, program: Vec<OsString>, guard: Guard) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            root: Root::open(folder)?,
            guard,
            children: Children::new(program),
            networks: Networks::default(),
            sweeps: Default::default(),
            work: Arc::new(Semaphore::new(MOST_WORK)),
            listing: Arc::new(Semaphore::new(1)),
            watchers: Arc::new(Semaphore::new(MOST_WATCHERS)),
            logs: Mutex::default(),
            list: Default::default(),
        }))
    }

    /// The folder of runs.
    pub fn folder(&self) -> &Path {
        self.root.path()
    }

    /// Asks the runs that were started here to save and stop; returns how many are still there after a while.
    pub fn stop_runs(&self, patience: Duration) -> usize {
        self.children.stop_all(patience)
    }

    /// Does some work on a thread that may block, with few others at once.
    pub(crate) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&Site) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.work_within(&self.work, task).await
    }

    /// Does some work on sweeps, one at a time: browsers that ask meanwhile get what was read for the first, and other work has a
    /// place.
    pub(crate) async fn work_on_sweeps<T: Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(&Site, &mut Sweeps) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        // Before there is a place for it: the one that has the lock would wait for that place.
        let mut sweeps = Arc::clone(&self.sweeps).lock_owned().await;
        self.work(move |site| task(site, &mut sweeps)).await
    }

    async fn work_within<T: Send + 'static>(
        self: &Arc<Self>,
        permits: &Arc<Semaphore>,
        task: impl FnOnce(&Site) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = Arc::clone(permits).acquire_owned().await.map_err(Refusal::failed)?;
        let site = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            task(&site)
        });
        task.await.map_err(|_| Refusal::failed("the work was cut short by a bug"))
    }

    /// The list of runs as JSON.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<Bytes, Refusal> {
        // Held while reading: browsers that ask meanwhile get the same list.
        let mut list = self.list.lock().await;
        if let Some((_, text)) = list.as_ref().filter(|(read, _)| read.elapsed() < LIST_EVERY) {
            return Ok(text.clone());
        }
        let text = self.work_within(&self.listing, |site| {
            let runs = runs::list(&site.root, &site.children);
            Bytes::from(serde_json::to_vec(&runs).expect("plain data"))
        });
        let text = text.await?;
        *list = Some((Instant::now(), text.clone()));
        Ok(text)
    }

    /// Forgets the list: something has just changed.
    pub(crate) async fn forget_list(&self) {
        *self.list.lock().await = None;
    }

    /// Events of a run from where the browser was, for as long as it listens.
    pub(crate) fn watch(&self, name: &str, last_event: Option<&str>) -> Option<Body> {
        let permit = Arc::clone(&self.watchers).try_acquire_owned().ok()?;
        let log = self.log(name);
        let place = log.place(last_event);
        // Two pieces wait at most; then the browser's own pace is waited for, here and nowhere else.
        let (sender, receiver) = mpsc::channel(2);
        let (feeding, ended) = oneshot::channel();
        tokio::spawn(async move {
            feed(log, place, sender, permit).await;
            drop(feeding);
        });
        Some(Body::Events { pieces: receiver, ended: Some(ended), held: None })
    }

    fn log(&self, name: &str) -> Arc<Log> {
        let mut logs = self.logs.lock().expect("no panic while held");
        if let Some(log) = logs.get(name).and_then(Weak::upgrade) {
            return log;
        }
        logs.retain(|_, log| log.strong_count() > 0);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let log = Arc::new(Log::new(format!("{:x}", since.map_or(0, |since| since.as_nanos()))));
        logs.insert(name.to_owned(), Arc::downgrade(&log));
        tail::follow(
            self.root.clone(),
            name.to_owned(),
            Arc::clone(&self.children),
            Arc::clone(&log),
        );
        log
    }
}

/// Hands a log to one browser, piece by piece.
async fn feed(
    log: Arc<Log>,
    mut place: usize,
    sender: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
) {
    let mut growth = log.growth();
    let hello = Bytes::from_static(b"retry: 1000\n\n");
    if sender.send(hello).await.is_err() {
        return;
    }
    loop {
        growth.borrow_and_update();
        let (piece, next) = log.piece(place);
        if next > place {
            place = next;
            let full = piece.len() >= PIECE;
            // One that takes nothing for so long is gone, or comes back by itself.
            if sender.send_timeout(piece, STUCK).await.is_err() {
                return;
            }
            // A long run comes as fast as the browser takes it.
            if !full {
                tokio::time::sleep(PIECE_EVERY).await;
            }
            continue;
        }
        tokio::select! {
            () = sender.closed() => return,
            // The log outlives its readers, so that it cannot be gone.
            _ = growth.changed() => {}
            () = tokio::time::sleep(COMMENT_EVERY) => {
                let comment = Bytes::from_static(b": still here\n\n");
                if sender.send_timeout(comment, STUCK).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two long computations used to keep the list of runs, and with it the page, from everybody.
    #[test]
    fn the_list_is_there_while_all_else_is_busy() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(folder.path(), vec!["fedcote".into()], Guard::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let all = u32::try_from(MOST_WORK).unwrap();
            let _busy = Arc::clone(&site.work).acquire_many_owned(all).await.unwrap();
            assert_eq!(site.list().await.unwrap(), "[]");
        });
    }
}
