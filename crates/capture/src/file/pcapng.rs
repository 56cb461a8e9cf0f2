//! pcapng: sections of typed blocks.
//!
//! Owns Section Header, Interface Description, Enhanced, Simple and (obsolete) Packet Blocks and
//! Interface Statistics; every other block is skipped and counted. Layout:
//! draft-ietf-opsawg-pcapng, sections 3 and 4. Written by hand: five layouts are read, and a
//! general parser's options vector and block enum would cost more per packet than the rest.

use super::summary::{ByteOrder, Interface, Tally};
use super::{FileSummary, FrameRef, Limits, LinkType, Parsed};

/// The state between two chunks.
pub(super) struct PcapNg {
    order: ByteOrder,
    /// The current section's interfaces.
    interfaces: Vec<Described>,
    frames: u64,
    last_time_ns: i64,
}

/// What a packet block needs to know of its interface.
struct Described {
    link: LinkType,
    snaplen: u32,
    clock: Clock,
    /// Its place in the summary.
    listed: usize,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// More interfaces than any machine has; the old Packet Block could not number more.
const INTERFACES_MAX: usize = 1 << 16;
const NAME_BYTES_MAX: usize = 256;

impl PcapNg {
    pub(super) fn new() -> PcapNg {
        PcapNg { order: ByteOrder::Little, interfaces: Vec::new(), frames: 0, last_time_ns: 0 }
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
        while let Some(rest) = bytes.get(at..)
            && let Some(&[k0, k1, k2, k3, l0, l1, l2, l3]) = rest.first_chunk::<8>()
        {
            let kind = self.order.u32([k0, k1, k2, k3]);
            // The section's type reads the same in both orders; its lengths do not.
            if kind == SECTION_HEADER {
                match rest.get(8..12) {
                    Some([0x4d, 0x3c, 0x2b, 0x1a]) => self.order = ByteOrder::Little,
                    Some([0x1a, 0x2b, 0x3c, 0x4d]) => self.order = ByteOrder::Big,
                    Some(_) => return Parsed::corrupt(at, "a section without byte order".into()),
                    None => break,
                }
            }
            let length = self.order.u32([l0, l1, l2, l3]) as usize;
            if length < 12 || !length.is_multiple_of(4) || length > limits.block_bytes {
                return Parsed::corrupt(at, format!("a block claims the length {length}"));
            }
            let Some(block) = rest.get(..length) else {
                break;
            };
            if block.last_chunk::<4>() != Some(&[l0, l1, l2, l3]) {
                return Parsed::corrupt(at, "a block's two lengths contradict each other".into());
            }
            let found = match kind {
                ENHANCED_PACKET | PACKET => self.packet(kind, block),
                SIMPLE_PACKET => self.simple_packet(block, summary),
                INTERFACE_DESCRIPTION => self.description(block, summary),
                INTERFACE_STATISTICS => self.statistics(block, summary),
                SECTION_HEADER => self.section(block, summary),
                _ => {
                    summary.blocks_skipped += 1;
                    Ok(None)
                }
            };
            match found {
                Ok(None) => {}
                Ok(Some((mut frame, listed))) => {
                    frame.offset += at as u32;
                    self.frames += 1;
                    frame.number = self.frames;
                    self.last_time_ns = frame.time_ns;
                    if let Some(interface) = summary.interfaces.get_mut(listed) {
                        interface.frames += 1;
                    }
                    tally.frame(&frame);
                    frames.push(frame);
                }
                Err(reason) => return Parsed::corrupt(at, reason),
            }
            at += length;
        }
        Parsed::until(at)
    }

    /// Enhanced and old Packet Blocks differ only in the interface's number.
    #[inline]
    fn packet(&self, kind: u32, block: &[u8]) -> Result<Found, String> {
        let order = self.order;
        let Some(
            &[
                _,
                _,
                _,
                _,
                _,
                _,
                _,
                _,
                i0,
                i1,
                i2,
                i3,
                h0,
                h1,
                h2,
                h3,
                t0,
                t1,
                t2,
                t3,
                c0,
                c1,
                c2,
                c3,
                o0,
                o1,
                o2,
                o3,
            ],
        ) = block.first_chunk::<28>()
        else {
            return Err("a packet block too short for its header".into());
        };
        let number = match kind {
            PACKET => u32::from(order.u16([i0, i1])),
            _ => order.u32([i0, i1, i2, i3]),
        };
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Err(format!("a packet of interface {number}, never described,"));
        };
        let captured = order.u32([c0, c1, c2, c3]);
        if (captured as usize).saturating_add(32) > block.len() {
            return Err(format!("a packet of {captured} bytes exceeds its block"));
        }
        let high = u64::from(order.u32([h0, h1, h2, h3]));
        let low = u64::from(order.u32([t0, t1, t2, t3]));
        let frame = FrameRef {
            number: 0,
            time_ns: interface.clock.time_ns(high << 32 | low),
            offset: 28,
            captured,
            original: order.u32([o0, o1, o2, o3]).max(captured),
            link: interface.link,
        };
        Ok(Some((frame, interface.listed)))
    }

    /// A packet of the first interface, without time, cut at the interface's snap length.
    fn simple_packet(&self, block: &[u8], summary: &mut FileSummary) -> Result<Found, String> {
        let Some(interface) = self.interfaces.first() else {
            return Err("a packet without an interface description".into());
        };
        let original = word(block, 8, self.order).unwrap_or(0);
        let room = u32::try_from(block.len().saturating_sub(16)).unwrap_or(u32::MAX);
        let snaplen = match interface.snaplen {
            0 => u32::MAX,
            snaplen => snaplen,
        };
        summary.frames_without_time += 1;
        let frame = FrameRef {
            number: 0,
            time_ns: self.last_time_ns,
            offset: 12,
            captured: original.min(snaplen).min(room),
            original,
            link: interface.link,
        };
        Ok(Some((frame, interface.listed)))
    }

