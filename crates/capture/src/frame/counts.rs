//! Counts frames without a TCP segment by the reason.

use smbscope_tables::tables::Coverage;

use super::{NotTcp, Udp};

impl NotTcp {
    /// Counts a frame, of which `bytes` were captured, in the coverage.
    pub fn count(self, bytes: &[u8], coverage: &mut Coverage) {
        let is_tunnel = |udp: Udp| udp.datagram(bytes).is_ok_and(|datagram| datagram.is_tunnel());
        match self {
            NotTcp::Tunnel => coverage.frames_tunnelled += 1,
            NotTcp::Udp(udp) if is_tunnel(udp) => coverage.frames_tunnelled += 1,
            NotTcp::OtherProtocol | NotTcp::Udp(_) => coverage.frames_not_tcp += 1,
            NotTcp::UnknownLink => coverage.frames_link_unknown += 1,
            NotTcp::Fragment => coverage.frames_fragment += 1,
            NotTcp::Truncated | NotTcp::Malformed | NotTcp::TooDeep => {
                coverage.frames_malformed += 1
            }
        }
    }
}
