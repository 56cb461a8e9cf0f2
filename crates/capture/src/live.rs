//! Packets from a network interface to parts of tables, while they pass. Linux.
//!
//! Owns which packets are received, how much of each, and the counters. It does not own what
//! becomes of the segments (`push_decoder`) nor where the parts go. See packet(7), and
//! `Documentation/networking/filter.rst` of the kernel for the filter.

mod dedup;
#[cfg(target_os = "linux")]
mod filter;
mod redacted_pcap;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::path::PathBuf;
use std::time::SystemTime;

use smbscope_tables::Part;
use smbscope_tables::tables::Coverage;

use crate::file::LinkType;
use crate::frame::{NotTcp, TcpSegment, dissect};
use crate::options;
use crate::push_decoder::{Amend, PushDecoder};
use dedup::Dedup;
use redacted_pcap::RedactedPcap;
use socket::Socket;
#[cfg(not(target_os = "linux"))]
use unsupported as socket;

/// The name that represents all interfaces.
pub const ANY: &str = "any";
/// The most ports; a jump in the kernel's filter reaches no further.
pub const PORTS_MAX: usize = 32;

/// TCP ports of SMB: by itself, and over NetBIOS.
pub const PORTS: [u16; 2] = [445, 139];

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface, or [`ANY`].
    pub interface: String,
    /// TCP ports of the server, at most [`PORTS_MAX`].
    pub ports: Vec<u16>,
    /// Bytes of a packet that are copied, from the IP header on.
    pub head_bytes: usize,
    /// Bytes that may wait in the kernel, with its overhead of about a kilobyte a packet.
    pub buffer_bytes: usize,
    /// A pcap file for the packets, without file contents.
    pub pcap: Option<PathBuf>,
    /// Whether to replace that file; otherwise an existing file is an error.
    pub overwrite: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            interface: ANY.to_owned(),
            ports: PORTS.to_vec(),
            head_bytes: 512,
            buffer_bytes: 64 << 20,
            pcap: None,
            overwrite: false,
        }
    }
}

/// Why recording cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of that name.
    #[error("{name}: no such interface; there are {existing}, and `any` for all of them")]
    NoInterface {
        /// The name that was given.
        name: String,
        /// Those that exist, with commas.
        existing: String,
    },
    /// The user may not.
    #[error(
        "receiving packets needs the capability CAP_NET_RAW: run as root, or grant it to the program (setcap cap_net_raw+ep FILE)"
    )]
    NoPermission,
    /// None, or too many.
    #[error("{0} ports given; expected 1 to {PORTS_MAX}")]
    Ports(usize),
    /// The system is not Linux.
    #[error(
        "live recording works on Linux only; record with tcpdump or Wireshark instead and read its output: tcpdump -i IF -s 512 -U -w - port 445 | smbscope ops -"
    )]
    NotLinux,
    /// The interface went down, or away.
    #[error("{interface}: the interface is down")]
    Down {
        /// Its name.
        interface: String,
    },
    /// The system refuses something else.
    #[error("{what}: {error}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The system's reason.
        error: std::io::Error,
    },
    /// The pcap file cannot be written.
    #[error("{}: cannot write packets: {error}", path.display())]
    Pcap {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// Rows cannot be made.
    #[error(transparent)]
    Decode(#[from] options::Error),
}

/// What was received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the filter let pass.
    pub packets: u64,
    /// Their bytes on the wire, from the IP header on.
    pub bytes: u64,
    /// Packets of which not everything was copied.
    pub cut: u64,
    /// Packets that the kernel dropped because the buffer was full.
    pub dropped: u64,
    /// Pieces of fragmented packets.
    pub fragments: u64,
    /// Packets with contradicting or cut headers.
    pub malformed: u64,
    /// Packets that another interface showed first; no other counter contains them.
    pub again: u64,
}

/// One packet.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
struct Packet<'a> {
    /// From the IP header on.
    bytes: &'a [u8],
    /// Its length before it was cut.
    original: u32,
    /// When the kernel saw it.
    time: i64,
    /// Number of the interface.
    interface: usize,
}