    fn section(&mut self, block: &[u8], summary: &mut FileSummary) -> Result<Found, String> {
        let version = block.get(12..14).and_then(<[u8]>::first_chunk);
        let version = version.map_or(0, |v| self.order.u16(*v));
        if version != 1 {
            return Err(format!("a section of the unknown version {version}"));
        }
        summary.sections += 1;
        summary.byte_order = self.order;
        self.interfaces.clear();
        Ok(None)
    }

    fn description(&mut self, block: &[u8], summary: &mut FileSummary) -> Result<Found, String> {
        let order = self.order;
        let Some(
            // The last four are the trailing length or the first option.
            &[_, _, _, _, _, _, _, _, l0, l1, _, _, s0, s1, s2, s3, _, _, _, _],
        ) = block.first_chunk::<20>()
        else {
            return Err("an interface description too short for its header".into());
        };
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(format!("more than {INTERFACES_MAX} interfaces"));
        }
        let (link, snaplen) = (LinkType(order.u16([l0, l1])), order.u32([s0, s1, s2, s3]));
        let (mut name, mut ticks, mut offset_s) = (None, 1_000_000, 0);
        for (code, value) in options(block, 16, order) {
            match (code, value) {
                (2, name_) => {
                    let name_ = name_.get(..NAME_BYTES_MAX).unwrap_or(name_);
                    name = Some(String::from_utf8_lossy(name_).into_owned());
                }
                (9, [resolution, ..]) => {
                    ticks = ticks_per_second(*resolution)
                        .ok_or_else(|| format!("a timestamp resolution of {resolution:#x}"))?;
                }
                (14, value) => {
                    offset_s = value.first_chunk().map_or(0, |v| order.u64(*v) as i64);
                }
                _ => {}
            }
        }
        let listed = summary.add_interface(Interface {
            name,
            link,
            snaplen,
            ticks_per_second: ticks,
            frames: 0,
            received: None,
            dropped_interface: None,
            dropped_os: None,
        });
        self.interfaces.push(Described {
            link,
            snaplen,
            clock: Clock::new(ticks, offset_s),
            listed,
        });
        Ok(None)
    }

    /// Statistics of an unknown interface are harmless and skipped.
    fn statistics(&self, block: &[u8], summary: &mut FileSummary) -> Result<Found, String> {
        let interface = word(block, 8, self.order)
            .and_then(|number| self.interfaces.get(number as usize))
            .and_then(|interface| summary.interfaces.get_mut(interface.listed));
        if let Some(interface) = interface {
            for (code, value) in options(block, 20, self.order) {
                let count = value.first_chunk().map(|v| self.order.u64(*v));
                match code {
                    4 => interface.received = count.or(interface.received),
                    5 => interface.dropped_interface = count.or(interface.dropped_interface),
                    7 => interface.dropped_os = count.or(interface.dropped_os),
                    _ => {}
                }
            }
        }
        Ok(None)
    }
}

/// A frame, still without its number and with its offset in the block, and its interface's place
/// in the summary.
type Found = Option<(FrameRef, usize)>;

fn word(block: &[u8], offset: usize, order: ByteOrder) -> Option<u32> {
    Some(order.u32(*block.get(offset..)?.first_chunk()?))
}

/// The options of a block from `start` on, without its trailing length.
fn options(block: &[u8], start: usize, order: ByteOrder) -> impl Iterator<Item = (u16, &[u8])> {
    let end = block.len().saturating_sub(4);
    let mut rest = block.get(start..end).unwrap_or_default();
    std::iter::from_fn(move || {
        let (&[c0, c1, l0, l1], after) = rest.split_first_chunk::<4>()?;
        let (code, length) = (order.u16([c0, c1]), usize::from(order.u16([l0, l1])));
        if code == 0 {
            return None;
        }
        let value = after.get(..length)?;
        rest = after.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

/// `if_tsresol`: a negative power of 10, or of 2 with the top bit set.
fn ticks_per_second(resolution: u8) -> Option<u64> {
    let exponent = u32::from(resolution & 0x7f);
    match resolution & 0x80 {
        0 => 10u64.checked_pow(exponent),
        _ => 1u64.checked_shl(exponent),
    }
}

/// From an interface's ticks to nanoseconds since the epoch.
struct Clock {
    ticks_per_second: u64,
    /// Nanoseconds per tick where that is a whole number, else 0.
    whole_ns: u64,
    offset_ns: i64,
}

impl Clock {
    fn new(ticks_per_second: u64, offset_s: i64) -> Clock {
        let ticks_per_second = ticks_per_second.max(1);
        Clock {
            ticks_per_second,
            whole_ns: match 1_000_000_000 % ticks_per_second {
                0 => 1_000_000_000 / ticks_per_second,
                _ => 0,
            },
            offset_ns: offset_s.saturating_mul(1_000_000_000),
        }
    }

    #[inline]
    fn time_ns(&self, ticks: u64) -> i64 {
        let since = match self.whole_ns {
            0 => {
                // 2^64 ticks of 10^9 fit in 128 bits.
                let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second);
                i64::try_from(ns).unwrap_or(i64::MAX)
            }
            whole => i64::try_from(ticks.saturating_mul(whole)).unwrap_or(i64::MAX),
        };
        since.saturating_add(self.offset_ns)
    }
}
