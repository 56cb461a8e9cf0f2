//! Replies of KDCs: the names of the clients that tickets are issued to.
//!
//! A Kerberos logon shows a ticket in which the client's name is encrypted. The KDC's reply that
//! brought the ticket names the client in plaintext (RFC 4120 section 5.4.2), or the reply that
//! brought the ticket used to request it does. If a capture contains these replies, the session has
//! a user. Owns the framing of messages over TCP (section 7.2.2) and UDP, and which ticket belongs
//! to which account.

use std::collections::VecDeque;

use hashbrown::HashMap;
use smbscope_wire::auth::kerberos::{Kerberos, Kind, TicketId};

use crate::frame::{Direction, FlowKey, TcpFlags, TcpSegment, UdpDatagram};
use crate::outcome::{Output, Ticket};
use crate::stream::{Order, Piece, Verdict};

/// The port of Kerberos (section 7.2).
pub const PORT: u16 = 88;
/// Exchanges with KDCs that are followed at once; the oldest are forgotten.
const EXCHANGES: usize = 256;
/// Bytes of one message that are kept; the names and the ticket's start are well before.
const KEPT_BYTES: usize = 8 << 10;
/// A longer message is not Kerberos.
const MESSAGE_BYTES: u32 = 1 << 20;
/// Bytes that wait for a hole to be filled; beyond, the connection is forgotten.
const WAITING_BYTES: usize = 32 << 10;

/// The exchanges with KDCs.
#[derive(Clone, Debug, Default)]
pub struct Kdc {
    exchanges: HashMap<FlowKey, Exchange, foldhash::fast::RandomState>,
    /// In the order in which they began.
    begun: VecDeque<FlowKey>,
}

/// Requests and replies between two ports.
#[derive(Clone, Debug, Default)]
struct Exchange {
    asking: Stream,
    answering: Stream,
    asked: Asked,
}

/// The ticket with which the last request was made.
#[derive(Clone, Copy, Debug, Default)]
struct Asked(Option<TicketId>);

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
struct Stream {
    order: Order,
    /// The message at hand, as far as it was captured and is kept; before that its length.
    message: Vec<u8>,
    /// Its bytes that are still to come, once its length is known.
    left: Option<u32>,
    /// Bytes of it were not captured: nothing behind them belongs in `message`.
    cut: bool,
}

impl Kdc {
    /// Takes a segment to or from port 88.
    pub fn segment(&mut self, key: FlowKey, segment: &TcpSegment<'_>, time: i64, out: &mut Output) {
        let is_syn = segment.flags.has(TcpFlags::SYN);
        if is_syn || segment.payload_len > 0 {
            let exchange = self.exchange(key);
            let stream = match segment.source_port {
                PORT => &mut exchange.answering,
                _ => &mut exchange.asking,
            };
            if is_syn {
                *stream = Stream::default();
                stream.order.set_next(segment.sequence.wrapping_add(1));
                return;
            }
            let piece = Piece {
                bytes: segment.payload,
                length: segment.payload_len,
                time,
                frame: 0,
                sequence: segment.sequence,
                lost: false,
            };
            if !stream.take(&piece, &mut exchange.asked, out) {
                self.exchanges.remove(&key);
            }
        }
        if segment.flags.has(TcpFlags::RST) {
            self.exchanges.remove(&key);
        }
    }

    /// Takes a datagram to or from port 88.
    pub fn datagram(&mut self, datagram: &UdpDatagram<'_>, out: &mut Output) {
        let (key, _) = Direction::of_datagram(datagram).flow();
        self.exchange(key).asked.message(datagram.payload, out);
    }

    fn exchange(&mut self, key: FlowKey) -> &mut Exchange {
        if !self.exchanges.contains_key(&key) {
            // Exchanges that ended are still in the list, which is then longer than the map.
            if self.begun.len() >= EXCHANGES
                && let Some(oldest) = self.begun.pop_front()
            {
                self.exchanges.remove(&oldest);
            }
            self.begun.push_back(key);
        }
        self.exchanges.entry(key).or_default()
    }
}

