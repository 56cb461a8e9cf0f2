//! Writers of pcap and pcapng in every variant, for tests only.

use std::io::Write;

/// Integers in the order of the file being written.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) big: bool,
}

pub(super) const LITTLE: Order = Order { big: false };
pub(super) const BIG: Order = Order { big: true };

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(super) fn u32(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub(super) fn u64(self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| self.u32(*word)).collect()
    }

    pub(super) fn pcap(self, magic: u32, snaplen: u32, network: u32) -> Vec<u8> {
        let mut bytes = self.u32(magic).to_vec();
        bytes.extend(self.u16(2));
        bytes.extend(self.u16(4));
        bytes.extend(self.words(&[0, 0, snaplen, network]));
        bytes
    }

    pub(super) fn record(self, seconds: u32, fraction: u32, data: &[u8], wire: u32) -> Vec<u8> {
        let mut bytes = self.words(&[seconds, fraction, data.len() as u32, wire]);
        bytes.extend(data);
        bytes
    }

    /// With the interface, protocol and packet type of Kuznetzov's patch.
    pub(super) fn modified_record(self, seconds: u32, fraction: u32, data: &[u8]) -> Vec<u8> {
        let length = data.len() as u32;
        let mut bytes = self.words(&[seconds, fraction, length, length, 3, 0x0008_0000]);
        bytes.extend(data);
        bytes
    }

    pub(super) fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(padded as u32 + 12);
        let mut bytes = self.u32(kind).to_vec();
        bytes.extend(length);
        bytes.extend(body);
        bytes.resize(8 + padded, 0);
        bytes.extend(length);
        bytes
    }

    pub(super) fn section(self) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    pub(super) fn options(self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (code, value) in options {
            bytes.extend(self.u16(*code));
            bytes.extend(self.u16(value.len() as u16));
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes.extend([0; 4]);
        bytes
    }

    pub(super) fn interface(self, link: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = self.u16(link).to_vec();
        body.extend([0; 2]);
        body.extend(self.u32(snaplen));
        body.extend(self.options(options));
        self.block(1, &body)
    }

    pub(super) fn enhanced(self, interface: u32, ticks: u64, data: &[u8], wire: u32) -> Vec<u8> {
        let (high, low) = ((ticks >> 32) as u32, ticks as u32);
        let mut body = self.words(&[interface, high, low, data.len() as u32, wire]);
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        // epb_flags, to have options behind the data.
        body.extend(self.options(&[(2, &self.u32(1))]));
        self.block(6, &body)
    }

    pub(super) fn old_packet(self, interface: u16, ticks: u64, data: &[u8]) -> Vec<u8> {
        let mut body = self.u16(interface).to_vec();
        body.extend(self.u16(7));
        let length = data.len() as u32;
        body.extend(self.words(&[(ticks >> 32) as u32, ticks as u32, length, length]));
        body.extend(data);
        self.block(2, &body)
    }

    pub(super) fn simple(self, data: &[u8], wire: u32) -> Vec<u8> {
        let mut body = self.u32(wire).to_vec();
        body.extend(data);
        self.block(3, &body)
    }

    pub(super) fn statistics(self, interface: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = self.words(&[interface, 0, 0]);
        body.extend(self.options(options));
        self.block(5, &body)
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Bytes that do not compress, from a seed.
pub(super) fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    })
    .take(length)
    .collect()
}
