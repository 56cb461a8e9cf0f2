//! The type of a file by its first bytes; its name is ignored.
//!
//! Owns the magic numbers of supported formats and of common unsupported ones. ETL's marker:
//! SYSTEM_TRACE_HEADER in ntwmi.h; ERF has no magic and is guessed from its record header (Endace's
//! ERF types document).

use super::pcap::Layout;
use super::sniffer;
use super::summary::{ByteOrder, Compression};

/// Number of bytes that are enough to recognise a format.
pub(super) const HEAD_BYTES: usize = 128;

/// What the first bytes say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Capture(Kind),
    Compressed(Compression),
    Unsupported { what: &'static str, advice: &'static str },
    Unknown,
}

/// A supported capture format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pcap(Layout),
    PcapNg(ByteOrder),
    Records(RecordsKind),
}

/// A format of plain records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordsKind {
    Erf,
    NetMon1,
    NetMon2,
    NetXRay,
    Sniffer,
    Snoop,
}

/// Formats of plain records, by the beginning of the file.
const CONTAINERS: &[(&[u8], RecordsKind)] = &[
    (b"RTSS", RecordsKind::NetMon1),
    (b"GMBU", RecordsKind::NetMon2),
    (b"snoop\0\0\0", RecordsKind::Snoop),
    (b"TRSNIFF data    \x1a", RecordsKind::Sniffer),
    (b"XCP\x00001.", RecordsKind::NetXRay),
    (b"XCP\x00002.", RecordsKind::NetXRay),
];

pub(super) const EDITCAP: &str = "convert it first: editcap -F pcapng INPUT OUTPUT.pcapng";
const NO_NETWORK: &str = "record on the network interface instead";
const PACKED: &str = "unpack it first, or pipe it unpacked into standard input with the input `-`";

const UNSUPPORTED: &[(&[u8], &str, &str)] = &[
    (b"XCP\0", "a NetXRay or Windows Sniffer capture of an unknown version", EDITCAP),
    (b"VL\0\0", "an old NetXRay capture", EDITCAP),
    (b"TR\0d", "an HP-UX nettl trace", EDITCAP),
    (b"\xaa\xaa\xaa\xaa", "an InfoVista 5View capture", EDITCAP),
    (b"\x01\x10\x4c\0", "a Novell LANalyzer capture", EDITCAP),
    (b"\x05\x10", "a Novell LANalyzer capture", EDITCAP),
    (b"\x07\x10", "a Novell LANalyzer capture", EDITCAP),
    (b"\x7fver", "an OmniPeek capture", EDITCAP),
    (b"btsnoop\0", "a Bluetooth capture (btsnoop), which holds no network packets", NO_NETWORK),
    (b"EyeSDN", "an EyeSDN trace of ISDN, which holds no SMB", NO_NETWORK),
    (b"\0\0\x02\0\x12\x05\0\x10", "a Tektronix K12 capture", EDITCAP),
    (b"NetS", "a NetScaler trace", EDITCAP),
    (b"ObserverPktBuffe", "a Viavi Observer capture", EDITCAP),
    (b"\x05VNF", "a Visual Networks capture", EDITCAP),
    (b"iptrace 1.0", "an AIX iptrace capture", EDITCAP),
    (b"iptrace 2.0", "an AIX iptrace capture", EDITCAP),
    (b"\xac\x01\x00\x1c", "an Ixia lcap capture", EDITCAP),
    (b"\xab\x01\x00\x1c", "an Ixia lcap capture", EDITCAP),
    (b"+---------+---------------+----------+", "a K12 text file", EDITCAP),
    (b"BZh", "bzip2-compressed data", PACKED),
    (b"\x04\x22\x4d\x18", "LZ4-compressed data", PACKED),
    (b"PK\x03\x04", "a zip archive", PACKED),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", PACKED),
    (b"\x1f\x9d", "compress-ed data (.Z)", PACKED),
];

