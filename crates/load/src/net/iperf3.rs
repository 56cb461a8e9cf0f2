//! The client of an unmodified iperf3 server, for machines on which nothing can be installed.
//!
//! Source of the facts: esnet/iperf, `src/iperf_api.h` (states), `src/iperf_api.c` (parameters and
//! results as JSON with a length of 4 bytes, a cookie of 37 bytes on each connection) and
//! `src/iperf_client_api.c` (order of states). iperf3 has no authentication without RSA keys, which
//! this client does not have. Its server reports bytes, retransmitted segments and its CPU share at the end,
//! but neither `tcp_info` nor intervals, so what limits a rate is known in the sending direction only.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::NetError;
use super::control::is_timeout;
use super::cpu::CpuUse;
use super::message::{Interval, Moved, SideReport};
use super::phase::{self, Ends as PhaseEnds, Stream};
use super::result::{Ends, Outcome, Phase, wall_clock};
use super::send::{Observer, Target};
use super::spec::{Direction, Length, Spec};
use super::token::random;

/// iperf3's port.
pub const PORT: u16 = 5201;
/// Longest JSON text of a server: 128 streams need a tenth.
const TEXT_MAX: usize = 1 << 20;
/// Longest write (`MAX_BLOCKSIZE`).
const WRITE_MAX: u32 = 1 << 20;
const COOKIE_BYTES: usize = 37;
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a server that serves another test is tried again, and after which time.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(300);

const TEST_START: i8 = 1;
const TEST_RUNNING: i8 = 2;
const TEST_END: i8 = 4;
const PARAM_EXCHANGE: i8 = 9;
const CREATE_STREAMS: i8 = 10;
const SERVER_TERMINATE: i8 = 11;
const CLIENT_TERMINATE: i8 = 12;
const EXCHANGE_RESULTS: i8 = 13;
const DISPLAY_RESULTS: i8 = 14;
const IPERF_DONE: i8 = 16;
const ACCESS_DENIED: i8 = -1;
const SERVER_ERROR: i8 = -2;

/// What an iperf3 server says at the end. Fields that it does not send are 0.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Results {
    /// CPU time, percent of one CPU.
    pub cpu_util_total: f64,
    /// Its part in user mode.
    pub cpu_util_user: f64,
    /// Streams.
    pub streams: Vec<StreamResult>,
}

/// One stream at the server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StreamResult {
    /// 1, 3, 4, 5 ...
    pub id: u64,
    /// Payload sent or received.
    pub bytes: u64,
    /// Retransmitted segments; -1 if unknown, which some versions write as an unsigned number of 64 bits.
    pub retransmits: f64,
    /// Seconds.
    pub start_time: f64,
    /// Seconds.
    pub end_time: f64,
}

/// Reads the results.
pub fn parse_results(text: &[u8]) -> Result<Results, serde_json::Error> {
    serde_json::from_slice(text)
}

/// Runs the test against an iperf3 server: one iperf3 test for each phase. There are no round trips.
pub fn run(
    target: &Target,
    spec: &Spec,
    recording: &str,
    observer: &mut dyn Observer,
) -> Result<Outcome, NetError> {
    spec.check()?;
    for bytes in [spec.send_write_bytes, spec.receive_write_bytes] {
        if bytes > WRITE_MAX {
            return Err(NetError::Spec(format!(
                "--write-size {bytes}B: iperf3 takes 1MiB at most"
            )));
        }
    }
    if let Length::DurationNs(ns) = spec.length
        && !ns.is_multiple_of(1_000_000_000)
    {
        return Err(NetError::Spec("--duration: iperf3 takes whole seconds only".to_owned()));
    }
    let mut outcome = Outcome::default();
    for (place, directions) in spec.phases().into_iter().enumerate() {
        observer.phase(&directions);
        // A server needs a moment between two tests.
        let mut left = ATTEMPTS;
        let (ends, phase) = loop {
            let directions = directions.clone();
            let before = outcome.intervals.len();
            match one(target, spec, recording, place, directions, observer, &mut outcome) {
                Err(NetError::Iperf3Busy(_)) if left > 0 => left -= 1,
                Err(NetError::Connect(..)) if left > 0 && place > 0 => left -= 1,
                // It accepts, and ends what belongs to the test before. A reset while data flows is an error.
                Err(NetError::Connection(_, error))
                    if left > 0
                        && outcome.intervals.len() == before
                        && error.kind() == std::io::ErrorKind::ConnectionReset =>
                {
                    left -= 1;
                }
                done => break done?,
            }
            std::thread::sleep(PAUSE);
        };
        outcome.tests.extend(ends.tests(spec, &phase));
    }
    Ok(outcome)
}

