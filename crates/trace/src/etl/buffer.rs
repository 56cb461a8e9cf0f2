//! Buffers: the header WMI_BUFFER_HEADER (72 bytes, the same in 32- and 64-bit logs), and the bytes
//! of the records in it, decompressed.

use smbscope_wire::compression::{Algorithm, decompress_block};
use smbscope_wire::read::{u16_at, u32_at};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 72;
/// Largest size of a buffer that is believed; Windows allows 16 MiB.
pub const SIZE_MAX: usize = 17 << 20;

/// Type of the buffer that begins the file.
pub const TYPE_LOG_HEADER: u16 = 4;

const FLAG_EVENTS_LOST: u16 = 0x02;
const FLAG_BUFFERS_LOST: u16 = 0x04;
const FLAG_PROCESSOR_INDEX: u16 = 0x20;
const FLAG_COMPRESSED: u16 = 0x40;

/// The header of a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct BufferHeader {
    /// Bytes from the start of this buffer to the next one.
    pub stride_bytes: usize,
    /// Bytes of header and records, after decompression.
    pub filled_bytes: usize,
    pub cpu: u32,
    pub kind: u16,
    pub state: u32,
    pub is_compressed: bool,
    /// The recorder lost events or buffers before this one.
    pub is_after_loss: bool,
}

impl BufferHeader {
    /// Reads the header at the start of `bytes`; `None` if it is cut off.
    pub fn parse(bytes: &[u8]) -> Option<BufferHeader> {
        let flags = u16_at(bytes, 52)?;
        // Before Windows 8 the field held a byte for the CPU and one for the alignment.
        let cpu = match flags & FLAG_PROCESSOR_INDEX {
            0 => u32::from(u16_at(bytes, 40)? & 0xff),
            _ => u32::from(u16_at(bytes, 40)?),
        };
        let saved = usize::try_from(u32_at(bytes, 4)?).ok()?;
        let offset = usize::try_from(u32_at(bytes, 48)?).ok()?;
        let kind = u16_at(bytes, 54)?;
        bytes.get(..HEADER_BYTES)?;
        Some(BufferHeader {
            stride_bytes: usize::try_from(u32_at(bytes, 0)?).ok()?,
            filled_bytes: if saved == 0 { offset } else { saved },
            cpu,
            kind,
            state: u32_at(bytes, 44)?,
            is_compressed: flags & FLAG_COMPRESSED != 0,
            is_after_loss: flags & (FLAG_EVENTS_LOST | FLAG_BUFFERS_LOST) != 0,
        })
    }

    /// Whether the sizes are possible.
    pub fn is_plausible(&self) -> bool {
        let sizes = HEADER_BYTES..=SIZE_MAX;
        sizes.contains(&self.stride_bytes)
            && self.filled_bytes <= SIZE_MAX
            && (self.is_compressed || self.filled_bytes <= self.stride_bytes)
    }
}

/// How the buffers of a log are compressed, by the state of the first one. The value is only
/// meaningful if the log's mode says that it is compressed.
pub fn algorithm(state: u32) -> Option<Algorithm> {
    match state & 0xffff {
        2 => Some(Algorithm::LZNT1),
        3 => Some(Algorithm::LZ77),
        4 => Some(Algorithm::LZ77_HUFFMAN),
        _ => None,
    }
}

/// The records of a compressed buffer without its header, in `out`. `raw` are the bytes of the buffer
/// in the file, possibly cut off. Returns whether all records are there.
pub fn unpack(
    header: &BufferHeader,
    algorithm: Option<Algorithm>,
    raw: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    out.clear();
    let length = header.filled_bytes.saturating_sub(HEADER_BYTES);
    let body = raw.get(HEADER_BYTES..).unwrap_or(&[]);
    let Some(algorithm) = algorithm else { return false };
    decompress_block(algorithm, body, length, out).is_ok()
}
