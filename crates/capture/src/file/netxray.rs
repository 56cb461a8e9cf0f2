//! NetXRay and Sniffer for Windows (`.cap`): a header of 128 bytes, then records.
//!
//! Owns versions 1.x and 2.x with their record headers of 28 and 40 bytes. No public document
//! describes the format; the fields were derived from files that editcap wrote, and their meaning
//! from Wireshark's documentation of the format. A file in which the buffer wrapped around is refused.

use super::records::{Container, Frame, Record, interface, le16, le32, le64};
use super::{FileSummary, LinkType};

const HEADER_BYTES: usize = 128;
/// Ticks of a second by the code of the time unit: microseconds, and the PC's timer.
const TICKS_PER_SECOND: [u64; 3] = [1_000_000, 1_193_000, 1_193_182];

/// The state between two records.
#[derive(Default)]
pub(super) struct NetXRay {
    record_bytes: usize,
    link: LinkType,
    start_ns: i64,
    /// The clock at the start, ticks.
    start_ticks: u64,
    ticks_per_second: u64,
    /// Where the frames end.
    end: u64,
}

impl Container for NetXRay {
    fn header(&mut self, bytes: &[u8], summary: &mut FileSummary) -> Result<Option<usize>, String> {
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
        self.record_bytes = match header.get(4..8) {
            Some(b"001.") => 28,
            Some(b"002.") => 40,
            _ => return Err("this version of NetXRay is not known".to_owned()),
        };
        let (Some(start), Some(first), Some(end), Some(ticks), Some(&network), Some(&unit)) = (
            le32(header, 12),
            le32(header, 24),
            le32(header, 28),
            le64(header, 44),
            header.get(38),
            header.get(40),
        ) else {
            return Ok(None);
        };
        let Some(&ticks_per_second) = TICKS_PER_SECOND.get(usize::from(unit)) else {
            return Err(format!("NetXRay's time unit {unit} is not known"));
        };
        if first as usize != HEADER_BYTES || end < first {
            return Err("NetXRay's buffer wrapped around".to_owned());
        }
        self.link = match network {
            0 => LinkType::ETHERNET,
            1 => LinkType::TOKEN_RING,
            2 => LinkType::FDDI,
            9 => LinkType::WIRELESS,
            _ => LinkType::UNKNOWN,
        };
        self.start_ns = i64::from(start) * 1_000_000_000;
        (self.start_ticks, self.ticks_per_second) = (ticks, ticks_per_second);
        self.end = u64::from(end);
        summary.add_interface(interface(self.link, ticks_per_second));
        Ok(Some(HEADER_BYTES))
    }

    fn record(&mut self, bytes: &[u8], position: u64) -> Record {
        if position >= self.end {
            return Record::End;
        }
        let (Some(ticks), Some(original), Some(captured)) =
            (le64(bytes, 0), le16(bytes, 8), le16(bytes, 10))
        else {
            return Record::Incomplete;
        };
        let since = i128::from(ticks) - i128::from(self.start_ticks);
        let since_ns = since * 1_000_000_000 / i128::from(self.ticks_per_second.max(1));
        let since_ns = i64::try_from(since_ns).unwrap_or(i64::MAX);
        let frame = Frame {
            time_ns: self.start_ns.saturating_add(since_ns),
            offset: self.record_bytes,
            captured: u32::from(captured),
            original: u32::from(original),
            link: self.link,
        };
        Record::Frame { length: self.record_bytes + usize::from(captured), frame }
    }
}
