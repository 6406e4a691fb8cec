//! Which address is answered by what.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use fedcote_sim::folder::ScenarioFile;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::form::{self, Form};
use crate::guard::{Pass, welcome};
use crate::reply::{Body, Held, Refusal, guarded, json, whole};
use crate::server::Waiting;
use crate::site::Site;
use crate::sweeps::Sweeps;
use crate::{downloads, pages, playground, runs, sweeps};

/// No request of ours has a longer body or address.
const MOST_BODY: usize = 64 * 1024;
const MOST_ADDRESS: usize = 4096;
/// A body must have come by then.
const BODY_TIME: Duration = Duration::from_secs(10);

impl Site {
    /// Answers a request. Needs a tokio runtime, no socket.
    pub async fn respond<B>(self: &Arc<Self>, request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body,
        B::Error: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let report = request.uri().path().ends_with("/report.html");
        // Somebody who opens an address wants a page, a script wants JSON.
        let accepts = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let person = accepts.is_some_and(|kinds| kinds.contains("text/html"));
        match self.answer(request).await {
            Ok(response) => guarded(response, report),
            Err(mut refusal) => {
                // Where the folder is on this machine is nobody's business.
                let root = format!("{}/", self.root.path().display());
                refusal.reason = refusal.reason.replace(&root, "");
                if !person {
                    return guarded(refusal.into(), false);
                }
                let mut page = whole("text/html; charset=utf-8", pages::refusal(&refusal.reason));
                *page.status_mut() = refusal.status;
                guarded(page, false)
            }
        }
    }

