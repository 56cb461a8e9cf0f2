//! Lists of clients from caches and from captures, as one kind of list; clients without one.

use super::{CapturedReferral, ClientVerdict, Reason, ReasonKind, Unread};
use crate::namespace::model::{CachedReferral, CachedTarget, ClientCache};
use crate::namespace::names::normal;

/// A cache with the lists that were captured later.
pub(super) fn merged(
    cache: &ClientCache,
    read_at: i64,
    wire: &ClientCache,
    at: i64,
) -> ClientCache {
    let age = u64::try_from(at.saturating_sub(read_at)).unwrap_or(0);
    let is_replaced = |one: &CachedReferral| {
        let entry = normal(&one.entry);
        wire.referrals.iter().any(|other| normal(&other.entry) == entry)
    };
    let older = cache.referrals.iter().filter(|one| !is_replaced(one)).map(|one| CachedReferral {
        expires_s: one.expires_s.map(|expires| expires.saturating_sub(age)),
        ..one.clone()
    });
    // What has expired meanwhile is not used again, unless files are open.
    let has_open = !cache.open_files.is_empty();
    let older = older.filter(|one| has_open || one.expires_s != Some(0));
    ClientCache {
        client: cache.client.clone(),
        referrals: older.chain(wire.referrals.iter().cloned()).collect(),
        open_files: cache.open_files.clone(),
        read_at_s: Some(at),
        is_without_failover: cache.is_without_failover,
    }
}

/// A captured referral as an entry of a cache that is read at a time.
pub(super) fn as_cached(one: &CapturedReferral, read_at: i64) -> CachedReferral {
    let age = u64::try_from(read_at.saturating_sub(one.at_s)).unwrap_or(0);
    let targets = one
        .servers
        .iter()
        .map(|server| CachedTarget { server: server.clone(), ..CachedTarget::default() });
    CachedReferral {
        entry: one.path.trim_start_matches('\\').to_owned(),
        expires_s: one.ttl_s.map(|ttl| u64::from(ttl).saturating_sub(age)),
        targets: targets.collect(),
        use_count: Some(1),
        ..CachedReferral::default()
    }
}

/// Whether an entry has expired and has no user.
pub(super) fn is_dead(referral: &CachedReferral) -> bool {
    referral.expires_s == Some(0) && referral.use_count == Some(0)
}

/// A client that was asked in vain.
pub(super) fn not_read(one: &Unread) -> ClientVerdict {
    ClientVerdict {
        client: one.name.clone(),
        is_ready: false,
        reasons: vec![reason(ReasonKind::NotRead, &one.why, 1)],
        ready_at_s: None,
        lists_new: Vec::new(),
        lists_old: Vec::new(),
        uses: None,
        open_files: 0,
        read_at_s: None,
        is_captured: false,
    }
}

/// A reason without servers.
pub(super) fn reason(kind: ReasonKind, entry: &str, count: u64) -> Reason {
    Reason { kind, entry: entry.to_owned(), servers: Vec::new(), count }
}
