//! Acknowledged data of one open that no Flush has made stable yet, with the times of the acknowledgements: which of it a
//! Flush covers depends on when that was sent.
//!
//! Memory is bounded: beyond [`PARTS_MAX`] parts, neighbours become one as far as their span is small against their age.
//! Such a part counts as covered if all of it is, so a Flush that took time T may leave up to T / 8 too much uncovered.

use std::collections::VecDeque;

use super::WINDOW_NS;

/// Parts that are kept before neighbours become one.
const PARTS_MAX: usize = 512;
/// A part spans its age divided by this at most.
const AGE_SHARE: i64 = 8;
const SECOND_NS: i64 = 1_000_000_000;

/// Data that was acknowledged together, or nearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// When its first and last byte were acknowledged, ns since 1970.
    pub(super) first_ns: i64,
    last_ns: i64,
    /// The second in which it is no longer at risk.
    over: i64,
    pub(super) bytes: u64,
}

impl Part {
    /// When it is no longer at risk, ns since 1970.
    pub(super) fn over_ns(&self) -> i64 {
        self.over.saturating_mul(SECOND_NS)
    }
}

/// The data of an open, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    parts: VecDeque<Part>,
}

impl Dirty {
    /// Adds data that is acknowledged now; returns when it is no longer at risk, ns since 1970.
    pub(super) fn add(&mut self, now_ns: i64, bytes: u64) -> i64 {
        while self.parts.front().is_some_and(|part| part.over_ns() < now_ns) {
            self.parts.pop_front();
        }
        let over = now_ns.saturating_add(WINDOW_NS).div_euclid(SECOND_NS);
        // Operations may come out of order.
        let over = self.parts.back().map_or(over, |part| part.over.max(over));
        if self.parts.len() >= PARTS_MAX {
            self.join(now_ns, false);
            // Writes that come far out of order have no age.
            if self.parts.len() > PARTS_MAX / 2 {
                self.join(now_ns, true);
            }
        }
        let part = Part { first_ns: now_ns, last_ns: now_ns, over, bytes };
        self.parts.push_back(part);
        part.over_ns()
    }

    fn join(&mut self, now_ns: i64, is_by_second: bool) {
        let mut joined: VecDeque<Part> = VecDeque::with_capacity(PARTS_MAX);
        for part in self.parts.drain(..) {
            match joined.back_mut() {
                Some(last)
                    if last.over == part.over
                        && (is_by_second
                            || part.last_ns.saturating_sub(last.first_ns)
                                <= now_ns.saturating_sub(part.last_ns) / AGE_SHARE) =>
                {
                    last.first_ns = last.first_ns.min(part.first_ns);
                    last.last_ns = last.last_ns.max(part.last_ns);
                    last.bytes = last.bytes.saturating_add(part.bytes);
                }
                _ => joined.push_back(part),
            }
        }
        self.parts = joined;
    }

    /// Takes what a Flush that was sent then covers.
    pub(super) fn flush(&mut self, sent_ns: i64) -> Vec<Part> {
        let mut covered = Vec::new();
        self.parts.retain(|part| {
            let is_covered = part.last_ns <= sent_ns;
            if is_covered {
                covered.push(*part);
            }
            !is_covered
        });
        covered
    }

    /// Bytes that are left.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it_was_sent() {
        let mut dirty = Dirty::default();
        for at in [10, 20, 30, 40] {
            assert_eq!(dirty.add(at * SECOND_NS, 100), (at + 35) * SECOND_NS);
        }
        let covered = dirty.flush(30 * SECOND_NS);
        let bytes: u64 = covered.iter().map(|part| part.bytes).sum();
        assert_eq!((bytes, covered[0].first_ns, dirty.bytes()), (300, 10 * SECOND_NS, 100));
        assert!(dirty.flush(39 * SECOND_NS).is_empty());
    }

    #[test]
    fn many_parts_become_few_and_a_flush_leaves_little_more_than_it_should() {
        let (mut dirty, mut now) = (Dirty::default(), 0);
        for _ in 0..100_000 {
            now += 100_000;
            dirty.add(now, 1);
            assert!(dirty.parts.len() <= PARTS_MAX);
        }
        assert_eq!(dirty.bytes(), 100_000);
        // Sent 1 s ago: 10,000 writes came after it, and at most an eighth more are left.
        dirty.flush(now - SECOND_NS);
        assert!((10_000..=11_250).contains(&dirty.bytes()), "{}", dirty.bytes());
    }
}
