//! Events to messages and slices.
//!
//! What happened on smbd's threads, in its order, becomes the messages that the clients and the
//! server exchanged, in clear, and beside them where the time of each request went. Messages are
//! decoded by `capture`, so that a row says what a capture's row says; their slices are found by the
//! place of the request in its connection's stream ([`Place`]).
//!
//! Streams are counted anew from a connection's first message (one in clear is shorter than its
//! encrypted one); the sequence number of the wire is kept beside. Everything is bounded; what is
//! given up is counted.

mod async_io;
mod clear;
mod reply;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;

use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{Header, members};

use clear::Clear;
use reply::{Sending, Times, joined};

use crate::request::{Member, Serving};
use crate::ring_event::{Ends, Event, Head, Io, Message, Pieces, Within, Work};
use crate::slices::{Kind, Slices};

/// Keys that come from outside; nobody can guess where they go.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Requests that are served at a time, and operations whose row is awaited.
const KEPT_MAX: usize = 1 << 17;

/// A message in one direction of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Whose it is.
    pub from_client: bool,
    /// Place of its NetBIOS header in the stream.
    pub sequence: u32,
    /// Its bytes without that header.
    pub length: u32,
    /// When its first byte passed, CLOCK_MONOTONIC ns.
    pub first: u64,
    /// When its last byte did.
    pub last: u64,
    /// Its head, as much as there is.
    pub bytes: Vec<u8>,
    /// The connection begins with it.
    pub begins: bool,
    /// The connection ends with it; then it has no bytes.
    pub ends: bool,
}

/// Where an operation's request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Of the message, as in [`Told::sequence`].
    pub sequence: u32,
    /// Which member of a compound.
    pub index: u16,
}

/// What is known of an operation beside its messages.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// Where the time went.
    pub slices: Slices,
    /// What time was spent on within them.
    pub within: Within,
    /// Process that served it.
    pub process: u32,
    /// Thread that dispatched it.
    pub thread: u32,
    /// Processor that did.
    pub cpu: u16,
    /// Sequence number of the wire.
    pub tcp_sequence: u32,
    /// Whether the request was encrypted.
    pub encrypted: bool,
    /// What the encrypted request was longer than the one in clear.
    pub more_bytes: u32,
    /// When the request's first byte came, CLOCK_MONOTONIC ns; when it was read, if that is not known.
    pub first: u64,
    /// When its last byte did.
    pub arrived: u64,
    /// Whether that is not known: then it is when the first one was read.
    pub without_arrival: bool,
}

/// What was given up or not understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Dispatches of requests whose message was not seen.
    pub without_message: u64,
    /// Encrypted replies of which the clear text was not seen.
    pub without_clear: u64,
    /// Replies on connections of which nothing was seen before.
    pub without_connection: u64,
    /// Flushes of which several were under way in a process: which was whose is not known.
    pub ambiguous_flushes: u64,
    /// State that was given up because there was too much.
    pub given_up: u64,
}

#[derive(Clone)]
struct Connection {
    ends: Ends,
    client_next: u32,
    server_next: u32,
    sending: Option<Sending>,
    /// Replies of which some waits in the kernel, and the sequence number behind each.
    leaving: VecDeque<(Told, u32)>,
    /// Operations whose reply was not sent, by MessageId.
    unsent: HashMap<u64, (Place, u64)>,
}

/// Puts events together.
#[derive(Clone, Default)]
pub struct Assembler {
    connections: HashMap<u64, Connection>,
    serving: HashMap<(u32, u64), Serving>,
    /// The request whose work is with another thread.
    elsewhere: HashMap<(u32, Io, u64), u64>,
    /// Requests whose flush is with another thread, by process.
    flushes: HashMap<u32, Vec<u64>>,
    /// Replies in clear that were not sent, by thread.
    clear: HashMap<u32, VecDeque<Clear>>,
    inside: HashMap<Place, Inside>,
    order: VecDeque<Place>,
    /// What was lost so far.
    pub losses: Losses,
    /// Nothing tells that a request is done but its reply: Samba's functions are not seen.
    pub by_reply: bool,
    /// Requests by socket and MessageId, then.
    asked: HashMap<(u64, u64), (u32, u64)>,
}

