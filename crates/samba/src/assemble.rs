//! Converts events to messages and slices.
//!
//! The activity of smbd's threads, in its order, becomes the messages that the clients and the server
//! exchanged, in plaintext, together with how the time of each request was spent. `capture` decodes the
//! messages, so that a row has the same content as a capture's row; their slices are found by the
//! position of the request in its connection's stream ([`RequestKey`]).
//!
//! Streams are counted again from a connection's first message (a message in plaintext is shorter than
//! its encrypted form); the sequence number of the wire is kept as well. Everything is bounded;
//! whatever is given up is counted.

mod async_io;
mod clear;
mod reply;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;

use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::header::{self, Header, members};

use clear::Clear;
use reply::{Sending, SentReply, Times, joined};

use crate::operation::{RequestKey, ServerSide};
use crate::request::{Member, ServedRequest};
use crate::ring_event::{Ends, Event, Head, Io, Message, Pieces, Work};
use crate::slices::{Kind, Slices};

/// Map for keys that come from outside; the hash is seeded, so that collisions cannot be provoked.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// How much longer an encrypted message is than its plaintext: the SMB2 TRANSFORM_HEADER.
const ENCRYPTION_BYTES: u32 = 52;

/// Most requests that are served at a time, and operations whose row is pending.
const KEPT_MAX: usize = 1 << 17;

/// A message in one direction of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// The connection's endpoints.
    pub from_client: bool,
    /// Position of its NetBIOS header in the stream.
    pub sequence: u32,
    /// Its bytes without that header.
    pub length: u32,
    /// When its first byte passed, CLOCK_MONOTONIC ns.
    pub first: u64,
    /// When its last byte passed.
    pub last: u64,
    /// Its beginning, as much as was copied.
    pub bytes: Vec<u8>,
    /// Whether the connection begins with it.
    pub begins: bool,
    /// Whether the connection ends with it; then it has no bytes.
    pub ends: bool,
}

/// Losses: state that was given up, and events that were not understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Dispatches of requests without a message.
    pub without_message: u64,
    /// Encrypted replies without their plaintext.
    pub without_clear: u64,
    /// Replies on unknown connections.
    pub without_connection: u64,
    /// Flushes of which several were in flight in a process, so that their requests are unknown.
    pub ambiguous_flushes: u64,
    /// State that was given up because of a limit.
    pub given_up: u64,
}

#[derive(Clone)]
struct Connection {
    ends: Ends,
    client_next: u32,
    server_next: u32,
    sending: Option<Sending>,
    /// Replies that are partly in the kernel, with the sequence number after each.
    leaving: VecDeque<(StreamMessage, u32)>,
    /// Operations whose reply was not sent yet, by MessageId.
    unsent: HashMap<u64, (RequestKey, u64)>,
}

/// Combines events.
#[derive(Clone, Default)]
pub struct Assembler {
    connections: HashMap<u64, Connection>,
    /// Requests that are being served, by process and address.
    served: HashMap<(u32, u64), ServedRequest>,
    /// Requests whose read or write another thread does, by its buffer.
    async_io: HashMap<(u32, Io, u64), u64>,
    /// Requests whose flush another thread does, by process.
    flushes: HashMap<u32, Vec<u64>>,
    /// Replies in plaintext that were not sent yet, by thread.
    clear: HashMap<u32, VecDeque<Clear>>,
    server_sides: HashMap<RequestKey, ServerSide>,
    order: VecDeque<RequestKey>,
    /// The losses so far.
    pub losses: Losses,
    /// Samba's functions are not probed: only its reply shows that a request is done.
    pub by_reply: bool,
    /// Then: requests by socket and MessageId.
    awaiting_reply: HashMap<(u64, u64), (u32, u64)>,
}

