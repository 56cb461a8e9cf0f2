//! `ethtool -i`: driver and address on the bus.
//!
//! `struct ethtool_drvinfo`, Linux `include/uapi/linux/ethtool.h`.

use serde::{Deserialize, Serialize};

use super::each_value;
use crate::cores::read::linux_lists::key_value;
use crate::input::lines::Lines;

/// Driver of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    pub device: Option<String>,
    pub driver: String,
    /// Address on the bus, for example `0000:3b:00.0`.
    pub bus: Option<String>,
    pub firmware: Option<String>,
}

pub(super) fn read(lines: &mut Lines<'_>) -> Driver {
    let name = lines.take().and_then(key_value).map_or("", |(_, value)| value);
    let mut driver =
        Driver { device: lines.device.clone(), driver: name.to_owned(), ..Driver::default() };
    each_value(lines, |_, key, value| {
        let text = (!value.is_empty()).then(|| value.to_owned());
        match key {
            "bus-info" => driver.bus = text,
            "firmware-version" => driver.firmware = text,
            "version" | "expansion-rom-version" => {}
            _ => return key.starts_with("supports-"),
        }
        true
    });
    driver
}
