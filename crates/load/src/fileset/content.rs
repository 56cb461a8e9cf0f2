//! The contents of the files: bytes that follow from (file, offset), generated in pieces of any size.
//!
//! They are not compressible and differ between files, so that a server that compresses or deduplicates
//! shows its behaviour for such data. A page of 4,096 bytes is a piece of one pool of random bytes,
//! with eight bytes of the page's own mixed in: as fast as a copy. Never change this: contents must be
//! the same in the next version.

use std::sync::OnceLock;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::FileRef;
use super::random::mix;

const PAGE_BYTES: usize = 4096;
const POOL_BYTES: usize = 256 << 10;

/// Fills `out` with the file's bytes from `offset_bytes` on. The caller handles the file's end.
pub fn content(file: &FileRef, offset_bytes: u64, out: &mut [u8]) {
    let pool = pool();
    let mut rest = out;
    let mut at = offset_bytes;
    while !rest.is_empty() {
        let in_page = (at % PAGE_BYTES as u64) as usize;
        let count = rest.len().min(PAGE_BYTES - in_page);
        let (piece, behind) = rest.split_at_mut(count);
        let random = mix(file.key, at / PAGE_BYTES as u64);
        let start = (random % (POOL_BYTES - PAGE_BYTES) as u64) as usize + in_page;
        let own = mix(random, 1).rotate_right(8 * (in_page as u32 % 8));
        fill(piece, pool.get(start..start + count).unwrap_or_default(), own);
        rest = behind;
        at = at.wrapping_add(count as u64);
    }
}

/// `from` with `own` mixed into every eight bytes.
fn fill(out: &mut [u8], from: &[u8], own: u64) {
    let (words, tail) = out.as_chunks_mut::<8>();
    let (from_words, from_tail) = from.as_chunks::<8>();
    for (word, from) in words.iter_mut().zip(from_words) {
        *word = (u64::from_le_bytes(*from) ^ own).to_le_bytes();
    }
    for ((byte, from), own) in tail.iter_mut().zip(from_tail).zip(own.to_le_bytes()) {
        *byte = from ^ own;
    }
}

fn pool() -> &'static [u8] {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    POOL.get_or_init(|| {
        let mut pool = vec![0; POOL_BYTES];
        ChaCha8Rng::from_seed(*b"smbscope: the contents of files.").fill_bytes(&mut pool);
        pool
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(key: u64) -> FileRef {
        FileRef { pool: 0, index: 0, bytes: 1 << 20, key }
    }

    #[test]
    fn pieces_of_any_size_and_place_are_the_same_bytes() {
        let mut whole = vec![0; 20_000];
        content(&file(3), 0, &mut whole);
        for (start, length) in [(0, 1), (1, 7), (4095, 2), (4090, 8000), (8192, 4096), (13, 19_987)]
        {
            let mut piece = vec![0; length];
            content(&file(3), start as u64, &mut piece);
            assert_eq!(piece, whole[start..start + length], "{start} {length}");
        }
        content(&file(3), u64::MAX - 10, &mut whole);
    }

    /// Pinned: files made by an older version must compare equal.
    #[test]
    fn stays_the_same_from_version_to_version() {
        let mut bytes = [0; 16];
        content(&file(1), 65_536, &mut bytes);
        assert_eq!(bytes, PINNED);
    }

    const PINNED: [u8; 16] =
        [122, 34, 128, 121, 187, 138, 172, 133, 40, 194, 143, 160, 191, 222, 77, 55];

    #[test]
    fn files_and_pages_differ_and_bytes_are_spread() {
        let mut a = vec![0; 1 << 20];
        let mut b = a.clone();
        content(&file(1), 0, &mut a);
        content(&file(2), 0, &mut b);
        let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!((3_700..4_500).contains(&same), "{same}");
        let mut pages: Vec<&[u8]> = a.chunks(PAGE_BYTES).chain(b.chunks(PAGE_BYTES)).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 512);
        let mut counts = [0; 256];
        a.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        assert!(counts.iter().all(|&count| (3_500..4_700).contains(&count)));
    }
}
