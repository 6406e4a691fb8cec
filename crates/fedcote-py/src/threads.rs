//! Threads that survive a fork.
//!
//! A process made by `fork`, as `multiprocessing` did by default, has the memory of its parent but none of its threads:
//! work handed to the parent's pool would be waited for for ever. Such a process gets a pool of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::ThreadPool;

/// The process that loaded this module.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// The pool of a process that was forked, by its number.
static OWN: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Remembers which process loads the module.
pub fn remember() {
    FIRST.store(std::process::id(), Ordering::Relaxed);
}

/// Works without the interpreter, on threads of this process.
pub fn work<T: Send>(py: Python<'_>, task: impl FnOnce() -> T + Send) -> T {
    py.detach(|| match own() {
        Some(pool) => pool.install(task),
        None => task(),
    })
}

/// The pool of this process; none if the usual one is there.
fn own() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    if process == FIRST.load(Ordering::Relaxed) {
        return None;
    }
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, pool)) = own.as_ref()
        && *of == process
    {
        return Some(Arc::clone(pool));
    }
    // Without threads of its own the calling one has to do.
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().build().ok()?);
    // The parent's is not dropped: its threads, which are not here, cannot be told to end.
    std::mem::forget(own.replace((process, Arc::clone(&pool))));
    Some(pool)
}
