//! Endace ERF: records without a file header.
//!
//! Owns the record header, its extension headers and the types that carry Ethernet, IP, HDLC and
//! AAL5. Layout: Endace's "ERF Types Reference Guide".

use super::records::{Container, Frame, Record, be16, interface, le64};
use super::{FileSummary, LinkType};

const HEADER_BYTES: usize = 16;
const EXTENSIONS_MAX: usize = 16;

/// The state between two records.
#[derive(Default)]
pub(super) struct Erf {
    dropped: u64,
}

impl Container for Erf {
    fn header(&mut self, bytes: &[u8], summary: &mut FileSummary) -> Result<Option<usize>, String> {
        let Some(kind) = bytes.get(8) else { return Ok(None) };
        let link = match kind & 0x7f {
            1 | 10 | 15 | 17 | 19 => LinkType::PPP_HDLC,
            4 => LinkType::ATM,
            22 => LinkType::IPV4,
            23 => LinkType::IPV6,
            _ => LinkType::ETHERNET,
        };
        summary.add_interface(interface(link, 1 << 32));
        Ok(Some(0))
    }

    fn record(&mut self, bytes: &[u8], _: u64) -> Record {
        let record = self.parse(bytes);
        record.unwrap_or(Record::Incomplete)
    }

    fn dropped(&self) -> Option<u64> {
        Some(self.dropped)
    }
}

impl Erf {
    fn parse(&mut self, bytes: &[u8]) -> Option<Record> {
        let (time, kind) = (le64(bytes, 0)?, *bytes.get(8)?);
        let length = usize::from(be16(bytes, 10)?);
        let (lost, original) = (be16(bytes, 12)?, be16(bytes, 14)?);
        if length < HEADER_BYTES {
            return Some(Record::Corrupt(format!("a record claims the length {length}")));
        }
        let record = bytes.get(..length)?;
        let mut offset = HEADER_BYTES;
        let mut more = kind & 0x80 != 0;
        for _ in 0..EXTENSIONS_MAX {
            if !more {
                break;
            }
            more = record.get(offset).is_some_and(|first| first & 0x80 != 0);
            offset += 8;
        }
        let kind = kind & 0x7f;
        let link = match kind {
            // Two bytes align Ethernet's payload.
            2 | 11 | 16 | 20 => {
                offset += 2;
                LinkType::ETHERNET
            }
            1 | 10 | 15 | 17 | 19 => LinkType::PPP_HDLC,
            // The cell's header comes first.
            4 => {
                offset += 4;
                LinkType::ATM
            }
            22 => LinkType::IPV4,
            23 => LinkType::IPV6,
            // Metadata and padding.
            27 | 48 => return Some(Record::Other { length }),
            _ => LinkType::UNKNOWN,
        };
        // Other types have a colour or a hash instead of the counter.
        if matches!(kind, 1..=4 | 22 | 23) {
            self.dropped += u64::from(lost);
        }
        let Some(room) = length.checked_sub(offset) else {
            return Some(Record::Corrupt("a record is too short for its headers".to_owned()));
        };
        // Records are padded to eight bytes, so the length on the wire limits what is captured.
        let original = u32::from(original);
        let captured = (room as u32).min(original);
        let seconds = (time >> 32) as i64;
        let fraction_ns = ((time & 0xffff_ffff) * 1_000_000_000) >> 32;
        let time_ns = seconds * 1_000_000_000 + fraction_ns as i64;
        Some(Record::Frame { length, frame: Frame { time_ns, offset, captured, original, link } })
    }
}
