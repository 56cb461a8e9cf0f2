//! What SMB1 and SMB2 pairing share on one connection: the busy clock, operations in flight, the
//! round trips, and how a pair of request and reply becomes a row.

mod round_trip;

use std::collections::VecDeque;

use smbscope_tables::busy::{BusyClock, NOT_ON_CLOCK};
use smbscope_tables::code::{self, Source, Vantage};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::outcome::{Done, Effect, Output};
use crate::smb::pending::{Pending, Seen};
use crate::smb::unanswered;
use crate::stream::Message;
pub use round_trip::RoundTrip;

/// Times in which TCP made up for losses, of either direction: the last ones, as operations overlap with
/// few.
#[derive(Clone, Debug, Default)]
pub struct Recoveries(VecDeque<(i64, i64)>);

impl Recoveries {
    const MOST: usize = 256;

    /// Adds one that is over.
    pub fn add(&mut self, begin: i64, end: i64) {
        if self.0.len() >= Recoveries::MOST {
            self.0.pop_front();
        }
        self.0.push_back((begin, end));
    }

    /// How much of the time between the two it was, if any.
    #[inline]
    fn within(&self, begin: i64, end: i64) -> Option<i64> {
        if self.0.is_empty() {
            return None;
        }
        // Both directions may recover at once; later ones end later.
        let (mut sum, mut counted_from) = (0, end);
        for &(since, until) in self.0.iter().rev() {
            if until <= begin {
                break;
            }
            let until = until.min(counted_from);
            let since = since.max(begin);
            sum += (until - since).max(0);
            counted_from = counted_from.min(since);
        }
        (sum > 0).then_some(sum)
    }
}

/// Where something was lost, a request is taken for answered after so many replies to others: a server
/// that takes so long says STATUS_PENDING, where the protocol has that.
const LOST_REPLIES: u64 = 64;

/// What pairing knows of its connection.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Number of the connection in its shard.
    pub index: u32,
    /// See [`BusyClock`].
    pub clock: BusyClock,
    /// Operations in flight, waiting ones not counted.
    pub in_flight: u32,
    /// End of the last reply.
    pub last_reply: Option<i64>,
    /// Round trip between the capture point and the server.
    pub server_side: RoundTrip,
    /// Round trip between the capture point and the client.
    pub client_side: RoundTrip,
    /// Where the capture was taken.
    pub vantage: Option<Vantage>,
    /// Whether the client's packets are seen at all.
    pub requests_seen: bool,
    /// Replies so far.
    pub replies: u64,
    /// Whether anything of the connection was lost: then a reply may never come.
    pub has_losses: bool,
    /// Replies of the connection at which requests are looked for whose own was lost.
    pub next_look: u64,
    /// The connection's row, as far as SMB fills it.
    pub table: Box<Connection>,
    /// Negotiated dialect as the dialect column's code.
    pub dialect: Option<u64>,
    /// What losses cost.
    pub recoveries: Recoveries,
    /// The client's ClientGuid.
    pub client_guid: Option<[u8; 16]>,
}

impl Link {
    /// The part of a turnaround that lies behind the capture point, and its error.
    #[inline(always)]
    fn behind(&self) -> Option<(i64, i64)> {
        let (round_trip, error) = self.server_side.estimate()?;
        match self.vantage {
            Some(Vantage::Server) => Some((0, round_trip)),
            _ => Some((round_trip, error)),
        }
    }

    /// The part of a client's gap that lies before the capture point.
    #[inline]
    fn before(&self) -> Option<i64> {
        match self.vantage {
            Some(Vantage::Client) => Some(0),
            _ => Some(self.client_side.estimate()?.0),
        }
    }

    /// Fills a request's row from its message: times, sizes, place. A member of a compound that
    /// is not its lead gets the frame alone.
    #[inline(always)]
    pub fn start(&mut self, pending: &mut Pending, message: &Message<'_>, lead: bool) {
        self.start_member(pending, message.frame, message.sequence);
        if !lead {
            return;
        }
        pending.lead = true;
        let row = &mut pending.row;
        pending.begun = message.begun;
        pending.on_clock = message.begun != NOT_ON_CLOCK;
        row.set_request_start(message.start);
        if let Some(end) = message.end {
            row.set_request_end(end);
        }
        row.set_request_wire_bytes(u64::from(message.length) + 4);
        if self.in_flight == 0
            && let (Some(last), Some(before)) = (self.last_reply, self.before())
        {
            row.set_client_gap_ns(message.start - last - before);
        }
    }

