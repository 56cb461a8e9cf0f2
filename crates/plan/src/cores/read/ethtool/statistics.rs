//! `ethtool -S`: counters of the driver, and which of them are losses of the receive side.
//!
//! Names are the driver's; `Documentation/networking/statistics.rst` has the standard ones.

use serde::{Deserialize, Serialize};

use crate::cores::read::ends;
use crate::input::Damage;
use crate::input::lines::Lines;

/// Counters that are kept.
const COUNTERS_MAX: usize = 65_536;

/// Counters of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    pub device: Option<String>,
    pub counters: Vec<(String, u64)>,
}

impl Statistics {
    /// Frames that were lost because a receive ring or its buffers were full: counters above zero, by name.
    pub fn receive_losses(&self) -> Vec<(String, u64)> {
        let is_loss = |name: &str| {
            let name = name.to_ascii_lowercase();
            let is_receive = name.contains("rx") || name.contains("receive");
            // XDP programs drop what they were written to drop.
            is_receive
                && !name.contains("xdp")
                && [
                    "drop",
                    "discard",
                    "no_buff",
                    "nobuf",
                    "missed",
                    "out_of_buffer",
                    "fifo_err",
                    "over_err",
                    "alloc_fail",
                    "no_dma",
                ]
                .iter()
                .any(|part| name.contains(part))
        };
        self.counters.iter().filter(|(name, value)| *value > 0 && is_loss(name)).cloned().collect()
    }

    /// Received frames: the adapter's own sum, otherwise that of its queues.
    pub fn received(&self) -> Option<u64> {
        let whole =
            self.counters.iter().find(|(name, _)| name == "rx_packets").map(|(_, value)| *value);
        // `rx0_packets`, `rx_queue_0_packets`, `rxq0: rx_pkts`
        let is_of_queue = |name: &str| {
            name.starts_with("rx")
                && (name.ends_with("packets") || name.ends_with("pkts"))
                && name.contains(|letter: char| letter.is_ascii_digit())
                && !name.contains("xdp")
        };
        let queues = || {
            let parts = self.counters.iter().filter(|(name, _)| is_of_queue(name));
            parts.map(|(_, value)| *value).reduce(u64::saturating_add)
        };
        whole.or_else(queues)
    }
}

pub(super) fn read(lines: &mut Lines<'_>) -> Result<Statistics, Damage> {
    lines.skip(1);
    let mut statistics = Statistics { device: lines.device.clone(), ..Statistics::default() };
    while let Some(line) = lines.peek().filter(|_| !ends(lines)) {
        // `rxq0: rx_pkts: 5`: the name has a colon itself.
        let counter = line
            .rsplit_once(':')
            .and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
        match counter {
            _ if line.trim().is_empty() => lines.skip(1),
            Some((name, value)) => {
                if statistics.counters.len() >= COUNTERS_MAX {
                    let message = format!("more than {COUNTERS_MAX} counters of one adapter");
                    return Err(Damage::new(lines.number(), message));
                }
                statistics.counters.push((name.to_owned(), value));
                lines.skip(1);
            }
            None => lines.pass_unknown(),
        }
    }
    Ok(statistics)
}