    async fn answer<B>(self: &Arc<Self>, request: Request<B>) -> Result<Response<Body>, Refusal>
    where
        B: hyper::body::Body,
        B::Error: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or(""));
        if path.len() + query.len() > MOST_ADDRESS {
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, "the address is too long"));
        }
        let segments = segments(path);
        let page = || segments.clone().is_some_and(|parts| is_page(&self.joined(parts)));
        let pass = self.guard.check(&head.method, &head.headers, page, query)?;
        let segments = segments.ok_or_else(|| Refusal::missing("no such page"))?;
        let segments = self.joined(segments);
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match head.method {
            Method::GET | Method::HEAD => {
                if let Pass::New(cookie) = pass {
                    return Ok(welcome(path, &cookie));
                }
                let last = head.headers.get("last-event-id").and_then(|id| id.to_str().ok());
                self.get(&segments, query, last).await
            }
            Method::POST => {
                let body = read(&head.headers, body).await?;
                // Until here it was one that may be slow on purpose.
                let _busy = head.extensions.get::<Waiting>().map(|waiting| Held::new(&waiting.0));
                self.post(&segments, &body).await
            }
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST")),
        }
    }

    async fn get(
        self: &Arc<Self>,
        segments: &[&str],
        query: &str,
        last_event: Option<&str>,
    ) -> Result<Response<Body>, Refusal> {
        if let Some(page) = pages::get(segments) {
            return Ok(page);
        }
        let unknown = || Refusal::missing("no such page");
        match *segments {
            ["api", "runs"] => Ok(whole("application/json", self.list().await?)),
            ["api", "choices"] => Ok(json(&self.work(|_| form::choices()).await?)),
            ["runs", name] if self.root.sweep(name).is_some() => Ok(pages::sweep()),
            ["api", "runs", name, "sweep"] => {
                let path =
                    self.root.sweep(name).ok_or_else(|| Refusal::missing("no such sweep"))?;
                let name = name.to_owned();
                let get = move |site: &Site, sweeps: &mut Sweeps| {
                    sweeps::get(&site.root, &path, &name, &site.children, sweeps)
                };
                Ok(json(&self.work_on_sweeps(get).await??))
            }
            ["runs", name] => {
                self.run(name)?;
                Ok(pages::run())
            }
            ["runs", name, file] => {
                let (path, name, file) = (self.either(name)?, name.to_owned(), file.to_owned());
                if self.root.sweep(&name).is_none() {
                    let get =
                        move |site: &Site| downloads::get(&site.root, &path, &name, &file, None);
                    return self.work(get).await?;
                }
                let get = move |site: &Site, sweeps: &mut Sweeps| {
                    downloads::get(&site.root, &path, &name, &file, Some(sweeps))
                };
                self.work_on_sweeps(get).await?
            }
            ["api", "runs", name, "events"] => {
                self.run(name)?;
                // The browser's own header is newer than the address that the script opened.
                let asked = query.split('&').find_map(|pair| pair.strip_prefix("last="));
                let events = self.watch(name, last_event.or(asked)).ok_or_else(|| {
                    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many browsers are watching")
                })?;
                let mut response = Response::new(events);
                let kind = HeaderValue::from_static("text/event-stream");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                Ok(response)
            }
            ["api", "runs", name, "map"] => {
                let (path, seed) = (self.run(name)?, number(query, "seed")?);
                let plan = move |site: &Site| site.networks.plan(&site.root, &path, seed);
                Ok(json(&self.work(plan).await??))
            }
            ["api", "runs", name, "places"] => {
                let (path, seed) = (self.run(name)?, number(query, "seed")?);
                let round = u32::try_from(number(query, "round")?).unwrap_or(u32::MAX);
                let places =
                    move |site: &Site| site.networks.places(&site.root, &path, seed, round);
                Ok(json(&self.work(places).await??))
            }
            ["api", "runs", name, "series"] => {
                let path = self.run(name)?;
                Ok(json(&self.work(move |site| downloads::series(&site.root, &path)).await??))
            }
            ["api", "runs", name, "settings"] => {
                let path = self.either(name)?;
                Ok(json(&self.work(move |site| runs::settings(&site.root, &path)).await??))
            }
            ["api", "runs", name, "choices"] => {
                let (path, name) = (self.either(name)?, name.to_owned());
                Ok(json(&self.work(move |site| form::like(&site.root, &path, &name)).await??))
            }
            ["api", "runs", name, "figures"] => {
                let path = self.run(name)?;
                Ok(json(&self.work(move |site| downloads::figures(&site.root, &path)).await?))
            }
            _ => Err(unknown()),
        }
    }

    async fn post(
        self: &Arc<Self>,
        segments: &[&str],
        body: &Bytes,
    ) -> Result<Response<Body>, Refusal> {
        match *segments {
            ["api", "playground"] => {
                let question = parse(body)?;
                Ok(json(&self.work(|_| playground::answer(question)).await??))
            }
            ["api", "runs"] => {
                let form: Form = parse(body)?;
                let name = form.name.clone();
                self.work(move |site| site.start(&form)).await??;
                self.forget_list().await;
                let mut response = json(&json!({ "name": name }));
                *response.status_mut() = StatusCode::CREATED;
                Ok(response)
            }
            ["api", "runs", name, "stop"] => {
                self.own(name)?;
                if !self.children.stop(name) {
                    let reason = "this run was not started from this page; stop it where it was started (Ctrl-C)";
                    return Err(Refusal::new(StatusCode::CONFLICT, reason));
                }
                self.forget_list().await;
                Ok(json(&json!({ "stopping": name })))
            }
            ["api", "runs", name, "delete"] => {
                let (path, name) = (self.own(name)?, name.to_owned());
                self.work(move |site| {
                    if runs::is_running(&site.root, &path) {
                        let reason = "it is running; stop it first";
                        return Err(Refusal::new(StatusCode::CONFLICT, reason));
                    }
                    site.root.discard(&name).map_err(Refusal::failed)
                })
                .await??;
                self.forget_list().await;
                Ok(json(&json!({ "deleted": true })))
            }
            ["api", "runs", name, "resume"] => {
                let (path, name) = (self.own(name)?, name.to_owned());
                self.work(move |site| {
                    if runs::is_running(&site.root, &path) {
                        return Err(Refusal::new(StatusCode::CONFLICT, "it is running already"));
                    }
                    let resumed = site.children.resume(&name, &path);
                    resumed.map_err(|reason| Refusal::new(StatusCode::CONFLICT, reason))
                })
                .await??;
                self.forget_list().await;
                Ok(json(&json!({ "resumed": true })))
            }
            _ => Err(Refusal::missing("no such page")),
        }
    }

    /// The folder of a run that is there.
    fn run(&self, name: &str) -> Result<std::path::PathBuf, Refusal> {
        self.root.run(name).ok_or_else(|| Refusal::missing("no such run"))
    }

    /// The folder of a run, or a sweep, that is there.
    fn either(&self, name: &str) -> Result<std::path::PathBuf, Refusal> {
        self.root.sweep(name).map_or_else(|| self.run(name), Ok)
    }

    /// The same of one that can be stopped, resumed and deleted by itself.
    fn own(&self, name: &str) -> Result<std::path::PathBuf, Refusal> {
        if let Some((sweep, _)) = name.split_once('/') {
            let reason = format!(
                "this is one combination of the sweep {sweep}: stop, resume or delete that"
            );
            return Err(Refusal::new(StatusCode::CONFLICT, reason));
        }
        self.either(name)
    }

    /// The parts of an address; a combination of a sweep is a run like others, and its two names count as one.
    fn joined(&self, mut segments: Vec<String>) -> Vec<String> {
        let at = if segments.first().is_some_and(|first| first == "api") { 2 } else { 1 };
        if segments.get(at - 1).is_some_and(|word| word == "runs")
            && let Some([sweep, point]) = segments.get(at..at + 2)
        {
            let name = format!("{sweep}/{point}");
            if self.root.run(&name).is_some() {
                segments.splice(at..at + 2, [name]);
            }
        }
        segments
    }

    /// Starts a run, or a sweep, that the form describes.
    fn start(&self, form: &Form) -> Result<(), Refusal> {
        let (scenario, overrides) = form.check(&self.root)?;
        let taken = |reason: String| Refusal {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            reason,
            field: Some("name".into()),
        };
        let path = self.root.inside(&form.name).ok_or_else(|| taken("not a name here".into()))?;
        // Made here, so that of two requests with one name only one gets it.
        std::fs::create_dir(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                taken(format!("there is a folder `{}` already; choose another name", form.name))
            }
            _ => Refusal::failed(error),
        })?;
        // Written at once: it is what the run is begun by, and the run has its page before its process has got so far.
        let mut words = vec!["run".to_owned(), form.origin(&self.root)];
        words.extend(overrides.into_iter().flat_map(|assignment| ["--set".to_owned(), assignment]));
        words.extend(form.sweep.iter().flat_map(|line| ["--sweep".to_owned(), line.clone()]));
        let command = fedcote_support::command(words);
        let written = match scenario.sweep.is_empty() {
            true => ScenarioFile::write(&path, &scenario, &command),
            false => fedcote_sim::sweep::begin(&scenario, &path, &command),
        };
        let started = written.map_err(Refusal::failed).and_then(|()| {
            let started = self.children.resume(&form.name, &path);
            started.map_err(|reason| Refusal::new(StatusCode::CONFLICT, reason))
        });
        if started.is_err() {
            // Nothing of it is of use to anybody.
            let _ = std::fs::remove_dir_all(&path);
        }
        started
    }
}

