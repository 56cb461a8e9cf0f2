//! What a capture file says about itself and what was read of it: the file's part of coverage.
//!
//! Owns the counters, not their counting (`pcap`, `pcapng`). Drop counters: pcapng's Interface
//! Statistics Block (draft-ietf-opsawg-pcapng, section 4.6); classic pcap has none.

use super::LinkType;

/// The container format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap (magic a1b2c3d4, or a1b23c4d with nanoseconds).
    Pcap,
    /// Kuznetzov's modified pcap (magic a1b2cd34) with its longer record header.
    PcapModified,
    /// pcapng.
    PcapNg,
    /// pcap of Nokia's firewalls, whose record header is four bytes longer.
    PcapNokia,
    /// pcap of Red Hat 6.1, whose record header is eight bytes longer.
    PcapRedHat,
    /// Modified pcap of SuSE 6.3, whose record header is twelve bytes longer.
    PcapSuse,
    /// Endace ERF.
    Erf,
    /// Microsoft Network Monitor 1.
    NetMon1,
    /// Microsoft Network Monitor 2.
    NetMon2,
    /// NetXRay or Sniffer for Windows.
    NetXRay,
    /// Sniffer for DOS.
    Sniffer,
    /// snoop (RFC 1761).
    Snoop,
}

/// The compression around the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, one or several members (RFC 1952).
    Gzip,
    /// Zstandard, one or several frames (RFC 8878).
    Zstd,
    /// xz, as traces of Linux are published.
    Xz,
}

/// The byte order of the file's own numbers (of the last section in pcapng).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    #[inline]
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// One capturing interface: the whole file in classic pcap, an Interface Description Block in
/// pcapng. Counters of a statistics block are cumulative, so the last block counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// `if_name`, cut at 256 bytes.
    pub name: Option<String>,
    /// The link layer of its frames.
    pub link: LinkType,
    /// The snap length it was set to; 0 means no limit.
    pub snaplen: u32,
    /// Timestamp ticks per second; its resolution is the inverse.
    pub ticks_per_second: u64,
    /// Frames read from it.
    pub frames: u64,
    /// `isb_ifrecv`: packets that the interface received.
    pub received: Option<u64>,
    /// `isb_ifdrop`: packets that the interface dropped for lack of resources.
    pub dropped_interface: Option<u64>,
    /// `isb_osdrop`: packets that the operating system dropped.
    pub dropped_os: Option<u64>,
}

impl Interface {
    /// Nanoseconds per timestamp tick; a fraction for powers of two and below a nanosecond.
    pub fn resolution_ns(&self) -> f64 {
        1e9 / self.ticks_per_second as f64
    }
}

/// What was read of one file so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The path as given, or `standard input`.
    pub name: String,
    /// The container format.
    pub format: Format,
    /// The compression around it.
    pub compression: Option<Compression>,
    /// The byte order of the file's numbers.
    pub byte_order: ByteOrder,
    /// Sections of a pcapng file; 1 for classic pcap.
    pub sections: u64,
    /// The first 1024 interfaces of all sections, in the file's order.
    pub interfaces: Vec<Interface>,
    /// All interfaces, those not listed included.
    pub interfaces_total: u64,
    /// Frames handed out.
    pub frames: u64,
    /// Frames shorter than on the wire (snap length).
    pub frames_cut: u64,
    /// Frames of a format without time (pcapng Simple Packet Blocks); they carry the time of the
    /// frame before.
    pub frames_without_time: u64,
    /// Bytes captured of all frames.
    pub captured_bytes: u64,
    /// Bytes of all frames on the wire.
    pub wire_bytes: u64,
    /// The earliest frame, ns since the epoch.
    pub first_time_ns: Option<i64>,
    /// The latest frame, ns since the epoch.
    pub last_time_ns: Option<i64>,
    /// pcapng blocks that hold neither frames nor their description, and were not read.
    pub blocks_skipped: u64,
    /// Why reading stopped before the end: the file ends inside a record, or a record is corrupt.
    /// All frames before were handed out.
    pub cut_off: Option<String>,
}

