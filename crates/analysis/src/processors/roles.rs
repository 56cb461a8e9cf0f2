//! What modules and functions do in the receive path of a network, by their names.
//!
//! Names of Windows' own drivers are in Microsoft's documentation of NDIS; those of Linux are functions of the
//! kernel (net/core, drivers/net/bonding, drivers/net/team, net/bridge, net/netfilter). A module between the driver
//! of the adapter and TCP that is in no list is a filter: nothing else is called there.

use serde::Serialize;

/// What a frame of a stack does for received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The kernel, and what passes packets on: NDIS, NAPI.
    System,
    /// The driver of a network adapter.
    Adapter,
    /// A team or bond of adapters.
    Team,
    /// A virtual switch or bridge.
    Switch,
    /// A filter or an inspection of packets.
    Filter,
    /// TCP/IP.
    Protocol,
    /// Recording of the trace itself.
    Tracing,
}

/// Windows modules, in lower case without extension, whose role is known.
const MODULES: [(&str, Role); 28] = [
    ("ntoskrnl", Role::System),
    ("ntkrnlmp", Role::System),
    ("hal", Role::System),
    ("ndis", Role::System),
    ("netio", Role::Protocol),
    ("tcpip", Role::Protocol),
    ("afd", Role::Protocol),
    ("srvnet", Role::Protocol),
    ("srv2", Role::Protocol),
    ("fwpkclnt", Role::Protocol),
    ("http", Role::Protocol),
    // The team of Windows Server, and of Intel, Broadcom, HP and QLogic.
    ("ndisimplatform", Role::Team),
    ("mslbfoprovider", Role::Team),
    ("ians6x64", Role::Team),
    ("iansw60e", Role::Team),
    ("iansw60", Role::Team),
    ("basp", Role::Team),
    ("baspxp64", Role::Team),
    ("cpqteam", Role::Team),
    ("hpteam", Role::Team),
    ("qlteam", Role::Team),
    ("vmswitch", Role::Switch),
    ("vfpext", Role::Switch),
    ("bridge", Role::Switch),
    // Filters that are part of Windows.
    ("wfplwfs", Role::Filter),
    ("pacer", Role::Filter),
    ("ndiscap", Role::Filter),
    ("pktmon", Role::Filter),
];

/// Functions of Linux by their beginnings, with what they belong to.
const FUNCTIONS: [(&str, Role, &str); 37] = [
    ("bond_", Role::Team, "bonding"),
    ("team_", Role::Team, "team"),
    ("br_handle_frame", Role::Switch, "bridge"),
    ("br_pass_frame", Role::Switch, "bridge"),
    ("ovs_", Role::Switch, "openvswitch"),
    ("macvlan_", Role::Switch, "macvlan"),
    ("ipvlan_", Role::Switch, "ipvlan"),
    ("vxlan_", Role::Switch, "vxlan"),
    ("nf_", Role::Filter, "netfilter"),
    ("nft_", Role::Filter, "netfilter"),
    ("ipt_", Role::Filter, "netfilter"),
    ("ip6t_", Role::Filter, "netfilter"),
    ("ebt_", Role::Filter, "netfilter"),
    ("ip_vs_", Role::Filter, "ip_vs"),
    ("tcf_", Role::Filter, "traffic control"),
    ("cls_bpf", Role::Filter, "traffic control"),
    ("bpf_prog_run", Role::Filter, "BPF"),
    ("packet_rcv", Role::Filter, "packet sockets"),
    ("tpacket_rcv", Role::Filter, "packet sockets"),
    ("tcp_", Role::Protocol, "TCP/IP"),
    ("ip_rcv", Role::Protocol, "TCP/IP"),
    ("ip_local_deliver", Role::Protocol, "TCP/IP"),
    ("ip6_", Role::Protocol, "TCP/IP"),
    ("ipv6_rcv", Role::Protocol, "TCP/IP"),
    ("udp_", Role::Protocol, "UDP"),
    ("udp6_", Role::Protocol, "UDP"),
    ("inet_gro_receive", Role::Protocol, "TCP/IP"),
    ("trace_event_", Role::Tracing, "tracing"),
    ("perf_trace_", Role::Tracing, "tracing"),
    ("perf_swevent", Role::Tracing, "tracing"),
    ("ring_buffer_", Role::Tracing, "tracing"),
    ("bpf_trace_run", Role::Tracing, "tracing"),
    // The programs of `smbscope record --cpu`, and what they call.
    ("smbscope_", Role::Tracing, "tracing"),
    ("bpf_trampoline_", Role::Tracing, "tracing"),
    ("bpf_ringbuf_", Role::Tracing, "tracing"),
    ("__bpf_ringbuf_", Role::Tracing, "tracing"),
    ("etwp", Role::Tracing, "tracing"),
];

