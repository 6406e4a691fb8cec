//! Answers: their bodies, and the headers that every one of them carries.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use hyper::body::{Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

/// A whole body, or events as they come.
#[derive(Debug)]
pub enum Body {
    /// All of it at once; `None` when it was sent.
    Whole(Option<Bytes>),
    /// Pieces from a channel, until its other end is dropped.
    Events {
        /// The channel.
        pieces: mpsc::Receiver<Bytes>,
        /// Resolves when nothing will come any more.
        ended: Option<oneshot::Receiver<Infallible>>,
        /// Dropped with the stream.
        held: Option<Held>,
    },
}

/// Counts one as long as it lives.
#[derive(Debug)]
pub struct Held(Arc<AtomicUsize>);

impl Held {
    /// One more.
    pub fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Whole(bytes) => bytes.take(),
            Self::Events { pieces, .. } => ready!(pieces.poll_recv(context)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Events { .. } => SizeHint::default(),
        }
    }
}

/// What is answered when it is not what was asked for.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// One line: what, where, what to do.
    pub reason: String,
    /// The field of a form that is at fault.
    pub field: Option<String>,
}

impl Refusal {
    /// A refusal with this status, for this reason.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), field: None }
    }

    /// There is no such thing.
    pub fn missing(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    /// Something failed here.
    pub fn failed(reason: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason.to_string())
    }
}

impl From<Refusal> for Response<Body> {
    fn from(refusal: Refusal) -> Self {
        let message = serde_json::json!({ "error": refusal.reason, "field": refusal.field });
        let mut response = json(&message);
        *response.status_mut() = refusal.status;
        response
    }
}

/// An answer of this type.
pub fn whole(kind: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Some(content.into())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer in JSON.
pub fn json(value: &impl Serialize) -> Response<Body> {
    whole("application/json", serde_json::to_vec(value).expect("plain data"))
}

/// An answer that the browser saves under this name.
pub fn download(kind: &'static str, name: &str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = whole(kind, content);
    let safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{safe}\"")) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// Nothing but our own scripts, styles and requests; nobody may put the page into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src data:; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The report carries its style and its script with it, may let the reader save, and nothing else.
static REPORT_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let own = fedcote_plot::report::policy();
    let policy = format!(
        "{own}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
    );
    HeaderValue::try_from(policy).expect("plain text")
});

/// Adds the headers that guard every answer.
pub fn guarded(mut response: Response<Body>, report: bool) -> Response<Body> {
    let headers = response.headers_mut();
    let policy = if report { REPORT_POLICY.clone() } else { HeaderValue::from_static(POLICY) };
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
