//! Sessions of one report that moved as much: what more paths, or other settings, brought.

use super::data::{SessionTimeline, Versus};
use super::rounded;

/// Bytes differ by this share at most.
const ALIKE: f64 = 0.1;
/// Fewest bytes of a session that is compared.
pub(super) const BYTES_MIN: u64 = 1 << 30;

/// Compares each session with one of fewer paths, and otherwise with the slowest of as many.
pub(super) fn compare(sessions: &mut [SessionTimeline]) {
    let all = sessions.to_vec();
    for one in sessions {
        let is_alike = |other: &&SessionTimeline| {
            let (a, b) = (one.bytes(), other.bytes());
            let is_same = one.written_bytes > one.read_bytes;
            other.recording != one.recording
                && a.min(b) >= BYTES_MIN
                && a.abs_diff(b) as f64 <= ALIKE * a.max(b) as f64
                && is_same == (other.written_bytes > other.read_bytes)
                && other.lasted_ns > 0
        };
        let distance = |other: &&SessionTimeline| {
            // The same state of power saving, if it is known, so that one thing differs.
            let idle =
                |one: &SessionTimeline| one.power.as_ref().map(|state| state.deep_idle_before);
            let differs = match (idle(one), idle(other)) {
                (Some(a), Some(b)) => (a - b).abs() > 0.3,
                _ => false,
            };
            (differs, std::cmp::Reverse(other.lasted_ns))
        };
        let fewer = all.iter().filter(is_alike).filter(|other| other.paths < one.paths);
        let slower = (all.iter().filter(is_alike))
            .filter(|other| other.paths == one.paths && other.lasted_ns > one.lasted_ns);
        let found =
            fewer.min_by_key(distance).or_else(|| slower.max_by_key(|other| other.lasted_ns));
        one.versus = found.map(|other| Versus {
            recording: other.recording.clone(),
            paths: other.paths,
            factor: quotient(other.lasted_ns, one.lasted_ns),
            promised: rounded(one.paths as f64 / other.paths.max(1) as f64),
            transfer_factor: quotient(transfer(other), transfer(one)),
        });
    }
}

/// From the first byte to the last.
pub(super) fn transfer(one: &SessionTimeline) -> i64 {
    one.lasted_ns - one.first_byte_after_ns.unwrap_or(0)
}

fn quotient(before: i64, after: i64) -> f64 {
    rounded(before as f64 / after.max(1) as f64)
}
