//! `Get-SmbMultichannelConnection`: the paths between an SMB client and its servers, and how many connections each has.
//!
//! Class `MSFT_SmbMultichannelConnection`.

use serde::{Deserialize, Serialize};

use crate::input::powershell::Object;

/// A path that the client found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultichannelConnection {
    pub server: String,
    pub client_address: Option<String>,
    pub server_address: Option<String>,
    pub client_index: Option<u32>,
    pub server_index: Option<u32>,
    /// Whether the client uses it.
    pub is_selected: Option<bool>,
    pub is_client_rss_capable: Option<bool>,
    pub is_client_rdma_capable: Option<bool>,
    /// Connections, as they are and at most.
    pub channels: Option<u32>,
    pub channels_max: Option<u32>,
}

pub(super) fn read(object: &Object) -> Option<MultichannelConnection> {
    let is_connection = object.has("clientip") || object.has("clientipaddress");
    if !is_connection || !object.has("servername") {
        return None;
    }
    Some(MultichannelConnection {
        server: object.text(&["servername"])?,
        client_address: object.text(&["clientip", "clientipaddress"]),
        server_address: object.text(&["serverip", "serveripaddress"]),
        client_index: object.number(&["clientinterfaceindex"]),
        server_index: object.number(&["serverinterfaceindex"]),
        is_selected: object.flag(&["selected"]),
        is_client_rss_capable: object.flag(&["clientrsscapable"]),
        is_client_rdma_capable: object.flag(&["clientrdmacapable"]),
        channels: object.number(&["currentchannels"]),
        channels_max: object.number(&["maxchannels"]),
    })
}
