//! The receiver's TCP window is smaller than the bandwidth-delay product (RFC 7323 section 1.1). The
//! observation is [`super::super::transfer_rates`].

use smbscope_findings::{Actor, Confidence, KindInfo};

use super::super::attribution::Attribution;
use super::super::candidate::Candidate;
use super::super::data::FindingKind;

pub(crate) const LINUX: (&str, &str) = (
    "Linux",
    "receiver: net.ipv4.tcp_rmem = 4096 131072 16777216, sender: tcp_wmem likewise, tcp_window_scaling = 1",
);
/// Where both ends scale their windows.
pub(crate) const LINUX_SCALED: (&str, &str) =
    ("Linux", "receiver: net.ipv4.tcp_rmem = 4096 131072 16777216, sender: tcp_wmem likewise");
pub(crate) const NETWORK: (&str, &str) = (
    "network",
    "look for firewalls and WAN accelerators that remove the window scale option from the handshake",
);

pub(crate) const KIND: KindInfo = KindInfo::new("window-limited", "TCP window too small")
    .with_actor(Actor::Client)
    .with_remedies(&[
    LINUX,
    ("Samba", "remove SO_RCVBUF and SO_SNDBUF from socket options: they fix the window"),
    ("Windows", "netsh interface tcp set global autotuninglevel=normal"),
    NETWORK,
]);

/// `window_bytes` and `rtt_ns` are means over the limited directions of connections. Without
/// `link_is_known`, no shorter message showed what the network carries.
pub(crate) fn finish(
    attribution: Attribution,
    rate: f64,
    (window_bytes, rtt_ns): (f64, f64),
    link_is_known: bool,
) -> Candidate {
    let (confidence, because) = if link_is_known { (
            Confidence::Measured,
            "rate times round trip fills the window, and shorter messages are faster",
        ) } else { (
            Confidence::Likely,
            "rate times round trip fills the window; what the network carries was not observed",
        ) };
    Candidate::new(
        FindingKind::WindowLimited,
        "The receiver's TCP window is too small for the round-trip time: in each round trip the sender has to wait \
         until it may send more",
        attribution,
        confidence,
        because,
    )
    .with_figures([
        ("window", window_bytes, "bytes", "a window of {}"),
        ("round_trip", rtt_ns, "ns", "a round trip of {}"),
        ("rate", rate, "bits/s", "{} reached"),
        ("most_that_the_window_allows", 8e9 * window_bytes / rtt_ns.max(1.0), "bits/s", "at most {} with this window"),
    ])
}
