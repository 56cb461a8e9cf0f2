//! Compressed parts of a file of version 7.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;

/// Largest window of Zstandard.
const WINDOW_LOG_MAX: u32 = 25;

/// How parts are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Zlib,
    Zstd,
    Unknown,
}

impl Compression {
    /// By its name in the head of the file.
    pub fn from_name(name: &str) -> Compression {
        match name {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => Compression::Unknown,
        }
    }

    /// Decompresses up to `length` bytes into `out`; false if it is damaged.
    pub fn unpack(self, packed: &[u8], length: u64, out: &mut Vec<u8>) -> bool {
        out.clear();
        let read = match self {
            Compression::None | Compression::Unknown => return false,
            Compression::Zlib => ZlibDecoder::new(packed).take(length).read_to_end(out),
            Compression::Zstd => unpack_zstd(packed, length, out),
        };
        read.is_ok_and(|read| read as u64 == length)
    }
}

fn unpack_zstd(packed: &[u8], length: u64, out: &mut Vec<u8>) -> io::Result<usize> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    decoder.take(length).read_to_end(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn each_compression_gives_the_length_that_is_stated() {
        let plain = b"the same the same the same";
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(plain).unwrap();
        let zlib = encoder.finish().unwrap();
        let zstd = zstd::encode_all(&plain[..], 1).unwrap();
        let mut out = Vec::new();
        for (name, packed) in [("zlib", zlib), ("zstd", zstd)] {
            let compression = Compression::from_name(name);
            assert!(compression.unpack(&packed, plain.len() as u64, &mut out), "{name}");
            assert_eq!(out, plain);
            assert!(!compression.unpack(&packed, 1 << 40, &mut out));
            assert!(!compression.unpack(&packed[..4], 5, &mut out));
            assert!(compression.unpack(&packed, 5, &mut out) && out.len() == 5);
        }
        assert!(!Compression::from_name("lzma").unpack(plain, 5, &mut out));
    }
}