struct Server {
    stream: TcpStream,
    name: String,
}

impl Server {
    fn failed(&self, error: io::Error) -> NetError {
        NetError::Connection(self.name.clone(), error)
    }

    /// The next state, if it comes in time.
    fn state(&mut self, wait: Duration) -> Result<Option<i8>, NetError> {
        let timeout = Some(wait.max(Duration::from_millis(1)));
        self.stream.set_read_timeout(timeout).map_err(|error| self.failed(error))?;
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Err(NetError::Left(self.name.clone(), String::new())),
            Ok(_) => self.judge(i8::from_ne_bytes(byte)).map(Some),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn judge(&mut self, state: i8) -> Result<i8, NetError> {
        let why = match state {
            ACCESS_DENIED => return Err(NetError::Iperf3Busy(self.name.clone())),
            SERVER_TERMINATE => "it was stopped".to_owned(),
            SERVER_ERROR => {
                let mut codes = [0; 8];
                let _ = self.stream.read_exact(&mut codes);
                let [a, b, c, d, ..] = codes;
                format!("error {} (iperf_error in iperf_api.h)", u32::from_be_bytes([a, b, c, d]))
            }
            _ => return Ok(state),
        };
        Err(NetError::Iperf3(self.name.clone(), why))
    }

    fn expect(&mut self, wanted: i8, observer: &dyn Observer) -> Result<(), NetError> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if observer.stopped() {
                let _ = self.tell(CLIENT_TERMINATE);
                return Err(NetError::Interrupted);
            }
            match self.state(Duration::from_millis(100))? {
                Some(state) if state == wanted => return Ok(()),
                Some(state) => {
                    let why = format!("state {state} came instead of {wanted}");
                    return Err(NetError::Message(self.name.clone(), why));
                }
                None => {}
            }
        }
        Err(NetError::Stalled(self.name.clone(), PATIENCE.as_secs()))
    }

    fn tell(&mut self, state: i8) -> Result<(), NetError> {
        self.stream.write_all(&state.to_ne_bytes()).map_err(|error| self.failed(error))
    }

    fn write_json(&mut self, value: &serde_json::Value) -> Result<(), NetError> {
        let text = value.to_string();
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        self.stream.write_all(&bytes).map_err(|error| self.failed(error))
    }

    fn read_json(&mut self) -> Result<Results, NetError> {
        self.stream.set_read_timeout(Some(PATIENCE)).map_err(|error| self.failed(error))?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).map_err(|error| self.failed(error))?;
        let length = u32::from_be_bytes(length) as usize;
        let wrong = |why: String| NetError::Message(self.name.clone(), why);
        if length > TEXT_MAX {
            return Err(wrong(format!(
                "results of {length} bytes, at most {TEXT_MAX} are possible"
            )));
        }
        let mut text = vec![0; length];
        self.stream.read_exact(&mut text).map_err(|error| self.failed(error))?;
        parse_results(&text).map_err(|error| wrong(error.to_string()))
    }
}

/// 36 letters and digits and a zero, by which the server recognises connections of one test.
fn cookie() -> Result<[u8; COOKIE_BYTES], NetError> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_BYTES];
    random(&mut cookie)?;
    for byte in &mut cookie {
        *byte = ALPHABET.get(usize::from(*byte & 31)).copied().unwrap_or(b'a');
    }
    cookie[COOKIE_BYTES - 1] = 0;
    Ok(cookie)
}

fn parameters(spec: &Spec, directions: &[Direction]) -> serde_json::Value {
    let (seconds, bytes) = match spec.length {
        Length::DurationNs(ns) => (ns / 1_000_000_000, 0),
        Length::Bytes(bytes) => (0, bytes),
    };
    let first = directions.first().copied().unwrap_or_default();
    let mut value = json!({
        "tcp": true, "omit": 0, "time": seconds, "num": bytes, "blockcount": 0,
        "parallel": spec.streams, "len": spec.write_bytes(first), "pacing_timer": 1000,
        "client_version": "3.12",
    });
    if let Some(object) = value.as_object_mut() {
        if directions.len() > 1 {
            object.insert("bidirectional".to_owned(), json!(true));
        } else if first == Direction::Receive {
            object.insert("reverse".to_owned(), json!(true));
        }
        if let Some(pace) = spec.pace_bits_per_second {
            // iperf3's rate is that of one stream.
            object.insert("bandwidth".to_owned(), json!(pace / u64::from(spec.streams.max(1))));
        }
    }
    value
}

