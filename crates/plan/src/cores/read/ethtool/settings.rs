//! `ethtool` without an option: speed and link. Modes and wake-on-LAN are passed over.
//!
//! `struct ethtool_link_settings`, Linux `include/uapi/linux/ethtool.h`.

use serde::{Deserialize, Serialize};

use super::device;
use crate::cores::read::ends;
use crate::cores::read::linux_lists::key_value;
use crate::input::lines::Lines;

/// Link of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub device: Option<String>,
    pub bits_per_second: Option<u64>,
    pub has_link: Option<bool>,
}

pub(super) fn read(lines: &mut Lines<'_>) -> Settings {
    let mut settings = Settings { device: device(lines), ..Settings::default() };
    while let Some(line) = lines.peek() {
        let text = line.trim();
        // Without the privilege some answers are missing; the others follow.
        if text.starts_with("Cannot get ")
            && (text.contains("wake-on-lan") || text.contains("link status"))
        {
            lines.skip(1);
            continue;
        }
        if ends(lines) {
            break;
        }
        match key_value(line) {
            _ if text.is_empty() || text == "No data available" => lines.skip(1),
            Some(("Speed", value)) => {
                let number =
                    value.strip_suffix("Mb/s").and_then(|number| number.parse::<u64>().ok());
                settings.bits_per_second =
                    number.map(|megabits| megabits.saturating_mul(1_000_000));
                if number.is_none() && !value.starts_with("Unknown") {
                    lines.pass_unknown();
                } else {
                    lines.skip(1);
                }
            }
            Some(("Link detected", value)) => {
                settings.has_link = Some(value == "yes");
                lines.skip(1);
            }
            Some(_) => lines.skip(1),
            // More modes (`100baseT/Half 100baseT/Full`) and message types (`drv probe link`).
            None if text.contains("base") && !text.starts_with("Supported")
                || text.starts_with("drv ") =>
            {
                lines.skip(1)
            }
            None => lines.pass_unknown(),
        }
    }
    settings
}