/// How many interfaces the summary describes one by one.
const INTERFACES_LISTED: usize = 1024;

impl FileSummary {
    /// The format in words: "pcapng", "gzip of pcap".
    pub fn description(&self) -> String {
        let format = match self.format {
            Format::Pcap => "pcap",
            Format::PcapModified => "modified pcap",
            Format::PcapNg => "pcapng",
            Format::PcapNokia => "pcap of Nokia",
            Format::PcapRedHat => "pcap of Red Hat 6.1",
            Format::PcapSuse => "pcap of SuSE 6.3",
            Format::Erf => "ERF",
            Format::NetMon1 => "Network Monitor 1",
            Format::NetMon2 => "Network Monitor 2",
            Format::NetXRay => "NetXRay or Sniffer for Windows",
            Format::Sniffer => "Sniffer for DOS",
            Format::Snoop => "snoop",
        };
        match self.compression {
            None => format.to_owned(),
            Some(Compression::Gzip) => format!("gzip of {format}"),
            Some(Compression::Zstd) => format!("zstd of {format}"),
            Some(Compression::Xz) => format!("xz of {format}"),
        }
    }

    /// Packets that the recorder lost by the interfaces' own statistics; `None` if it left none.
    pub fn dropped(&self) -> Option<u64> {
        self.interfaces
            .iter()
            .flat_map(|interface| [interface.dropped_interface, interface.dropped_os])
            .flatten()
            .reduce(u64::saturating_add)
    }

    /// The distinct link types of the listed interfaces, ascending.
    pub fn link_types(&self) -> Vec<LinkType> {
        let mut links: Vec<_> = self.interfaces.iter().map(|i| i.link).collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    pub(super) fn new(name: String, format: Format, byte_order: ByteOrder) -> FileSummary {
        FileSummary {
            name,
            format,
            compression: None,
            byte_order,
            sections: 0,
            interfaces: Vec::new(),
            interfaces_total: 0,
            frames: 0,
            frames_cut: 0,
            frames_without_time: 0,
            captured_bytes: 0,
            wire_bytes: 0,
            first_time_ns: None,
            last_time_ns: None,
            blocks_skipped: 0,
            cut_off: None,
        }
    }

    /// Lists the interface if there is room; its index, or one past the list for the others.
    pub(super) fn add_interface(&mut self, interface: Interface) -> usize {
        self.interfaces_total += 1;
        if self.interfaces.len() == INTERFACES_LISTED {
            return INTERFACES_LISTED;
        }
        self.interfaces.push(interface);
        self.interfaces.len() - 1
    }

    /// Adds one chunk's frames, counted in registers by the format's loop.
    pub(super) fn add(&mut self, tally: &Tally) {
        if tally.frames == 0 {
            return;
        }
        self.frames += tally.frames;
        self.frames_cut += tally.cut;
        self.captured_bytes += tally.captured;
        self.wire_bytes += tally.original;
        let first = self.first_time_ns.unwrap_or(i64::MAX);
        let last = self.last_time_ns.unwrap_or(i64::MIN);
        self.first_time_ns = Some(first.min(tally.first_ns));
        self.last_time_ns = Some(last.max(tally.last_ns));
    }
}

/// The counters of one chunk.
pub(super) struct Tally {
    frames: u64,
    cut: u64,
    captured: u64,
    original: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally { frames: 0, cut: 0, captured: 0, original: 0, first_ns: i64::MAX, last_ns: i64::MIN }
    }

    #[inline]
    pub(super) fn frame(&mut self, frame: &super::FrameRef) {
        self.frames += 1;
        self.cut += u64::from(frame.captured < frame.original);
        self.captured += u64::from(frame.captured);
        self.original += u64::from(frame.original);
        self.first_ns = self.first_ns.min(frame.time_ns);
        self.last_ns = self.last_ns.max(frame.time_ns);
    }
}
