//! The system's configuration: group 11 (the MOF classes SystemConfig of CPU, NIC, IRQ and plug and
//! play, and events on NUMA nodes, CPUs and their numbers, which no MOF class describes).

use super::super::record::Record;
use super::{pointer_at, text_at};
use smbscope_wire::read::{array_at, u8_at, u16_at, u32_at, u64_at};

pub const CPU: u8 = 10;
pub const ADAPTER: u8 = 13;
pub const INTERRUPT_LINE: u8 = 21;
pub const DEVICE: u8 = 22;
pub const NUMA_NODES: u8 = 24;
pub const PROCESSOR_NUMBERS: u8 = 27;
pub const PROCESSOR: u8 = 35;

/// A network adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAdapter {
    /// MAC address.
    pub address: [u8; 6],
    pub description: String,
}

/// The interrupt of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// Negative for message-signalled interrupts.
    pub irq: i32,
    /// CPUs that it may interrupt; zero if not known.
    pub affinity: u64,
    /// Device instance id.
    pub device: String,
}

/// A device of plug and play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PnpDevice {
    /// Device instance id.
    pub instance: String,
    /// GUID of its class, in the order of bytes of the file.
    pub class: [u8; 16],
    pub name: String,
    /// Service of its driver; empty if it has none.
    pub service: String,
    /// Drivers above, then drivers below that one.
    pub filters: Vec<String>,
}

/// A CPU: its group and its number in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorNumber {
    pub group: u16,
    pub number: u8,
}

/// A NUMA node: its CPUs in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumaNode {
    pub mask: u64,
    pub group: u16,
}

/// MHz of the CPUs.
pub fn mhz(record: &Record<'_>) -> Option<u32> {
    u32_at(record.payload, 0).filter(|&mhz| mhz > 0)
}

/// HyperThreadingFlag: a bit for each of the first 32 CPUs, set if hyper-threading is on for it. It comes after
/// five numbers, the name of the computer (256 characters) and that of the domain (134, version 2 and later).
pub fn hyper_threads(record: &Record<'_>) -> Option<u32> {
    (record.version >= 2).then(|| u32_at(record.payload, 20 + 2 * 256 + 2 * 134))?
}

/// Version 2: PhysicalAddr, its length, two indexes, description.
pub fn adapter(record: &Record<'_>) -> Option<NetworkAdapter> {
    let bytes = u64_at(record.payload, 0)?.to_le_bytes();
    let [a, b, c, d, e, f, ..] = bytes;
    let (description, _) = text_at(record.payload, 20)?;
    Some(NetworkAdapter { address: [a, b, c, d, e, f], description })
}

/// Version 3: IRQAffinity, 4 bytes, IRQNum, length of the description, the device's id.
pub fn interrupt_line(record: &Record<'_>) -> Option<InterruptLine> {
    if record.version < 3 {
        return None;
    }
    Some(InterruptLine {
        affinity: pointer_at(record.payload, 0, 8)?,
        irq: u32_at(record.payload, 12)? as i32,
        device: text_at(record.payload, 20)?.0,
    })
}

/// Class GUID, numbers of upper and lower filters, in version 5 and later status and problem; instance id,
/// description, friendly name, object, service, and the filters.
pub fn pnp_device(record: &Record<'_>) -> Option<PnpDevice> {
    /// Most filters of each kind.
    const FILTERS_MAX: u32 = 64;
    let fields = record.payload;
    let texts = match record.version {
        0..=3 => return None,
        4 => 24,
        _ => 32,
    };
    let upper = u32_at(fields, 16)?.min(FILTERS_MAX);
    let lower = u32_at(fields, 20)?.min(FILTERS_MAX);
    let mut at = texts;
    let mut text = || {
        let (text, next) = text_at(fields, at)?;
        at = next;
        Some(text)
    };
    let [instance, description, friendly, _object] = [text()?, text()?, text()?, text()?];
    let service = text()?;
    let filters = (0..upper + lower).map_while(|_| text()).filter(|name| !name.is_empty());
    Some(PnpDevice {
        instance,
        class: *array_at(fields, 0)?,
        name: if friendly.is_empty() { description } else { friendly },
        filters: filters.collect(),
        service,
    })
}

/// The name of a class of devices (devguid.h), or its GUID.
pub fn class_name(class: &[u8; 16]) -> String {
    // Most classes of Windows itself differ in the first field only.
    const COMMON: [u8; 14] =
        [0x36, 0x4d, 0x25, 0xe3, 0xce, 0x11, 0xbf, 0xc1, 0x08, 0x00, 0x2b, 0xe1, 0x03, 0x18];
    let [first, second, rest @ ..] = *class;
    let known = match (first, second) {
        _ if rest != COMMON => None,
        (0x67, 0xe9) => Some("diskdrive"),
        (0x68, 0xe9) => Some("display"),
        (0x6a, 0xe9) => Some("hdc"),
        (0x6c, 0xe9) => Some("media"),
        (0x72, 0xe9) => Some(NETWORK),
        (0x7b, 0xe9) => Some("scsiadapter"),
        (0x7d, 0xe9) => Some("system"),
        _ => None,
    };
    known.map_or_else(|| super::guid_text(class), str::to_owned)
}

/// Name of the class of network adapters.
pub const NETWORK: &str = "net";

/// Number and MHz of one CPU: ProcessorIndex, FeatureSet, ProcessorSpeed, names.
pub fn processor(record: &Record<'_>) -> Option<(u32, u32)> {
    Some((u32_at(record.payload, 0)?, u32_at(record.payload, 8).filter(|&mhz| mhz > 0)?))
}

/// A count, and for each CPU its group and number.
pub fn processor_numbers(record: &Record<'_>) -> impl Iterator<Item = ProcessorNumber> {
    let fields = record.payload;
    let count = u32_at(fields, 0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    (0..count).map_while(move |index| {
        let at = index.checked_mul(4)?.checked_add(4)?;
        Some(ProcessorNumber { group: u16_at(fields, at)?, number: u8_at(fields, at + 2)? })
    })
}

/// A count, and for each node GROUP_AFFINITY (mask, group, 6 bytes).
pub fn numa_nodes(record: &Record<'_>) -> impl Iterator<Item = NumaNode> {
    let fields = record.payload;
    let count = u32_at(fields, 0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    (0..count).map_while(move |index| {
        let at = index.checked_mul(16)?.checked_add(4)?;
        Some(NumaNode { mask: u64_at(fields, at)?, group: u16_at(fields, at + 8)? })
    })
}
