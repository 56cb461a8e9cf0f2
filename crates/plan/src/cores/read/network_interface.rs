//! `Get-SmbServerNetworkInterface` and `Get-SmbClientNetworkInterface`: interfaces of SMB, with what they are capable of.
//!
//! Classes `MSFT_SmbServerNetworkInterface` and `MSFT_SmbClientNetworkInterface`.

use serde::{Deserialize, Serialize};

use super::objects::bits_per_second;
use crate::input::powershell::Object;

/// An interface of an SMB server or client. A server lists one for each scope and address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkInterface {
    pub index: u32,
    pub name: Option<String>,
    /// `*` for the server itself, otherwise the name of a cluster's role.
    pub scope: Option<String>,
    pub address: Option<String>,
    pub is_rss_capable: Option<bool>,
    pub is_rdma_capable: Option<bool>,
    pub bits_per_second: Option<u64>,
}

pub(super) fn read_server(object: &Object) -> Option<NetworkInterface> {
    object.has("scopename").then(|| read(object)).flatten()
}

pub(super) fn read_client(object: &Object) -> Option<NetworkInterface> {
    object.has("ipaddresses").then(|| read(object)).flatten()
}

fn read(object: &Object) -> Option<NetworkInterface> {
    let addresses = || Some(object.text(&["ipaddresses"])?.trim_matches(['{', '}']).to_owned());
    Some(NetworkInterface {
        index: object.number(&["interfaceindex"])?,
        name: object.text(&["friendlyname"]),
        scope: object.text(&["scopename"]),
        address: object.text(&["ipaddress"]).or_else(addresses),
        is_rss_capable: object.flag(&["rsscapable"]),
        is_rdma_capable: object.flag(&["rdmacapable"]),
        bits_per_second: bits_per_second(object, &["speed", "linkspeed"]),
    })
}
