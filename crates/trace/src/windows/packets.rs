//! Packets in a log: events of Microsoft-Windows-NDIS-PacketCapture (`netsh trace start capture=yes`) and of
//! Microsoft-Windows-PktMon (`pktmon start --capture`).
//!
//! Owns which events are packets, and which of several events of the same packet counts. It does not own the
//! packets' contents (`smbscope_capture`). The fields are those of the providers' manifests; the numbers of
//! packet types are those of PKTMON_PACKET_TYPE (pktmonnpik.h).
//!
//! NDIS shows a packet once for each layer of filters above an adapter: one layer of each adapter counts, its
//! lowest one. The packet monitor shows it once for each component: the first appearance counts.

use foldhash::{HashMap, HashMapExt as _, HashSet};
use smbscope_capture::file::LinkType;

use super::fields::Fields;
use super::fragments::Fragments;
use crate::etl::record::Record;

/// Events of NDIS with the bytes of a packet, alone or with those of a virtual switch before them.
const NDIS_FRAGMENT: u16 = 1001;
const NDIS_SWITCH_FRAGMENT: u16 = 1003;
/// Keywords of NDIS: frames of mobile broadband begin with IP, those of wireless networks with IEEE 802.11.
const MOBILE: u64 = 0x200;
const WIRELESS: u64 = 0x1_0000;
/// Events of the packet monitor: a packet, and a packet that was dropped.
const PKTMON_PACKET: u16 = 160;
const PKTMON_DROP: u16 = 170;
/// Bytes of a packet monitor's event before the packet.
const PKTMON_HEAD_BYTES: usize = 34;
/// IEEE 802.11: the bit of the second byte that says that the frame is encrypted. Windows decrypts it, but
/// leaves the bit.
const PROTECTED: u8 = 0x40;

/// LINKTYPE_IEEE802_11.
const IEEE_802_11: LinkType = LinkType(105);

/// Adapters, layers and reasons that are distinguished.
const LAYERS_MAX: usize = 4_096;
/// Packets whose appearances are known, as a power of two.
const SEEN_BITS: u32 = 16;
/// A multiplier without a bit pattern, for mixing (the golden ratio's fraction).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether an event of NDIS has a packet.
pub fn is_ndis(id: u16) -> bool {
    matches!(id, NDIS_FRAGMENT | NDIS_SWITCH_FRAGMENT)
}

/// Whether an event of the packet monitor has one.
pub fn is_packet_monitor(id: u16) -> bool {
    matches!(id, PKTMON_PACKET | PKTMON_DROP)
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet<'a> {
    pub link: LinkType,
    pub bytes: &'a [u8],
    /// Bytes on the wire.
    pub original_bytes: u32,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Packets that count, and their bytes.
    pub packets: u64,
    pub wire_bytes: u64,
    /// Those that were recorded in part.
    pub cut: u64,
    /// Other events of the same packet, at other layers or components.
    pub repeated: u64,
    /// Packets that Windows dropped, by its number of the reason.
    pub dropped: HashMap<u32, u64>,
    /// Events with other fields than the manifest says, and packets with missing pieces.
    pub damaged: u64,
}

/// Layers of the adapters, from the first reading of a log.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// Adapters with their layers.
    seen: HashSet<(u32, u32)>,
    /// Adapter and layer of the last packet: most packets have them, too.
    last: Option<(u32, u32)>,
}

impl Layers {
    /// Notes the layer of a packet of NDIS.
    pub fn survey(&mut self, record: &Record<'_>, id: u16) {
        let mut fields = Fields::new(record.payload);
        if let (true, Some(adapter), Some(layer)) = (is_ndis(id), fields.u32(), fields.u32()) {
            if self.last != Some((adapter, layer)) && self.seen.len() < LAYERS_MAX {
                self.seen.insert((adapter, layer));
            }
            self.last = Some((adapter, layer));
        }
    }

