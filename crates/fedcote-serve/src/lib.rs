//! The live page: runs as they happen, in a browser.
//!
//! The run folder on disk is the source of truth. The page reads along (`tail.rs`) and never talks to a run, so that a
//! slow or vanished browser cannot slow one down, and runs of other processes show as well. Runs started from the page
//! are processes of their own (`children.rs`).
//!
//! [`Site::respond`] answers one request, without any socket; [`serve`] puts it behind one.
#![deny(missing_docs)]

mod children;
mod downloads;
mod error;
mod form;
mod guard;
mod log;
mod map;
mod pages;
mod playground;
mod reply;
mod root;
mod routes;
mod runs;
mod server;
mod site;
mod tail;

pub use children::INTERRUPTED;
pub use error::Error;
pub use guard::Guard;
pub use reply::{Body, Held};
pub use server::{Handle, serve};
pub use site::Site;
