//! Sniffer for DOS (`.enc`, `.trc`): typed records behind a text.
//!
//! Owns the version record and uncompressed frames of type 2 (Ethernet, Token Ring, FDDI).
//! Layout: Network General's "Sniffer Analyzer file format", compared with what editcap writes.
//! Times are the local time of the recording machine, read as UTC. Compressed files are refused
//! (`magic`).

use super::records::{Container, Frame, Record, interface, le16};
use super::{FileSummary, LinkType};
use smbscope_tables::date::days;

/// Bytes of the text at the beginning.
const MAGIC_BYTES: usize = 17;
/// A record's type, length and two bytes.
const RECORD_BYTES: usize = 6;
const VERSION: u16 = 1;
const END: u16 = 3;
const FRAME_2: u16 = 4;
const FRAME_2_BYTES: usize = 14;
/// Frames of ATM, and of a later format.
const FRAME_4: u16 = 8;
const FRAME_6: u16 = 12;
/// The length of a tick by its code, picoseconds.
const TICK_PS: [i64; 7] = [15_000_000, 838_096, 15_000_000, 500_000, 2_000_000, 1_000_000, 100_000];

/// Where the version record says that frames are compressed: behind the text and the record's
/// header.
pub(super) const COMPRESSION_AT: usize = MAGIC_BYTES + RECORD_BYTES + 10;

/// The state between two records.
#[derive(Default)]
pub(super) struct Sniffer {
    link: LinkType,
    midnight_ns: i64,
    tick_ps: i64,
}

impl Container for Sniffer {
    fn header(&mut self, bytes: &[u8], summary: &mut FileSummary) -> Result<Option<usize>, String> {
        let Some(record) = bytes.get(MAGIC_BYTES..) else { return Ok(None) };
        let (Some(kind), Some(length)) = (le16(record, 0), le16(record, 2)) else {
            return Ok(None);
        };
        let end = RECORD_BYTES + usize::from(length);
        let Some(version) = record.get(RECORD_BYTES..end) else { return Ok(None) };
        let Some(&[_, _, _, _, _, _, d0, d1, _, network, _, unit]) = version.first_chunk::<12>()
        else {
            return Err("Sniffer's version record is too short".to_owned());
        };
        if kind != VERSION {
            return Err("Sniffer's version record is missing".to_owned());
        }
        let date = i64::from(u16::from_le_bytes([d0, d1]));
        let (year, month, day) = (1980 + (date >> 9), date >> 5 & 15, date & 31);
        self.midnight_ns = days(year, month.clamp(1, 12), day) * 86_400_000_000_000;
        self.link = match network {
            0 => LinkType::TOKEN_RING,
            1 => LinkType::ETHERNET,
            9 => LinkType::FDDI,
            _ => LinkType::UNKNOWN,
        };
        let Some(&tick_ps) = TICK_PS.get(usize::from(unit)) else {
            return Err(format!("Sniffer's time unit {unit} is not known"));
        };
        self.tick_ps = tick_ps;
        summary.add_interface(interface(self.link, (1_000_000_000_000 / tick_ps) as u64));
        Ok(Some(MAGIC_BYTES + end))
    }

    fn record(&mut self, bytes: &[u8], _: u64) -> Record {
        let (Some(kind), Some(length)) = (le16(bytes, 0), le16(bytes, 2)) else {
            return Record::Incomplete;
        };
        let length = RECORD_BYTES + usize::from(length);
        match kind {
            END => Record::End,
            FRAME_2 => match bytes.get(..length) {
                Some(record) => self.frame(record).unwrap_or_else(|| {
                    Record::Corrupt("a frame is too short for its header".to_owned())
                }),
                None => Record::Incomplete,
            },
            FRAME_4 | FRAME_6 => {
                Record::Corrupt(format!("a frame of Sniffer's unknown kind {kind}"))
            }
            _ => Record::Other { length },
        }
    }
}

impl Sniffer {
    fn frame(&self, record: &[u8]) -> Option<Record> {
        let head = record.get(RECORD_BYTES..)?.first_chunk::<FRAME_2_BYTES>()?;
        let &[t0, t1, t2, t3, t4, day, _, _, _, _, o0, o1, _, _] = head;
        let ticks = i64::from_le_bytes([t0, t1, t2, t3, t4, 0, 0, 0]);
        let since_ns = (i128::from(ticks) * i128::from(self.tick_ps) / 1_000) as i64;
        let time_ns = self.midnight_ns + i64::from(day) * 86_400_000_000_000 + since_ns;
        let offset = RECORD_BYTES + FRAME_2_BYTES;
        let captured = (record.len() - offset) as u32;
        // Zero unless the frame was cut.
        let original = u32::from(u16::from_le_bytes([o0, o1])).max(captured);
        let frame = Frame { time_ns, offset, captured, original, link: self.link };
        Some(Record::Frame { length: record.len(), frame })
    }
}