impl Assembler {
    /// Takes an event; what it completes goes to `tell`.
    pub fn event(&mut self, head: Head, event: Event<'_>, tell: &mut dyn FnMut(Told)) {
        match event {
            Event::Dispatch { request, crypto_in, message, encrypted, members } => match message {
                Some(message) => {
                    self.begin(head, request, crypto_in, message, encrypted, members, tell);
                }
                None => self.again(head, request),
            },
            Event::Done { work, in_dispatch } => self.done(head, work, in_dispatch),
            Event::Park(work) => self.park(head, work),
            Event::HandedOver { request, place, what, busy, crypto, within } => {
                let work = Work { request, crypto, busy, woke: 0, within };
                self.hand_over(head, work, place, what);
            }
            Event::Io { request, place, what, began, within } => {
                self.io(head, request, place, what, began, within);
            }
            Event::Clear { pieces } => self.will_be_encrypted(head.thread, pieces),
            Event::Sent {
                socket,
                total,
                left,
                first_at,
                last_at,
                crypto_out,
                arrived_at,
                waits,
                pieces,
            } => {
                let times = Times { waits, ..Times::new(head, first_at, last_at) };
                let beside = (crypto_out, arrived_at);
                self.sent(head, socket, total, left, times, beside, pieces, tell);
            }
            Event::SentMore { socket, first_at, last_at, left, waits } => {
                let times = Times { waits, ..Times::new(head, first_at, last_at) };
                self.sent_more(socket, times, left, tell);
            }
            Event::Left { socket, until } => self.left(socket, until, head.time, tell),
            Event::Exit => self.exit(head.process),
            Event::Closed { socket } => self.end(socket, head.time, tell),
        }
    }

    /// Nothing more will be told: what waits in the kernel was sent all the same.
    pub fn end_all(&mut self, tell: &mut dyn FnMut(Told)) {
        for connection in self.connections.values_mut() {
            connection.leaving.drain(..).for_each(|(told, _)| tell(told));
        }
    }

