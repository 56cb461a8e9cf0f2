//! `ethtool -c`: interrupt moderation.
//!
//! `struct ethtool_coalesce`, Linux `include/uapi/linux/ethtool.h`.

use serde::{Deserialize, Serialize};

use super::{device, each_value, number_or_absent};
use crate::input::lines::Lines;

/// Interrupt moderation of the receive side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    pub device: Option<String>,
    /// Whether the driver or the adapter adapts it to the load.
    pub is_adaptive_rx: Option<bool>,
    /// Longest delay of an interrupt after a frame, in microseconds.
    pub rx_usecs: Option<u32>,
    /// Frames after which an interrupt comes at the latest; 0 or 1 is each frame.
    pub rx_frames: Option<u32>,
}

pub(super) fn read(lines: &mut Lines<'_>) -> Coalescing {
    let mut coalescing = Coalescing { device: device(lines), ..Coalescing::default() };
    each_value(lines, |_, key, value| match key {
        // `Adaptive RX: off  TX: off`
        "Adaptive RX" => {
            let first = value.split_whitespace().next();
            coalescing.is_adaptive_rx =
                first.filter(|word| *word != "n/a").map(|word| word == "on");
            matches!(first, Some("on" | "off" | "n/a"))
        }
        "CQE mode RX" => true,
        _ => {
            let Some(number) = number_or_absent(value) else { return false };
            match key {
                "rx-usecs" => coalescing.rx_usecs = number,
                "rx-frames" => coalescing.rx_frames = number,
                _ => {}
            }
            // The others: usecs, frames, rates and intervals of special cases.
            key.contains('-')
        }
    });
    coalescing
}
