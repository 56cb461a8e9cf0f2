//! What the pairing of SMB1 and of SMB2 share on one connection: the busy clock, operations in
//! flight, round trips, and how a request and its reply become a row.

mod round_trip;

use std::collections::VecDeque;

use smbscope_tables::busy::{BusyClock, NOT_ON_CLOCK};
use smbscope_tables::code::{self, Source, Vantage};
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Connection;

use crate::limits::{LONG_BYTES, Limits, WaitingBytes};
use crate::outcome::{Effect, OperationEnd, Output};
use crate::smb::pending::{Pending, ReplyTimes};
use crate::smb::unanswered;
use crate::stream::Message;
pub use round_trip::RoundTrip;

/// Times in which TCP recovered from losses, in either direction. Only the last ones are kept,
/// because an operation overlaps with few.
#[derive(Clone, Debug, Default)]
pub struct Recoveries(VecDeque<(i64, i64)>);

impl Recoveries {
    const MAX: usize = 256;

    /// Adds a recovery that ended.
    pub fn add(&mut self, begin: i64, end: i64) {
        if self.0.len() >= Recoveries::MAX {
            self.0.pop_front();
        }
        self.0.push_back((begin, end));
    }

    /// The recovery time between two times, if there is any.
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

/// If anything was lost, a request counts as answered after this number of replies to other
/// requests. A server that needs longer sends STATUS_PENDING, in dialects that have it.
const REPLIES_UNTIL_LOST: u64 = 64;

/// Pairing state of one connection.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    /// Number of the connection in its shard.
    pub index: u32,
    /// See [`BusyClock`].
    pub clock: BusyClock,
    /// Operations in flight, without those that wait by design.
    pub in_flight: u32,
    /// End of the last reply.
    pub last_reply: Option<i64>,
    /// Round trip between the capture point and the server.
    pub server_side: RoundTrip,
    /// Round trip between the capture point and the client.
    pub client_side: RoundTrip,
    /// Where the capture was taken.
    pub vantage: Option<Vantage>,
    /// Whether any packet of the client was captured.
    pub requests_seen: bool,
    /// Replies so far.
    pub replies: u64,
    /// Whether anything of the connection was lost, so that a reply may never come.
    pub has_losses: bool,
    /// Number of replies at which to look again for requests whose reply was lost.
    pub next_look: u64,
    /// The fields of the connection's row that SMB fills.
    pub table: Box<Connection>,
    /// Negotiated dialect as the dialect column's code.
    pub dialect: Option<u64>,
    /// Times in which TCP recovered from losses.
    pub recoveries: Recoveries,
    pub client_guid: Option<[u8; 16]>,
    /// Long names in requests that wait.
    pub waiting: WaitingBytes,
    /// Messages come without TCP: sequence numbers do not identify them.
    pub has_no_sequence: bool,
}

impl Pairing {
    /// The round trip between capture point and server, which is part of a turnaround, and its
    /// error.
    #[inline(always)]
    fn server_side_round_trip(&self) -> Option<(i64, i64)> {
        let side = &self.server_side;
        match self.vantage {
            Some(Vantage::Server) => {
                Some((0, side.estimate().map(|(round_trip, _)| round_trip).or(side.bound)?))
            }
            _ => side.estimate(),
        }
    }

    /// The round trip between client and capture point, which is part of the client's gap.
    #[inline]
    fn client_side_round_trip(&self) -> Option<i64> {
        match self.vantage {
            Some(Vantage::Client) => Some(0),
            _ => Some(self.client_side.estimate()?.0),
        }
    }

