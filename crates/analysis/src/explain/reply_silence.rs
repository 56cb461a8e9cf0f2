//! How long a connection was silent before each reply: with many requests in flight, the wait for one
//! of them is only the time since the reply before it.

use hashbrown::HashMap;

use super::operation::Operation;

/// Most connections that are followed; when there are more, all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;

/// When the last reply on each connection ended.
#[derive(Default)]
pub(super) struct ReplySilence(HashMap<(u32, u64), i64, foldhash::fast::RandomState>);

impl ReplySilence {
    /// How long nothing had arrived on the connection before an operation's reply, ns, at most the
    /// time that the operation waited.
    pub(super) fn before(&mut self, op: &Operation) -> i64 {
        let (Some(start), Some(turnaround), true) = (op.start, op.turnaround_ns(), op.is_timed)
        else {
            return 0;
        };
        if self.0.len() >= CONNECTIONS_MAX {
            self.0.clear();
        }
        let end = start.saturating_add(op.elapsed_ns);
        let replied = end.saturating_sub(op.reply_ns());
        match self.0.insert((op.recording, op.connection), end) {
            Some(before) => replied.saturating_sub(before).clamp(0, turnaround),
            None => turnaround,
        }
    }
}
