//! Requests on one open go one at a time that could go together, as related requests of a compound
//! (MS-SMB2 section 3.2.4.1.4).

use hashbrown::HashMap;
use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;
use super::super::detector::{Context, Detector};
use super::super::operation::{Act, Operation};
use crate::predict::changes::Change;

pub(crate) const CLIENT: (&str, &str) = (
    "client",
    "use one that compounds related requests: Windows 8 and later and Linux from 5.9 do, smbclient from 4.x in \
     part",
);
/// Where the client compounds other requests.
pub(crate) const CALLS: (&str, &str) = (
    "application",
    "the client compounds other requests: these come from separate calls of a program. Ask for what it needs with one call by path \
     (GetFileAttributesEx, FindFirstFileEx, statx) instead of opening, asking and closing",
);

pub(crate) const KIND: KindInfo = KindInfo::new("no-compounding", "no compounding")
    .with_actor(Actor::Client)
    .with_remedies(&[
    CLIENT,
    (
        "network",
        "bring client and server closer together, or put a cache between them (BranchCache)",
    ),
]);

/// A client that takes longer than this may need the reply for its next request, ns.
const AT_ONCE_NS: i64 = 1_000_000;
/// Clients send two listing requests in one compound; whether more are needed, only the replies show.
const LISTINGS_MAX: u32 = 2;
/// Most connections that are followed; when there are more, all are forgotten.
const CONNECTIONS_MAX: usize = 65_536;

/// The last request of a connection.
struct LastRequest {
    handle: (u32, u64),
    ended_at: i64,
    may_lead: bool,
    /// Listing requests in a row, with this one.
    listings: u32,
}

/// Requests that could have been in the compound of the request before.
#[derive(Default)]
pub(crate) struct NoCompounding {
    last: HashMap<(u32, u64), LastRequest, foldhash::fast::RandomState>,
    attribution: Attribution,
}

impl Detector for NoCompounding {
    fn see(&mut self, op: &Operation) {
        let key = (op.recording, op.connection);
        let (Some(handle), Some(start), true) = (op.handle, op.start, op.is_timed) else {
            self.last.remove(&key);
            return;
        };
        if self.last.len() >= CONNECTIONS_MAX {
            self.last.clear();
        }
        let listings = self.last.get(&key).filter(|last| last.handle == handle);
        let listings = match op.act {
            Act::List => 1 + listings.map_or(0, |last| last.listings),
            _ => 0,
        };
        let is_query = matches!(op.act, Act::Query | Act::List | Act::Change);
        let last = LastRequest {
            handle,
            ended_at: start.saturating_add(op.elapsed_ns),
            may_lead: is_query || op.act == Act::Open,
            listings,
        };
        let before = self.last.insert(key, last);
        let could_follow = before.is_some_and(|before| {
            before.may_lead
                && before.handle == handle
                && (0..AT_ONCE_NS).contains(&start.saturating_sub(before.ended_at))
        });
        let is_single = op.columns.compound.get(op.row).is_none();
        let is_smb2 = op.columns.protocol.get(op.row) == Some(2);
        if could_follow
            && listings <= LISTINGS_MAX
            && is_single
            && is_smb2
            && (is_query || op.act == Act::Close)
            && let Some((_, network_ns)) = op.split()
        {
            self.attribution.add(op, op.of_busy(network_ns));
        }
    }

    fn finish(self, _: &mut Context) -> Vec<Candidate> {
        let candidate = Candidate::new(
            FindingKind::NoCompounding,
            "Related requests on one open are sent one at a time, each with its own round trip, although they do not \
             depend on each other's replies",
            self.attribution,
            Confidence::Likely,
            "each was sent less than a millisecond after the reply before it, on the same open",
        );
        vec![candidate.with_changes([Change::Compound(true)])]
    }
}