/// Records an interface.
pub struct Recorder {
    interface: String,
    ports: Vec<u16>,
    socket: Socket,
    decoder: PushDecoder,
    kept: Option<RedactedPcap>,
    /// Where there can be several interfaces.
    again: Option<Dedup>,
    until: i64,
    counters: Counters,
    /// Counters when the recording started, if that was later than the recorder.
    before: Counters,
    /// When it did, ns since 1970.
    began: i64,
}

impl Counters {
    /// What came since `before`.
    fn since(&self, before: &Counters) -> Counters {
        Counters {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            cut: self.cut - before.cut,
            dropped: self.dropped.saturating_sub(before.dropped),
            fragments: self.fragments - before.fragments,
            malformed: self.malformed - before.malformed,
            again: self.again - before.again,
        }
    }
}

impl Recorder {
    /// Begins to receive. Rows carry the name `recording`.
    pub fn open(
        recording: &str,
        options: &Options,
        decode: &options::Options,
    ) -> Result<Recorder, Error> {
        if !(1..=PORTS_MAX).contains(&options.ports.len()) {
            return Err(Error::Ports(options.ports.len()));
        }
        let host = socket::addresses()?;
        let decode = options::Options { host, ..decode.clone() };
        let decoder = PushDecoder::new(recording, &decode)?;
        let socket = Socket::open(options)?;
        let kept = match &options.pcap {
            Some(path) => Some(RedactedPcap::create(path, options.overwrite)?),
            None => None,
        };
        Ok(Recorder {
            interface: options.interface.clone(),
            ports: options.ports.clone(),
            socket,
            decoder,
            kept,
            again: (options.interface == ANY).then(Dedup::default),
            until: now(),
            counters: Counters::default(),
            before: Counters::default(),
            began: now(),
        })
    }

    /// Takes the packets that wait, or waits at most a quarter of a second for some. True if the
    /// parts should be taken because enough is held.
    pub fn receive(&mut self) -> Result<bool, Error> {
        self.take(true)?;
        Ok(self.decoder.wants_out())
    }

    /// Takes some of the packets that wait, if any do; whether there were any.
    pub fn receive_now(&mut self) -> Result<bool, Error> {
        Ok(self.take(false)? > 0)
    }

    /// Until when all packets were taken, ns since 1970.
    pub fn until(&self) -> i64 {
        self.until
    }

    /// Whether enough is held that the parts should be taken.
    pub fn wants_out(&self) -> bool {
        self.decoder.wants_out()
    }

    fn take(&mut self, may_wait: bool) -> Result<usize, Error> {
        let Recorder { socket, decoder, kept, counters, ports, again, .. } = self;
        let mut failed = None;
        let (begin, mut last) = (now(), 0);
        let received = socket.receive(may_wait, &mut |packet| {
            let Some(segment) = segment(&packet, ports, again, counters) else { return };
            decoder.segment(&segment, packet.time);
            last = packet.time;
            if let Some(Err(error)) = kept.as_mut().map(|kept| kept.packet(&packet, &segment)) {
                // Rows are still produced, and the recording can be ended.
                *kept = None;
                failed = Some(error);
            }
        });
        let received = received.map_err(|error| self.explain(error))?;
        // Fewer than there is room for are all that there were.
        self.until = self.until.max(if received < socket::BATCH { begin } else { last });
        match failed {
            Some(error) => Err(error),
            None => Ok(received),
        }
    }

    /// Parts of what ended since, after `amend` saw each row ([`PushDecoder::parts`]).
    pub fn parts(&mut self, amend: Amend<'_>) -> Result<Vec<Part>, Error> {
        if let Some(kept) = &mut self.kept {
            kept.flush()?;
        }
        Ok(self.decoder.parts(amend)?)
    }

    /// What was received so far.
    pub fn counters(&mut self) -> Counters {
        self.counters.dropped = self.socket.dropped();
        self.counters
    }

    /// Operations in the parts so far.
    pub fn operations(&self) -> u64 {
        self.decoder.operations()
    }