impl Asked {
    /// Takes a message, of which perhaps only the start was captured.
    fn message(&mut self, bytes: &[u8], out: &mut Output) {
        let Some(message) = Kerberos::parse(bytes) else { return };
        match message.kind {
            Kind::AS_REQ | Kind::TGS_REQ => self.0 = message.ticket,
            Kind::AS_REP | Kind::TGS_REP => {
                let Some(id) = message.ticket else { return };
                let is_hidden = message.is_anonymous();
                out.details.tickets.push(Ticket {
                    order: out.order,
                    id,
                    account: message.account().filter(|_| !is_hidden),
                    from: self.0.filter(|_| is_hidden),
                });
            }
            _ => {}
        }
    }
}

impl Stream {
    /// Takes a segment; returns whether the stream can still be decoded.
    fn take(&mut self, piece: &Piece<'_>, asked: &mut Asked, out: &mut Output) -> bool {
        match self.order.judge(piece.sequence, piece.length) {
            Verdict::Use { skip } => {
                let mut makes_sense = self.read(piece.skip(skip), asked, out);
                let mut order = std::mem::take(&mut self.order);
                while makes_sense && order.release(|next| makes_sense = self.read(next, asked, out))
                {
                }
                self.order = order;
                makes_sense
            }
            Verdict::Old => true,
            Verdict::Early => {
                // The missing bytes may never come, and the ticket may be used at once.
                asked.message(&self.message, out);
                self.order.keep(piece);
                self.order.waiting_bytes() <= WAITING_BYTES
            }
            Verdict::Jump => false,
        }
    }

    fn read(&mut self, mut piece: Piece<'_>, asked: &mut Asked, out: &mut Output) -> bool {
        while piece.length > 0 {
            let Some(left) = self.left else {
                let part = piece.length.min(4 - self.message.len() as u32);
                let Some(bytes) = piece.bytes.get(..part as usize) else { return false };
                self.message.extend_from_slice(bytes);
                piece = piece.skip(part);
                if let Some(length) = self.message.first_chunk() {
                    let length = u32::from_be_bytes(*length);
                    if !(1..=MESSAGE_BYTES).contains(&length) {
                        return false;
                    }
                    self.left = Some(length);
                    self.message.clear();
                }
                continue;
            };
            let part = left.min(piece.length);
            if !self.cut {
                let captured = piece.bytes.get(..part as usize).unwrap_or(piece.bytes);
                let room = KEPT_BYTES - self.message.len();
                self.message.extend_from_slice(captured.get(..room).unwrap_or(captured));
                self.cut = captured.len() < part as usize;
            }
            piece = piece.skip(part);
            self.left = Some(left - part).filter(|&left| left > 0);
            if self.left.is_none() {
                asked.message(&self.message, out);
                self.message.clear();
                self.cut = false;
            }
        }
        true
    }
}

/// Tickets that are remembered; the oldest are forgotten.
const TICKETS: usize = 16_384;
/// Bytes of a name that is remembered.
const ACCOUNT_BYTES: usize = 512;

/// Accounts by ticket.
#[derive(Clone, Debug, Default)]
pub struct Tickets {
    accounts: HashMap<TicketId, String>,
    order_learned: VecDeque<TicketId>,
}

impl Tickets {
    /// Remembers the account of a ticket.
    pub fn learn(&mut self, ticket: Ticket) {
        let account = ticket.account.or_else(|| self.accounts.get(&ticket.from?).cloned());
        let Some(account) = account.filter(|name| name.len() <= ACCOUNT_BYTES) else { return };
        if self.accounts.insert(ticket.id, account).is_none() {
            self.order_learned.push_back(ticket.id);
        }
        if self.order_learned.len() > TICKETS
            && let Some(oldest) = self.order_learned.pop_front()
        {
            self.accounts.remove(&oldest);
        }
    }

    /// The account of a ticket, if a KDC's reply was captured.
    pub fn account(&self, id: &TicketId) -> Option<&str> {
        self.accounts.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
