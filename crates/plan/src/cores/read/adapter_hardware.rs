//! `Get-NetAdapterHardwareInfo`: where an adapter is on the bus, and its NUMA node.
//!
//! Class `MSFT_NetAdapterHardwareInfoSettingData`.

use serde::{Deserialize, Serialize};

use crate::input::powershell::Object;

/// Place of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterHardware {
    pub name: String,
    pub description: Option<String>,
    /// `segment:bus:device.function`, in hexadecimal digits as Linux writes it.
    pub bus: Option<String>,
    pub node: Option<u32>,
}

pub(super) fn read(object: &Object) -> Option<AdapterHardware> {
    let is_hardware = object.has("function")
        || object.has("functionnumber")
        || object.has("pciexpresscurrentlinkspeed");
    if !is_hardware || !object.has("name") {
        return None;
    }
    let number = |short: &str, long: &str| object.number(&[short, long]);
    let bus = || {
        let (bus, device) = (number("bus", "busnumber")?, number("device", "devicenumber")?);
        let segment = number("segment", "segmentnumber").unwrap_or(0);
        Some(format!(
            "{segment:04x}:{bus:02x}:{device:02x}.{:x}",
            number("function", "functionnumber")?
        ))
    };
    Some(AdapterHardware {
        name: object.text(&["name"])?,
        description: object.text(&["interfacedescription"]),
        bus: bus(),
        // 65535: the firmware does not say it.
        node: object.number(&["numanode"]).filter(|node| *node != 65_535),
    })
}
