//! `fedcote serve`: the live page.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fedcote_serve::{Guard, Handle, Site};

use crate::error::Error;
use crate::extensions::Session;
use crate::signals::stop_on_signal;

/// How long runs started from the page have to save when the page ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Show runs in a browser as they happen; start, stop and resume them there
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fedcote serve
  fedcote serve results --listen 127.0.0.1:8000
  fedcote serve --listen 0.0.0.0:7878 --host lab.example.org
  ssh -L 7878:localhost:7878 lab.example.org     (then open http://localhost:7878 here)

Ctrl-C ends the page; runs started from it save, stop, and can be resumed.

Exit status: 0 done, 1 the work failed, 2 the request was wrong.")]
pub struct Args {
    /// The folder that holds the runs, created if missing
    #[arg(default_value = "runs", value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    address: Address,
}

/// Where the page is, and for whom.
#[derive(clap::Args)]
pub struct Address {
    /// The address of the page; one that others can reach needs a token, which is generated and printed
    #[arg(long, default_value = LISTEN, value_name = "ADDRESS:PORT")]
    listen: String,
    /// Ask browsers for this token (16 characters or more)
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// A host name under which browsers may reach this machine (may be repeated)
    #[arg(long, value_name = "NAME", value_parser = crate::arguments::host)]
    host: Vec<String>,
}

const LISTEN: &str = "127.0.0.1:7878";

impl Address {
    /// Whether the user said anything.
    pub fn is_given(&self) -> bool {
        self.listen != LISTEN || self.token.is_some() || !self.host.is_empty()
    }

    /// Serves the runs in a folder. The address to open comes with it.
    pub fn open(&self, folder: &Path, session: &Session) -> Result<Page, Error> {
        let wrong = |reason: String| Error::request(format!("--listen {}: {reason}", self.listen));
        let resolved = self.listen.to_socket_addrs().ok().and_then(|mut found| found.next());
        let Some(address) = resolved else {
            return Err(wrong("expected an address and a port, as in 127.0.0.1:7878".into()));
        };
        let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => wrong(
                "another program listens there; choose another port, or 0 for a free one".into(),
            ),
            _ => wrong(error.to_string()),
        })?;
        let port = listener.local_addr().map_err(Error::work)?.port();
        let token = match &self.token {
            Some(token) => {
                Guard::check_token(token).map_err(explain)?;
                Some(token.clone())
            }
            None if address.ip().is_loopback() => None,
            None => Some(Guard::random_token().map_err(explain)?),
        };
        let guard = Guard { hosts: self.host.clone(), token: token.clone(), port };
        let site = Site::new(folder, session.program()?, guard).map_err(explain)?;
        let handle = fedcote_serve::serve(listener, Arc::clone(&site)).map_err(explain)?;
        Ok(Page { site, handle, token, host: self.host.first().cloned() })
    }
}

/// A page that is being served.
pub struct Page {
    site: Arc<Site>,
    handle: Handle,
    token: Option<String>,
    host: Option<String>,
}

impl Page {
    /// The address to open, with this path.
    pub fn url(&self, path: &str) -> String {
        let address = self.handle.address();
        let host = match &self.host {
            Some(name) => format!("{name}:{}", address.port()),
            None if address.ip().is_unspecified() => {
                let loopback = if address.is_ipv4() {
                    [127, 0, 0, 1].into()
                } else {
                    std::net::Ipv6Addr::LOCALHOST.into()
                };
                SocketAddr::new(loopback, address.port()).to_string()
            }
            None => address.to_string(),
        };
        let token = self.token.as_ref().map_or(String::new(), |token| format!("?token={token}"));
        format!("http://{host}/{path}{token}")
    }

    /// Serves until the user has had enough, then lets runs that were started here save.
    pub fn until(self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
        }
        match self.site.stop_runs(PATIENCE) {
            0 => Ok(()),
            left => {
                Err(Error::work(format!("{left} runs are still saving; they stop by themselves")))
            }
        }
    }
}

pub fn run(args: Args, session: &Session) -> Result<(), Error> {
    crate::output::folder("serve", &args.folder)?;
    let page = args.address.open(&args.folder, session)?;
    let stop = stop_on_signal("runs started here save and stop; once more to end at once")?;
    crate::output::print(&format!("Runs in {}: {}\n", page.site.folder().display(), page.url("")))?;
    page.until(stop)
}

fn explain(error: fedcote_serve::Error) -> Error {
    if error.is_request() { Error::request(error) } else { Error::work(error) }
}
