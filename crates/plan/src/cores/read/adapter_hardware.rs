//! `Get-NetAdapterHardwareInfo`: where an adapter is on the bus, and its NUMA node.
//!
//! Class `MSFT_NetAdapterHardwareInfoSettingData`.

use serde::{Deserialize, Serialize};

use super::pci::{PciLink, megatransfers};
use crate::input::powershell::Object;

/// Place of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterHardware {
    pub name: String,
    pub description: Option<String>,
    /// `segment:bus:device.function`, in hexadecimal digits as Linux writes it.
    pub bus: Option<String>,
    pub node: Option<u32>,
    #[serde(default)]
    pub link: PciLink,
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
        link: link(object),
    })
}

fn link(object: &Object) -> PciLink {
    // The registers have 1 for 2.5 GT/s, 2 for 5, 3 for 8, and twice as much for each more.
    let encoded = |name: &str| match object.number(&[name])? {
        code @ 1..=2 => Some(2_500 * code),
        code @ 3..=7 => Some(8_000 << (code - 3)),
        _ => None,
    };
    let lanes = |names: &[&str]| object.number(names).filter(|&lanes| lanes > 0);
    let shown = || object.text(&["pcielinkspeed"]).as_deref().and_then(megatransfers);
    PciLink {
        megatransfers: encoded("pciexpresscurrentlinkspeedencoded").or_else(shown),
        megatransfers_max: encoded("pciexpressmaxlinkspeedencoded"),
        lanes: lanes(&["pciexpresscurrentlinkwidth", "pcielinkwidth"]),
        lanes_max: lanes(&["pciexpressmaxlinkwidth"]),
        read_request_bytes: object.number(&["pciexpressmaxreadrequestsize"]),
    }
}