/// The number of a stream in iperf3, by its place.
fn stream_id(place: usize) -> u64 {
    if place == 0 { 1 } else { place as u64 + 2 }
}

fn one(
    target: &Target,
    spec: &Spec,
    recording: &str,
    place: usize,
    directions: Vec<Direction>,
    observer: &mut dyn Observer,
    outcome: &mut Outcome,
) -> Result<(Ends, Phase), NetError> {
    let mut server = Server { stream: target.connect("iperf3 -s")?, name: target.name() };
    let address = |address: io::Result<std::net::SocketAddr>| {
        address.map_err(|error| NetError::Connection(target.name(), error))
    };
    let (local, peer) = (address(server.stream.local_addr())?, address(server.stream.peer_addr())?);
    let cookie = cookie()?;
    let _ = server.stream.set_nodelay(true);
    server.stream.write_all(&cookie).map_err(|error| server.failed(error))?;
    server.expect(PARAM_EXCHANGE, observer)?;
    server.write_json(&parameters(spec, &directions))?;
    server.expect(CREATE_STREAMS, observer)?;
    let mut streams = Vec::new();
    // A server that both sends and receives takes the streams that it receives first.
    let ordered = [Direction::Send, Direction::Receive].into_iter();
    for direction in ordered.filter(|direction| directions.contains(direction)) {
        for number in 0..spec.streams {
            let mut stream = TcpStream::connect_timeout(&peer, PATIENCE)
                .map_err(|error| NetError::Connect(target.name(), error, "iperf3 -s"))?;
            stream.write_all(&cookie).map_err(|error| server.failed(error))?;
            let sends = direction == Direction::Send;
            streams.push(Stream { direction, number, stream, sends });
        }
    }
    server.expect(TEST_START, observer)?;
    server.expect(TEST_RUNNING, observer)?;
    let ends = Ends {
        recording: recording.to_owned(),
        tool: "iperf3",
        local: local.ip().to_string(),
        remote: peer.ip().to_string(),
        same_machine: local.ip() == peer.ip() || peer.ip().is_loopback(),
    };
    let (number, started_at) = (place as u64 + 1, wall_clock());
    let kept: Vec<(Direction, u32, TcpStream)> = streams
        .iter()
        .map(|one| Ok((one.direction, one.number, one.stream.try_clone()?)))
        .collect::<io::Result<_>>()
        .map_err(|error| server.failed(error))?;
    let mut intervals: Vec<Interval> = Vec::new();
    let (rows, name) = (&mut outcome.intervals, target.name());
    let own = phase::run(spec, streams, PhaseEnds::WithTime, &name, &mut |list, wait| {
        if observer.stopped() {
            let _ = server.tell(CLIENT_TERMINATE);
            return Err(NetError::Interrupted);
        }
        let new = ends.intervals(number, started_at, &list);
        observer.intervals(&new);
        rows.extend(new);
        intervals.extend(list);
        match server.state(wait)? {
            Some(state) => {
                Err(NetError::Message(name.clone(), format!("unexpected state {state}")))
            }
            None => Ok(()),
        }
    })?;
    server.tell(TEST_END)?;
    let drains = kept.iter().filter(|(direction, ..)| *direction == Direction::Receive);
    let drains: Vec<_> = drains.filter_map(|(_, _, stream)| stream.try_clone().ok()).collect();
    let drained = std::thread::spawn(move || drain(drains));
    server.expect(EXCHANGE_RESULTS, observer)?;
    server.write_json(&results(&own, &kept))?;
    let theirs = server.read_json()?;
    server.expect(DISPLAY_RESULTS, observer)?;
    server.tell(IPERF_DONE)?;
    drop(kept);
    let _ = drained.join();
    let peer = report(&theirs, spec, &directions);
    Ok((ends, Phase { number, directions, started_at, own, peer, intervals }))
}

/// Reads and forgets what still comes, so that the server's writes end.
fn drain(streams: Vec<TcpStream>) {
    let mut buffer = vec![0; 128 << 10];
    for mut stream in streams {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
    }
}