    /// What is known of an operation whose row is made; it is forgotten then.
    pub fn inside(&mut self, place: &Place) -> Option<Inside> {
        self.inside.remove(place)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn begin(
        &mut self,
        head: Head,
        request: u64,
        crypto_in: u64,
        message: Message,
        encrypted: bool,
        pieces: Pieces<'_>,
        tell: &mut dyn FnMut(Told),
    ) {
        let ends = message.ends;
        if self.connections.get(&ends.socket).is_some_and(|known| known.ends != ends) {
            // The kernel uses the socket's memory anew.
            self.end(ends.socket, head.time, tell);
        }
        let is_new = !self.connections.contains_key(&ends.socket);
        let connection = self.connections.entry(ends.socket).or_insert_with(|| Connection {
            ends,
            // Those that have the same ports one after the other begin elsewhere.
            client_next: message.sequence,
            server_next: 1,
            sending: None,
            leaving: VecDeque::new(),
            unsent: HashMap::default(),
        });
        let more_bytes = if encrypted { 52 } else { 0 };
        let length = message.length.saturating_sub(more_bytes);
        let bytes = joined(pieces.iter(), length);
        let mut members: Vec<_> = members(&bytes).map(|member| of(&member.header)).collect();
        let sequence = connection.client_next;
        connection.client_next = sequence.wrapping_add(4 + length);
        let read = message.read_at;
        let arrived = if message.arrived_at == 0 { read } else { message.arrived_at };
        let first = if message.first_at == 0 { arrived } else { message.first_at.min(arrived) };
        let (client, server) = (ends.client, ends.server);
        tell(Told {
            client,
            server,
            from_client: true,
            sequence,
            length,
            first,
            last: arrived,
            begins: is_new && is_first(&bytes),
            bytes,
            ends: false,
        });
        let mut slices = Slices::default();
        if message.arrived_at != 0 {
            slices.add(Kind::Queue, arrived, read.saturating_sub(arrived));
        }
        // A large write is read while it still comes.
        let read = read.max(arrived);
        let parse = head.time.saturating_sub(read);
        let crypto = crypto_in.min(parse);
        if crypto > 0 {
            slices.add(Kind::CryptoIn, read, crypto);
        }
        slices.add(Kind::Parse, read + crypto, parse - crypto);
        let place = Place { client, server, sequence, index: 0 };
        let inside = Inside {
            process: head.process,
            thread: head.thread,
            cpu: head.cpu,
            tcp_sequence: message.sequence,
            encrypted,
            more_bytes,
            first,
            arrived,
            without_arrival: message.arrived_at == 0,
            ..Inside::default()
        };
        if matches!(*members, [(Command::CANCEL, _)]) {
            // It is never done, and has no reply.
            self.keep(place, Inside { slices, ..inside });
            return;
        }
        if self.by_reply {
            // All members are worked on at once, as far as is seen.
            members.truncate(1);
            let Some(&(_, id)) = members.first() else {
                // It is encrypted: nothing will tell which reply is its.
                return self.keep(place, inside);
            };
            if self.asked.len() >= KEPT_MAX {
                self.losses.given_up += self.asked.len() as u64;
                self.asked.clear();
            }
            self.asked.insert((ends.socket, id), (head.process, request));
        }
        // Should another process end it (a Negotiate of a further channel), this much is known.
        self.keep(place, inside.clone());
        let serving = Serving {
            socket: ends.socket,
            place,
            members,
            member: Some(Member::new(slices, head.time)),
            inside,
        };
        if self.serving.len() >= KEPT_MAX {
            self.losses.given_up += self.serving.len() as u64;
            self.serving.clear();
        }
        self.serving.insert((head.process, request), serving);
    }

    /// A request is dispatched that was before: the next member of a compound, or the same one
    /// after it waited for something.
    fn again(&mut self, head: Head, request: u64) {
        let Some(serving) = self.serving.get_mut(&(head.process, request)) else {
            self.losses.without_message += 1;
            return;
        };
        let waits = serving.waits();
        match &mut serving.member {
            Some(member) => member.wake(head.time, waits),
            None => {
                serving.place.index = serving.place.index.saturating_add(1);
                serving.member = Some(Member::new(Slices::default(), head.time));
            }
        }
    }

    fn park(&mut self, head: Head, work: Work) {
        let Some(serving) = self.serving.get_mut(&(head.process, work.request)) else { return };
        let Some(member) = &mut serving.member else { return };
        member.is_beside = false;
        if member.handed_over.is_none() {
            member.pause(head.time, work.crypto, work.busy);
            member.within += work.within;
        }
    }

    fn done(&mut self, head: Head, work: Work, in_dispatch: bool) {
        let key = (head.process, work.request);
        let Some(serving) = self.serving.get_mut(&key) else { return };
        let Some(mut member) = serving.member.take() else { return };
        // What no thread's system call has ended: an ambiguous flush, or it went another way.
        match member.handed_over {
            Some((Io::Flush, _)) => {
                if let Some(flushes) = self.flushes.get_mut(&head.process) {
                    flushes.retain(|request| *request != work.request);
                }
            }
            Some((what, place)) => {
                let key = (head.process, what, place);
                if self.elsewhere.get(&key) == Some(&work.request) {
                    self.elsewhere.remove(&key);
                }
            }
            None => {}
        }
        // It waited until the thread woke last, or, when that did not sleep, until its read ended.
        let woke = if work.woke > member.since && !in_dispatch { work.woke } else { 0 };
        let woke = woke.max(member.io_ended).min(head.time);
        let waits = serving.waits();
        member.wake(if woke == 0 { head.time } else { woke }, waits);
        member.work(head.time, work.crypto, work.busy);
        if !member.is_beside {
            member.within += work.within;
        }
        let (socket, place) = (serving.socket, serving.place);
        let index = usize::from(place.index);
        let mut inside = serving.inside.clone();
        inside.slices = std::mem::take(&mut member.slices);
        inside.within = member.within;
        let message_id = serving.members.get(index).map(|(_, id)| *id);
        if index + 1 >= serving.members.len() {
            self.serving.remove(&key);
        }
        self.keep(place, inside);
        if let (Some(connection), Some(id)) = (self.connections.get_mut(&socket), message_id) {
            if connection.unsent.len() >= KEPT_MAX {
                connection.unsent.clear();
                self.losses.given_up += 1;
            }
            connection.unsent.insert(id, (place, head.time));
        }
    }

    fn keep(&mut self, place: Place, inside: Inside) {
        if self.inside.insert(place, inside).is_none() {
            self.order.push_back(place);
        }
        while self.order.len() > KEPT_MAX {
            if let Some(oldest) = self.order.pop_front()
                && let Some(inside) = self.inside.remove(&oldest)
            {
                // One that still waits is kept anew when it is done.
                self.losses.given_up += u64::from(!inside.slices.0.is_empty());
            }
        }
    }

    /// Requests are done when their reply is there.
    fn answered(&mut self, head: Head, socket: u64, reply: &[u8]) {
        for member in members(reply).filter(|member| !member.header.is_interim()) {
            let key = (socket, member.header.message_id);
            if let Some((process, request)) = self.asked.remove(&key) {
                let work = Work { request, ..Work::default() };
                self.done(Head { process, ..head }, work, false);
            }
        }
    }

    /// A process ended: what it served will not be done.
    fn exit(&mut self, process: u32) {
        self.serving.retain(|(owner, _), _| *owner != process);
        self.elsewhere.retain(|(owner, _, _), _| *owner != process);
        self.asked.retain(|_, (owner, _)| *owner != process);
        self.flushes.remove(&process);
        // The thread that sends has the process' number.
        self.clear.remove(&process);
    }

    fn end(&mut self, socket: u64, time: u64, tell: &mut dyn FnMut(Told)) {
        let Some(connection) = self.connections.remove(&socket) else { return };
        connection.leaving.into_iter().for_each(|(told, _)| tell(told));
        if let Some(sending) = connection.sending {
            tell(sending.told);
        }
        tell(Told {
            client: connection.ends.client,
            server: connection.ends.server,
            from_client: false,
            sequence: connection.server_next,
            length: 0,
            first: time,
            last: time,
            bytes: Vec::new(),
            begins: false,
            ends: true,
        });
    }
}

/// Whether a connection begins with this message: a Negotiate that is its first, of SMB2 or of SMB1
/// (MS-SMB2 3.2.4.2.2).
fn is_first(message: &[u8]) -> bool {
    let mut members = members(message);
    match members.next() {
        Some(lead) => lead.header.command == Command::NEGOTIATE && lead.header.message_id == 0,
        None => message.starts_with(b"\xffSMB\x72"),
    }
}

fn of(header: &Header) -> (Command, u64) {
    (header.command, header.message_id)
}
