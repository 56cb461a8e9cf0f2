//! `ethtool -l`: how many channels (queues with their interrupts) an adapter has, and how many it uses.
//!
//! `struct ethtool_channels`, Linux `include/uapi/linux/ethtool.h`.

use serde::{Deserialize, Serialize};

use super::{device, each_value, number_or_absent};
use crate::input::lines::Lines;

/// Channels of an adapter. A combined channel receives and transmits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    pub device: Option<String>,
    pub rx_max: Option<u32>,
    pub tx_max: Option<u32>,
    pub combined_max: Option<u32>,
    pub rx: Option<u32>,
    pub tx: Option<u32>,
    pub combined: Option<u32>,
}

impl Channels {
    /// Receive queues in use.
    pub fn receive(&self) -> Option<u32> {
        add(self.rx, self.combined)
    }

    /// Receive queues that the hardware has. A driver counts the same queues as combined or as separate ones.
    pub fn receive_max(&self) -> Option<u32> {
        self.combined_max.into_iter().chain(self.rx_max).max()
    }
}

fn add(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

pub(super) fn read(lines: &mut Lines<'_>) -> Channels {
    let mut channels = Channels { device: device(lines), ..Channels::default() };
    each_value(lines, |section, key, value| {
        let Some(number) = number_or_absent(value) else { return false };
        let is_maximum = section.starts_with("Pre-set");
        match (key, is_maximum) {
            ("RX", true) => channels.rx_max = number,
            ("RX", false) => channels.rx = number,
            ("TX", true) => channels.tx_max = number,
            ("TX", false) => channels.tx = number,
            ("Combined", true) => channels.combined_max = number,
            ("Combined", false) => channels.combined = number,
            ("Other", _) => {}
            _ => return false,
        }
        true
    });
    channels
}
