//! Parses the bytes in the ring buffer (bpf/event.h) into events of the BPF part.
//!
//! Owns only the layout. Bytes that are too short or of an unknown kind are not an event.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Which process and thread did something, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// CLOCK_MONOTONIC, ns.
    pub time: u64,
    /// Process.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// CPU.
    pub cpu: u16,
}

/// The counters of the BPF part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Events for which the ring buffer had no room.
    pub dropped: u64,
    /// Threads whose state did not fit.
    pub threads: u64,
    /// Processes that did not fit.
    pub processes: u64,
    /// Messages that were sent in an unknown way.
    pub strange_sends: u64,
}

/// A connection, from the server's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The kernel's socket.
    pub socket: u64,
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
}

/// A message that a thread read completely, or the head of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When its first byte arrived; 0 if unknown.
    pub first_at: u64,
    /// When its last byte arrived; 0 if unknown.
    pub arrived_at: u64,
    /// When its first byte was read.
    pub read_at: u64,
    /// Its length in bytes without the NetBIOS header.
    pub length: u32,
    /// TCP sequence number of the NetBIOS header's first byte.
    pub sequence: u32,
    /// The connection.
    pub ends: Ends,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A request is dispatched.
    Dispatch {
        /// Address of the request: identifies it while it exists.
        request: u64,
        /// Time of signature checks and decryption since the thread's last request.
        crypto_in: u64,
        /// The message that was read for it; `None` for a later member of a compound, and for a request
        /// that is dispatched again.
        message: Option<Message>,
        /// Whether it was encrypted.
        encrypted: bool,
        /// Its members' heads in plaintext, each from the SMB2 header on.
        members: Pieces<'a>,
    },
    /// A request is done: its reply will be sent.
    Done {
        /// The work for it.
        work: Work,
        /// Whether it was done within the dispatch, and not from the event loop.
        in_dispatch: bool,
    },
    /// A thread begins to wait before its request is done.
    Park(Work),
    /// A request's read, write or flush goes to another thread.
    HandedOver {
        /// The request.
        request: u64,
        /// The buffer; 0 for a flush.
        place: u64,
        /// The operation.
        what: Io,
        /// Time of system calls until now.
        busy: u64,
        /// Time of signature checks until now.
        crypto: u64,
        /// How the time of the rest was spent until now.
        within: Within,
    },
    /// A read, write or flush ended.
    Io {
        /// The request that the thread itself serves; 0 for none.
        request: u64,
        /// The buffer; 0 for a flush.
        place: u64,
        /// The operation.
        what: Io,
        /// When it began.
        began: u64,
        /// How its time was spent, on a thread that serves no request itself.
        within: Within,
    },
    /// A reply in plaintext, just before it is encrypted.
    Clear {
        /// Its pieces.
        pieces: Pieces<'a>,
    },
    /// A message, or its first part, went to the kernel.
    Sent {
        /// The socket.
        socket: u64,
        /// Bytes with the NetBIOS header.
        total: u32,
        /// Bytes that did not fit yet.
        left: u32,
        /// When its first byte went to the network device; 0 if it did not within the system call.
        first_at: u64,
        /// When the last of those bytes did.
        last_at: u64,
        /// Time of signing and encryption since the previous message.
        crypto_out: u64,
        /// For a write whose head smbd read and whose rest it spliced to the file: when the last
        /// byte arrived; 0 for others.
        arrived_at: u64,
        /// Sequence number after it, if some of it waits in the kernel: [`Event::Left`] reports when it
        /// has left.
        waits: Option<u32>,
        /// Its pieces, the NetBIOS header first.
        pieces: Pieces<'a>,
    },
    /// Another part of a message went to the kernel.
    SentMore {
        /// The socket.
        socket: u64,
        /// When its first byte went to the network device; 0 if it did not within the system call.
        first_at: u64,
        /// When its last byte did.
        last_at: u64,
        /// Bytes that are left.
        left: u32,
        /// As in [`Event::Sent`].
        waits: Option<u32>,
    },
    /// Bytes that a connection sent went to the network device, some of them after the system call.
    Left {
        /// Its socket.
        socket: u64,
        /// Everything before this sequence number.
        until: u32,
    },
    /// The process ended.
    Exit,
    /// The connection ended.
    Closed {
        /// Its socket.
        socket: u64,
    },
}