    /// The same of a later member of a compound, whose message begins there.
    #[inline(always)]
    pub fn start_member(&mut self, pending: &mut Pending, frame: u64, sequence: u32) {
        self.requests_seen = true;
        pending.lead = false;
        let row = &mut pending.row;
        row.set_source(Source::Capture as u64);
        row.set_request_frame(frame);
        row.set_tcp_sequence(sequence);
        row.set_outstanding(self.in_flight);
        if let Some(dialect) = self.dialect {
            row.set_dialect(dialect);
        }
    }

    /// Counts an operation as in flight. To be called after all members of a message started.
    #[inline]
    pub fn depart(&mut self, pending: &mut Pending) {
        pending.in_flight = true;
        pending.lost_at = self.replies + LOST_REPLIES;
        pending.is_missed = false;
        self.in_flight += 1;
        let most = &mut self.table.outstanding_max;
        *most = (*most).max(u64::from(self.in_flight));
    }

    /// Whether it is time to look for requests whose reply was lost, of so many that wait.
    #[inline]
    pub fn looks_for_lost(&mut self, waiting: usize) -> bool {
        let is_time = self.has_losses && self.replies >= self.next_look;
        if is_time {
            // The more wait, the less often, so that a reply costs the same.
            self.next_look = self.replies + LOST_REPLIES / 4 + waiting as u64 / 8;
        }
        is_time
    }

    /// Replies were not captured: after so many more on the connection those that are in flight now
    /// are taken for answered by them. None are if none is in flight.
    pub fn miss_replies(&mut self) -> Option<u64> {
        // A message that is alone has been answered. Of several each may still be.
        let at = match self.clock.in_flight() {
            0 => return None,
            1 => self.replies,
            several => self.replies + 2 * u64::from(several),
        };
        self.next_look = self.next_look.min(at);
        Some(at)
    }

    /// Takes an operation out of what is in flight if its reply seems lost, so that it does not stand
    /// beside all later ones. The reply may still come. It seems lost after so many replies on the
    /// connection, if not before.
    pub fn arrive_lost(&mut self, at: u64, pending: &mut Pending, time: i64) {
        if at < pending.lost_at {
            pending.lost_at = at;
            pending.is_missed = true;
        }
        if pending.in_flight
            && pending.row.pending_at().is_none()
            && self.replies >= pending.lost_at
        {
            self.arrive(pending, time);
        }
    }

