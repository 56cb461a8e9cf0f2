//! Encoders for the tests of decompression: greedy and small, none fit for more.
//!
//! MS-XCA sections 2.1.4, 2.3.4, 2.5.1; the LZ4 block format.

use super::Algorithm;

/// A literal, or a match (distance, length).
enum Item {
    Literal(u8),
    Match(usize, usize),
}

/// Splits `data` greedily, looking for the last place with the same four bytes.
fn items(data: &[u8], distance_max: usize, length_max: usize) -> Vec<Item> {
    let mut seen = std::collections::HashMap::new();
    let mut items = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let key = data.get(at..at + 4);
        let before = key.and_then(|key| seen.insert(key, at));
        match before.filter(|before| at - before <= distance_max) {
            Some(before) => {
                let ahead = data[at..].iter().zip(&data[before..]);
                let same = ahead.take(length_max).take_while(|(a, b)| a == b).count();
                items.push(Item::Match(at - before, same));
                at += same;
            }
            None => {
                items.push(Item::Literal(data[at]));
                at += 1;
            }
        }
    }
    items
}

fn pack_lz77(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut shared: Option<usize> = None;
    for group in items(data, 8192, 100_000).chunks(32) {
        let mut flags = 0u32;
        let flags_at = out.len();
        out.extend([0; 4]);
        for (index, item) in group.iter().enumerate() {
            match *item {
                Item::Literal(byte) => out.push(byte),
                Item::Match(distance, length) => {
                    flags |= 1 << (31 - index);
                    let length = length - 3;
                    let word = (distance - 1) << 3 | length.min(7);
                    out.extend((word as u16).to_le_bytes());
                    if length < 7 {
                        continue;
                    }
                    let nibble = (length - 7).min(15) as u8;
                    match shared.take() {
                        Some(at) => out[at] |= nibble << 4,
                        None => {
                            shared = Some(out.len());
                            out.push(nibble);
                        }
                    }
                    if length >= 22 {
                        long_length(&mut out, length, length - 22);
                    }
                }
            }
        }
        out[flags_at..flags_at + 4].copy_from_slice(&flags.to_le_bytes());
    }
    out
}

fn long_length(out: &mut Vec<u8>, length: usize, excess: usize) {
    out.push(excess.min(255) as u8);
    if excess >= 255 {
        if length < 65_536 {
            out.extend((length as u16).to_le_bytes());
        } else {
            out.extend([0, 0]);
            out.extend((length as u32).to_le_bytes());
        }
    }
}

/// Every symbol gets 9 bits, so that the code of a symbol is the symbol.
struct HuffmanPacker {
    out: Vec<u8>,
    places: [usize; 2],
    word: u32,
    free: u32,
}

impl HuffmanPacker {
    fn block(&mut self) {
        self.out.extend([0x99; 256]);
        self.places = [self.out.len(), self.out.len() + 2];
        self.out.extend([0; 4]);
        (self.word, self.free) = (0, 16);
    }

    /// Writes to the first of the two words that the reader has already read (MS-XCA 2.1.4.3).
    fn bits(&mut self, value: usize, count: u32) {
        self.word = self.word << count | value as u32;
        if count <= self.free {
            self.free -= count;
            return;
        }
        let left = count - self.free;
        let word = (self.word >> left) as u16;
        self.out[self.places[0]..self.places[0] + 2].copy_from_slice(&word.to_le_bytes());
        self.places = [self.places[1], self.out.len()];
        self.out.extend([0; 2]);
        self.word &= (1 << left) - 1;
        self.free = 16 - left;
    }

    fn end(&mut self) {
        let word = (self.word << self.free) as u16;
        self.out[self.places[0]..self.places[0] + 2].copy_from_slice(&word.to_le_bytes());
    }
}

fn pack_huffman(data: &[u8]) -> Vec<u8> {
    let mut packer = HuffmanPacker { out: Vec::new(), places: [0; 2], word: 0, free: 0 };
    let (mut written, mut block_end) = (0, 0);
    for item in items(data, 65_535, 100_000) {
        if written >= block_end {
            if block_end != 0 {
                packer.end();
            }
            packer.block();
            block_end = written + 65_536;
        }
        match item {
            Item::Literal(byte) => {
                packer.bits(usize::from(byte), 9);
                written += 1;
            }
            Item::Match(distance, length) => {
                written += length;
                let length = length - 3;
                let distance_bits = distance.ilog2();
                packer.bits(256 + distance_bits as usize * 16 + length.min(15), 9);
                if length >= 15 {
                    long_length(&mut packer.out, length, length - 15);
                }
                packer.bits(distance - (1 << distance_bits), distance_bits);
            }
        }
    }
    packer.end();
    packer.out
}

fn pack_lznt1(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for plain in data.chunks(4096) {
        let header_at = out.len();
        out.extend([0; 2]);
        let mut written = 0usize;
        // The shortest length field has 4 bits.
        for group in items(plain, 4096, 18).chunks(8) {
            let flags_at = out.len();
            out.push(0);
            for (bit, item) in group.iter().enumerate() {
                match *item {
                    Item::Literal(byte) => {
                        out.push(byte);
                        written += 1;
                    }
                    Item::Match(distance, length) => {
                        out[flags_at] |= 1 << bit;
                        let mut distance_bits = 4;
                        while 1 << distance_bits < written {
                            distance_bits += 1;
                        }
                        let word = (distance - 1) << (16 - distance_bits) | (length - 3);
                        out.extend((word as u16).to_le_bytes());
                        written += length;
                    }
                }
            }
        }
        let length = out.len() - header_at - 2;
        let header = 0xb000 | (length - 1) as u16;
        out[header_at..header_at + 2].copy_from_slice(&header.to_le_bytes());
    }
    out
}

fn pack_lz4(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut literals = Vec::new();
    let extra = |out: &mut Vec<u8>, length: usize| {
        if length >= 15 {
            out.extend(vec![255; (length - 15) / 255]);
            out.push(((length - 15) % 255) as u8);
        }
    };
    for item in items(data, 65_535, 100_000) {
        match item {
            Item::Literal(byte) => literals.push(byte),
            Item::Match(distance, length) => {
                let length = length - 4;
                out.push((literals.len().min(15) << 4 | length.min(15)) as u8);
                extra(&mut out, literals.len());
                out.append(&mut literals);
                out.extend((distance as u16).to_le_bytes());
                extra(&mut out, length);
            }
        }
    }
    out.push((literals.len().min(15) << 4) as u8);
    extra(&mut out, literals.len());
    out.append(&mut literals);
    out
}

pub(super) type Packer = fn(&[u8]) -> Vec<u8>;

/// Each algorithm with its encoder.
pub(super) const PACKERS: [(Algorithm, Packer); 4] = [
    (Algorithm::LZ77, pack_lz77),
    (Algorithm::LZ77_HUFFMAN, pack_huffman),
    (Algorithm::LZNT1, pack_lznt1),
    (Algorithm::LZ4, pack_lz4),
];
