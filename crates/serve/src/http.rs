//! An HTTP/1.1 server that only answers GET (RFC 9112): for a page on this machine, and for what a collector of
//! metrics scrapes. It knows neither.
//!
//! Everything is bounded: connections, the size of a request, and the time in which it must arrive and the answer
//! must be taken. A connection carries one request.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Most connections at once; more are closed.
const CONNECTIONS_MAX: usize = 64;
/// Most bytes of a request.
const REQUEST_MAX: usize = 64 << 10;
/// In which time a request must have arrived.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// In which time a part of the answer must be taken.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The path, as it was sent.
    pub path: String,
    /// The parameters, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// More headers.
    pub headers: Vec<(&'static str, String)>,
    /// What follows them.
    pub body: Vec<u8>,
}

/// What answers requests, on several threads at once.
pub type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Request {
    /// The first parameter of a name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// The header of a name in lower case. A header that was sent twice has no value that can be relied on.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(one, _)| one == name);
        let value = values.next().map(|(_, value)| value.as_str());
        if values.next().is_some() { Some("") } else { value }
    }
}

impl Response {
    /// An answer of a media type.
    pub fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Response {
        Response {
            status,
            headers: vec![("content-type", media_type.to_owned())],
            body: body.into(),
        }
    }

    /// A line of text.
    pub fn text(status: u16, line: &str) -> Response {
        Response::new(status, "text/plain; charset=utf-8", format!("smbscope: {line}\n"))
    }
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    ///
    /// Those of the operating system: the address is in use, or not of this machine.
    pub fn bind(address: SocketAddr) -> io::Result<Listener> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Listener { listener, address })
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers on threads of its own until the program ends.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn start(self, handler: Arc<Handler>) -> io::Result<()> {
        let accept = move || {
            let open = Arc::new(AtomicUsize::new(0));
            for stream in self.listener.incoming() {
                match stream {
                    Ok(stream) => answer_on_thread(stream, &handler, &open),
                    // No descriptors are left: others must be closed first.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        };
        std::thread::Builder::new().name("http".into()).spawn(accept).map(drop)
    }
}

/// Counts a connection while it is open.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer_on_thread(stream: TcpStream, handler: &Arc<Handler>, open: &Arc<AtomicUsize>) {
    if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
        open.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let (counted, handler) = (Counted(open.clone()), handler.clone());
    // The client left, or no thread can be started: the connection is closed.
    let answer = move || {
        let _counted = counted;
        let _ = converse(stream, &*handler);
    };
    let _ = std::thread::Builder::new().name("http".into()).spawn(answer);
}

fn converse(mut stream: TcpStream, handler: &Handler) -> io::Result<()> {
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    let (response, is_head) = match read(&mut stream)? {
        Ok((request, is_head)) => (handler(&request), is_head),
        Err(response) => (response, false),
    };
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    for (name, value) in &response.headers {
        // A line end in a value would begin another header.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", response.body.len()));
    stream.write_all(head.as_bytes())?;
    if !is_head {
        stream.write_all(&response.body)?;
    }
    stream.flush()
}

/// Reads the request; the inner error is the answer to a wrong one. The flag says that only the headers are wanted.
fn read(stream: &mut TcpStream) -> io::Result<Result<(Request, bool), Response>> {
    let end = Instant::now() + REQUEST_TIME;
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(length) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.truncate(length);
            return Ok(parse(&bytes));
        }
        if bytes.len() > REQUEST_MAX {
            return Ok(Err(Response::text(431, "the request is too long")));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
}

/// Parses the head of a request, without the empty line at its end. The flag says that only the headers are wanted.
///
/// # Errors
///
/// The answer to a text that is not a request, or not one for GET or HEAD.
pub fn parse(bytes: &[u8]) -> Result<(Request, bool), Response> {
    let wrong = || Response::text(400, "this is not a request of HTTP/1.1");
    let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let target = target.filter(|target| target.starts_with('/')).ok_or_else(wrong)?;
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || words.next().is_some() {
        return Err(wrong());
    }
    let is_head = match method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(Response::text(405, "only GET is answered")),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok((Request { path: path.to_owned(), query: parameters(query), headers }, is_head))
}

/// The parameters of a form (URL Standard, section 5.1).
fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match (byte, coded(rest.clone())) {
            (b'+', _) => bytes.push(b' '),
            (b'%', Some(value)) => {
                bytes.push(value);
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The byte that the next two hexadecimal digits mean.
fn coded(mut ahead: std::str::Bytes<'_>) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(ahead.next()?)? * 16 + digit(ahead.next()?)?;
    u8::try_from(value).ok()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(handler: &'static (dyn Fn(&Request) -> Response + Send + Sync)) -> SocketAddr {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.address();
        listener.start(Arc::new(handler)).unwrap();
        address
    }

    fn said(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // A server that refused a long request may reset the connection after its answer.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn parameters_are_decoded() {
        let found = parameters("q=%7B%22a%22%3A1%7D&x=a+b%2&=&%zz=%c3%a4");
        let wanted = [("q", "{\"a\":1}"), ("x", "a b%2"), ("", ""), ("%zz", "ä")];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_get_is_answered_and_nothing_else() {
        let address = served(&|request| {
            let mut answer =
                Response::text(200, &format!("{} {:?}", request.path, request.header("x")));
            answer.headers.push(("y", "a\r\nz: b".to_owned()));
            answer
        });
        let answer = said(address, b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nX: 1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\ny: az: b\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nsmbscope: /a Some(\"1\")\n"), "{answer}");
        let twice = said(address, b"GET / HTTP/1.1\r\nx: 1\r\nX: 2\r\n\r\n");
        assert!(twice.ends_with("Some(\"\")\n"), "{twice}");
        let head = said(address, b"HEAD / HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            ("POST / HTTP/1.1\r\n\r\n", "405"),
            ("GET http://h/ HTTP/1.1\r\n\r\n", "400"),
            ("GET / HTTP/2\r\n\r\n", "400"),
            ("GET /  HTTP/1.1\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
        ] {
            assert!(said(address, request.as_bytes()).contains(status), "{request}");
        }
        assert!(said(address, b"GET /\xff HTTP/1.1\r\n\r\n").contains("400"));
        let long = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &vec![b'a'; REQUEST_MAX + 8192]].concat();
        let answer = said(address, &long);
        assert!(answer.is_empty() || answer.contains("431"), "{answer}");
    }

    #[test]
    fn connections_are_limited() {
        let address = served(&|_| Response::text(200, "here"));
        let idle: Vec<_> =
            (0..CONNECTIONS_MAX + 20).map(|_| TcpStream::connect(address).unwrap()).collect();
        let closed = |stream: &TcpStream| {
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            matches!((&mut &*stream).read(&mut [0]), Ok(0))
        };
        assert!(idle.iter().filter(|stream| closed(stream)).count() >= 20);
        drop(idle);
        let begin = Instant::now();
        while said(address, b"GET / HTTP/1.1\r\n\r\n").is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(5));
        }
    }
}
