//! Link-layer types: what a frame begins with.
//!
//! Owns the numbers, not the layouts (`frame`). Numbers: the tcpdump.org list of LINKTYPE_ values,
//! which pcap and pcapng share.

/// A LINKTYPE_ number as the file gives it; an unknown number survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

#[allow(missing_docs)]
impl LinkType {
    pub const NULL: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    /// DLT_RAW as most systems number it, written by tools that forgot to translate it to 101.
    pub const DLT_RAW: LinkType = LinkType(12);
    /// DLT_RAW as OpenBSD numbers it.
    pub const DLT_RAW_OPENBSD: LinkType = LinkType(14);
    pub const RAW: LinkType = LinkType(101);
    pub const LOOP: LinkType = LinkType(108);
    pub const LINUX_SLL: LinkType = LinkType(113);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    pub const LINUX_SLL2: LinkType = LinkType(276);
    pub const TOKEN_RING: LinkType = LinkType(6);
    pub const PPP: LinkType = LinkType(9);
    pub const FDDI: LinkType = LinkType(10);
    pub const PPP_HDLC: LinkType = LinkType(50);
    pub const PPP_ETHERNET: LinkType = LinkType(51);
    pub const ATM: LinkType = LinkType(100);
    pub const CISCO_HDLC: LinkType = LinkType(104);
    /// IEEE 802.11 without a header of the recorder.
    pub const WIRELESS: LinkType = LinkType(105);
    pub const FRAME_RELAY: LinkType = LinkType(107);
    pub const OPENBSD_ENC: LinkType = LinkType(109);
    pub const OPENBSD_PFLOG: LinkType = LinkType(117);
    pub const PRISM: LinkType = LinkType(119);
    pub const FIBRE_CHANNEL_IP: LinkType = LinkType(122);
    pub const SUN_ATM: LinkType = LinkType(123);
    pub const RADIOTAP: LinkType = LinkType(127);
    pub const FIREWIRE: LinkType = LinkType(138);
    pub const AVS: LinkType = LinkType(163);
    pub const PPP_PPPD: LinkType = LinkType(166);
    pub const PPI: LinkType = LinkType(192);
    pub const PPP_WITH_DIRECTION: LinkType = LinkType(204);
    pub const SOLARIS_IPNET: LinkType = LinkType(226);
    pub const NFLOG: LinkType = LinkType(239);
    pub const NET_ANALYZER: LinkType = LinkType(240);
    pub const PKTAP: LinkType = LinkType(258);
    /// No link type: a record that a container does not explain.
    pub const UNKNOWN: LinkType = LinkType(u16::MAX);
}

impl LinkType {
    /// Whether its frames are those of IEEE 802.11, or may be.
    pub(crate) fn is_wireless(self) -> bool {
        use LinkType as Link;
        matches!(self, Link::WIRELESS | Link::RADIOTAP | Link::PRISM | Link::AVS | Link::PPI)
    }

    /// The usual name, or `None` for a link type that `frame` does not dissect.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            LinkType::NULL => "null",
            LinkType::ETHERNET => "Ethernet",
            LinkType::DLT_RAW | LinkType::DLT_RAW_OPENBSD | LinkType::RAW => "raw IP",
            LinkType::LOOP => "loopback",
            LinkType::LINUX_SLL => "Linux cooked v1",
            LinkType::IPV4 => "raw IPv4",
            LinkType::IPV6 => "raw IPv6",
            LinkType::LINUX_SLL2 => "Linux cooked v2",
            LinkType::TOKEN_RING => "Token Ring",
            LinkType::PPP | LinkType::PPP_HDLC => "PPP",
            LinkType::PPP_PPPD | LinkType::PPP_WITH_DIRECTION => "PPP with direction",
            LinkType::PPP_ETHERNET => "PPPoE",
            LinkType::FDDI => "FDDI",
            LinkType::ATM => "ATM RFC 1483",
            LinkType::SUN_ATM => "SunATM",
            LinkType::CISCO_HDLC => "Cisco HDLC",
            LinkType::FRAME_RELAY => "Frame Relay",
            LinkType::WIRELESS => "IEEE 802.11",
            LinkType::RADIOTAP => "IEEE 802.11 with radiotap",
            LinkType::PRISM => "IEEE 802.11 with Prism",
            LinkType::AVS => "IEEE 802.11 with AVS",
            LinkType::PPI => "PPI",
            LinkType::OPENBSD_ENC => "OpenBSD enc",
            LinkType::OPENBSD_PFLOG => "OpenBSD pflog",
            LinkType::FIBRE_CHANNEL_IP => "IP over Fibre Channel",
            LinkType::FIREWIRE => "IP over IEEE 1394",
            LinkType::SOLARIS_IPNET => "Solaris IPNET",
            LinkType::NFLOG => "NFLOG",
            LinkType::NET_ANALYZER => "netANALYZER",
            LinkType::PKTAP => "PKTAP",
            _ => return None,
        })
    }
}

impl std::fmt::Display for LinkType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}
