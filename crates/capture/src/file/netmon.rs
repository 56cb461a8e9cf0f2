//! Microsoft Network Monitor 1 and 2 (`.cap`): a header, frames, a table of their places.
//!
//! Owns both record headers, the trailers of versions 2.1 to 2.3 and the media types. Frames follow
//! each other in the order of the table, which is behind them, so the file is read forwards up to
//! it. Layout: Microsoft's "Capture File Format" in the help of Network Monitor 3, compared with
//! what editcap writes. Only version 2.3 has times in UTC; older files have the local time of the
//! recording machine, which is read as UTC.

use super::records::{Container, Frame, Record, interface, le16, le32, le64};
use super::{FileSummary, LinkType};
use smbscope_tables::date::days;

const HEADER_BYTES: usize = 128;
/// 100 ns units from 1601-01-01 to 1970-01-01.
const FILETIME_EPOCH: i64 = 116_444_736_000_000_000;

/// The state between two records.
#[derive(Default)]
pub(super) struct NetMon {
    major: u8,
    minor: u8,
    link: LinkType,
    start_ns: i64,
    /// Where the table of frames begins.
    table: u64,
}

impl Container for NetMon {
    fn header(&mut self, bytes: &[u8], summary: &mut FileSummary) -> Result<Option<usize>, String> {
        let Some(header) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
        let Some(&[_, _, _, _, minor, major, n0, n1]) = header.first_chunk::<8>() else {
            return Ok(None);
        };
        (self.major, self.minor) = (major, minor);
        if !matches!(major, 1 | 2) {
            return Err(format!("Network Monitor's version {major}.{minor} is not known"));
        }
        self.link = link(u16::from_le_bytes([n0, n1]));
        // SYSTEMTIME: year, month, day of the week, day, hour, minute, second, millisecond.
        let part = |n: usize| i64::from(le16(header, 8 + 2 * n).unwrap_or(0));
        let (year, month, day) = (part(0), part(1).clamp(1, 12), part(3));
        let seconds = days(year, month, day) * 86_400 + part(4) * 3_600 + part(5) * 60 + part(6);
        self.start_ns = seconds.saturating_mul(1_000_000_000).saturating_add(part(7) * 1_000_000);
        self.table = match le32(header, 24) {
            // A recorder that was stopped hard wrote no table.
            Some(0) | None => u64::MAX,
            Some(place) => u64::from(place),
        };
        let ticks = if major == 1 { 1_000 } else { 1_000_000 };
        summary.add_interface(interface(self.link, ticks));
        Ok(Some(HEADER_BYTES))
    }

    fn record(&mut self, bytes: &[u8], position: u64) -> Record {
        if position >= self.table {
            return Record::End;
        }
        self.parse(bytes).unwrap_or(Record::Incomplete)
    }
}

impl NetMon {
    fn parse(&self, bytes: &[u8]) -> Option<Record> {
        let (since_ns, original, captured, offset) = match self.major {
            1 => {
                let ns = i64::from(le32(bytes, 0)?) * 1_000_000;
                (ns, u32::from(le16(bytes, 4)?), u32::from(le16(bytes, 6)?), 8)
            }
            _ => {
                let us = i64::try_from(le64(bytes, 0)?).unwrap_or(i64::MAX);
                (us.saturating_mul(1_000), le32(bytes, 8)?, le32(bytes, 12)?, 16)
            }
        };
        let end = offset + captured as usize;
        let trailer = match (self.major, self.minor) {
            (1, _) | (2, 0) => 0,
            (_, 1) => 2,
            (_, 2) => 6,
            _ => 15,
        };
        let mut time_ns = self.start_ns.saturating_add(since_ns);
        let mut frame_link = self.link;
        if trailer > 0 {
            if end > bytes.len() {
                // The loop checks the length before it waits for more.
                return Some(Record::Other { length: end + trailer });
            }
            frame_link = link(le16(bytes, end)?);
            if trailer == 15 {
                let utc = i64::try_from(le64(bytes, end + 6)?).unwrap_or(i64::MAX);
                time_ns = utc.saturating_sub(FILETIME_EPOCH).saturating_mul(100);
            }
        }
        let frame = Frame { time_ns, offset, captured, original, link: frame_link };
        // What a wireless adapter reports of a frame comes first; its length is in it.
        let frame = match frame_link {
            LinkType::WIRELESS => {
                let skip = le16(bytes, offset + 1).map_or(0, u32::from).min(captured);
                Frame {
                    offset: offset + skip as usize,
                    captured: captured - skip,
                    original: original.saturating_sub(skip),
                    ..frame
                }
            }
            _ => frame,
        };
        Some(Record::Frame { length: end + trailer, frame })
    }
}

/// The link type of a media type.
fn link(media: u16) -> LinkType {
    match media {
        1 => LinkType::ETHERNET,
        2 => LinkType::TOKEN_RING,
        3 => LinkType::FDDI,
        4 => LinkType::ATM,
        6 => LinkType::WIRELESS,
        // Tunnels, mobile networks, raw IP.
        7..=9 => LinkType::RAW,
        // A link type of pcap.
        0xe000..=0xe0ff => LinkType(media - 0xe000),
        // Events and what Network Monitor adds to a capture.
        _ => LinkType::UNKNOWN,
    }
}
