//! `ethtool -g`: descriptors of the receive and transmit rings.
//!
//! `struct ethtool_ringparam`, Linux `include/uapi/linux/ethtool.h`.

use serde::{Deserialize, Serialize};

use super::{device, each_value, number_or_absent};
use crate::input::lines::Lines;

/// Descriptors of each ring, as set and at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    pub device: Option<String>,
    pub rx_max: Option<u32>,
    pub tx_max: Option<u32>,
    pub rx: Option<u32>,
    pub tx: Option<u32>,
}

pub(super) fn read(lines: &mut Lines<'_>) -> Rings {
    let mut rings = Rings { device: device(lines), ..Rings::default() };
    each_value(lines, |section, key, value| {
        if matches!(key, "TX Push" | "RX Push" | "TCP data split" | "TX push buff len") {
            return true;
        }
        let Some(number) = number_or_absent(value) else { return false };
        match (key, section.starts_with("Pre-set")) {
            ("RX", true) => rings.rx_max = number,
            ("RX", false) => rings.rx = number,
            ("TX", true) => rings.tx_max = number,
            ("TX", false) => rings.tx = number,
            ("RX Mini" | "RX Jumbo" | "RX Buf Len" | "CQE Size" | "HDS thresh", _) => {}
            _ => return false,
        }
        true
    });
    rings
}