/// A thread's work for a request since it last woke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The request.
    pub request: u64,
    /// Time of signature checks.
    pub crypto: u64,
    /// Time of system calls.
    pub busy: u64,
    /// When the thread last woke; 0 if unknown.
    pub woke: u64,
    /// How the time of the rest was spent.
    pub within: Within,
}

/// How the time of the rest was spent; zeros if that was not requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Time off the CPU.
    pub off: u64,
    /// Time with a block device working for it.
    pub disk: u64,
}

impl std::ops::AddAssign for Within {
    fn add_assign(&mut self, more: Within) {
        self.off = self.off.saturating_add(more.off);
        self.disk = self.disk.saturating_add(more.disk);
    }
}

/// The I/O that another thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Io {
    /// pread64.
    Read,
    /// pwrite64.
    Write,
    /// fsync, fdatasync.
    Flush,
}

/// Pieces of a message: the length of each, and its copied bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pieces<'a> {
    lengths: &'a [u8],
    data: &'a [u8],
}

impl<'a> Pieces<'a> {
    /// From the length and copied length of each piece, and the copied bytes of all pieces.
    #[cfg(test)]
    pub fn new(lengths: &'a [u8], data: &'a [u8]) -> Pieces<'a> {
        Pieces { lengths, data }
    }

    /// Each piece's copied bytes and length.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], u32)> {
        let mut data = self.data;
        self.lengths.chunks_exact(8).map(move |piece| {
            let length = u32_at(piece, 0).unwrap_or(0);
            let captured = u32_at(piece, 4).unwrap_or(0).min(length) as usize;
            let (bytes, rest) = data.split_at_checked(captured).unwrap_or((&[], data));
            data = rest;
            (bytes, length)
        })
    }
}

const HEAD_BYTES: usize = 24;
const ENDS_BYTES: usize = 48;
const MESSAGE_BYTES: usize = 32 + 16 + ENDS_BYTES;
const REPLY_BYTES: usize = 56;
const PIECES: usize = 32;
/// Largest length in a NetBIOS header.
const LENGTH_MAX: u32 = 0x00ff_ffff;
/// A hundred years, ns.
const TIME_MAX: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// Parses an event; `None` if the bytes are not one.
pub fn event(bytes: &[u8]) -> Option<(Head, Event<'_>)> {
    let head = Head {
        time: time_at(bytes, 0)?,
        process: u32_at(bytes, 8)?,
        thread: u32_at(bytes, 12)?,
        cpu: u16_at(bytes, 18)?,
    };
    let kind = u16_at(bytes, 16)?;
    let rest = bytes.get(HEAD_BYTES..)?;
    let event = match kind {
        1 => dispatch(rest)?,
        2 => Event::Done { work: work(rest)?, in_dispatch: u32_at(rest, 48)? != 0 },
        3 => Event::Park(work(rest)?),
        4 => Event::HandedOver {
            request: u64_at(rest, 0)?,
            place: u64_at(rest, 8)?,
            busy: time_at(rest, 16)?,
            crypto: time_at(rest, 24)?,
            within: within(rest)?,
            what: io(u32_at(rest, 48)?)?,
        },
        5 => Event::Io {
            request: u64_at(rest, 0)?,
            place: u64_at(rest, 8)?,
            began: time_at(rest, 16)?,
            within: within(rest)?,
            what: io(u32_at(rest, 48)?)?,
        },
        6 => Event::Clear { pieces: pieces(rest.get(REPLY_BYTES..)?)? },
        7 => Event::Sent {
            socket: u64_at(rest, 0)?,
            first_at: time_at(rest, 8)?,
            last_at: time_at(rest, 16)?,
            crypto_out: time_at(rest, 24)?,
            arrived_at: time_at(rest, 32)?,
            left: u32_at(rest, 40)?,
            total: u32_at(rest, 44)?.min(LENGTH_MAX),
            waits: waits(rest)?,
            pieces: pieces(rest.get(REPLY_BYTES..)?)?,
        },
        8 => Event::SentMore {
            socket: u64_at(rest, 0)?,
            first_at: time_at(rest, 8)?,
            last_at: time_at(rest, 16)?,
            left: u32_at(rest, 40)?,
            waits: waits(rest)?,
        },
        9 => Event::Exit,
        10 => Event::Closed { socket: u64_at(rest, 8)? },
        11 => Event::Left { socket: u64_at(rest, 8)?, until: u32_at(rest, 48)? },
        _ => return None,
    };
    Some((head, event))
}