    /// The layer of each adapter that counts: the adapter itself, or else the lowest number.
    pub fn chosen(&self) -> HashMap<u32, u32> {
        let mut chosen: HashMap<u32, u32> = HashMap::new();
        for &(adapter, layer) in &self.seen {
            let best = chosen.entry(adapter).or_insert(layer);
            if layer == adapter || (*best != adapter && layer < *best) {
                *best = layer;
            }
        }
        chosen
    }
}

/// Finds packets.
#[derive(Debug)]
pub struct Packets {
    layers: HashMap<u32, u32>,
    /// Adapter of the last packet, and its layer that counts.
    last: Option<(u32, Option<u32>)>,
    fragments: Fragments<(u32, u32)>,
    /// The latest packets of the packet monitor, by [`place`]: appearances of a packet follow each other closely.
    seen: Vec<(u64, u16)>,
    pub counts: Counts,
}

impl Packets {
    /// Packets of a log whose layers were surveyed.
    pub fn new(layers: &Layers) -> Packets {
        Packets {
            layers: layers.chosen(),
            last: None,
            fragments: Fragments::new(),
            seen: vec![(0, 0); 1 << SEEN_BITS],
            counts: Counts::default(),
        }
    }

    /// Gives the packet of an event of NDIS to `sink`, if the event completes one that counts.
    pub fn ndis(&mut self, record: &Record<'_>, id: u16, mut sink: impl FnMut(Packet<'_>)) {
        if !is_ndis(id) {
            return;
        }
        let Some((adapter, layer, piece)) = ndis_fragment(record.payload, id) else {
            self.counts.damaged += 1;
            return;
        };
        let chosen = match self.last {
            Some((last, chosen)) if last == adapter => chosen,
            _ => {
                let chosen = self.layers.get(&adapter).copied();
                self.last = Some((adapter, chosen));
                chosen
            }
        };
        if chosen.is_some_and(|chosen| chosen != layer) {
            self.counts.repeated += 1;
            return;
        }
        let counts = &mut self.counts;
        let (keyword, thread) = (record.keyword, record.thread);
        self.fragments.piece(thread, (adapter, layer), keyword, piece, |bytes| {
            let mut decrypted = None;
            let link = match keyword {
                keyword if keyword & WIRELESS != 0 => {
                    if bytes.get(1).is_some_and(|flags| flags & PROTECTED != 0) {
                        let frame = decrypted.insert(bytes.to_vec());
                        if let Some(flags) = frame.get_mut(1) {
                            *flags &= !PROTECTED;
                        }
                    }
                    IEEE_802_11
                }
                keyword if keyword & MOBILE != 0 => LinkType::RAW,
                _ => LinkType::ETHERNET,
            };
            let bytes = decrypted.as_deref().unwrap_or(bytes);
            let original_bytes = on_the_wire(link, bytes);
            counts.add(bytes, original_bytes);
            sink(Packet { link, bytes, original_bytes });
        });
    }

    /// The same for an event of the packet monitor.
    pub fn packet_monitor(
        &mut self,
        record: &Record<'_>,
        id: u16,
        mut sink: impl FnMut(Packet<'_>),
    ) {
        if !is_packet_monitor(id) {
            return;
        }
        let Some(event) = Appearance::parse(record.payload) else {
            self.counts.damaged += 1;
            return;
        };
        if id == PKTMON_DROP {
            let dropped = &mut self.counts.dropped;
            if dropped.len() < LAYERS_MAX || dropped.contains_key(&event.drop_reason) {
                *dropped.entry(event.drop_reason).or_default() += 1;
            }
            return;
        }
        let packet = (event.group, event.number);
        if let Some(seen) = self.seen.get_mut(place(event.group, event.number)) {
            if *seen == packet {
                self.counts.repeated += 1;
                return;
            }
            *seen = packet;
        }
        let link = match event.packet_type {
            1 => LinkType::ETHERNET,
            2 => IEEE_802_11,
            3 => LinkType::RAW,
            // What begins above IP has no addresses.
            _ => return,
        };
        let original_bytes = event.original_bytes.max(event.bytes.len() as u32);
        self.counts.add(event.bytes, original_bytes);
        sink(Packet { link, bytes: event.bytes, original_bytes });
    }

    /// Everything ended.
    pub fn end(&mut self) -> &Counts {
        self.fragments.end();
        self.counts.damaged += std::mem::take(&mut self.fragments.discarded);
        &self.counts
    }
}

