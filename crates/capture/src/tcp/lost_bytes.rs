//! Bytes of one direction that were not captured: when they are given up, and how decoding
//! continues behind them.

use super::Context;
use super::connection::Connection;
use crate::outcome::Output;
use crate::stream::Piece;

impl Connection {
    pub(super) fn release(&mut self, from: usize, context: &Context, out: &mut Output) {
        while self.halves[from].order.has_hole() {
            // The order is moved out so that its segment can be fed without a copy.
            let mut order = std::mem::take(&mut self.halves[from].order);
            let released = order.release(|piece| {
                self.halves[from].bytes += u64::from(piece.length);
                self.feed(&piece, from, context, out);
            });
            self.halves[from].order = order;
            if !released {
                return;
            }
        }
    }

    pub(super) fn give_up_holes(
        &mut self,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        for from in 0..2 {
            loop {
                let half = &mut self.halves[from];
                let limit = context.limits.reorder_bytes;
                if !half.order.is_hopeless(half.acknowledged, time, limit) {
                    break;
                }
                self.skip_hole(from, time, frame, context, out);
            }
        }
    }

    /// Gives up the hole in one direction and continues behind it.
    pub(super) fn skip_hole(
        &mut self,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        if let Some((sequence, length)) = self.halves[from].order.hole() {
            self.skip(from, &Piece::lost(sequence, length, time, frame), context, out);
        }
    }

    /// Gives up bytes of one direction and continues behind them.
    pub(super) fn skip(
        &mut self,
        from: usize,
        hole: &Piece<'_>,
        context: &Context,
        out: &mut Output,
    ) {
        self.lose(from, hole, context, out);
        self.halves[from].order.set_next(hole.end());
        self.release(from, context, out);
    }

    /// Gives up all holes, for the limit on what waits in all connections together.
    pub fn skip_holes(&mut self, context: &Context, out: &mut Output) {
        self.settle(None, context, out);
        for from in 0..2 {
            while self.halves[from].order.has_hole() {
                out.coverage.segments_discarded += 1;
                self.skip_hole(from, self.last, 0, context, out);
            }
        }
    }

    pub(super) fn lose(
        &mut self,
        from: usize,
        hole: &Piece<'_>,
        context: &Context,
        out: &mut Output,
    ) {
        let half = &mut self.halves[from];
        half.gaps += 1;
        half.gap_bytes += u64::from(hole.length);
        half.sample = None;
        self.feed(hole, from, context, out);
    }

    /// Bytes of the server in which messages began were not captured.
    #[cold]
    pub(super) fn miss_replies(&mut self) {
        // Their time is unknown: perhaps after a pause, which must not count as busy.
        let time = self.pairing.clock.time();
        if let Some(at) = self.pairing.miss_replies() {
            self.smb1.remove_if_lost(at, time, &mut self.pairing);
            self.smb2.remove_if_lost(at, time, &mut self.pairing);
        }
    }
}