    /// Takes an operation out of what is in flight and off the busy clock: it is answered, or it
    /// waits by design.
    #[inline(always)]
    pub fn arrive(&mut self, pending: &mut Pending, time: i64) {
        if pending.on_clock {
            pending.on_clock = false;
            let busy = self.clock.end(time, pending.begun);
            pending.row.set_busy_ns(busy);
        }
        if pending.in_flight {
            pending.in_flight = false;
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// Puts an operation that waited for its client back into what is in flight, as a further message
    /// of its request comes.
    pub fn resume(&mut self, pending: &mut Pending, message: &Message<'_>) {
        pending.begun = BusyClock::resume(message.begun, pending.row.busy_ns().unwrap_or(0));
        pending.on_clock = message.begun != NOT_ON_CLOCK;
        self.depart(pending);
    }

    /// Ends an operation with its reply and emits the row. `first` says that it is the first (or
    /// only) one in the reply's message: the message's times and bytes stand on it.
    #[inline(always)]
    pub fn finish(
        &mut self,
        out: &mut Output,
        pending: &mut Pending,
        seen: &Seen,
        first: bool,
        effect: Effect,
    ) {
        let end = seen.end_or_start();
        self.arrive(pending, end);
        self.replies += 1;
        self.last_reply = Some(self.last_reply.map_or(end, |last| last.max(end)));
        let row = &mut pending.row;
        row.set_response_frame(seen.frame);
        // A member of a compound that is answered apart from its lead has the reply's times, but
        // no request times and so no duration.
        if pending.lead || first {
            row.set_response_start(seen.start);
            if let Some(end) = seen.end {
                row.set_response_end(end);
            }
            row.set_response_wire_bytes(row.response_wire_bytes().unwrap_or(0) + seen.wire_bytes);
            row.derive_durations();
        }
        if pending.lead
            && row.waits() != Some(true)
            && let (Some(turnaround), Some((behind, error))) = (row.turnaround_ns(), self.behind())
        {
            row.set_server_ns(turnaround - behind);
            row.set_server_error_ns(error);
        }
        if pending.lead
            && let Some(begin) = row.request_start()
            && let Some(recovery) = self.recoveries.within(begin, end)
        {
            row.set_recovery_ns(recovery);
        }
        self.emit(out, pending, end, effect);
    }

    /// Takes a message off the busy clock that turned out to be no request.
    #[inline]
    pub fn unbegin(&mut self, time: i64, begun: i64) {
        if begun != NOT_ON_CLOCK {
            self.clock.end(time, begun);
        }
    }

    /// Emits the row of a message that the server sent unasked.
    pub fn notification(&mut self, out: &mut Output, row: Operation, seen: &Seen) {
        let mut pending = Pending { row, ..Pending::default() };
        let row = &mut pending.row;
        row.set_source(Source::Capture as u64);
        row.set_response_frame(seen.frame);
        row.set_response_start(seen.start);
        if let Some(end) = seen.end {
            row.set_response_end(end);
            row.set_response_transfer_ns(end - seen.start);
        }
        row.set_response_wire_bytes(seen.wire_bytes);
        if let Some(dialect) = self.dialect {
            row.set_dialect(dialect);
        }
        self.emit(out, &mut pending, seen.end_or_start(), Effect::None);
    }

    /// Emits a row of which no (more) reply is to be expected: a Cancel, or a request at the end.
    pub fn give_up(&mut self, out: &mut Output, pending: &mut Pending, time: i64) {
        let was_in_flight = pending.in_flight;
        self.arrive(pending, time);
        // One whose reply was missed keeps its share until then: others were not given it.
        if was_in_flight || !pending.is_missed {
            pending.row.clear(smbscope_tables::operation::Column::busy_ns);
        }
        let time = pending.row.request_end().or(pending.row.request_start()).unwrap_or(time);
        let effect = unanswered::effect(out, pending);
        self.emit(out, pending, time, effect);
    }

    /// Emits a row from a reply alone, whose request was not seen.
    pub fn reply_alone(
        &mut self,
        out: &mut Output,
        row: Operation,
        seen: &Seen,
        lead: bool,
        effect: Effect,
    ) {
        let mut pending = Pending { row, lead, ..Pending::default() };
        pending.row.set_source(Source::Capture as u64);
        if let Some(dialect) = self.dialect {
            pending.row.set_dialect(dialect);
        }
        self.finish(out, &mut pending, seen, lead, effect);
    }

    #[inline(always)]
    fn emit(&mut self, out: &mut Output, pending: &mut Pending, time: i64, effect: Effect) {
        let row = &mut pending.row;
        if let Some(vantage) = self.vantage {
            row.set_vantage(vantage as u64);
        }
        // A DOS error of SMB1 has its name already.
        if let Some(status) = row.status().filter(|_| row.status_name().is_none()) {
            row.set_status_name(code::status_name(status));
        }
        let table = &mut *self.table;
        table.operations += 1;
        table.signed += u64::from(row.signed() == Some(true));
        table.encrypted += u64::from(row.encrypted() == Some(true));
        table.compressed += u64::from(row.compressed() == Some(true));
        let path = pending.has_name.then(|| out.push_text(&pending.name));
        out.rows.extend_from_slice(std::slice::from_ref(row));
        out.done.push(Done {
            link: self.index,
            order: out.order,
            time,
            chain: pending.chain,
            path,
            effect,
        });
    }
}