/// Recognises the beginning of a file, at most [`HEAD_BYTES`] of it.
pub(super) fn recognise(head: &[u8]) -> Found {
    if let Some(magic) = head.first_chunk::<4>() {
        if let Some(layout) = Layout::from_magic(*magic) {
            return Found::Capture(Kind::Pcap(layout));
        }
        if *magic == [0x0a, 0x0d, 0x0d, 0x0a]
            && let Some(order) = section_order(head)
        {
            return Found::Capture(Kind::PcapNg(order));
        }
        // A Zstandard file may begin with skippable frames (magic 184d2a50 to 184d2a5f).
        if *magic == [0x28, 0xb5, 0x2f, 0xfd] || matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
            return Found::Compressed(Compression::Zstd);
        }
    }
    if head.starts_with(&[0x1f, 0x8b, 8]) {
        return Found::Compressed(Compression::Gzip);
    }
    if head.starts_with(b"\xfd7zXZ\0") {
        return Found::Compressed(Compression::Xz);
    }
    if let Some(&(_, kind)) = CONTAINERS.iter().find(|(magic, _)| head.starts_with(magic)) {
        if kind == RecordsKind::Sniffer
            && head.get(sniffer::COMPRESSION_AT).is_some_and(|how| *how != 1)
        {
            return Found::Unsupported { what: "a compressed Sniffer capture", advice: EDITCAP };
        }
        return Found::Capture(Kind::Records(kind));
    }
    for &(magic, what, advice) in UNSUPPORTED {
        if head.starts_with(magic) {
            return Found::Unsupported { what, advice };
        }
    }
    if is_etl(head) {
        return Found::Unsupported {
            what: "a Windows event trace (.etl) that is cut in its header, or given as a stream of packets",
            advice: "copy it again, or if it is a stream save it to a file and give its name, or pipe it into standard \
                     input with the input `-`",
        };
    }
    if is_commview(head) {
        return Found::Unsupported { what: "a TamoSoft CommView capture", advice: EDITCAP };
    }
    if is_erf(head) {
        return Found::Capture(Kind::Records(RecordsKind::Erf));
    }
    Found::Unknown
}

/// The first bytes, for a message.
pub(super) fn describe(head: &[u8]) -> String {
    let first = head.get(..16).unwrap_or(head);
    let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String =
        first.iter().map(|&b| if b.is_ascii_graphic() { b as char } else { '.' }).collect();
    format!("{} `{text}`", hex.join(" "))
}

/// The byte order by a Section Header Block's byte-order magic; a file cut before it still counts.
fn section_order(head: &[u8]) -> Option<ByteOrder> {
    match head.get(8..12) {
        Some([0x4d, 0x3c, 0x2b, 0x1a]) | None => Some(ByteOrder::Little),
        Some([0x1a, 0x2b, 0x3c, 0x4d]) => Some(ByteOrder::Big),
        Some(_) => None,
    }
}

/// The first event after the 72-byte buffer header is the log file's own.
fn is_etl(head: &[u8]) -> bool {
    matches!(head.get(0x48..0x4c), Some([0x02, 0x00, 0x01 | 0x02, 0xc0]))
}

/// A packet of CommView begins with its length and the parts of a date: NCF with lengths of 2 bytes and a version, NCFX
/// with one of 4 bytes.
fn is_commview(head: &[u8]) -> bool {
    let is_date = |at: usize| match head.get(at..at + 7) {
        Some(&[year_0, year_1, month, day, hour, minute, second]) => {
            (1995..2100).contains(&u16::from_le_bytes([year_0, year_1]))
                && (1..=12).contains(&month)
                && (1..=31).contains(&day)
                && hour < 24
                && minute < 60
                && second < 60
        }
        _ => false,
    };
    let length = |at: usize| head.get(at..)?.first_chunk().copied().map(u16::from_le_bytes);
    let is_ncf = is_date(5) && head.get(4) == Some(&0) && length(0) <= length(2);
    let is_ncfx = is_date(4) && length(2) == Some(0);
    length(0) > Some(0) && (is_ncf || is_ncfx)
}

fn is_erf(head: &[u8]) -> bool {
    let Some(&[_, _, _, _, a, b, c, d, kind, _, len_1, len_0, ..]) = head.first_chunk::<16>()
    else {
        return false;
    };
    let seconds = u32::from_le_bytes([a, b, c, d]);
    let years = (2000 - 1970) * 31_556_952..(2040 - 1970) * 31_556_952;
    let record = u16::from_be_bytes([len_1, len_0]);
    let timed = match kind & 0x7f {
        1..=26 => years.contains(&seconds),
        // Metadata, which newer writers put first, may be without time.
        27 => seconds == 0 || years.contains(&seconds),
        _ => false,
    };
    // Records are aligned to eight bytes.
    timed && (16..=0x4000).contains(&record) && record.is_multiple_of(8)
}
