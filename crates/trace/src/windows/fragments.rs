//! Events whose data was split: keywords say which piece is the first and which the last one.
//!
//! Keywords of Microsoft-Windows-NDIS-PacketCapture and of the providers of SMB: 0x40000000 begins, 0x80000000
//! ends. From Windows 8.1 on, packets come whole: both are set.

use foldhash::{HashMap, HashMapExt as _};

/// The piece is the first one.
pub const FIRST: u64 = 0x4000_0000;
/// The piece is the last one.
pub const LAST: u64 = 0x8000_0000;

/// The longest data that are put together: no packet or message of SMB is longer.
const BYTES_MAX: usize = 17 << 20;
/// Data that wait for their last piece, and the bytes of all of them.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Puts pieces together. Those of one thread follow each other.
#[derive(Debug, Default)]
pub struct Fragments<Key> {
    waiting: HashMap<(u32, Key), Vec<u8>>,
    bytes: usize,
    /// Data of which a piece is missing, or that were too many or too long.
    pub discarded: u64,
}

impl<Key: Copy + Eq + std::hash::Hash> Fragments<Key> {
    /// An empty store.
    pub fn new() -> Fragments<Key> {
        Fragments { waiting: HashMap::new(), bytes: 0, discarded: 0 }
    }

    /// Takes a piece that a thread wrote. Calls `whole` with the data if they are complete.
    pub fn piece<R>(
        &mut self,
        thread: u32,
        key: Key,
        keyword: u64,
        piece: &[u8],
        whole: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let (is_first, is_last) = (keyword & FIRST != 0, keyword & LAST != 0);
        let place = (thread, key);
        if is_first && is_last && self.waiting.is_empty() {
            return Some(whole(piece));
        }
        if is_first {
            if let Some(before) = self.waiting.remove(&place) {
                self.bytes -= before.len();
                self.discarded += 1;
            }
            if is_last {
                return Some(whole(piece));
            }
            if self.waiting.len() >= WAITING_MAX {
                self.discarded += 1;
                return None;
            }
            self.waiting.insert(place, Vec::new());
        }
        let Some(data) = self.waiting.get_mut(&place) else {
            // The first piece was lost; each of the others counts as the last one arrives.
            self.discarded += u64::from(is_last);
            return None;
        };
        let fits = data.len() + piece.len() <= BYTES_MAX;
        if !fits || self.bytes + piece.len() > WAITING_BYTES_MAX {
            self.bytes -= data.len();
            self.waiting.remove(&place);
            self.discarded += 1;
            return None;
        }
        data.extend_from_slice(piece);
        self.bytes += piece.len();
        if !is_last {
            return None;
        }
        let data = self.waiting.remove(&place)?;
        self.bytes -= data.len();
        Some(whole(&data))
    }

    /// Everything ended: what still waits has no last piece.
    pub fn end(&mut self) {
        self.discarded += self.waiting.len() as u64;
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_threads_are_put_together_and_losses_are_counted() {
        let mut fragments = Fragments::new();
        let mut piece = |thread, keyword, bytes: &[u8]| {
            fragments.piece(thread, (), keyword, bytes, |whole| whole.to_vec())
        };
        assert_eq!(piece(1, FIRST | LAST, b"one"), Some(b"one".to_vec()));
        assert_eq!(piece(1, FIRST, b"t"), None);
        assert_eq!(piece(2, FIRST, b"th"), None);
        assert_eq!(piece(1, 0, b"w"), None);
        assert_eq!(piece(2, LAST, b"ree"), Some(b"three".to_vec()));
        assert_eq!(piece(1, LAST, b"o"), Some(b"two".to_vec()));
        // A last piece alone, a first one that another first one follows, and one that never ends.
        assert_eq!(piece(1, LAST, b"x"), None);
        assert_eq!(piece(1, FIRST, b"x"), None);
        assert_eq!(piece(1, FIRST, b"x"), None);
        fragments.end();
        assert_eq!((fragments.discarded, fragments.bytes), (3, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut fragments = Fragments::new();
        let piece = vec![0; 1 << 20];
        for thread in 0..100 {
            fragments.piece(thread, (), FIRST, &piece, |_| ());
            fragments.piece(thread, (), 0, &piece, |_| ());
            assert!(fragments.bytes <= WAITING_BYTES_MAX);
        }
        assert!(fragments.discarded > 0);
    }
}
