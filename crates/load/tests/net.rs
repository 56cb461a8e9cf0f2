//! The test of the network over loopback: both sides in one process, strangers at the door, and an
//! unmodified iperf3 server where one is installed.
#![cfg(target_os = "linux")]
// A test may panic.
#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use smbscope_load::net::{
    Direction, Length, Listener, NetError, Observer, Outcome, Served, Spec, Target, Token, iperf3,
    send,
};

const WAIT: Duration = Duration::from_secs(20);

struct Quiet;

impl Observer for Quiet {}

type Serving = JoinHandle<(Result<Served, NetError>, (u64, u64))>;

fn listen() -> (SocketAddr, Token, Serving) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, token) = (listener.address(), listener.token().clone());
    let serving = std::thread::spawn(move || {
        let mut counted = (0, 0);
        let served = listener.serve(WAIT, &|| false, &mut |a, b| counted = (a, b));
        (served, counted)
    });
    (address, token, serving)
}

fn target(address: SocketAddr) -> Target {
    Target { host: address.ip().to_string(), port: address.port() }
}

fn short(streams: u32) -> Spec {
    Spec {
        streams,
        length: Length::DurationNs(300_000_000),
        interval_ns: 100_000_000,
        round_trips: 20,
        ..Spec::default()
    }
}

fn bytes_of(outcome: &Outcome, phase: u64, direction: &str) -> u64 {
    let rows = outcome.intervals.iter();
    let rows = rows.filter(|row| (row.phase, row.direction.as_str()) == (phase, direction));
    rows.map(|row| row.bytes).sum()
}

#[test]
fn several_streams_in_both_directions_are_measured_on_both_sides() {
    let (address, token, serving) = listen();
    let outcome = send::run(&target(address), &token, &short(3), "r", &mut Quiet).unwrap();
    let (served, counted) = serving.join().unwrap();
    let served = served.unwrap();
    assert_eq!(counted, (0, 0));
    assert_eq!(outcome.tests.len(), 2);
    for (number, direction) in [(1, "send"), (2, "receive")] {
        let test = &outcome.tests[number as usize - 1];
        assert_eq!((test.phase, test.direction.as_str(), test.streams), (number, direction, 3));
        assert!(test.bytes > 0 && test.bits_per_second > 0.0, "{test:?}");
        assert!(test.same_machine && !test.together);
        assert!(test.sender_cpu_ns.unwrap() > 0 && test.receiver_cpu_ns.unwrap() > 0);
        assert!(test.sender_mtu.unwrap() > test.sender_mss.unwrap());
        assert_eq!(test.sender_mtu, test.receiver_mtu);
        // Each byte that the receiver read was acknowledged in some interval, and no other.
        assert_eq!(bytes_of(&outcome, number, direction), test.bytes, "{direction}");
        assert_eq!(served.phases[number as usize - 1].bytes, test.bytes);
        let streams = outcome.intervals.iter().filter(|row| row.phase == number);
        assert_eq!(streams.map(|row| row.stream).max(), Some(2));
    }
    let kinds: Vec<_> =
        outcome.round_trips.iter().map(|row| (row.kind.as_str(), row.payload_bytes)).collect();
    assert_eq!(kinds.len(), 9);
    assert_eq!((kinds[0], kinds[4], kinds[8]), (("echo", 0), ("read", 65_536), ("write", 65_536)));
    assert!(outcome.round_trips.iter().all(|row| row.samples == 20
        && row.min_ns > 0
        && row.p50_ns <= row.p99_ns
        && row.p99_ns <= row.max_ns));
}

#[test]
fn directions_run_together_and_a_number_of_bytes_ends_a_phase() {
    let (address, token, serving) = listen();
    let bytes = 3_000_001;
    let spec = Spec { together: true, length: Length::Bytes(bytes), round_trips: 0, ..short(2) };
    let outcome = send::run(&target(address), &token, &spec, "r", &mut Quiet).unwrap();
    serving.join().unwrap().0.unwrap();
    let all: Vec<_> =
        outcome.tests.iter().map(|row| (row.phase, row.bytes, row.together)).collect();
    assert_eq!(all, [(1, bytes, true), (1, bytes, true)]);
    assert!(outcome.round_trips.is_empty());
}

#[test]
fn a_pace_is_kept_and_named_as_the_limit() {
    let (address, token, serving) = listen();
    let spec = Spec {
        directions: vec![Direction::Send],
        pace_bits_per_second: Some(40_000_000),
        send_write_bytes: 8 << 10,
        length: Length::DurationNs(1_000_000_000),
        round_trips: 0,
        ..short(2)
    };
    let outcome = send::run(&target(address), &token, &spec, "r", &mut Quiet).unwrap();
    serving.join().unwrap().0.unwrap();
    let test = &outcome.tests[0];
    // Sleeps end late on a busy machine, but what was missed is sent after them.
    assert!((0.9..1.05).contains(&(test.bits_per_second / 40e6)), "{}", test.bits_per_second);
    assert_eq!(test.limit, "pace", "{}", test.limit_reason);
}

#[test]
fn a_wrong_token_is_refused_and_counted_and_does_not_end_the_wait() {
    let (address, token, serving) = listen();
    let wrong = Token::random().unwrap();
    let error = send::run(&target(address), &wrong, &short(1), "r", &mut Quiet).unwrap_err();
    assert!(matches!(error, NetError::Refused(_)), "{error}");
    send::run(&target(address), &token, &short(1), "r", &mut Quiet).unwrap();
    let (served, counted) = serving.join().unwrap();
    assert_eq!((counted, served.unwrap().refused), ((1, 0), 1));
}

