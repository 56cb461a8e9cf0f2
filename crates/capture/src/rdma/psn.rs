//! The order of one direction's requests by their packet sequence numbers.
//!
//! Owns arithmetic modulo 2^24 and the number that comes next. An RDMA Read request takes as many
//! numbers as its response has packets; if the path's MTU is not known, that is a range. Does not
//! own packets that wait (`shard`). InfiniBand Architecture Specification volume 1 section 9.7.

/// How far `psn` is ahead of `other`; negative if it is behind.
pub fn ahead(psn: u32, other: u32) -> i32 {
    (psn.wrapping_sub(other) << 8) as i32 >> 8
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is next.
    Next,
    /// It came before.
    Old,
    /// One before it is missing.
    Early,
    /// It is so far away that it belongs to another connection, whose beginning was not seen. It
    /// is accepted.
    Jump,
}

/// Numbers further away than this are not in flight together.
const JUMP: u32 = 1 << 18;

/// The numbers of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// The number that comes next, and by how much it may be higher.
    next: Option<(u32, u32)>,
}

impl Order {
    /// The lowest number that may come next, once one was seen.
    pub fn next(&self) -> Option<u32> {
        self.next.map(|(next, _)| next)
    }

    /// Judges a request that takes at least `least` and at most `most` numbers, and accepts it if
    /// it is next.
    pub fn judge(&mut self, psn: u32, least: u32, most: u32) -> Verdict {
        let mut verdict = Verdict::Next;
        if let Some((next, more)) = self.next {
            let distance = ahead(psn, next);
            if distance.unsigned_abs() > JUMP.max(more) {
                verdict = Verdict::Jump;
            } else if distance < 0 {
                return Verdict::Old;
            } else if distance as u32 > more {
                return Verdict::Early;
            }
        }
        self.next = Some((psn.wrapping_add(least) & 0x00ff_ffff, most.saturating_sub(least)));
        verdict
    }

    /// What comes before `psn` is lost.
    pub fn skip_to(&mut self, psn: u32) {
        self.next = Some((psn, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_at_24_bits() {
        let mut order = Order::default();
        assert_eq!(order.judge(0x00ff_ffff, 1, 1), Verdict::Next);
        assert_eq!(order.next(), Some(0));
        assert_eq!(order.judge(0x00ff_ffff, 1, 1), Verdict::Old);
        assert_eq!(order.judge(1, 1, 1), Verdict::Early);
        assert_eq!(order.judge(0, 1, 1), Verdict::Next);
        assert_eq!(order.judge(0x80_0000, 1, 1), Verdict::Jump);
        assert_eq!(order.judge(0x80_0001, 1, 1), Verdict::Next);
    }

    #[test]
    fn a_read_takes_as_many_as_its_response_has_packets() {
        let mut order = Order::default();
        // 64 KiB with an MTU of 4 KiB, 256 bytes, or one that is not known.
        for (least, most, psn) in [(16, 16, 16), (256, 256, 272), (16, 256, 300)] {
            order.judge(order.next().unwrap_or(0), least, most);
            assert_eq!(order.judge(psn + 256, 1, 1), Verdict::Early);
            assert_eq!(order.judge(psn, 1, 1), Verdict::Next);
            order.skip_to(psn);
        }
    }
}