/// Functions that pass received packets to what is above the driver.
const RECEIVE: [&str; 5] = [
    "net_rx_action",
    "__netif_receive_skb",
    "netif_receive_skb",
    "napi_gro_receive",
    "process_backlog",
];

/// Modules of Linux whose code is a team, a switch or a filter.
const LINUX_MODULES: [(&str, Role); 6] = [
    ("bonding", Role::Team),
    ("team", Role::Team),
    ("bridge", Role::Switch),
    ("openvswitch", Role::Switch),
    ("nf_tables", Role::Filter),
    // Programs in the path of packets (XDP, traffic control).
    ("bpf", Role::Filter),
];

/// The role of a module that is in a list.
pub(super) fn of_module(name: &str) -> Option<Role> {
    let lower = name.to_ascii_lowercase();
    if let Some(module) = lower.strip_suffix(".sys").or_else(|| lower.strip_suffix(".exe")) {
        return MODULES.iter().find(|(known, _)| *known == module).map(|(_, role)| *role);
    }
    let module = lower.trim_matches(['[', ']']);
    let module = module.rsplit('/').next().unwrap_or(module);
    let module = module.split('.').next().unwrap_or(module);
    if ["kernel", "vmlinux", "guest"].iter().any(|kernel| module.starts_with(kernel)) {
        return Some(Role::System);
    }
    LINUX_MODULES.iter().find(|(known, _)| *known == module).map(|(_, role)| *role)
}

/// The role of a function that is in a list, and what it belongs to.
pub(super) fn of_function(name: &str) -> Option<(Role, &'static str)> {
    let lower = name.to_ascii_lowercase();
    let known = FUNCTIONS.iter().find(|(begin, ..)| lower.starts_with(begin));
    known.map(|(_, role, family)| (*role, *family))
}

/// Whether a frame belongs to the receive path: NDIS on Windows, the functions of the network core on Linux.
pub(super) fn is_receive(module: Option<&str>, function: Option<&str>) -> bool {
    module.is_some_and(|module| short(module).eq_ignore_ascii_case("ndis.sys"))
        || function.is_some_and(|function| RECEIVE.iter().any(|known| function.starts_with(known)))
}

/// The name of a module without its folder.
pub(super) fn short(name: &str) -> &str {
    name.rsplit(['\\', '/']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_functions_have_roles() {
        assert_eq!(of_module("NdisImPlatform.sys"), Some(Role::Team));
        assert_eq!(of_module("NETIO.SYS"), Some(Role::Protocol));
        assert_eq!(of_module("ixn68x64.sys"), None);
        assert_eq!(of_module("[kernel.kallsyms]"), Some(Role::System));
        assert_eq!(
            of_module("/lib/modules/6.1/kernel/drivers/net/bonding/bonding.ko"),
            Some(Role::Team)
        );
        assert_eq!(of_module("[bpf]"), Some(Role::Filter));
        let own = of_function("smbscope_softirq_exit");
        assert_eq!(own, Some((Role::Tracing, "tracing")));
        assert_eq!(of_function("nft_do_chain"), Some((Role::Filter, "netfilter")));
        assert_eq!(of_function("tcp_v4_rcv"), Some((Role::Protocol, "TCP/IP")));
        assert!(
            is_receive(Some("NDIS.SYS"), None) && is_receive(None, Some("net_rx_action.part.0"))
        );
        assert_eq!(of_function("net_rx_action"), None);
        assert_eq!(short(r"\SystemRoot\drivers\ndis.sys"), "ndis.sys");
    }
}
