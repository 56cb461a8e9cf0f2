//! The link with real packets: network namespaces, the kernel's own TCP and ICMP on both sides.
//!
//! Owns: that round trip, rate, window, loss and order are as requested, and that nothing is left
//! behind. Needs root on Linux, and `ip`; otherwise it reports that it skips. The bounds are wide
//! enough for a busy machine; `measure` (ignored; run it alone, with --release) prints the table of
//! docs/measurements/wan.md.
#![cfg(target_os = "linux")]
// A test may panic.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto,
    setsockopt, socket, sockopt,
};
use nix::{libc, setsockopt_impl, sockopt_impl};
use smbscope_lab::wan::netns::{self, Netns, Setup, Subnet};
use smbscope_lab::wan::{Counters, Error, Forwarder, Options, Running};

sockopt_impl!(
    /// The largest window that the receiver announces (bytes).
    WindowClamp,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    usize
);

/// Two namespaces and a link between them.
struct Lab {
    netns: Netns,
    line: Running,
}

impl Lab {
    /// `None`, with the reason, where that is not permitted.
    fn up(test: &str, line: &str) -> Option<Lab> {
        let name = format!("smbt{}-{test}", std::process::id());
        let setup = Setup { name, subnet: Subnet::default(), mtu: 1500 };
        let netns = match Netns::up(setup) {
            Ok(netns) => netns,
            Err(error @ (Error::Rights { .. } | Error::NoIp)) => {
                smbscope_testing::skip!("{error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let options: Options = line.parse().unwrap();
        let [client, server] = netns::ENDS;
        let forwarder = Forwarder::open(client, server, Some(&netns.line()), &options).unwrap();
        Some(Lab { netns, line: forwarder.spawn().unwrap() })
    }

    fn server(&self) -> Ipv4Addr {
        self.netns.subnet().server()
    }

    fn in_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::inside(&self.netns.client(), work).unwrap()
    }

    fn in_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::inside(&self.netns.server(), work).unwrap()
    }

    /// The counters, after everything was removed.
    fn down(self) -> Counters {
        let counters = self.line.stop().unwrap();
        assert_eq!(self.netns.down().unwrap(), Vec::<u32>::new(), "nothing runs inside");
        counters
    }

    /// Round trips of ICMP echoes, which the other side's kernel answers (ns), sorted.
    fn ping(&self, count: u16, payload: usize, every: Duration) -> Vec<u64> {
        let to = SockaddrIn::from(SocketAddrV4::new(self.server(), 0));
        self.in_client(|| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let icmp = SockProtocol::Icmp;
            let socket = socket(AddressFamily::Inet, SockType::Raw, flags, icmp).unwrap();
            let wait = nix::sys::time::TimeVal::new(2, 0);
            setsockopt(&socket, sockopt::ReceiveTimeout, &wait).unwrap();
            let mut times = Vec::new();
            for number in 0..count {
                let echo = icmp_echo(number, payload);
                let begin = Instant::now();
                sendto(socket.as_raw_fd(), &echo, &to, MsgFlags::empty()).unwrap();
                let mut answer = [0; 2048];
                // The IP header comes first; type 0 is the reply.
                while recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).is_ok() {
                    if answer[20] == 0 && answer[26..28] == number.to_be_bytes() {
                        times.push(u64::try_from(begin.elapsed().as_nanos()).unwrap());
                        break;
                    }
                }
                std::thread::sleep(every.saturating_sub(begin.elapsed()));
            }
            times.sort_unstable();
            times
        })
    }

    /// Sends `bytes` to the server over TCP, with at most the window that the server announces; returns
    /// the bytes per second that arrive of the second half, after slow start, and the time to connect
    /// (s).
    fn transfer(&self, bytes: usize, window: Option<usize>) -> (f64, f64) {
        let listener = self.in_server(|| {
            let listener = TcpListener::bind((self.server(), 0)).unwrap();
            if let Some(window) = window {
                setsockopt(&listener, WindowClamp, &window).unwrap();
            }
            listener
        });
        let address = listener.local_addr().unwrap();
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut buffer, mut at) = (vec![0; 1 << 18], 0);
            let mut half = None;
            while at < bytes {
                let read = stream.read(&mut buffer).unwrap();
                assert!(read > 0, "the connection ended at {at} of {bytes}");
                at += read;
                // Checking each byte would cost more than the link.
                assert_eq!(buffer[read - 1], pattern(at - 1), "bytes changed on the way");
                if at >= bytes / 2 {
                    half.get_or_insert_with(|| (at, Instant::now()));
                }
            }
            let (half, begin) = half.unwrap();
            (at - half) as f64 / begin.elapsed().as_secs_f64()
        });
        let connected = self.in_client(|| {
            let begin = Instant::now();
            let mut stream = TcpStream::connect(address).unwrap();
            let connected = begin.elapsed();
            let block: Vec<u8> = (0..1 << 16).map(pattern).collect();
            for begin in (0..bytes).step_by(block.len()) {
                stream.write_all(&block[..block.len().min(bytes - begin)]).unwrap();
            }
            connected.as_secs_f64()
        });
        (receiver.join().unwrap(), connected)
    }

    /// Sends datagrams of `bytes` to the server, `pace` apart; returns how many arrived.
    fn datagrams(&self, count: u32, bytes: usize, pace: Duration) -> u32 {
        let socket = self.in_server(|| UdpSocket::bind((self.server(), 0)).unwrap());
        setsockopt(&socket, sockopt::RcvBufForce, &(16 << 20)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let to = socket.local_addr().unwrap();
        let receiver = std::thread::spawn(move || {
            let (mut buffer, mut numbers) = ([0; 2048], Vec::new());
            while let Ok(read) = socket.recv(&mut buffer) {
                assert_eq!(read, bytes);
                numbers.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
            }
            numbers
        });
        self.in_client(|| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            let mut datagram = vec![0; bytes];
            let begin = Instant::now();
            for number in 0..count {
                datagram[..4].copy_from_slice(&number.to_be_bytes());
                socket.send_to(&datagram, to).unwrap();
                std::thread::sleep((pace * (number + 1)).saturating_sub(begin.elapsed()));
            }
        });
        let numbers = receiver.join().unwrap();
        assert!(numbers.is_sorted(), "order is kept");
        u32::try_from(numbers.len()).unwrap()
    }
}