#[test]
fn a_listener_ends_after_one_test() {
    let (address, token, serving) = listen();
    send::run(&target(address), &token, &short(1), "r", &mut Quiet).unwrap();
    serving.join().unwrap().0.unwrap();
    let again = send::run(&target(address), &token, &short(1), "r", &mut Quiet).unwrap_err();
    assert!(matches!(again, NetError::Connect(..)), "{again}");
}

#[test]
fn a_sender_that_leaves_ends_the_test() {
    let (address, _, serving) = listen();
    // No sender with the token comes: only the time ends the wait.
    let stranger = TcpStream::connect(address).unwrap();
    drop(stranger);
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let served = listener.serve(Duration::from_millis(200), &|| false, &mut |_, _| {});
    assert!(matches!(served, Err(NetError::NoSender(_))), "{served:?}");
    let stopping = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let served = stopping.serve(WAIT, &|| true, &mut |_, _| {});
    assert!(matches!(served, Err(NetError::Interrupted)), "{served:?}");
    drop(serving);
}

#[test]
fn strangers_do_not_disturb_a_test_and_see_nothing_of_it() {
    let (address, token, serving) = listen();
    // More silent connections than handshakes are kept, from one address, before and during the test.
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut loud = TcpStream::connect(address).unwrap();
    loud.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a stranger with a long name\r\nAccept: */*\r\n\r\n")
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (stopping, mut seen) = (stop.clone(), Vec::new());
    let flood = std::thread::spawn(move || {
        let mut kept = Vec::new();
        while !stopping.load(Ordering::Relaxed) {
            if let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
                kept.push(stream);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        kept.len()
    });
    let spec = Spec { length: Length::DurationNs(1_000_000_000), ..short(4) };
    let outcome = send::run(&target(address), &token, &spec, "r", &mut Quiet).unwrap();
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    let (served, (refused, strangers)) = serving.join().unwrap();
    served.unwrap();
    assert_eq!(outcome.tests.len(), 2);
    assert!(strangers >= 30, "{strangers}");
    assert_eq!(refused, 0);
    // A stranger gets a challenge and nothing else.
    loud.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let _ = loud.read_to_end(&mut seen);
    assert!(seen.len() <= 40, "{}", seen.len());
    let text = String::from_utf8_lossy(&seen).into_owned();
    assert!(!text.contains(&token.to_string()));
    drop(silent);
}

#[test]
fn what_is_not_a_listener_is_named() {
    // It sends something else.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        stream.write_all(&[b'x'; 64]).unwrap();
        // It pretends to be one, without the token.
        let (mut stream, _) = other.accept().unwrap();
        stream.write_all(b"SMBSNET\x01").unwrap();
        stream.write_all(&[7; 32]).unwrap();
        let mut response = [0; 77];
        stream.read_exact(&mut response).unwrap();
        stream.write_all(&[0; 33]).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let token = Token::random().unwrap();
    let error = send::run(&target(address), &token, &short(1), "r", &mut Quiet).unwrap_err();
    assert!(error.to_string().contains("another protocol"), "{error}");
    let error = send::run(&target(address), &token, &short(1), "r", &mut Quiet).unwrap_err();
    assert!(error.to_string().contains("does not know the token"), "{error}");
    thread.join().unwrap();
}

#[test]
fn all_addresses_are_refused() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error = Listener::bind(address.parse().unwrap()).err().unwrap();
        assert!(matches!(error, NetError::AllAddresses(_)), "{error}");
    }
}

/// A server of iperf3 on a free port, ended with the test.
struct Iperf3(Child, u16);

impl Iperf3 {
    fn start() -> Option<Iperf3> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let port_text = port.to_string();
        let arguments = ["-s", "-B", "127.0.0.1", "-p", &port_text];
        let child = Command::new("iperf3").args(arguments).stdout(Stdio::null()).spawn();
        let server = Iperf3(child.ok()?, port);
        // A connection that says nothing would be its first test: the port is looked for in /proc.
        let wanted = format!("0100007F:{port:04X} 00000000:0000 0A");
        let until = Instant::now() + WAIT;
        while Instant::now() < until {
            if std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&wanted) {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("iperf3 does not listen");
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_unmodified_iperf3_server_takes_the_test() {
    let time = Length::DurationNs(1_000_000_000);
    for (together, length) in [(false, time), (true, time), (false, Length::Bytes(20_000_000))] {
        let Some(server) = Iperf3::start() else {
            smbscope_testing::skip!("iperf3 is not installed");
            return;
        };
        let target = Target { host: "127.0.0.1".into(), port: server.1 };
        let spec =
            Spec { streams: 2, together, length, interval_ns: 250_000_000, ..Spec::default() };
        let outcome = iperf3::run(&target, &spec, "r", &mut Quiet).unwrap();
        let list: Vec<_> = outcome.tests.iter().map(|row| (row.phase, &*row.direction)).collect();
        let second = if together { 1 } else { 2 };
        assert_eq!(list, [(1, "send"), (second, "receive")]);
        for test in &outcome.tests {
            assert!(test.bytes > 1_000_000 && test.streams == 2, "{test:?}");
            assert!(test.sender_cpu_ns.is_some() && test.receiver_cpu_ns.is_some());
        }
        assert!(outcome.tests[0].retransmissions.is_some());
        assert_eq!(outcome.tests[1].rtt_min_ns, None, "iperf3's server does not report it");
    }
}
