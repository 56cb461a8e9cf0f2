//! `lspci -vv`: the link of a network adapter to the bus, and its NUMA node.
//!
//! lspci(8); PCI Express Base Specification, "Link Capabilities Register", "Link Status Register", "Device Control Register".

use serde::{Deserialize, Serialize};

use super::Piece;
use crate::input::lines::Lines;

/// A link of PCI Express. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciLink {
    /// Transfers of a lane, in millions per second, as it runs and at most.
    pub megatransfers: Option<u32>,
    pub megatransfers_max: Option<u32>,
    /// Lanes in use and at most.
    pub lanes: Option<u32>,
    pub lanes_max: Option<u32>,
    /// Largest read request of the adapter, in bytes.
    pub read_request_bytes: Option<u32>,
}

impl PciLink {
    /// Bits per second that these transfers and lanes carry after the line code, without headers of packets.
    fn bits_per_second(megatransfers: Option<u32>, lanes: Option<u32>) -> Option<u64> {
        let (rate, lanes) = (u64::from(megatransfers?), u64::from(lanes?));
        // 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, flits of 256 bytes with 242 of data above.
        let (data, coded) = match rate {
            0..=5_000 => (8, 10),
            5_001..=32_000 => (128, 130),
            _ => (242, 256),
        };
        Some(rate.saturating_mul(1_000_000).saturating_mul(lanes) / coded * data)
    }

    /// What the link carries as it runs, in bits per second.
    pub fn carries(&self) -> Option<u64> {
        Self::bits_per_second(self.megatransfers, self.lanes)
    }

    /// What it carries with all lanes and the highest speed of the adapter, in bits per second.
    pub fn carries_at_most(&self) -> Option<u64> {
        Self::bits_per_second(self.megatransfers_max, self.lanes_max)
    }

    /// Takes what `other` knows.
    pub fn update(&mut self, other: &Self) {
        self.megatransfers = other.megatransfers.or(self.megatransfers);
        self.megatransfers_max = other.megatransfers_max.or(self.megatransfers_max);
        self.lanes = other.lanes.or(self.lanes);
        self.lanes_max = other.lanes_max.or(self.lanes_max);
        self.read_request_bytes = other.read_request_bytes.or(self.read_request_bytes);
    }
}

/// A network adapter on the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciDevice {
    /// `segment:bus:device.function`.
    pub bus: String,
    pub node: Option<u32>,
    pub link: PciLink,
}

pub(super) fn starts(line: &str) -> bool {
    header(line).is_some()
}

/// Reads a device, and passes one that is not a network adapter.
pub(super) fn read(lines: &mut Lines<'_>, pieces: &mut Vec<Piece>) {
    let Some((bus, class)) = lines.take().and_then(header) else { return };
    let mut device = PciDevice { bus, ..PciDevice::default() };
    while let Some(line) = lines.peek().filter(|line| line.starts_with([' ', '\t'])) {
        lines.skip(1);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("LnkCap:") {
            (device.link.megatransfers_max, device.link.lanes_max) = speed_and_width(rest);
        } else if let Some(rest) = line.strip_prefix("LnkSta:") {
            (device.link.megatransfers, device.link.lanes) = speed_and_width(rest);
        } else if let Some(node) = line.strip_prefix("NUMA node:") {
            device.node = node.trim().parse().ok();
        } else if let Some((_, rest)) = line.split_once("MaxReadReq ") {
            device.link.read_request_bytes =
                rest.split_whitespace().next().and_then(|word| word.parse().ok());
        }
    }
    if ["Ethernet controller", "Network controller", "Infiniband controller"].contains(&class) {
        pieces.push(Piece::PciDevice(device));
    }
}

/// Transfers of a lane in millions per second: `8GT/s`, `8.0 GT/s PCIe`.
pub(in crate::cores) fn megatransfers(text: &str) -> Option<u32> {
    let (number, _) = text.split_once("GT/s")?;
    let (whole, rest) = number.trim().split_once('.').unwrap_or((number.trim(), "0"));
    let tenths: u32 = rest.get(..1)?.parse().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(1_000)?.checked_add(tenths * 100)
}

/// `Port #0, Speed 8GT/s, Width x16, ASPM not supported`, `Speed 8GT/s (ok), Width x8 (downgraded)`.
fn speed_and_width(text: &str) -> (Option<u32>, Option<u32>) {
    let part = |name: &str| text.split(',').find_map(|part| part.trim().strip_prefix(name));
    let width = part("Width x").and_then(|width| width.split_whitespace().next());
    (
        part("Speed ").and_then(megatransfers),
        width.and_then(|width| width.parse().ok()).filter(|&lanes| lanes > 0),
    )
}

/// Address with its segment, and class: `3b:00.0 Ethernet controller: Mellanox Technologies MT27800`.
fn header(line: &str) -> Option<(String, &str)> {
    let (address, rest) = line.split_once(' ')?;
    let (class, _) = rest.split_once(": ")?;
    let is_hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let (place, function) = address.rsplit_once('.')?;
    let parts: Vec<&str> = place.split(':').collect();
    let (segment, bus, device) = match parts[..] {
        [bus, device] => ("0000", bus, device),
        [segment, bus, device] => (segment, bus, device),
        _ => return None,
    };
    let is_address =
        is_hex(segment, 4) && is_hex(bus, 2) && is_hex(device, 2) && is_hex(function, 1);
    // `lspci -nn` adds the class's number.
    let class = class.split(" [").next().unwrap_or(class);
    is_address.then(|| (format!("{segment}:{bus}:{device}.{function}"), class))
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    /// A card with 16 lanes in a slot with 8, as lspci 3.9 prints it.
    const LSPCI: &str = "00:1f.2 SATA controller: Intel Corporation C620 (rev 09)\n\tLnkSta:\tSpeed 8GT/s, Width x1\n\n\
        3b:00.0 Ethernet controller [0200]: Mellanox Technologies MT27800 Family [ConnectX-5]\n\
        \tSubsystem: Mellanox Technologies Device 0008\n\tNUMA node: 1\n\
        \t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-\n\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n\
        \t\tLnkCap:\tPort #0, Speed 8GT/s, Width x16, ASPM not supported\n\
        \t\tLnkSta:\tSpeed 8GT/s (ok), Width x8 (downgraded)\n\t\tLnkCap2: Supported Link Speeds: 2.5-8GT/s\n";

    #[test]
    fn the_link_of_a_network_adapter_is_read() {
        let reading = read(LSPCI.as_bytes()).unwrap();
        let [Piece::PciDevice(device)] = &reading.pieces[..] else { panic!("{reading:?}") };
        assert_eq!((device.bus.as_str(), device.node), ("0000:3b:00.0", Some(1)));
        let link = device.link;
        assert_eq!((link.megatransfers, link.megatransfers_max), (Some(8_000), Some(8_000)));
        assert_eq!((link.lanes, link.lanes_max), (Some(8), Some(16)));
        assert_eq!(link.read_request_bytes, Some(512));
        assert_eq!(link.carries(), Some(63_015_384_576));
        assert_eq!(reading.unknown.count(), 0, "{:?}", reading.unknown);
    }

    #[test]
    fn transfers_are_in_millions() {
        for (text, expected) in [
            ("2.5GT/s", Some(2_500)),
            ("16.0 GT/s PCIe", Some(16_000)),
            ("64 GT/s", Some(64_000)),
            ("Unknown", None),
            ("99999999 GT/s", None),
            (".GT/s", None),
        ] {
            assert_eq!(megatransfers(text), expected, "{text}");
        }
    }
}
