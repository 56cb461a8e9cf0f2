//! Access to the page and its data, and which part of this crate answers what.
//!
//! A client that has the token, the first part of every path, may read; nothing can be written. A page of another site
//! must not read through a browser on this machine: it does not know the token, its Origin is refused, and so is a
//! Host that is not ours, which a name that was bound to this address would send (DNS rebinding).

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::json;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::http::{Listener, Request, Response};
use crate::page::PAGE;
use crate::pivot::Pivot;
use crate::{export, operations, overview, pivot, series};

/// Requests for data that are answered at the same time; others wait.
const AT_ONCE: usize = 4;
/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// The page over some inputs, at an address.
pub struct Site {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What all requests share.
struct Shared {
    data: Data,
    token: String,
    /// Names by which browsers may call this server, apart from addresses and `localhost`.
    names: Vec<String>,
    port: u16,
    running: Mutex<usize>,
    ended: Condvar,
}

impl Site {
    /// Listens at an address. Browsers may call it by its address, by `localhost`, and by `names`.
    ///
    /// # Errors
    ///
    /// If the address cannot be used, or there are no random numbers.
    pub fn bind(address: SocketAddr, names: Vec<String>, data: Data) -> Result<Site> {
        let listener = Listener::bind(address).map_err(|error| Error::Listen { address, error })?;
        let (token, port) = (token()?, listener.address().port());
        let (running, ended) = (Mutex::new(0), Condvar::new());
        let shared = Arc::new(Shared { data, token, names, port, running, ended });
        Ok(Site { listener, shared })
    }

    /// The address of the page, with its token.
    pub fn url(&self) -> String {
        let address = self.listener.address();
        let host = match address.ip() {
            ip if ip.is_unspecified() => {
                self.shared.names.first().cloned().unwrap_or_else(|| "localhost".to_owned())
            }
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        format!("http://{host}:{}/{}/", address.port(), self.shared.token)
    }

    /// Answers on threads of its own until the program ends.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn start(self) -> Result<()> {
        let (address, shared) = (self.listener.address(), self.shared);
        let started = self.listener.start(Arc::new(move |request| shared.response(request)));
        started.map_err(|error| Error::Listen { address, error })
    }
}

/// Random, in hexadecimal.
fn token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    let none = |error| Error::Write(format!("no random numbers: {error}"));
    getrandom::fill(&mut bytes).map_err(none)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Shared {
    fn response(&self, request: &Request) -> Response {
        let mut response = match self.objection(request) {
            Some(why) => Response::text(403, why),
            None => self.answer(request),
        };
        response.headers.extend(
            [
                ("content-security-policy", PAGE.policy.as_str()),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("cache-control", "no-store"),
                ("cross-origin-opener-policy", "same-origin"),
                ("cross-origin-resource-policy", "same-origin"),
            ]
            .map(|(name, value)| (name, value.to_owned())),
        );
        response
    }

    /// Why a request is refused.
    fn objection(&self, request: &Request) -> Option<&'static str> {
        let Some(host) = request.header("host").filter(|host| self.is_ours(host)) else {
            return Some("the Host is not this server's");
        };
        // A proxy in front of this server may speak TLS.
        let is_own = |origin: &str| {
            let bare = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            bare == Some(host)
        };
        if request.header("origin").is_some_and(|origin| !is_own(origin)) {
            return Some("the Origin is another one");
        }
        let mut parts = request.path.split('/').skip(1);
        let token = parts.next().unwrap_or_default();
        // A link to the page may stand anywhere; its data are for the page alone.
        let is_data = parts.next() == Some("api");
        let site = request.header("sec-fetch-site").filter(|_| is_data);
        if site.is_some_and(|site| site != "same-origin" && site != "none") {
            return Some("the request comes from another site");
        }
        let why = "the token is missing or wrong: open the address that smbscope printed";
        (!is_same(token, &self.token)).then_some(why)
    }

    /// Whether a Host names this server: names that somebody else can bind to its address do not.
    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        // A name that the user gave may be that of a proxy, with a port of its own.
        let is_given = self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name));
        let is_local = bare.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost");
        is_given || is_local && port == Some(self.port)
    }

    fn answer(&self, request: &Request) -> Response {
        let mut parts = request.path.split('/').skip(2);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(""), None, None) => {
                Response::new(200, "text/html; charset=utf-8", PAGE.html.as_str())
            }
            (Some("api"), Some(what), None) => {
                let _turn = self.turn();
                answer(what, request, &self.data).unwrap_or_else(|error| failed(&error))
            }
            _ => Response::text(404, "there is nothing here"),
        }
    }

    /// Waits until few enough requests are running.
    fn turn(&self) -> Turn<'_> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |running: &mut usize| *running >= AT_ONCE;
        let mut running =
            self.ended.wait_while(running, full).unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        Turn(self)
    }
}

/// One of the requests that are running.
struct Turn<'a>(&'a Shared);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = running.saturating_sub(1);
        self.0.ended.notify_one();
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}

fn answer(what: &str, request: &Request, data: &Data) -> Result<Response> {
    let loaded = data.now()?;
    let (loaded, about) = (&*loaded, &data.about);
    let value = match what {
        "about" => overview::about(data, loaded),
        "report" => overview::report(&parsed(request)?, data)?,
        "groups" => overview::groups(&parsed(request)?, loaded, about)?,
        "pivot" => {
            let asked: pivot::Request = parsed(request)?;
            Pivot::new(&asked, loaded, about)?.answer(&asked, loaded)?
        }
        "export" => {
            let asked: pivot::Request = parsed(request)?;
            let sql = Pivot::new(&asked, loaded, about)?.sql;
            let format = request.parameter("format").unwrap_or("csv");
            let file = export::file(&sql, format, loaded)?;
            let mut response = Response::new(200, file.media_type, file.bytes);
            let name = format!("attachment; filename=\"{}\"", file.name);
            response.headers.push(("content-disposition", name));
            return Ok(response);
        }
        "time" => series::answer(&parsed(request)?, loaded, about)?,
        "operations" => operations::list(&parsed(request)?, loaded, about)?,
        "operation" => operations::one(&parsed(request)?, loaded)?,
        _ => return Err(Error::request("there is no such answer")),
    };
    Ok(Response::new(200, "application/json", value.to_string()))
}

/// The request: JSON in the parameter `q`.
fn parsed<T: DeserializeOwned + Default>(request: &Request) -> Result<T> {
    match request.parameter("q") {
        Some(text) => serde_json::from_str(text).map_err(|error| Error::request(error.to_string())),
        None => Ok(T::default()),
    }
}

fn failed(error: &Error) -> Response {
    let status = if matches!(error, Error::Request(_)) { 400 } else { 500 };
    Response::new(status, "application/json", json!({ "error": error.to_string() }).to_string())
}