    /// Fills a request's row from its message: times, sizes, frame. A compound member that is not
    /// the lead gets only the frame, and the times if it is answered apart from the lead.
    #[inline(always)]
    pub fn start(&mut self, pending: &mut Pending, message: &Message<'_>, lead: bool) {
        self.start_member(pending, message.frame, message.sequence);
        if !lead {
            pending.asked = Some((message.start, message.end));
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
        row.set_request_wire_bytes(u64::from(message.length) + u64::from(message.header_bytes));
        if self.in_flight == 0
            && let (Some(last), Some(before)) = (self.last_reply, self.client_side_round_trip())
        {
            row.set_client_gap_ns(message.start.saturating_sub(last).saturating_sub(before));
        }
    }

    /// Likewise for a later member of a compound, whose message begins in that frame.
    #[inline(always)]
    pub fn start_member(&mut self, pending: &mut Pending, frame: u64, sequence: u32) {
        self.requests_seen = true;
        pending.lead = false;
        let row = &mut pending.row;
        row.set_source(Source::Capture as u64);
        row.set_request_frame(frame);
        if !self.has_no_sequence {
            row.set_tcp_sequence(sequence);
        }
        row.set_outstanding(self.in_flight);
        if let Some(dialect) = self.dialect {
            row.set_dialect(dialect);
        }
    }

    /// Counts a request with a long name, or with a session of a message of `session_bytes`, among those that wait. False if all
    /// connections together have no room for it.
    #[inline]
    pub fn keeps(&mut self, pending: &mut Pending, session_bytes: usize, limits: &Limits) -> bool {
        let session = if pending.session.is_some() { session_bytes } else { 0 };
        let bytes = pending.name.capacity() + session;
        if bytes <= LONG_BYTES {
            return true;
        }
        pending.waiting_bytes = bytes;
        self.waiting.add(bytes);
        self.waiting.all() <= limits.waiting_bytes()
    }

    /// Forgets the names of a request that waits.
    #[cold]
    pub fn drop_names(&mut self, pending: &mut Pending) {
        self.waiting.remove(std::mem::take(&mut pending.waiting_bytes));
        (pending.name, pending.has_name, pending.session) = (String::new(), false, None);
    }

    /// Counts an operation as in flight. Call it after all members of a message were started.
    #[inline]
    pub fn add_in_flight(&mut self, pending: &mut Pending) {
        pending.in_flight = true;
        pending.lost_at = self.replies + REPLIES_UNTIL_LOST;
        pending.is_missed = false;
        self.in_flight += 1;
        let most = &mut self.table.outstanding_max;
        *most = (*most).max(u64::from(self.in_flight));
    }

    /// Whether it is time to look for requests whose reply was lost; `waiting` requests wait.
    #[inline]
    pub fn should_look_for_lost(&mut self, waiting: usize) -> bool {
        let is_time = self.has_losses && self.replies >= self.next_look;
        if is_time {
            // The more requests wait, the less often, so that the cost per reply is constant.
            self.next_look = self.replies + REPLIES_UNTIL_LOST / 4 + waiting as u64 / 8;
        }
        is_time
    }

    /// Replies were not captured. Returns the number of replies on the connection after which the
    /// operations that are now in flight count as answered by them; none if nothing is in flight.
    pub fn miss_replies(&mut self) -> Option<u64> {
        // A single message has been answered. With several, each may still be waiting.
        let at = match self.clock.in_flight() {
            0 => return None,
            1 => self.replies,
            several => self.replies + 2 * u64::from(several),
        };
        self.next_look = self.next_look.min(at);
        Some(at)
    }

    /// Removes an operation from those in flight if its reply seems lost, so that it does not count
    /// for all later ones. The reply may still come. It counts as lost at `at` replies on the
    /// connection, if not earlier.
    pub fn remove_if_lost(&mut self, at: u64, pending: &mut Pending, time: i64) {
        if at < pending.lost_at {
            pending.lost_at = at;
            pending.is_missed = true;
        }
        if pending.in_flight
            && pending.row.pending_at().is_none()
            && self.replies >= pending.lost_at
        {
            self.remove_in_flight(pending, time);
        }
    }

    /// Removes an operation from those in flight and from the busy clock: it is answered, or it
    /// waits by design.
    #[inline(always)]
    pub fn remove_in_flight(&mut self, pending: &mut Pending, time: i64) {
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

    /// Puts a member of a compound on the busy clock, because the members before it were answered
    /// at that time and its own reply is still to come.
    pub fn begin_apart(&mut self, pending: &mut Pending, time: i64) {
        if pending.in_flight && !pending.on_clock && !pending.lead {
            pending.begun = self.clock.begin(time);
            pending.on_clock = true;
        }
    }

    /// Puts an operation that waited for its client back in flight, because another message of
    /// its request came.
    pub fn resume(&mut self, pending: &mut Pending, message: &Message<'_>) {
        pending.begun = BusyClock::resume(message.begun, pending.row.busy_ns().unwrap_or(0));
        pending.on_clock = message.begun != NOT_ON_CLOCK;
        self.add_in_flight(pending);
    }

    /// Endpoints an operation with its reply and emits the row. `first` says that it is the first (or
    /// only) one in the reply's message, whose times and bytes are stored in its row.
    #[inline(always)]
    pub fn finish(
        &mut self,
        out: &mut Output,
        pending: &mut Pending,
        times: &ReplyTimes,
        first: bool,
        effect: Effect,
    ) {
        let end = times.end_or_start();
        self.remove_in_flight(pending, end);
        self.replies += 1;
        self.last_reply = Some(self.last_reply.map_or(end, |last| last.max(end)));
        let row = &mut pending.row;
        row.set_response_frame(times.frame);
        // A member of a compound that is answered apart from the lead has a time of its own.
        let is_timed = pending.lead || first;
        if let Some((start, end)) = pending.asked.filter(|_| is_timed) {
            row.set_request_start(start);
            if let Some(end) = end {
                row.set_request_end(end);
            }
        }
        if is_timed {
            row.set_response_start(times.start);
            if let Some(end) = times.end {
                row.set_response_end(end);
            }
            row.set_response_wire_bytes(row.response_wire_bytes().unwrap_or(0) + times.wire_bytes);
            row.derive_durations();
            // Packets that were recorded late move the clock of the connection, not this operation's share of it.
            if let (Some(busy), Some(elapsed)) = (row.busy_ns(), row.elapsed_ns())
                && busy > elapsed
            {
                row.set_busy_ns(elapsed);
            }
        }
        if is_timed
            && row.waits() != Some(true)
            && let (Some(turnaround), Some((behind, error))) =
                (row.turnaround_ns(), self.server_side_round_trip())
        {
            row.set_server_ns(turnaround - behind);
            row.set_server_error_ns(error);
        }
        if is_timed
            && let Some(begin) = row.request_start()
            && let Some(recovery) = self.recoveries.within(begin, end)
        {
            row.set_recovery_ns(recovery);
        }
        self.emit(out, pending, end, effect);
    }

    /// Removes a message from the busy clock that turned out not to be a request.
    #[inline]
    pub fn unbegin(&mut self, time: i64, begun: i64) {
        if begun != NOT_ON_CLOCK {
            self.clock.end(time, begun);
        }
    }

    /// Emits the row of a message that the server sent without a request.
    pub fn notification(&mut self, out: &mut Output, row: Operation, times: &ReplyTimes) {
        let mut pending = Pending { row, ..Pending::default() };
        let row = &mut pending.row;
        row.set_source(Source::Capture as u64);
        row.set_response_frame(times.frame);
        row.set_response_start(times.start);
        if let Some(end) = times.end {
            row.set_response_end(end);
            row.set_response_transfer_ns(end - times.start);
        }
        row.set_response_wire_bytes(times.wire_bytes);
        if let Some(dialect) = self.dialect {
            row.set_dialect(dialect);
        }
        self.emit(out, &mut pending, times.end_or_start(), Effect::None);
    }

    /// Emits a row for which no (more) reply is expected: a Cancel, or a request at the end.
    pub fn give_up(&mut self, out: &mut Output, pending: &mut Pending, time: i64) {
        let was_in_flight = pending.in_flight;
        self.remove_in_flight(pending, time);
        // If its reply was missed it keeps its share of busy time up to then; others were not given
        // it.
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
        times: &ReplyTimes,
        lead: bool,
        effect: Effect,
    ) {
        let mut pending = Pending { row, lead, ..Pending::default() };
        pending.row.set_source(Source::Capture as u64);
        if let Some(dialect) = self.dialect {
            pending.row.set_dialect(dialect);
        }
        self.finish(out, &mut pending, times, lead, effect);
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
        if pending.waiting_bytes > 0 {
            self.waiting.remove(std::mem::take(&mut pending.waiting_bytes));
            pending.name = String::new();
        }
        let row = &mut pending.row;
        out.rows.extend_from_slice(std::slice::from_ref(row));
        out.done.push(OperationEnd {
            connection: self.index,
            order: out.order,
            time,
            chain: pending.chain,
            path,
            effect,
        });
    }
}