/// The parts of a path, decoded; `None` for one that is not plain.
fn segments(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix('/')?;
    let parts = rest.split('/').filter(|_| !rest.is_empty()).map(|part| {
        let decoded = decode(part)?;
        let plain = !decoded.is_empty()
            && !matches!(decoded.as_str(), "." | "..")
            && !decoded.contains(['/', '\\', '\0']);
        plain.then_some(decoded)
    });
    parts.collect()
}

/// Whether an address is that of a page, not of data or of something to save.
fn is_page(segments: &[String]) -> bool {
    match segments.first().map(String::as_str) {
        Some("api") => false,
        Some("runs") => segments.len() < 3,
        _ => true,
    }
}

/// Undoes percent-encoding.
fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            bytes.push((16 * high + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// A number in the query.
fn number(query: &str, key: &str) -> Result<u64, Refusal> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).ok_or_else(|| {
        Refusal::new(StatusCode::BAD_REQUEST, format!("{key}: expected a number in the address"))
    })
}

/// The body of a request, of bounded size and in bounded time.
async fn read<B>(headers: &header::HeaderMap, body: B) -> Result<Bytes, Refusal>
where
    B: hyper::body::Body,
    B::Error: Display + Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|text| text.parse::<u64>().ok()).is_some_and(|n| n > MOST_BODY as u64) {
        return Err(too_large());
    }
    let collected = tokio::time::timeout(BODY_TIME, Limited::new(body, MOST_BODY).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Refusal::new(StatusCode::BAD_REQUEST, error.to_string())),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request took too long")),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, format!("the request: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_before_they_are_decoded() {
        let of = |path: &str| segments(path);
        assert_eq!(of("/"), Some(vec![]));
        assert_eq!(of("/runs/a%20b"), Some(vec!["runs".into(), "a b".into()]));
        for bad in [
            "",
            "x",
            "//",
            "/runs/",
            "/runs/..",
            "/runs/../x",
            "/runs/%2e%2e",
            "/runs/%2E.",
            "/runs/a%2fb",
            "/runs/a%5cb",
            "/runs/%00",
            "/runs/%",
            "/runs/%2",
            "/runs/%zz",
            "/runs/%ff",
            "/./x",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
        // Decoded once only.
        assert_eq!(of("/runs/%252e%252e"), Some(vec!["runs".into(), "%2e%2e".into()]));
    }
}
