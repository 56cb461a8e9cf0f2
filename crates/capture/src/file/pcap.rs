//! Classic pcap: a header of 24 bytes, then records.
//!
//! Owns both byte orders, micro- and nanoseconds, Kuznetzov's modified record header, and the record
//! headers of Nokia, Red Hat 6.1 and SuSE 6.3, which no magic number announces (`record_header`).
//! Layout: draft-ietf-opsawg-pcap, sections 4 and 5. Written by hand, because the record header
//! is sixteen bytes and this loop runs once per packet.

use super::summary::{ByteOrder, Format, Interface, Tally};
use super::{FileSummary, FrameRef, Limits, LinkType, Parsed};

/// What the magic number says about the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    order: ByteOrder,
    nanoseconds: bool,
    modified: bool,
}

impl Layout {
    pub(super) fn from_magic(magic: [u8; 4]) -> Option<Layout> {
        let of = |number| match number {
            0xa1b2_c3d4_u32 => Some((false, false)),
            0xa1b2_3c4d => Some((true, false)),
            0xa1b2_cd34 => Some((false, true)),
            _ => None,
        };
        let little = of(u32::from_le_bytes(magic)).map(|found| (ByteOrder::Little, found));
        let big = of(u32::from_be_bytes(magic)).map(|found| (ByteOrder::Big, found));
        let (order, (nanoseconds, modified)) = little.or(big)?;
        Some(Layout { order, nanoseconds, modified })
    }

    pub(super) fn format(self) -> Format {
        if self.modified { Format::PcapModified } else { Format::Pcap }
    }

    /// Lengths of a record's header that come with this magic number, the usual one first.
    fn record_headers(self) -> &'static [(usize, Format)] {
        if self.modified {
            &[(24, Format::PcapModified), (28, Format::PcapSuse)]
        } else {
            &[(16, Format::Pcap), (24, Format::PcapRedHat), (20, Format::PcapNokia)]
        }
    }

    pub(super) fn byte_order(self) -> ByteOrder {
        self.order
    }
}

/// The state between two chunks.
pub(super) struct Pcap {
    layout: Layout,
    /// Known once the file's header was read.
    header: Option<Header>,
    frames: u64,
}

#[derive(Clone, Copy)]
struct Header {
    link: LinkType,
    captured_max: u32,
    record_bytes: usize,
}

/// No recorder captures more of a packet, unless its snap length says so (libpcap's maximum).
const SNAPLEN_MAX: u32 = 262_144;

impl Pcap {
    pub(super) fn new(layout: Layout) -> Pcap {
        Pcap { layout, header: None, frames: 0 }
    }

    pub(super) fn parse(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        frames: &mut Vec<FrameRef>,
        tally: &mut Tally,
        summary: &mut FileSummary,
    ) -> Parsed {
        let mut at = 0;
        let header = match self.header {
            Some(header) => header,
            None => match self.header(bytes, limits, summary) {
                Some(header) => {
                    at = 24;
                    *self.header.insert(header)
                }
                None => return Parsed::until(0),
            },
        };
        let before = self.frames;
        let parsed = match header.record_bytes {
            16 => self.records::<16>(bytes, at, header, frames, tally),
            20 => self.records::<20>(bytes, at, header, frames, tally),
            24 => self.records::<24>(bytes, at, header, frames, tally),
            _ => self.records::<28>(bytes, at, header, frames, tally),
        };
        if let Some(interface) = summary.interfaces.first_mut() {
            interface.frames += self.frames - before;
        }
        parsed
    }

