//! Ctrl-C, SIGTERM and SIGHUP: the first asks to stop, the second stops at once.

use std::io::{IsTerminal, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// Asks to stop once there is no more input, and returns when that should have helped: a round may take for ever. What is on the
/// disk is whole at any moment.
pub fn stop_with_input(mut input: impl Read, stop: &AtomicBool, patience: Duration) {
    // Whatever ends the input, its end is what counts.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    stop.store(true, Ordering::Relaxed);
    std::thread::sleep(patience);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with four thousand million local steps could not be stopped from the page: the flag is looked at between rounds.
    #[test]
    fn the_end_of_the_input_and_nothing_else_stops_a_run() {
        use std::io::Write as _;

        static STOP: AtomicBool = AtomicBool::new(false);
        let (input, mut page) = std::io::pipe().unwrap();
        let watch = std::thread::spawn(|| {
            stop_with_input(input, &STOP, Duration::from_millis(1));
        });
        // More than a pipe holds: when it is written, most of it was read.
        page.write_all(&[b'x'; 1 << 20]).unwrap();
        assert!(!STOP.load(Ordering::Relaxed) && !watch.is_finished(), "the page is there");
        drop(page);
        watch.join().unwrap();
        assert!(STOP.load(Ordering::Relaxed));
    }
}