fn dispatch(bytes: &[u8]) -> Option<Event<'_>> {
    let fixed = bytes.get(24..)?;
    let (message, members) = match u32_at(bytes, 16)? {
        0 => (None, Pieces::default()),
        _ => {
            let message = Message {
                first_at: time_at(fixed, 8)?,
                arrived_at: time_at(fixed, 16)?,
                read_at: time_at(fixed, 24)?,
                length: u32_at(fixed, 32)?.min(LENGTH_MAX),
                sequence: u32_at(fixed, 40)?,
                ends: ends(fixed.get(48..)?)?,
            };
            (Some(message), pieces(fixed.get(MESSAGE_BYTES..)?)?)
        }
    };
    Some(Event::Dispatch {
        request: u64_at(bytes, 0)?,
        crypto_in: time_at(bytes, 8)?,
        message,
        encrypted: u32_at(bytes, 20)? != 0,
        members,
    })
}

/// For a reply: the sequence number after it, if it waits.
fn waits(bytes: &[u8]) -> Option<Option<u32>> {
    let behind = u32_at(bytes, 48)?;
    Some((u32_at(bytes, 52)? != 0).then_some(behind))
}

fn ends(bytes: &[u8]) -> Option<Ends> {
    let (client, server) = (bytes.get(8..24)?, bytes.get(24..40)?);
    let (client_port, server_port) = (u16_at(bytes, 40)?, u16_at(bytes, 42)?);
    let is_v4 = u16_at(bytes, 44)? == 2;
    let address = |bytes: &[u8]| -> Option<IpAddr> {
        let v4: [u8; 4] = *bytes.first_chunk()?;
        let v6: [u8; 16] = *bytes.first_chunk()?;
        // A dual-stack listener's IPv4 clients have their IPv4 addresses on the wire.
        let wide = Ipv6Addr::from(v6);
        Some(if is_v4 { Ipv4Addr::from(v4).into() } else { wide.to_canonical() })
    };
    Some(Ends {
        socket: u64_at(bytes, 0)?,
        client: SocketAddr::new(address(client)?, client_port),
        server: SocketAddr::new(address(server)?, server_port),
    })
}

fn work(bytes: &[u8]) -> Option<Work> {
    Some(Work {
        request: u64_at(bytes, 0)?,
        crypto: time_at(bytes, 8)?,
        busy: time_at(bytes, 16)?,
        woke: time_at(bytes, 24)?,
        within: within(bytes)?,
    })
}

fn within(bytes: &[u8]) -> Option<Within> {
    Some(Within { off: time_at(bytes, 32)?, disk: time_at(bytes, 40)? })
}

fn io(what: u32) -> Option<Io> {
    match what {
        1 => Some(Io::Read),
        2 => Some(Io::Write),
        3 => Some(Io::Flush),
        _ => None,
    }
}

fn pieces(bytes: &[u8]) -> Option<Pieces<'_>> {
    let count = (u32_at(bytes, 0)? as usize).min(PIECES);
    let length = u32_at(bytes, 4)? as usize;
    let (data, behind) = bytes.get(8..)?.split_at_checked(length)?;
    Some(Pieces { lengths: behind.get(..count * 8)?, data })
}

/// A time or duration, limited to a hundred years, so that the sum of two does not overflow.
fn time_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64_at(bytes, at)?.min(TIME_MAX))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
