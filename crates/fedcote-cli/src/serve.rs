//! `fedcote serve`: the live page.

use std::io::Read;
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
  FEDCOTE_TOKEN=$(openssl rand -hex 16) fedcote serve --listen 0.0.0.0:7878
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
    /// Ask browsers for this token (16 characters or more); other users of this machine may see it, unlike the
    /// environment variable FEDCOTE_TOKEN, which is taken without it, and --token-file
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Ask browsers for the token that is the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// A host name under which browsers may reach this machine (may be repeated)
    #[arg(long, value_name = "NAME", value_parser = crate::arguments::host)]
    host: Vec<String>,
}

const LISTEN: &str = "127.0.0.1:7878";

/// The environment variable that holds the token where no flag does.
const TOKEN: &str = "FEDCOTE_TOKEN";

/// A token is short: more of a file is not read.
const MOST_TOKEN: u64 = 4096;

impl Address {
    /// Whether the user said anything.
    pub fn is_given(&self) -> bool {
        let token = self.token.is_some() || self.token_file.is_some();
        self.listen != LISTEN || token || !self.host.is_empty()
    }

    /// The token that the user gave: by flag, by file, or by the environment.
    fn token(&self) -> Result<Option<String>, Error> {
        let (token, place) = match (&self.token, &self.token_file, std::env::var_os(TOKEN)) {
            (Some(token), ..) => (token.clone(), "--token".to_owned()),
            (None, Some(path), _) => {
                let place = format!("--token-file {}", path.display());
                let wrong =
                    |reason: &dyn std::fmt::Display| Error::request(format!("{place}: {reason}"));
                let mut text = String::new();
                let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
                file.take(MOST_TOKEN).read_to_string(&mut text).map_err(|error| wrong(&error))?;
                (text.lines().next().unwrap_or_default().trim().to_owned(), place)
            }
            // A variable that holds nothing is a mistake more often than a wish for a page without a token.
            (None, None, Some(token)) => match token.into_string() {
                Ok(token) => (token, TOKEN.to_owned()),
                Err(_) => return Err(Error::request(format!("{TOKEN}: is no text"))),
            },
            (None, None, None) => return Ok(None),
        };
        Guard::check_token(&token).map_err(|error| Error::request(format!("{place}: {error}")))?;
        Ok(Some(token))
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
        let token = match self.token()? {
            Some(token) => Some(token),
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
            ended => {
                let runs = if ended == 1 { "1 run".to_owned() } else { format!("{ended} runs") };
                let reason = format!("did not stop within {} s", PATIENCE.as_secs());
                let remedy = "ended at once; resume goes on from the last checkpoint";
                Err(Error::work(format!("{runs} {reason}: {remedy}")))
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
