//! Ctrl-C, SIGTERM and SIGHUP: the first asks to stop, the second stops at once.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// What is said at the first signal; nothing once there is nothing left to save.
static NOTICE: Mutex<&str> = Mutex::new("");

/// Becomes true at the first signal, which prints `notice` on a terminal; the second ends the program.
pub fn stop_on_signal(notice: &'static str) -> Result<&'static AtomicBool, Error> {
    static STOP: AtomicBool = AtomicBool::new(false);
    say(notice);
    STOP.store(false, Ordering::Relaxed);
    let quiet = !std::io::stderr().is_terminal();
    let handler = move || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        let notice = *NOTICE.lock().expect("no panic while held");
        if !quiet && !notice.is_empty() {
            eprintln!("\n{notice}");
        }
    };
    match ctrlc::set_handler(handler) {
        // A host program may call the command more than once; there is one handler.
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(&STOP),
        Err(error) => Err(Error::work(error)),
    }
}

/// What the first signal says from now on.
pub fn say(notice: &'static str) {
    *NOTICE.lock().expect("no panic while held") = notice;
}
