//! The live page: runs as they happen, in a browser.
//!
//! The run folder on disk is the source of truth. The page follows it (`tail.rs`) and never communicates with a run, so that a
//! slow or closed browser cannot slow one down, and runs of other processes show as well. Runs started from the page
//! are processes of their own (`children.rs`).
//!
//! [`Site::respond`] answers one request, without any socket; [`serve`] listens on one.
//!
//! ```
//! use std::net::TcpListener;
//!
//! use fedcote_serve::{Guard, Site, serve};
//!
//! # let folder = tempfile::tempdir()?;
//! # let runs = folder.path().join("runs");
//! // `fedcote` is the program that runs are started with.
//! let site = Site::new(&runs, vec!["fedcote".into()], Guard::default())?;
//! let page = serve(TcpListener::bind("127.0.0.1:0")?, site)?;
//! println!("http://{}", page.address()); // until `page` is dropped
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
mod sweeps;
mod tail;

pub use children::INTERRUPTED;
pub use error::Error;
pub use guard::Guard;
pub use reply::{Body, Held};
pub use server::{Handle, serve};
pub use site::Site;