    fn header(&self, bytes: &[u8], limits: &Limits, summary: &mut FileSummary) -> Option<Header> {
        let [.., s0, s1, s2, s3, l0, l1, l2, l3] = *bytes.first_chunk::<24>()?;
        let snaplen = self.layout.order.u32([s0, s1, s2, s3]);
        // The upper half holds the length of the frames' check sum, which IP lengths leave out.
        let link = LinkType(self.layout.order.u32([l0, l1, l2, l3]) as u16);
        summary.sections = 1;
        summary.add_interface(Interface {
            name: None,
            link,
            snaplen,
            ticks_per_second: if self.layout.nanoseconds { 1_000_000_000 } else { 1_000_000 },
            frames: 0,
            received: None,
            dropped_interface: None,
            dropped_os: None,
        });
        let largest = u32::try_from(limits.block_bytes).unwrap_or(u32::MAX);
        let captured_max = match snaplen {
            0 => largest,
            _ => snaplen.max(SNAPLEN_MAX).min(largest),
        };
        let (record_bytes, format) = record_header(bytes, self.layout, captured_max);
        summary.format = format;
        Some(Header { link, captured_max, record_bytes })
    }

    /// Lists the whole records from `at` on; `HEADER` is the length of a record's header.
    fn records<const HEADER: usize>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        header: Header,
        frames: &mut Vec<FrameRef>,
        tally: &mut Tally,
    ) -> Parsed {
        let order = self.layout.order;
        let scale = if self.layout.nanoseconds { 1 } else { 1_000 };
        while let Some(record) = bytes.get(at..).and_then(<[u8]>::first_chunk::<HEADER>)
            && let Some(&[s0, s1, s2, s3, f0, f1, f2, f3, c0, c1, c2, c3, o0, o1, o2, o3]) =
                record.first_chunk::<16>()
        {
            let captured = order.u32([c0, c1, c2, c3]);
            if captured > header.captured_max {
                let reason =
                    format!("a record claims {captured} captured bytes, more than any packet has,");
                return Parsed::corrupt(at, reason);
            }
            let start = at + HEADER;
            let end = start + captured as usize;
            if end > bytes.len() {
                break;
            }
            // 2^32 seconds in nanoseconds are less than 2^63.
            let seconds = i64::from(order.u32([s0, s1, s2, s3]));
            let fraction = i64::from(order.u32([f0, f1, f2, f3]));
            self.frames += 1;
            let frame = FrameRef {
                number: self.frames,
                time_ns: seconds * 1_000_000_000 + fraction * scale,
                offset: start as u32,
                captured,
                original: order.u32([o0, o1, o2, o3]).max(captured),
                link: header.link,
            };
            tally.frame(&frame);
            frames.push(frame);
            at = end;
        }
        Parsed::until(at)
    }
}

/// Records that are enough to tell headers of different length apart.
const RECORDS_COMPARED: usize = 32;

/// The length of a record's header: the one with which the first records follow each other without
/// contradiction. With none of them the one that lasts longest, so that a damaged file is read up to
/// the damage.
fn record_header(bytes: &[u8], layout: Layout, captured_max: u32) -> (usize, Format) {
    let candidates = layout.record_headers();
    let usual = candidates.first().copied().unwrap_or((16, Format::Pcap));
    // `max_by_key` returns the last of equals.
    let best = candidates
        .iter()
        .rev()
        .max_by_key(|(length, _)| walk(bytes, *length, layout, captured_max));
    best.copied().unwrap_or(usual)
}

/// Whether records follow each other as far as there are bytes, and how many there are.
fn walk(bytes: &[u8], header: usize, layout: Layout, captured_max: u32) -> (bool, usize) {
    let order = layout.order;
    let fraction_max = if layout.nanoseconds { 1_000_000_000 } else { 1_000_000 };
    let mut at = 24;
    for count in 0..RECORDS_COMPARED {
        let record = bytes.get(at..).unwrap_or_default();
        let Some(&[_, _, _, _, f0, f1, f2, f3, c0, c1, c2, c3, o0, o1, o2, o3]) =
            record.first_chunk::<16>()
        else {
            return (true, count);
        };
        let [fraction, captured, original] =
            [[f0, f1, f2, f3], [c0, c1, c2, c3], [o0, o1, o2, o3]].map(|field| order.u32(field));
        if fraction >= fraction_max || captured > captured_max || original < captured {
            return (false, count);
        }
        at += header + captured as usize;
    }
    (true, RECORDS_COMPARED)
}