/// Repeats after 64 KiB.
fn pattern(place: usize) -> u8 {
    (place ^ (place >> 8)) as u8
}

/// RFC 792: type 8, code 0, checksum, identifier, number.
fn icmp_echo(number: u16, payload: usize) -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0x5b, 0x5c];
    echo.extend(number.to_be_bytes());
    echo.resize(8 + payload, 0);
    let sum: u32 = echo.chunks_exact(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    echo
}

fn quantile(sorted: &[u64], share: f64) -> u64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// Every frame is counted exactly once.
fn assert_balance(counters: &Counters) {
    for way in &counters.directions {
        let dropped = way.dropped.total() - way.dropped.receive_buffer;
        let known = way.delivered.packets + dropped + way.in_flight.packets;
        assert_eq!(way.received.packets, known, "{way:?}");
        assert_eq!((way.dropped.receive_buffer, way.dropped.send), (0, 0), "{way:?}");
        assert_eq!(way.oversize_packets, 0, "offloads are off: {way:?}");
    }
}

#[test]
fn an_echo_takes_the_round_trip() {
    let Some(lab) = Lab::up("rtt", "rtt=20ms") else { return };
    let times = lab.ping(40, 56, Duration::from_millis(1));
    assert_eq!(times.len(), 40);
    let (least, median) = (times[0], quantile(&times, 0.5));
    assert!(least >= 20_000_000, "never faster than light: {least}");
    // The measuring thread waits for a busy machine too.
    assert!(least < 25_000_000 && median < 60_000_000, "{least}, {median}");
    let counters = lab.down();
    assert_balance(&counters);
    // No ARP: each end knows the other's address.
    assert_eq!(counters.directions.each_ref().map(|way| way.received.packets), [40, 40]);
    assert_eq!(counters.directions[0].received.bytes, 40 * (14 + 20 + 8 + 56));
    assert_eq!(counters.directions[0].from, "client");
}

#[test]
fn a_handshake_takes_a_round_trip_and_a_transfer_the_rate() {
    let Some(lab) = Lab::up("rate", "rtt=10ms,rate=40mbit") else { return };
    let bytes = 6_000_000;
    let (rate, _) = lab.transfer(bytes, None);
    // A busy machine adds to what the link takes, so that the shortest handshake is that of the link. None is shorter.
    let mut connected = f64::INFINITY;
    for _ in 0..100 {
        connected = connected.min(lab.transfer(1, None).1);
        if connected < 0.020 {
            break;
        }
    }
    assert!((0.010..0.020).contains(&connected), "{connected}");
    let counters = lab.down();
    assert_balance(&counters);
    // 1448 bytes of payload (timestamps) in frames of 1514.
    let expected = 40e6 * 1448.0 / 1514.0;
    let rate = rate * 8.0;
    assert!(rate / expected < 1.03, "{rate} instead of {expected}");
    // Ends that do not get a CPU do not fill the link.
    assert!(rate / expected > 0.5, "{rate} instead of {expected}");
    assert!(counters.directions[0].queue_bytes_max <= 500_000, "100 ms");
}

