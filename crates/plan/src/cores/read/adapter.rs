//! `Get-NetAdapter` and `Get-NetAdapterAdvancedProperty`: description, state and speed of an adapter; keywords of its driver.
//!
//! Classes `MSFT_NetAdapter` and `MSFT_NetAdapterAdvancedPropertySettingData`.

use serde::{Deserialize, Serialize};

use super::objects::bits_per_second;
use crate::input::powershell::{Object, text};

/// An adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedAdapter {
    pub name: String,
    pub description: Option<String>,
    pub index: Option<u32>,
    /// `Up`, `Disconnected`, `Disabled`, `Not Present`.
    pub status: Option<String>,
    pub bits_per_second: Option<u64>,
    pub is_virtual: Option<bool>,
    pub is_hardware: Option<bool>,
    pub driver: Option<String>,
}

pub(super) fn read(object: &Object) -> Option<ListedAdapter> {
    let is_adapter =
        object.has("linkspeed") && (object.has("macaddress") || object.has("interfacedescription"));
    if !is_adapter {
        return None;
    }
    Some(ListedAdapter {
        name: object.text(&["name", "interfacealias", "ifalias"])?,
        description: object.text(&["interfacedescription"]),
        index: object.number(&["ifindex", "interfaceindex"]),
        status: object.text(&["status"]),
        // `Speed` is a number; `LinkSpeed` is a text such as `10 Gbps`.
        bits_per_second: bits_per_second(object, &["linkspeed"])
            .or_else(|| bits_per_second(object, &["speed", "receivelinkspeed"])),
        is_virtual: object.flag(&["virtual"]),
        is_hardware: object.flag(&["hardwareinterface", "connectorpresent"]),
        driver: object.text(&["driverfilename", "driverprovider"]),
    })
}

/// A keyword of a driver, for example `*RssBaseProcNumber`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvancedProperty {
    pub name: String,
    pub keyword: String,
    /// Values of the registry.
    pub values: Vec<String>,
    /// Values that the driver accepts, if it lists them, and the largest one.
    #[serde(default)]
    pub allowed: Vec<String>,
    #[serde(default)]
    pub most: Option<u32>,
}

/// A text has at most this number of values.
const VALUES_MAX: usize = 64;

pub(super) fn read_property(object: &Object) -> Option<AdvancedProperty> {
    let keyword = object.text(&["registrykeyword"])?;
    Some(AdvancedProperty {
        name: object.text(&["name"])?,
        keyword,
        values: values(object.get("registryvalue")),
        allowed: values(object.get("validregistryvalues")),
        most: object.number(&["numericparametermaxvalue"]),
    })
}

fn values(value: Option<&serde_json::Value>) -> Vec<String> {
    match value {
        Some(serde_json::Value::Array(values)) => values
            .iter()
            .take(VALUES_MAX)
            .filter_map(|value| Some(value.as_str()?.to_owned()))
            .collect(),
        // A table writes `{1}`.
        Some(value) => {
            let text = text(value).unwrap_or_default();
            let text = text.trim_matches(['{', '}']);
            text.split(',')
                .take(VALUES_MAX)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .collect()
        }
        None => Vec::new(),
    }
}