    /// Starts a recording: returns the parts of what ended before. Later rows carry that name and
    /// the coverage starts at zero, but what is known of sessions, trees and opens is kept.
    pub fn begin(&mut self, recording: &str, amend: Amend<'_>) -> Result<Vec<Part>, Error> {
        self.before = self.counters();
        self.began = now();
        Ok(self.decoder.begin(recording, amend)?)
    }

    /// What [`Recorder::end`] would return now, while recording continues. It copies the whole
    /// state.
    pub fn ended(&mut self, amend: Amend<'_>) -> Result<Vec<Part>, Error> {
        let counters = self.counters().since(&self.before);
        let fill = |coverage: &mut Coverage| fill(coverage, &self.interface, &counters, self.began);
        Ok(self.decoder.ended(amend, fill)?)
    }

    /// Endpoints the recording; the last part is the coverage. Packets that wait in the kernel are taken
    /// first.
    pub fn end(mut self, amend: Amend<'_>) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        let stopped = self.socket.stop();
        let mut before = None;
        while stopped.is_ok() && before != Some(self.counters.packets) {
            before = Some(self.counters.packets);
            match self.receive() {
                Ok(true) => parts.extend(self.parts(amend)?),
                Ok(false) => {}
                // The recording ends in any case.
                Err(_) => break,
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.flush()?;
        }
        let counters = self.counters().since(&self.before);
        let (interface, began) = (self.interface, self.began);
        parts.extend(self.decoder.end(amend, |coverage| {
            fill(coverage, &interface, &counters, began);
        })?);
        Ok(parts)
    }

    fn explain(&self, error: std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::NetworkDown => Error::Down { interface: self.interface.clone() },
            _ => Error::System { what: "cannot receive packets", error },
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// The segment in a packet, if it is one to decode.
fn segment<'a>(
    packet: &Packet<'a>,
    ports: &[u16],
    again: &mut Option<Dedup>,
    counters: &mut Counters,
) -> Option<TcpSegment<'a>> {
    let segment = match dissect(LinkType::RAW, packet.bytes, packet.original) {
        Ok(segment) => segment,
        Err(
            NotTcp::OtherProtocol
            | NotTcp::NetBios
            | NotTcp::NetBeui(_)
            | NotTcp::Ipx
            | NotTcp::Tunnel
            | NotTcp::Udp(_)
            | NotTcp::Icmp(_)
            | NotTcp::Roce(_)
            | NotTcp::UnknownLink,
        ) => return None,
        Err(NotTcp::Fragment(_)) => {
            counters.fragments += 1;
            return None;
        }
        Err(NotTcp::Truncated | NotTcp::Malformed | NotTcp::TooDeep) => {
            counters.malformed += 1;
            return None;
        }
    };
    // The kernel's filter does not look behind IPv6's extension headers.
    if !ports.contains(&segment.source_port) && !ports.contains(&segment.destination_port) {
        return None;
    }
    if again.as_mut().is_some_and(|again| again.is(packet.interface, &segment)) {
        counters.again += 1;
        return None;
    }
    counters.packets += 1;
    counters.bytes += u64::from(packet.original);
    counters.cut += u64::from((packet.bytes.len() as u64) < u64::from(packet.original));
    Some(segment)
}

fn fill(coverage: &mut Coverage, interface: &str, counters: &Counters, began: i64) {
    // The recorder listened also before the first packet and after the last one.
    coverage.start = Some(coverage.start.map_or(began, |start| start.min(began)));
    coverage.end = coverage.end.max(Some(now()));
    coverage.format = match interface {
        ANY if counters.again > 0 => {
            let again = counters.again;
            format!("live, all interfaces, without {again} packets seen on a second one")
        }
        ANY => "live, all interfaces".to_owned(),
        interface => format!("live, interface {interface}"),
    };
    coverage.resolution_ns = Some(1);
    coverage.wire_bytes = counters.bytes;
    coverage.frames_cut = counters.cut;
    coverage.frames_dropped = Some(counters.dropped);
    coverage.frames_fragment = counters.fragments;
    coverage.frames_malformed += counters.malformed;
    coverage.frames = counters.packets + counters.fragments + counters.malformed;
}
