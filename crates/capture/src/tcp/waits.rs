//! Waits for a connection itself: data that are retransmitted, and acknowledgements that come late.

use smbscope_tables::tables::Wait;

use super::connection::Connection;
use crate::frame::TcpSegment;
use crate::outcome::{Output, WaitEnd};
use crate::stream::Piece;

/// Data that wait less than this for their acknowledgement have no row, ns: below the
/// least retransmission timeout of TCP (RFC 6298 section 2.4, 200 ms in Linux, 300 ms in Windows)
/// they were repaired at once.
const RESENT_NS_MIN: i64 = 100_000_000;
/// The least time for which a receiver delays an acknowledgement, ns (Linux: 40 ms, Windows: 40 to
/// 200 ms), and the longest (RFC 1122 section 4.2.3.2).
const DELAYED_NS: std::ops::RangeInclusive<i64> = 35_000_000..=500_000_000;
/// What is sent so soon after an acknowledgement was waiting for it, ns.
const AT_ONCE_NS: i64 = 3_000_000;

/// Data that were retransmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    /// The sequence number behind them.
    end: u32,
    since: i64,
    last: i64,
    attempts: u64,
    bytes: u32,
    frames: [u64; 2],
    pub(super) acknowledged: Option<i64>,
}

/// A late acknowledgement of which it is not known yet what follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateAck {
    since: i64,
    at: i64,
    from: usize,
    frame: u64,
}

impl Connection {
    /// Notes that data were retransmitted that were not acknowledged.
    #[cold]
    pub(super) fn note_resent(&mut self, piece: &Piece<'_>, from: usize, out: &mut Output) {
        let half = &mut self.halves[from];
        let end = piece.end();
        let frame = piece.frame;
        if let Some(resent) = &mut half.resent
            && resent.end == end
            && resent.acknowledged.is_none()
        {
            resent.attempts += 1;
            resent.last = piece.time;
            resent.frames[1] = frame;
            return;
        }
        let since = if half.highest == Some(end) { half.highest_at } else { half.waits_since };
        self.emit_resent(from, out);
        self.halves[from].resent = Some(Resent {
            end,
            since: since.min(piece.time),
            last: piece.time,
            attempts: 2,
            bytes: piece.length,
            frames: [frame; 2],
            acknowledged: None,
        });
    }

    /// Data came that were missing: they were retransmitted, or late.
    pub(super) fn note_filled(
        &mut self,
        piece: &Piece<'_>,
        since: i64,
        from: usize,
        out: &mut Output,
    ) {
        self.emit_resent(from, out);
        self.halves[from].resent = Some(Resent {
            end: piece.end(),
            since,
            last: piece.time,
            attempts: 2,
            bytes: piece.length,
            frames: [piece.frame; 2],
            acknowledged: Some(piece.time),
        });
        self.emit_resent(from, out);
    }

    /// Makes a row of the data that were retransmitted last.
    pub(super) fn emit_resent(&mut self, from: usize, out: &mut Output) {
        let Some(resent) = self.halves[from].resent.take() else { return };
        let until = resent.acknowledged.unwrap_or(resent.last);
        if until.saturating_sub(resent.since) < RESENT_NS_MIN {
            return;
        }
        let outcome = match resent.acknowledged {
            Some(_) => "answered",
            None if self.reset => "reset",
            None => "none",
        };
        let row = Wait {
            kind: "retransmission".to_owned(),
            start: resent.since,
            end: resent.acknowledged,
            last_attempt: resent.last,
            attempts: resent.attempts,
            outcome: outcome.to_owned(),
            size_bytes: Some(resent.bytes.into()),
            ..self.wait(from, resent.frames)
        };
        out.waits.push(WaitEnd { connection: Some(self.pairing.index), row });
    }

    /// Takes an acknowledgement without data.
    #[inline]
    pub(super) fn note_bare(
        &mut self,
        segment: &TcpSegment<'_>,
        from: usize,
        time: i64,
        frame: u64,
    ) {
        let sender = &self.halves[1 - from];
        let passed = time.saturating_sub(sender.highest_at);
        if !DELAYED_NS.contains(&passed)
            || sender.highest != Some(segment.acknowledgement)
            // It is the first that acknowledges them.
            || sender.waits_since != time
        {
            return;
        }
        let side = if self.client == Some(from) {
            &self.pairing.client_side
        } else {
            &self.pairing.server_side
        };
        // The delay does not include the time for the distance.
        if side.estimate().is_some_and(|(trip, _)| passed - trip >= *DELAYED_NS.start()) {
            self.late_ack = Some(LateAck { since: sender.highest_at, at: time, from, frame });
        }
    }

    /// Data follow a late acknowledgement: a wait if they come from the end that it was for.
    #[cold]
    pub(super) fn after_late_ack(&mut self, from: usize, time: i64, frame: u64, out: &mut Output) {
        let Some(late) = self.late_ack.take() else { return };
        if from == late.from || time.saturating_sub(late.at) > AT_ONCE_NS {
            return;
        }
        let row = Wait {
            kind: "acknowledgement".to_owned(),
            start: late.since,
            end: Some(time),
            last_attempt: late.at,
            attempts: 1,
            outcome: "answered".to_owned(),
            ..self.wait(1 - late.from, [late.frame, frame])
        };
        out.waits.push(WaitEnd { connection: Some(self.pairing.index), row });
    }

    /// What the rows of data from end `from` have in common.
    fn wait(&self, from: usize, [first_frame, last_frame]: [u64; 2]) -> Wait {
        let client = self.client.unwrap_or(0);
        Wait {
            client: self.ends[client].ip().to_string(),
            server: self.ends[1 - client].ip().to_string(),
            port: self.ends[1 - client].port().into(),
            protocol: "TCP".to_owned(),
            sent_by_client: Some(from == client),
            first_frame,
            last_frame,
            ..Wait::default()
        }
    }
}