#[test]
fn a_window_limits_a_transfer_to_one_per_round_trip() {
    let Some(lab) = Lab::up("window", "rtt=50ms") else { return };
    // The remedy of "Sliced Too Thin": 44 segments of 1460.
    let (bytes, window) = (1_500_000, 64_240);
    let (rate, _) = lab.transfer(bytes, Some(window));
    lab.down();
    let expected = window as f64 / 0.050;
    assert!((0.75..1.05).contains(&(rate / expected)), "{rate} instead of {expected}");
}

#[test]
fn lost_frames_are_counted_and_their_share_is_right() {
    let Some(lab) = Lab::up("loss", "rtt=2ms,loss=5%/0%,seed=3") else { return };
    let count = 4000;
    let arrived = lab.datagrams(count, 200, Duration::from_micros(20));
    let counters = lab.down();
    assert_balance(&counters);
    let there = &counters.directions[0];
    assert_eq!(there.received.packets, u64::from(count));
    assert_eq!(u64::from(arrived), there.delivered.packets);
    assert_eq!(u64::from(count - arrived), there.dropped.loss);
    // Binomial: 200 +- 14.
    assert!((130..270).contains(&there.dropped.loss), "{}", there.dropped.loss);
}

#[test]
fn merged_packets_pass_and_are_counted() {
    let Some(lab) = Lab::up("merged", "rtt=2ms") else { return };
    let client = lab.netns.client();
    let merge = ["-n", &client, "link", "set", "eth0", "gso_max_segs", "65535"];
    assert!(std::process::Command::new("ip").args(merge).status().unwrap().success());
    lab.transfer(2_000_000, None);
    let counters = lab.down();
    assert!(counters.directions[0].oversize_packets > 0, "{counters:?}");
    assert_eq!(counters.directions[1].oversize_packets, 0, "acknowledgements");
}

#[test]
fn frames_beyond_the_queue_are_dropped_and_counted() {
    // 1042 bytes take 1.04 ms; the queue holds ten of them.
    let Some(lab) = Lab::up("queue", "rtt=2ms,rate=8mbit,queue=10420B") else { return };
    let arrived = lab.datagrams(100, 1000, Duration::ZERO);
    let counters = lab.down();
    assert_balance(&counters);
    let there = &counters.directions[0];
    assert_eq!(there.dropped.queue, u64::from(100 - arrived));
    assert!((11..30).contains(&arrived), "one is sent, ten wait, some more follow: {arrived}");
    assert!(there.queue_bytes_max <= 10_420 && there.queue_bytes_max > 9_000);
}

#[test]
fn nothing_is_left_behind() {
    let Some(lab) = Lab::up("clean", "rtt=1ms") else { return };
    let names = [lab.netns.client(), lab.netns.server(), lab.netns.line()];
    let there =
        || names.iter().filter(|name| Path::new("/var/run/netns").join(name).exists()).count();
    assert_eq!(there(), 3);
    // The same name again is refused, and the existing namespaces stay.
    let name = names[2].strip_suffix("-line").unwrap().to_owned();
    let setup = Setup { name: name.clone(), subnet: Subnet::default(), mtu: 1500 };
    let refused = Netns::up(setup.clone()).unwrap_err();
    assert!(refused.to_string().contains("--remove"), "{refused}");
    assert_eq!(lab.ping(3, 56, Duration::ZERO).len(), 3);
    drop(lab);
    assert_eq!(there(), 0);
    // The remains of a killed run are removed by name.
    std::mem::forget(Netns::up(setup).unwrap());
    netns::remove(&name).unwrap();
    assert_eq!(there(), 0);
    assert!(matches!(netns::remove(&name), Err(Error::NoNamespace(_))));
}

#[test]
fn an_interface_that_goes_away_ends_the_line() {
    let Some(lab) = Lab::up("gone", "rtt=1ms") else { return };
    let line = lab.netns.line();
    let delete = ["-n", &line, "link", "delete", "server"];
    assert!(std::process::Command::new("ip").args(delete).status().unwrap().success());
    let begin = Instant::now();
    while lab.line.is_running() && begin.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let error = lab.line.stop().unwrap_err();
    assert_eq!(error.to_string(), "server: the interface was removed while frames were forwarded");
}

