//! Blocks that describe themselves: each sector of 512 bytes says which write it belongs to, and has a
//! checksum over everything in it.
//!
//! A block that was written in part is therefore recognised to the sector, and so is a block in the wrong
//! place, of another run, or of an earlier generation. The checksum finds damage, not forgery.

/// The unit that storage writes as a whole, at least.
pub const SECTOR_BYTES: usize = 512;
/// The beginning of each sector.
const MAGIC: [u8; 8] = *b"SMBSDURB";
/// Where the content begins, and where the checksum is.
const CONTENT: usize = 64;
const CHECK: usize = SECTOR_BYTES - 8;

/// Which write a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The run.
    pub run: [u8; 16],
    /// The round of the run, from 0.
    pub round: u32,
    /// The writer.
    pub lane: u16,
    /// The way in which it writes.
    pub way: u16,
    /// The file among those of the writer.
    pub file: u32,
    /// The block of the file.
    pub block: u32,
    /// Number of the write among those of the writer, from 1.
    pub sequence: u64,
    /// How often this block has been written, from 1.
    pub generation: u32,
}

/// What a sector has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sector {
    /// Only zeros.
    Zeros,
    /// A sector of a write, undamaged: the write, the sector's index and their number in the block.
    Of(Label, u32, u32),
    /// Bytes that no write made.
    Damaged,
}

/// A hash in which every bit of the input counts; not against intent.
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = mix(state ^ u64::from_le_bytes(*word));
    }
    for byte in rest {
        state = mix(state ^ u64::from(*byte));
    }
    mix(state ^ bytes.len() as u64)
}

/// One step of it: a permutation of 64 bits, so that a single changed word always changes the result.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

/// Fills a block, a multiple of [`SECTOR_BYTES`] long.
pub fn fill(label: &Label, bytes: &mut [u8]) {
    let (sectors, _) = bytes.as_chunks_mut::<SECTOR_BYTES>();
    let count = u32::try_from(sectors.len()).unwrap_or(u32::MAX);
    for (index, sector) in sectors.iter_mut().enumerate() {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        fill_sector(label, index, count, sector);
    }
}

fn fill_sector(label: &Label, index: u32, count: u32, sector: &mut [u8; SECTOR_BYTES]) {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(place) = sector.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        at += bytes.len();
    };
    put(&MAGIC);
    put(&label.run);
    put(&label.round.to_le_bytes());
    put(&label.lane.to_le_bytes());
    put(&label.way.to_le_bytes());
    put(&label.file.to_le_bytes());
    put(&label.block.to_le_bytes());
    put(&label.sequence.to_le_bytes());
    put(&label.generation.to_le_bytes());
    put(&index.to_le_bytes());
    put(&count.to_le_bytes());
    put(&[0; 4]);
    // Content that neither compresses nor repeats: storage with deduplication keeps each block.
    let mut state = hash(label.sequence, &sector[..CONTENT]);
    for word in sector[CONTENT..CHECK].as_chunks_mut::<8>().0 {
        state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        *word = state.to_le_bytes();
    }
    let check = hash(0, &sector[..CHECK]);
    sector[CHECK..].copy_from_slice(&check.to_le_bytes());
}

/// Reads a sector; shorter ones are damaged.
pub fn read(bytes: &[u8]) -> Sector {
    if bytes.iter().all(|byte| *byte == 0) {
        return Sector::Zeros;
    }
    let Some((sector, _)) = bytes.split_first_chunk::<SECTOR_BYTES>() else {
        return Sector::Damaged;
    };
    let check = hash(0, &sector[..CHECK]).to_le_bytes();
    if !sector.starts_with(&MAGIC) || sector[CHECK..] != check {
        return Sector::Damaged;
    }
    let u16_at = |at: usize| u16::from_le_bytes([sector[at], sector[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    let mut run = [0; 16];
    run.copy_from_slice(&sector[8..24]);
    let label = Label {
        run,
        round: u32_at(24),
        lane: u16_at(28),
        way: u16_at(30),
        file: u32_at(32),
        block: u32_at(36),
        sequence: u64::from(u32_at(40)) | u64::from(u32_at(44)) << 32,
        generation: u32_at(48),
    };
    Sector::Of(label, u32_at(52), u32_at(56))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label {
        Label {
            run: *b"0123456789abcdef",
            round: 3,
            lane: 7,
            way: 2,
            file: 0x0102_0304,
            block: 9,
            sequence: 0x1122_3344_5566_7788,
            generation: 5,
        }
    }

    #[test]
    fn each_sector_describes_itself() {
        let mut block = vec![0xff; 8 * SECTOR_BYTES];
        fill(&label(), &mut block);
        for (index, sector) in block.chunks(SECTOR_BYTES).enumerate() {
            assert_eq!(read(sector), Sector::Of(label(), index as u32, 8));
        }
        let next = Label { sequence: label().sequence + 1, ..label() };
        let mut other = vec![0; 8 * SECTOR_BYTES];
        fill(&next, &mut other);
        let same = block.iter().zip(&other).filter(|(a, b)| a == b).count();
        // All content differs; equal bytes are those of the labels, and chance.
        assert!(same < 8 * (CONTENT + 16), "{same}");
    }

    #[test]
    fn every_changed_byte_is_damage() {
        let mut block = vec![0; SECTOR_BYTES];
        fill(&label(), &mut block);
        for at in 0..SECTOR_BYTES {
            for bit in [1, 0x80] {
                block[at] ^= bit;
                assert_eq!(read(&block), Sector::Damaged, "byte {at}");
                block[at] ^= bit;
            }
        }
        assert_eq!(read(&block[..511]), Sector::Damaged);
        assert_eq!(read(&[0; SECTOR_BYTES]), Sector::Zeros);
        assert_eq!(read(&[]), Sector::Zeros);
    }
}
