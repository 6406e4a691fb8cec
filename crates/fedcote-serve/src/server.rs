//! The socket: connections bounded in number and in the time they may take.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

use crate::reply::Held;
use crate::{Body, Error, Site};

/// So many connections at once, well below what a process may have open. One more, and the idle one that is there
/// longest has to go.
const MOST_CONNECTIONS: usize = 256;
/// A request's head must have come by then; also how long a connection may idle.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// A site that is being served, on a thread of its own.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Handle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked in a way that matters now.
            let _ = thread.join();
        }
    }
}

/// Serves a site until the handle is dropped. One thread does it all: the runs get the other cores.
pub fn serve(listener: TcpListener, site: Arc<Site>) -> Result<Handle, Error> {
    let system = |error: std::io::Error| Error::System(error.to_string());
    let address = listener.local_addr().map_err(system)?;
    listener.set_nonblocking(true).map_err(system)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(6)
        .build()
        .map_err(system)?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("page".into()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                () = accept(listener, site) => {}
                _ = stopped => {}
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
    });
    Ok(Handle { address, stop: Some(stop), thread: Some(thread.map_err(system)?) })
}

/// The number of requests that a connection waits for an answer to, for whoever reads a request's body.
#[derive(Debug, Clone)]
pub(crate) struct Waiting(pub(crate) Arc<AtomicUsize>);

/// A connection: how to end it, and the number of requests it is waiting for an answer to.
struct Connection {
    end: AbortHandle,
    busy: Arc<AtomicUsize>,
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut connections: VecDeque<Connection> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of files, most likely; some will be closed soon.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        connections.retain(|connection| !connection.end.is_finished());
        if connections.len() >= MOST_CONNECTIONS {
            let idle = connections.iter().position(|c| c.busy.load(Ordering::Relaxed) == 0);
            match idle.and_then(|at| connections.remove(at)) {
                Some(connection) => connection.end.abort(),
                // All are busy: the new one has to come again.
                None => continue,
            }
        }
        // Small events should leave at once; failing that, they leave a little later.
        let _ = stream.set_nodelay(true);
        let busy = Arc::new(AtomicUsize::new(0));
        let (site, waiting) = (Arc::clone(&site), Arc::clone(&busy));
        let task = tokio::spawn(async move {
            let let_go = Arc::new(Notify::new());
            let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
                let (site, waiting) = (Arc::clone(&site), Arc::clone(&waiting));
                let let_go = Arc::clone(&let_go);
                async move {
                    // One with a body is busy when its body is in: slow ones must not keep others out.
                    let posts = request.method() == hyper::Method::POST;
                    let busy = (!posts).then(|| Held::new(&waiting));
                    request.extensions_mut().insert(Waiting(waiting));
                    let mut response = site.respond(request).await;
                    // A stream of events is busy as long as it lives.
                    if let Body::Events { held, ended, .. } = response.body_mut() {
                        *held = busy;
                        let ended = ended.take();
                        tokio::spawn(async move {
                            if let Some(ended) = ended {
                                let _ = ended.await;
                            }
                            let_go.notify_one();
                        });
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_headers(64)
                .max_buf_size(32 * 1024);
            tokio::select! {
                // A connection that breaks is its browser's business.
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                // One that takes no more events would be waited for here until it does.
                () = let_go.notified() => {}
            }
        });
        connections.push_back(Connection { end: task.abort_handle(), busy });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;
    use crate::Guard;

    #[test]
    fn a_watcher_that_takes_nothing_is_hung_up_on() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("long");
        fs::create_dir_all(run.join("fedavg/1")).unwrap();
        let scenario =
            "rounds = 1000000\nclients = 2\nselected = 1\nseeds = [1]\nschemes = [\"fedavg\"]\n";
        fs::write(run.join("scenario.toml"), scenario).unwrap();
        // More than any socket holds on the way.
        let drawn = "[0,1],".repeat(500);
        let line = |round| {
            let selected = format!("\"selected\":[{drawn}[0,1]],\"arrived\":[],\"attempts\":1");
            format!("{{\"round\":{round},{selected}}}\n")
        };
        let metrics: String = (1..=8000).map(line).collect();
        fs::write(run.join("fedavg/1/metrics.jsonl"), metrics).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let guard = Guard { hosts: Vec::new(), token: None, port };
        let site = Site::new(folder.path(), vec!["fedcote".into()], guard).unwrap();
        let server = serve(listener, site).unwrap();
        let mut watcher = TcpStream::connect(server.address()).unwrap();
        write!(watcher, "GET /api/runs/long/events HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n")
            .unwrap();
        // A connection that was closed at the other end refuses what is written to it.
        let hung_up = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            watcher.write_all(b"x").is_err()
        });
        assert!(hung_up);
    }
}
