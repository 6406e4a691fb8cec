//! Who may ask: host, origin and token of a request.
//!
//! A web page elsewhere may make a browser send requests here. It cannot choose the `Host` header to be an address (a
//! name that is bound anew to this machine stays a name), nor hide its `Origin` from requests that change anything, and
//! it does not know the token.

use hyper::header::{self, HeaderMap};
use hyper::{Method, Response, StatusCode};

use crate::Error;
use crate::reply::{Body, Refusal, whole};

/// The checks that every request has to pass.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Names by which browsers may call this machine, beside `localhost` and addresses.
    pub hosts: Vec<String>,
    /// What a browser must bring along.
    pub token: Option<String>,
    /// Tells the cookies of several pages on one machine apart.
    pub port: u16,
}

impl Guard {
    /// A token that nobody guesses: 128 random bits.
    pub fn random_token() -> Result<String, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| Error::System(error.to_string()))?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Refuses a token that is too easily guessed or that no cookie can carry.
    pub fn check_token(token: &str) -> Result<(), Error> {
        if token.len() < 16 || token.len() > 200 {
            return Err(Error::Token("must have 16 to 200 characters"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)) {
            return Err(Error::Token("may have letters, digits and - _ . ~ only"));
        }
        Ok(())
    }

    /// Lets a request pass, or says why not; `page` says whether its address is that of a page.
    pub fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
        page: impl FnOnce() -> bool,
        query: &str,
    ) -> Result<Pass, Refusal> {
        let refuse = |reason: &str| Err(Refusal::new(StatusCode::FORBIDDEN, reason));
        let host = match self.host(headers) {
            Some(host) => host,
            None => return refuse("this host name is not served here; see --host"),
        };
        let pass = self.token(headers, query);
        let fetch = |name: &str| headers.get(name).map(|value| value.as_bytes());
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match fetch("sec-fetch-site") {
            None | Some(b"same-origin" | b"none") => {}
            // A link from elsewhere to a page may be followed; anything else from there, a frame that makes this
            // machine work for instance, is none of its business. Without the token nobody learns what is a page.
            Some(_)
                if reads
                    && fetch("sec-fetch-mode") == Some(b"navigate")
                    && fetch("sec-fetch-dest") == Some(b"document")
                    && (pass.is_err() || page()) => {}
            Some(_) => return refuse("this request comes from another site"),
        }
        if !reads {
            if let Some(origin) = headers.get(header::ORIGIN)
                && origin.as_bytes() != format!("http://{host}").as_bytes()
            {
                return refuse("this request comes from another site");
            }
            let kind = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
            if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
                let reason = "expected content-type application/json";
                return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
            }
        }
        pass
    }

    /// The host that was asked for, if it is one of ours.
    fn host<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next()?.to_str().ok()?;
        if hosts.next().is_some() {
            return None;
        }
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.0,
            None => host.split_once(':').map_or(host, |(name, _)| name),
        };
        let ours = name.eq_ignore_ascii_case("localhost")
            || name.parse::<std::net::IpAddr>().is_ok()
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
        ours.then_some(host)
    }

    /// The cookie that carries the token.
    fn cookie(&self) -> String {
        format!("fedcote-{}", self.port)
    }

    fn token(&self, headers: &HeaderMap, query: &str) -> Result<Pass, Refusal> {
        let Some(token) = &self.token else { return Ok(Pass::Known) };
        let name = self.cookie();
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let from_cookie = cookies
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(key, value)| key == name && same(value, token));
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        if from_cookie || bearer.is_some_and(|value| same(value, token)) {
            return Ok(Pass::Known);
        }
        let mut asked = query.split('&').filter_map(|pair| pair.strip_prefix("token="));
        match asked.next_back() {
            Some(value) if same(value, token) => {
                Ok(Pass::New(format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict")))
            }
            _ => Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                "a token is needed: open the address that `fedcote serve` printed",
            )),
        }
    }
}

/// How a request passed.
#[derive(Debug, PartialEq, Eq)]
pub enum Pass {
    /// It may be answered.
    Known,
    /// It brought the token in its address: the browser gets it as this cookie.
    New(String),
}

/// Sends a browser with a new cookie on to the same place without the token in the address.
pub fn welcome(path: &str, cookie: &str) -> Response<Body> {
    let mut response = whole("text/plain", "");
    *response.status_mut() = StatusCode::SEE_OTHER;
    for (name, value) in [(header::LOCATION, path), (header::SET_COOKIE, cookie)] {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Compares in a time that does not tell how much agrees.
fn same(given: &str, token: &str) -> bool {
    let pairs = given.bytes().zip(token.bytes());
    let difference = pairs.fold(0, |sum, (a, b)| sum | (a ^ b));
    // Kept from being cut short by the compiler.
    given.len() == token.len() && std::hint::black_box(difference) == 0
}