impl Counts {
    fn add(&mut self, bytes: &[u8], original_bytes: u32) {
        self.packets += 1;
        self.wire_bytes += u64::from(original_bytes);
        self.cut += u64::from((bytes.len() as u32) < original_bytes);
    }
}

/// Where a packet of the packet monitor is remembered. Numbers that follow each other have places that do, so that
/// the CPU's cache has the next one.
fn place(group: u64, number: u16) -> usize {
    let rest = (group >> SEEN_BITS ^ u64::from(number) << 48).wrapping_mul(ODD);
    ((group ^ rest >> (u64::BITS - SEEN_BITS)) & ((1 << SEEN_BITS) - 1)) as usize
}

/// Adapter, layer and bytes of an event of NDIS.
fn ndis_fragment(payload: &[u8], id: u16) -> Option<(u32, u32, &[u8])> {
    let mut fields = Fields::new(payload);
    let (adapter, layer) = (fields.u32()?, fields.u32()?);
    if id == NDIS_SWITCH_FRAGMENT {
        fields.u32()?;
        // Names of the port, of the adapter and its type, which end with a zero.
        for _ in 0..3 {
            while fields.u16()? != 0 {}
        }
        let destinations = usize::try_from(fields.u32()?).ok()?;
        fields.bytes(destinations.checked_mul(8)?)?;
    }
    let length = usize::try_from(fields.u32()?).ok()?;
    Some((adapter, layer, fields.bytes(length)?))
}

/// The length of a frame by its IP header. NDIS does not say how much of a packet it left out; the length of a
/// packet that the adapter segments is 0.
fn on_the_wire(link: LinkType, bytes: &[u8]) -> u32 {
    let ip_at = match link {
        LinkType::ETHERNET => match bytes.get(12..14) {
            Some([0x08, 0x00] | [0x86, 0xdd]) => Some(14),
            _ => None,
        },
        LinkType::RAW => Some(0),
        _ => None,
    };
    let by_header = ip_at.and_then(|at| {
        let be16 = |from: usize| {
            let two = bytes.get(from..).and_then(<[u8]>::first_chunk);
            two.map(|two| usize::from(u16::from_be_bytes(*two)))
        };
        match bytes.get(at)? >> 4 {
            4 => be16(at + 2).filter(|length| *length > 0).map(|length| at + length),
            6 => be16(at + 4).filter(|length| *length > 0).map(|length| at + 40 + length),
            _ => None,
        }
    });
    by_header.unwrap_or(0).max(bytes.len()) as u32
}

/// An event of the packet monitor.
struct Appearance<'a> {
    group: u64,
    number: u16,
    packet_type: u16,
    drop_reason: u32,
    original_bytes: u32,
    bytes: &'a [u8],
}

impl Appearance<'_> {
    fn parse(payload: &[u8]) -> Option<Appearance<'_>> {
        let mut fields = Fields::new(payload);
        let (group, number) = (fields.u64()?, fields.u16()?);
        // Number of the appearance, direction.
        fields.bytes(4)?;
        let packet_type = fields.u16()?;
        // Component, edge, filter.
        fields.bytes(6)?;
        let drop_reason = fields.u32()?;
        // Where it was dropped.
        fields.bytes(4)?;
        let (original, logged) = (fields.u16()?, usize::from(fields.u16()?));
        debug_assert_eq!(payload.len() - fields.left(), PKTMON_HEAD_BYTES);
        Some(Appearance {
            group,
            number,
            packet_type,
            drop_reason,
            original_bytes: u32::from(original),
            bytes: fields.bytes(logged)?,
        })
    }
}