impl Assembler {
    /// Processes an event; completed messages go to `deliver`.
    pub fn event(&mut self, head: Head, event: Event<'_>, deliver: &mut dyn FnMut(StreamMessage)) {
        match event {
            Event::Dispatch { request, crypto_in, message, encrypted, members } => match message {
                Some(message) => {
                    let dispatch = Dispatch { request, crypto_in, message, encrypted, members };
                    self.begin(head, dispatch, deliver);
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
                let reply =
                    SentReply { socket, total, left, times, crypto_out, arrived_at, pieces };
                self.sent(head, reply, deliver);
            }
            Event::SentMore { socket, first_at, last_at, left, waits } => {
                let times = Times { waits, ..Times::new(head, first_at, last_at) };
                self.sent_more(socket, times, left, deliver);
            }
            Event::Left { socket, until } => self.left(socket, until, head.time, deliver),
            Event::Exit => self.exit(head.process),
            Event::Closed { socket } => self.end(socket, head.time, deliver),
        }
    }

    /// No more events follow: replies that are still in the kernel count as sent.
    pub fn end_all(&mut self, deliver: &mut dyn FnMut(StreamMessage)) {
        for connection in self.connections.values_mut() {
            connection.leaving.drain(..).for_each(|(message, _)| deliver(message));
        }
    }

    /// The server's side of an operation whose row is being built; it is forgotten then.
    pub fn take_server_side(&mut self, key: &RequestKey) -> Option<ServerSide> {
        self.server_sides.remove(key)
    }

    /// A request is dispatched for the first time.
    fn begin(
        &mut self,
        head: Head,
        dispatch: Dispatch<'_>,
        deliver: &mut dyn FnMut(StreamMessage),
    ) {
        let Dispatch { request, crypto_in, message, encrypted, members } = dispatch;
        let ends = message.ends;
        if self.connections.get(&ends.socket).is_some_and(|known| known.ends != ends) {
            // The kernel reused the socket's memory.
            self.end(ends.socket, head.time, deliver);
        }
        let more_bytes = if encrypted { ENCRYPTION_BYTES } else { 0 };
        let length = message.length.saturating_sub(more_bytes);
        let bytes = joined(members.iter(), length);
        let mut members: Vec<_> =
            header::members(&bytes).map(|it| command_and_id(&it.header)).collect();
        let times = ArrivalTimes::new(&message);
        let key = self.deliver_request(ends, message.sequence, length, bytes, &times, deliver);
        let slices = times.slices(head.time, crypto_in);
        let server_side = ServerSide {
            process: head.process,
            thread: head.thread,
            cpu: head.cpu,
            tcp_sequence: message.sequence,
            encrypted,
            more_bytes,
            first: times.first,
            arrived: times.arrived,
            without_arrival: !times.is_known,
            ..ServerSide::default()
        };
        if matches!(*members, [(Command::CANCEL, _)]) {
            // A Cancel has no reply, and Samba never calls `done` for it.
            self.keep(key, ServerSide { slices, ..server_side });
            return;
        }
        if self.by_reply {
            // Without Samba's functions, the members of a compound cannot be separated.
            members.truncate(1);
            let Some(&(_, id)) = members.first() else {
                // Encrypted: without Samba's functions its reply cannot be recognized.
                return self.keep(key, server_side);
            };
            self.await_reply(ends.socket, id, (head.process, request));
        }
        // If another process ends the request (Negotiate on another channel), this much is known.
        self.keep(key, server_side.clone());
        let served = ServedRequest {
            socket: ends.socket,
            key,
            members,
            member: Some(Member::new(slices, head.time)),
            server_side,
        };
        if self.served.len() >= KEPT_MAX {
            self.losses.given_up += self.served.len() as u64;
            self.served.clear();
        }
        self.served.insert((head.process, request), served);
    }

    /// Adds the request's message to its connection's stream, and returns the operation's key.
    fn deliver_request(
        &mut self,
        ends: Ends,
        wire_sequence: u32,
        length: u32,
        bytes: Vec<u8>,
        times: &ArrivalTimes,
        deliver: &mut dyn FnMut(StreamMessage),
    ) -> RequestKey {
        let is_new = !self.connections.contains_key(&ends.socket);
        let connection = self.connections.entry(ends.socket).or_insert_with(|| Connection {
            ends,
            // Consecutive connections with the same ports begin at different positions.
            client_next: wire_sequence,
            server_next: 1,
            sending: None,
            leaving: VecDeque::new(),
            unsent: HashMap::default(),
        });
        let sequence = connection.client_next;
        connection.client_next = sequence.wrapping_add(4 + length);
        let (client, server) = (ends.client, ends.server);
        deliver(StreamMessage {
            client,
            server,
            from_client: true,
            sequence,
            length,
            first: times.first,
            last: times.arrived,
            begins: is_new && is_first(&bytes),
            bytes,
            ends: false,
        });
        RequestKey { client, server, sequence, index: 0 }
    }

    /// Remembers a request that ends with its reply.
    fn await_reply(&mut self, socket: u64, message_id: u64, request: (u32, u64)) {
        if self.awaiting_reply.len() >= KEPT_MAX {
            self.losses.given_up += self.awaiting_reply.len() as u64;
            self.awaiting_reply.clear();
        }
        self.awaiting_reply.insert((socket, message_id), request);
    }

    /// A request is dispatched again: its next member of a compound, or the same one after a wait.
    fn again(&mut self, head: Head, request: u64) {
        let Some(served) = self.served.get_mut(&(head.process, request)) else {
            self.losses.without_message += 1;
            return;
        };
        let waits = served.waits();
        match &mut served.member {
            Some(member) => member.wake(head.time, waits),
            None => {
                served.key.index = served.key.index.saturating_add(1);
                served.member = Some(Member::new(Slices::default(), head.time));
            }
        }
    }

    fn park(&mut self, head: Head, work: Work) {
        let Some(served) = self.served.get_mut(&(head.process, work.request)) else { return };
        let Some(member) = &mut served.member else { return };
        member.is_beside = false;
        if member.handed_over.is_none() {
            member.pause(head.time, work.crypto, work.busy);
            member.within += work.within;
        }
    }

    fn done(&mut self, head: Head, work: Work, in_dispatch: bool) {
        let key = (head.process, work.request);
        let Some(served) = self.served.get_mut(&key) else { return };
        let Some(mut member) = served.member.take() else { return };
        // No thread's system call has ended it: an ambiguous flush, or another way of I/O.
        match member.handed_over {
            Some((Io::Flush, _)) => {
                if let Some(flushes) = self.flushes.get_mut(&head.process) {
                    flushes.retain(|request| *request != work.request);
                }
            }
            Some((what, place)) => {
                let key = (head.process, what, place);
                if self.async_io.get(&key) == Some(&work.request) {
                    self.async_io.remove(&key);
                }
            }
            None => {}
        }
        // It waited until the thread last woke, or, if the thread did not sleep, until its read ended.
        let woke = if work.woke > member.since && !in_dispatch { work.woke } else { 0 };
        let woke = woke.max(member.io_ended).min(head.time);
        let waits = served.waits();
        member.wake(if woke == 0 { head.time } else { woke }, waits);
        member.work(head.time, work.crypto, work.busy);
        if !member.is_beside {
            member.within += work.within;
        }
        let (socket, key_in_stream) = (served.socket, served.key);
        let index = usize::from(key_in_stream.index);
        let mut server_side = served.server_side.clone();
        server_side.slices = std::mem::take(&mut member.slices);
        server_side.within = member.within;
        let message_id = served.members.get(index).map(|(_, id)| *id);
        if index + 1 >= served.members.len() {
            self.served.remove(&key);
        }
        self.keep(key_in_stream, server_side);
        if let (Some(connection), Some(id)) = (self.connections.get_mut(&socket), message_id) {
            if connection.unsent.len() >= KEPT_MAX {
                connection.unsent.clear();
                self.losses.given_up += 1;
            }
            connection.unsent.insert(id, (key_in_stream, head.time));
        }
    }

    fn keep(&mut self, key: RequestKey, server_side: ServerSide) {
        if self.server_sides.insert(key, server_side).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > KEPT_MAX {
            if let Some(oldest) = self.order.pop_front()
                && let Some(server_side) = self.server_sides.remove(&oldest)
            {
                // An operation that still waits is stored again when it is done.
                self.losses.given_up += u64::from(!server_side.slices.0.is_empty());
            }
        }
    }

    /// Requests are done when their reply is sent.
    fn answered(&mut self, head: Head, socket: u64, reply: &[u8]) {
        for member in members(reply).filter(|member| !member.header.is_interim()) {
            let key = (socket, member.header.message_id);
            if let Some((process, request)) = self.awaiting_reply.remove(&key) {
                let work = Work { request, ..Work::default() };
                self.done(Head { process, ..head }, work, false);
            }
        }
    }

    /// A process ended: its requests will not be completed.
    fn exit(&mut self, process: u32) {
        self.served.retain(|(owner, _), _| *owner != process);
        self.async_io.retain(|(owner, _, _), _| *owner != process);
        self.awaiting_reply.retain(|_, (owner, _)| *owner != process);
        self.flushes.remove(&process);
        // The sending thread has the process's id.
        self.clear.remove(&process);
    }

    fn end(&mut self, socket: u64, time: u64, deliver: &mut dyn FnMut(StreamMessage)) {
        let Some(connection) = self.connections.remove(&socket) else { return };
        connection.leaving.into_iter().for_each(|(message, _)| deliver(message));
        if let Some(sending) = connection.sending {
            deliver(sending.message);
        }
        deliver(StreamMessage {
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

/// The fields of [`Event::Dispatch`] with a message.
struct Dispatch<'a> {
    request: u64,
    crypto_in: u64,
    message: Message,
    encrypted: bool,
    members: Pieces<'a>,
}

/// When a request arrived and was read, CLOCK_MONOTONIC ns.
struct ArrivalTimes {
    first: u64,
    /// Arrival of the last byte; the time it was read if that is not known.
    arrived: u64,
    read: u64,
    is_known: bool,
}

impl ArrivalTimes {
    fn new(message: &Message) -> ArrivalTimes {
        let read = message.read_at;
        let is_known = message.arrived_at != 0;
        let arrived = if is_known { message.arrived_at } else { read };
        let first = if message.first_at == 0 { arrived } else { message.first_at.min(arrived) };
        ArrivalTimes { first, arrived, read, is_known }
    }

    /// The slices before the dispatch.
    fn slices(&self, dispatched: u64, crypto_in: u64) -> Slices {
        let mut slices = Slices::default();
        if self.is_known {
            slices.add(Kind::Queue, self.arrived, self.read.saturating_sub(self.arrived));
        }
        // Samba starts to read a large write before all of it has arrived.
        let read = self.read.max(self.arrived);
        let parse = dispatched.saturating_sub(read);
        let crypto = crypto_in.min(parse);
        if crypto > 0 {
            slices.add(Kind::CryptoIn, read, crypto);
        }
        slices.add(Kind::Parse, read + crypto, parse - crypto);
        slices
    }
}

/// Whether a connection begins with this message: its first Negotiate, of SMB2 or of SMB1 (MS-SMB2
/// 3.2.4.2.2).
fn is_first(message: &[u8]) -> bool {
    let mut members = members(message);
    match members.next() {
        Some(lead) => lead.header.command == Command::NEGOTIATE && lead.header.message_id == 0,
        None => message.starts_with(b"\xffSMB\x72"),
    }
}

fn command_and_id(header: &Header) -> (Command, u64) {
    (header.command, header.message_id)
}
