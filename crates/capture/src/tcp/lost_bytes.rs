//! What was not captured of a direction's bytes: when it is given up, and how it goes on behind it.

use super::Context;
use super::connection::Connection;
use crate::outcome::Output;
use crate::stream::Piece;

impl Connection {
    pub(super) fn release(&mut self, from: usize, context: &Context, out: &mut Output) {
        while self.halves[from].order.has_hole() {
            // The order is taken out so that its segment can be fed without a copy.
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

    /// Gives up the hole in one direction and goes on behind it.
    pub(super) fn skip_hole(
        &mut self,
        from: usize,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        if let Some((start, length)) = self.halves[from].order.hole() {
            self.skip(from, start, length, time, frame, context, out);
        }
    }

    /// Gives up bytes of one direction and goes on behind them.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn skip(
        &mut self,
        from: usize,
        start: u32,
        length: u32,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        self.lose(from, start, length, time, frame, context, out);
        self.halves[from].order.set_next(start.wrapping_add(length));
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

    #[allow(clippy::too_many_arguments)]
    pub(super) fn lose(
        &mut self,
        from: usize,
        sequence: u32,
        length: u32,
        time: i64,
        frame: u64,
        context: &Context,
        out: &mut Output,
    ) {
        let half = &mut self.halves[from];
        half.gaps += 1;
        half.gap_bytes += u64::from(length);
        half.sample = None;
        let hole = Piece { bytes: &[], length, time, frame, sequence, lost: true };
        self.feed(&hole, from, context, out);
    }

    /// Bytes of the server were not captured in which messages began.
    #[cold]
    pub(super) fn miss_replies(&mut self) {
        // When they came is not known: after a pause, perhaps, which is not to count as busy.
        let time = self.link.clock.time();
        if let Some(at) = self.link.miss_replies() {
            self.smb1.arrive_lost(at, time, &mut self.link);
            self.smb2.arrive_lost(at, time, &mut self.link);
        }
    }
}
