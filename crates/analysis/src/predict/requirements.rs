//! Whether a recording has what changes need, which is known when it was replayed.

use super::changes::{Change, Lacking};
use super::replay::{Learnt, Prediction};

/// Operations that were made stable without which what that costs is a guess.
const STABLE_LEAST: u64 = 10;

/// The first change to other block sizes whose costs a replay without changes could not learn.
pub fn lacks_sizes(changes: &[Change], [read, write]: [Learnt; 2]) -> Option<Lacking> {
    let lacking = changes.iter().find(|change| {
        let (block, of): (u64, &[Learnt]) = match **change {
            Change::Block(bytes) => (bytes, &[read, write]),
            Change::ReadBlock(bytes) => (bytes, &[read]),
            Change::WriteBlock(bytes) => (bytes, &[write]),
            _ => return false,
        };
        // What stays as it is needs no costs.
        of.iter().any(|one| one.line.is_none() && (one.continued > 0 || one.most_bytes > block))
    });
    lacking.map(Change::lacking)
}

/// The first change that a prediction with these changes could not answer.
pub fn lacks(changes: &[Change], prediction: &Prediction) -> Option<Lacking> {
    let has = |name: &str| prediction.slices.iter().any(|(slice, n)| *slice == name && *n > 0);
    let lacking = changes.iter().find(|change| {
        let is_answerable = match (change, change.slices()) {
            (_, Some((kinds, _))) => kinds.iter().any(|kind| has(kind.name())),
            (Change::Cache(_), _) => prediction.cached.creates > 0,
            (Change::Block(_) | Change::Depth(_), _) => prediction.moves != [0, 0],
            (Change::ReadBlock(_), _) => prediction.moves[0] > 0,
            (Change::WriteBlock(_), _) => prediction.moves[1] > 0,
            (Change::Signing(_) | Change::Encryption(_), _) => prediction.protected.unknown == 0,
            (Change::CacheHit(_), _) => prediction.lessons.hits.is_some(),
            (Change::WriteThrough(_), _) => prediction.lessons.stable.n >= STABLE_LEAST,
            // Where nothing must be stable, nothing waits, and that is the answer only of writes.
            (Change::Replication(one), _) if one.is_sync => prediction.stable > 0,
            (Change::Replication(_), _) => prediction.at_risk.is_some(),
            _ => true,
        };
        !is_answerable
    });
    lacking.map(Change::lacking)
}
