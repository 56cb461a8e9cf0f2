//! Requests one by one that could go together, as related requests of a compound (MS-SMB2 section 3.2.4.1.4).

use hashbrown::HashMap;

use super::attribution::Gathered;
use super::data::{Confidence, Trouble};
use super::operation::{Act, Seen};
use super::{Found, finding};

/// Who looks at the reply before the next request on the open takes longer, ns.
const AT_ONCE_NS: i64 = 1_000_000;
/// Connections that are followed at once; beyond that all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;

/// The last request of a connection.
struct Last {
    handle: (u32, u64),
    ended_at: i64,
    may_lead: bool,
}

/// All of it.
#[derive(Default)]
pub(super) struct Apart {
    last: HashMap<(u32, u64), Last, foldhash::fast::RandomState>,
    gathered: Gathered,
}

impl Apart {
    /// A request that could have gone with the one before.
    pub(super) fn see(&mut self, seen: &Seen) {
        let key = (seen.recording, seen.connection);
        let (Some(handle), Some(start), true) = (seen.handle, seen.start, seen.is_timed) else {
            self.last.remove(&key);
            return;
        };
        if self.last.len() >= CONNECTIONS_MAX {
            self.last.clear();
        }
        let is_asking = matches!(seen.act, Act::Query | Act::List | Act::Change);
        let last = Last {
            handle,
            ended_at: start.saturating_add(seen.elapsed_ns),
            may_lead: is_asking || seen.act == Act::Open,
        };
        let before = self.last.insert(key, last);
        let could = before.is_some_and(|before| {
            before.may_lead
                && before.handle == handle
                && (0..AT_ONCE_NS).contains(&start.saturating_sub(before.ended_at))
        });
        let is_single = seen.columns.compound.get(seen.row).is_none();
        let is_smb2 = seen.columns.protocol.get(seen.row) == Some(2);
        if could
            && is_single
            && is_smb2
            && (is_asking || seen.act == Act::Close)
            && let Some((_, distance)) = seen.split()
        {
            self.gathered.add(seen, seen.of_busy(distance));
        }
    }

    pub(super) fn finish(self) -> Found {
        finding(
            Trouble::NoCompounding,
            "Requests on one open go one by one, each a round trip, though they do not depend on each other's \
             replies"
                .to_owned(),
            self.gathered,
            Confidence::Medium,
            "each came within a millisecond after the reply before it, on the same open",
        )
    }
}
