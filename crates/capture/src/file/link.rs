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
}

impl LinkType {
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