#[test]
fn interfaces_that_cannot_be_opened_are_explained() {
    let options = Options::default();
    let error = Forwarder::open("lo", "lo", None, &options).err().unwrap().to_string();
    assert!(error.contains("same interface"), "{error}");
    let error = Forwarder::open("no-such-if", "lo", None, &options).err().unwrap().to_string();
    let rights = error.contains("CAP_NET_RAW") && error.contains("run it as root");
    let others = error.starts_with("no-such-if: no such network interface; there are: ");
    assert!(rights || others, "{error}");
}

/// The table of docs/measurements/wan.md.
#[test]
#[ignore = "a measurement: run it alone, with --release --ignored --nocapture"]
fn measure() {
    let us = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
    println!("rtt asked | n | p50 | p99 | max | late p50 | late p99 | late max | CPU per packet");
    for (rtt, count) in [("0s", 2000u16), ("1ms", 2000), ("20ms", 500), ("100ms", 100)] {
        let Some(lab) = Lab::up("m", &format!("rtt={rtt}")) else { return };
        let times = lab.ping(count, 56, Duration::from_millis(3));
        let counters = lab.down();
        let late = counters.directions[0].late;
        println!(
            "{rtt} | {} | {} | {} | {} | {} | {} | {} | {}",
            times.len(),
            us(quantile(&times, 0.5)),
            us(quantile(&times, 0.99)),
            us(*times.last().unwrap()),
            us(late.p50_ns),
            us(late.p99_ns),
            us(late.max_ns),
            us(counters.cpu_ns_per_packet().unwrap()),
        );
    }
    // A clamp above 65,535 needs a window scale, and Linux then announces up to twice as much
    // (measured: 131,070 for 65,536), so it says nothing about the link.
    for (rtt, rtt_s, window) in [("20ms", 0.020, 64_240usize), ("50ms", 0.050, 64_240)] {
        let Some(lab) = Lab::up("m", &format!("rtt={rtt}")) else { return };
        let (rate, _) = lab.transfer(4_000_000, Some(window));
        lab.down();
        let share = rate / (window as f64 / rtt_s) * 100.0;
        println!("window {window} at {rtt}: {rate:.0} bytes a second, {share:.1} % of window/rtt");
    }
    for (size, count) in [(18, 400_000u32), (1472, 200_000)] {
        let Some(lab) = Lab::up("m", "rtt=2ms") else { return };
        let begin = Instant::now();
        let arrived = lab.datagrams(count, size, Duration::ZERO);
        // Minus the time that the receiver waits for another one.
        let seconds = begin.elapsed().as_secs_f64() - 0.5;
        let counters = lab.down();
        println!(
            "flood of {count} frames of {} bytes: {:.0} a second offered, {} received, {} delivered, \
             {arrived} read, {}, {:?}",
            size + 42,
            f64::from(count) / seconds,
            counters.directions[0].received.packets,
            counters.directions[0].delivered.packets,
            us(counters.cpu_ns_per_packet().unwrap()),
            counters.directions[0].dropped,
        );
    }
    println!(
        "line | bytes | payload | of possible | late p99 | CPU per packet | packets/s | drops"
    );
    for (line, rate, bytes) in [
        ("rtt=20ms,rate=1mbit", 1e6, 1_000_000),
        ("rtt=20ms,rate=45mbit", 45e6, 20_000_000),
        ("rtt=20ms,rate=100mbit", 100e6, 40_000_000),
        ("rtt=1ms,rate=1gbit", 1e9, 200_000_000),
        ("rtt=0s", f64::NAN, 200_000_000),
    ] {
        let Some(lab) = Lab::up("m", line) else { return };
        let (achieved, _) = lab.transfer(bytes, None);
        let counters = lab.down();
        let achieved = achieved * 8.0;
        let packets: u64 = counters.directions.iter().map(|way| way.received.packets).sum();
        println!(
            "{line} | {bytes} | {:.2} Mb/s | {:.1} % | {} | {} | {:.0} | {:?}",
            achieved / 1e6,
            achieved / (rate * 1448.0 / 1514.0) * 100.0,
            us(counters.directions[0].late.p99_ns),
            us(counters.cpu_ns_per_packet().unwrap()),
            packets as f64 / (counters.elapsed_ns as f64 / 1e9),
            counters.directions[0].dropped,
        );
    }
}