/// This side's results, which the server prints.
fn results(own: &SideReport, kept: &[(Direction, u32, TcpStream)]) -> serde_json::Value {
    let streams = kept.iter().enumerate().map(|(place, (direction, number, _))| {
        let list = if *direction == Direction::Send { &own.sent } else { &own.received };
        let moved = list.iter().find(|one| one.stream == *number).cloned().unwrap_or_default();
        json!({
            "id": stream_id(place), "bytes": moved.bytes, "retransmits": -1, "jitter": 0,
            "errors": 0, "omitted_errors": 0, "packets": 0, "omitted_packets": 0,
            "start_time": 0, "end_time": moved.last_ns as f64 / 1e9,
        })
    });
    let seconds = own.sent.iter().chain(&own.received).map(|one| one.last_ns).max().unwrap_or(1);
    let percent = |ns: i64| ns as f64 * 100.0 / seconds.max(1) as f64;
    json!({
        "cpu_util_total": percent(own.cpu.process_ns()), "cpu_util_user": percent(own.cpu.user_ns),
        "cpu_util_system": percent(own.cpu.system_ns), "sender_has_retransmits": -1,
        "streams": streams.collect::<Vec<_>>(),
    })
}

/// The server's part of the phase.
fn report(theirs: &Results, spec: &Spec, directions: &[Direction]) -> SideReport {
    let streams = spec.streams as usize;
    let mut report = SideReport::default();
    let mut longest: f64 = 0.0;
    for (place, of) in theirs.streams.iter().take(streams * directions.len()).enumerate() {
        let seconds = (of.end_time - of.start_time).clamp(0.0, 1e6);
        longest = longest.max(seconds);
        let is_received = directions.contains(&Direction::Send) && place < streams;
        let moved = Moved {
            stream: (place % streams) as u32,
            bytes: of.bytes,
            first_ns: 0,
            last_ns: (seconds * 1e9) as i64,
            cpu_ns: 0,
        };
        if is_received { &mut report.received } else { &mut report.sent }.push(moved);
    }
    // Only of streams that the server sent.
    let again = theirs.streams.iter().filter(|of| (0.0..1e15).contains(&of.retransmits));
    let again: Vec<f64> = again.map(|of| of.retransmits).collect();
    report.retransmissions =
        (!again.is_empty() && !report.sent.is_empty()).then(|| again.iter().sum::<f64>() as u64);
    let cpu = |percent: f64| (percent.clamp(0.0, 1e6) / 100.0 * longest * 1e9) as i64;
    let user_ns = cpu(theirs.cpu_util_user);
    let system_ns = cpu(theirs.cpu_util_total).saturating_sub(user_ns).max(0);
    report.cpu = CpuUse { user_ns, system_ns, ..CpuUse::default() };
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_iperf3() {
        let spec = Spec { streams: 4, pace_bits_per_second: Some(800), ..Spec::default() };
        let one = parameters(&spec, &[Direction::Receive]);
        assert_eq!(
            (&one["reverse"], &one["parallel"], &one["time"]),
            (&json!(true), &json!(4), &json!(10))
        );
        assert_eq!((&one["bandwidth"], &one["len"]), (&json!(200), &json!(131_072)));
        let both = parameters(&spec, &[Direction::Send, Direction::Receive]);
        assert_eq!((both.get("reverse"), &both["bidirectional"]), (None, &json!(true)));
        let ids: Vec<u64> = (0..4).map(stream_id).collect();
        assert_eq!(ids, [1, 3, 4, 5]);
        assert_eq!(cookie().unwrap()[36], 0);
    }

    #[test]
    fn results_of_a_server_become_a_report() {
        let text = br#"{"cpu_util_total": 50, "cpu_util_user": 10, "cpu_util_system": 40,
            "sender_has_retransmits": -1, "streams": [{"id": 1, "bytes": 1000, "retransmits": 18446744073709551615,
            "jitter": 0, "errors": 0, "packets": 0, "start_time": 0, "end_time": 2.0}]}"#;
        let results = parse_results(text).unwrap();
        let report = report(&results, &Spec::default(), &[Direction::Send]);
        assert_eq!((report.received.len(), report.sent.len()), (1, 0));
        assert_eq!((report.received[0].bytes, report.received[0].last_ns), (1000, 2_000_000_000));
        assert_eq!((report.cpu.user_ns, report.cpu.system_ns), (200_000_000, 800_000_000));
        assert!(parse_results(b"[[]]").is_err() && parse_results(b"{").is_err());
        assert_eq!(parse_results(b"{}").unwrap(), Results::default());
    }
}
