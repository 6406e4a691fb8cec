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
use tokio::sync::oneshot;
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
        .max_blocking_threads(4)
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
            let service = service_fn(|request| {
                let (site, waiting) = (Arc::clone(&site), Arc::clone(&waiting));
                async move {
                    let busy = Held::new(&waiting);
                    let mut response = site.respond(request).await;
                    // A stream of events is busy as long as it lives.
                    if let Body::Events { held, .. } = response.body_mut() {
                        *held = Some(busy);
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_headers(64)
                .max_buf_size(32 * 1024);
            // A connection that breaks is its browser's business.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
        connections.push_back(Connection { end: task.abort_handle(), busy });
    }
}
