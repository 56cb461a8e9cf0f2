//! What modules and functions do in the receive path of a network, by their names.
//!
//! Names of Windows' own drivers are in Microsoft's documentation of NDIS; those of Linux are functions of the
//! kernel (net/core, drivers/net/bonding, drivers/net/team, net/bridge, net/netfilter). What a module is that is in no
//! list depends on what calls it: that is in `path`.

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
    /// What takes the data from TCP: a server, a client, or a protocol above it.
    Receiver,
    /// Recording of the trace itself.
    Tracing,
}

/// Windows modules, in lower case without extension, whose role is known.
const MODULES: [(&str, Role); 58] = [
    ("ndis", Role::System),
    // Frameworks of drivers, and what they call: they are neither adapters nor filters.
    ("wdf01000", Role::System),
    ("netadaptercx", Role::System),
    ("wpprecorder", Role::System),
    ("cng", Role::System),
    ("ksecdd", Role::System),
    ("fltmgr", Role::System),
    ("watchdog", Role::System),
    ("clipsp", Role::System),
    ("acpi", Role::System),
    ("pci", Role::System),
    ("intelppm", Role::System),
    ("amdppm", Role::System),
    ("processr", Role::System),
    ("netio", Role::Protocol),
    ("tcpip", Role::Protocol),
    ("fwpkclnt", Role::Protocol),
    ("afd", Role::Protocol),
    // Protocols next to TCP/IP on an adapter.
    ("rspndr", Role::Protocol),
    ("lltdio", Role::Protocol),
    ("mslldp", Role::Protocol),
    ("ndisuio", Role::Protocol),
    ("smbdirect", Role::Protocol),
    ("tdx", Role::Receiver),
    ("netbt", Role::Receiver),
    ("srvnet", Role::Receiver),
    ("srv", Role::Receiver),
    ("srv2", Role::Receiver),
    ("mrxsmb", Role::Receiver),
    ("mrxsmb10", Role::Receiver),
    ("mrxsmb20", Role::Receiver),
    ("rdbss", Role::Receiver),
    ("http", Role::Receiver),
    ("msquic", Role::Receiver),
    ("msiscsi", Role::Receiver),
    ("rpcxdr", Role::Receiver),
    ("nfssvr", Role::Receiver),
    ("nfsrdr", Role::Receiver),
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
    ("vmsproxy", Role::Switch),
    ("vfpext", Role::Switch),
    ("bridge", Role::Switch),
    // Filters that are part of Windows.
    ("wfplwfs", Role::Filter),
    ("pacer", Role::Filter),
    ("ndiscap", Role::Filter),
    ("pktmon", Role::Filter),
    ("vwififlt", Role::Filter),
    // Counts the bytes of each program (Network Data Usage) in callouts of the filtering platform.
    ("ndu", Role::Filter),
];

/// Functions of Linux by their beginnings, with what they belong to.
const FUNCTIONS: [(&str, Role, &str); 44] = [
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
    ("geneve_", Role::Switch, "geneve"),
    // Accelerated networking of Hyper-V: the virtual function passes packets through the virtual adapter.
    ("netvsc_vf_handle_frame", Role::Switch, "hv_netvsc"),
    ("tcf_", Role::Filter, "traffic control"),
    ("cls_bpf", Role::Filter, "traffic control"),
    ("bpf_prog_run", Role::Filter, "BPF"),
    ("packet_rcv", Role::Filter, "packet sockets"),
    ("tpacket_rcv", Role::Filter, "packet sockets"),
    // Hooks of security modules for what a socket receives.
    ("security_sock_rcv_skb", Role::Filter, "security modules"),
    ("tcp_", Role::Protocol, "TCP/IP"),
    ("tcp4_", Role::Protocol, "TCP/IP"),
    ("tcp6_", Role::Protocol, "TCP/IP"),
    ("ip_rcv", Role::Protocol, "TCP/IP"),
    ("ip_local_deliver", Role::Protocol, "TCP/IP"),
    ("ip6_", Role::Protocol, "TCP/IP"),
    ("ipv6_rcv", Role::Protocol, "TCP/IP"),
    ("udp_", Role::Protocol, "UDP"),
    ("udp6_", Role::Protocol, "UDP"),
    ("udpv6_", Role::Protocol, "UDP"),
    ("__udp", Role::Protocol, "UDP"),
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

/// Functions that poll the drivers of adapters (Linux).
const POLL: [&str; 3] = ["net_rx_action", "__napi_poll", "napi_threaded_poll"];

/// Functions that pass received packets to what is above the driver (Linux).
const RECEIVE: [&str; 7] = [
    "__netif_receive_skb",
    "netif_receive_skb",
    "napi_gro_",
    "napi_complete_done",
    "gro_normal_list",
    "process_backlog",
    "netif_rx",
];

/// Functions that send packets (Linux). What they call is not in the path of received ones.
const SEND: [&str; 5] =
    ["__dev_queue_xmit", "dev_queue_xmit", "dev_hard_start_xmit", "sch_direct_xmit", "__qdisc_run"];

/// Modules of Linux by the beginnings of their names, with what they belong to.
const LINUX_MODULES: [(&str, Role, &str); 45] = [
    ("bonding", Role::Team, "bonding"),
    ("team", Role::Team, "team"),
    ("net_failover", Role::Team, "net_failover"),
    ("bridge", Role::Switch, "bridge"),
    ("openvswitch", Role::Switch, "openvswitch"),
    ("macvlan", Role::Switch, "macvlan"),
    ("macvtap", Role::Switch, "macvtap"),
    ("ipvlan", Role::Switch, "ipvlan"),
    ("ipvtap", Role::Switch, "ipvtap"),
    ("vxlan", Role::Switch, "vxlan"),
    ("geneve", Role::Switch, "geneve"),
    ("nf_", Role::Filter, "netfilter"),
    ("nft_", Role::Filter, "netfilter"),
    ("xt_", Role::Filter, "netfilter"),
    ("x_tables", Role::Filter, "netfilter"),
    ("ip_tables", Role::Filter, "netfilter"),
    ("ip6_tables", Role::Filter, "netfilter"),
    ("iptable_", Role::Filter, "netfilter"),
    ("ip6table_", Role::Filter, "netfilter"),
    ("ebt", Role::Filter, "netfilter"),
    ("ip_set", Role::Filter, "netfilter"),
    ("ip_vs", Role::Filter, "ip_vs"),
    ("act_", Role::Filter, "traffic control"),
    ("cls_", Role::Filter, "traffic control"),
    ("af_packet", Role::Filter, "packet sockets"),
    // Programs in the path of packets (XDP, traffic control).
    ("bpf", Role::Filter, "BPF"),
    ("ipv6", Role::Protocol, "TCP/IP"),
    ("8021q", Role::Protocol, "VLAN"),
    ("garp", Role::Protocol, "VLAN"),
    ("llc", Role::Protocol, "LLC"),
    ("stp", Role::Protocol, "LLC"),
    ("sctp", Role::Protocol, "SCTP"),
    ("fcoe", Role::Protocol, "FCoE"),
    ("libfcoe", Role::Protocol, "FCoE"),
    ("mpls_", Role::Protocol, "MPLS"),
    ("pppoe", Role::Protocol, "PPPoE"),
    ("batman_", Role::Protocol, "BATMAN"),
    ("tipc", Role::Protocol, "TIPC"),
    ("esp4", Role::Protocol, "IPsec"),
    ("esp6", Role::Protocol, "IPsec"),
    ("ah4", Role::Protocol, "IPsec"),
    ("ah6", Role::Protocol, "IPsec"),
    ("xfrm", Role::Protocol, "IPsec"),
    ("ip_gre", Role::Switch, "tunnel"),
    ("ip_tunnel", Role::Switch, "tunnel"),
];

/// What a frame is, as far as its names alone say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// The kernel and its libraries, and what has no name.
    Kernel,
    /// NDIS of Windows.
    Ndis(&'a str),
    /// What polls the drivers of adapters, passes received packets on, and sends packets (Linux).
    Poll,
    Receive,
    Send,
    /// In a list: what it belongs to.
    Listed(Role, &'a str),
    /// A module that is in no list.
    Unknown(&'a str),
}

impl<'a> Frame<'a> {
    /// A frame by its module, without folder, and function.
    pub(super) fn from_module(module: Option<&'a str>, function: Option<&'a str>) -> Frame<'a> {
        if let Some(module) = module
            && is_windows(module)
        {
            return Frame::of_windows(module);
        }
        if let Some(function) = function {
            let begins = |known: &[&str]| known.iter().any(|known| function.starts_with(known));
            if begins(&POLL) {
                return Frame::Poll;
            }
            if begins(&RECEIVE) {
                return Frame::Receive;
            }
            if begins(&SEND) {
                return Frame::Send;
            }
            if let Some((role, family)) = of_function(function) {
                return Frame::Listed(role, family);
            }
        }
        let Some(module) = module else { return Frame::Kernel };
        let name = linux_module(module);
        if is_linux_kernel(name) || module.eq_ignore_ascii_case("[unknown]") {
            return Frame::Kernel;
        }
        match LINUX_MODULES.iter().find(|(begin, ..)| is_or_begins(name, begin)) {
            Some((_, role, family)) => Frame::Listed(*role, family),
            None => Frame::Unknown(module),
        }
    }

    fn of_windows(module: &'a str) -> Frame<'a> {
        let lower = module.to_ascii_lowercase();
        // Libraries of the kernel (hal.dll), the kernel itself, and programs.
        let Some(stem) = lower.strip_suffix(".sys") else { return Frame::Kernel };
        match MODULES.iter().find(|(known, _)| *known == stem) {
            Some(("ndis", _)) => Frame::Ndis(module),
            Some((_, Role::System)) => Frame::Kernel,
            Some((_, role)) => Frame::Listed(*role, module),
            None => Frame::Unknown(module),
        }
    }

    /// Whether it is TCP or UDP, above which nothing is between the adapter and them.
    pub(super) fn is_transport(module: Option<&str>, function: Option<&str>) -> bool {
        match module {
            Some(module) if is_windows(module) => module.eq_ignore_ascii_case("tcpip.sys"),
            _ => function.is_some_and(|function| {
                ["tcp_", "udp_", "udp6_", "udpv6_", "__udp"]
                    .iter()
                    .any(|begin| function.starts_with(begin))
            }),
        }
    }
}

/// Whether `begin` is the name, or ends with `_` and is its beginning.
fn is_or_begins(name: &str, begin: &str) -> bool {
    name.strip_prefix(begin).is_some_and(|rest| {
        rest.is_empty() || begin.ends_with('_') || rest.starts_with('_') || begin == "ebt"
    })
}

fn is_windows(module: &str) -> bool {
    let extension = module.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| {
        ["sys", "exe", "dll"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// A module of Linux without brackets, folder and extension.
fn linux_module(name: &str) -> &str {
    let name = name.trim_matches(['[', ']']);
    let name = name.rsplit('/').next().unwrap_or(name);
    name.split('.').next().unwrap_or(name)
}

fn is_linux_kernel(module: &str) -> bool {
    ["kernel", "vmlinux", "guest"].iter().any(|kernel| module.starts_with(kernel))
}

/// Whether a frame is a module that is in no list.
pub(super) fn is_unknown(module: &str, function: Option<&str>) -> bool {
    matches!(Frame::from_module(Some(module), function), Frame::Unknown(_))
}

/// Whether a module is the kernel of Linux, all functions of which are in one module.
pub(super) fn is_kernel_in_one(module: &str) -> bool {
    module.starts_with('[') && is_linux_kernel(linux_module(module))
}

/// The role of a function that is in a list, and what it belongs to.
pub(super) fn of_function(name: &str) -> Option<(Role, &'static str)> {
    let lower = name.to_ascii_lowercase();
    if let Some(program) = lower.strip_prefix("bpf_prog_")
        && !program.starts_with("run")
    {
        // Programs are named bpf_prog_, a number, and their own name.
        let is_own = program.contains("smbscope_");
        return Some(if is_own { (Role::Tracing, "tracing") } else { (Role::Filter, "BPF") });
    }
    let known = FUNCTIONS.iter().find(|(begin, ..)| lower.starts_with(begin));
    known.map(|(_, role, family)| (*role, *family))
}

/// Modules that sign or encrypt, by the beginnings of their names: of Windows, of the Linux kernel, and libraries of programs.
const CRYPTO_MODULES: [&str; 22] = [
    "cng.sys",
    "bcryptprimitives.dll",
    "aesni_intel",
    "aes_x86_64",
    "aes_generic",
    "aes_ce_",
    "aes_neon_",
    "libaes",
    "ghash",
    "gcm",
    "ccm",
    "cmac",
    "sha256",
    "sha512",
    "libsha256",
    "sha2_ce",
    "libnettle",
    "libgnutls",
    "libgcrypt",
    "libcrypto",
    "libhogweed",
    "sha1",
];

/// Functions of the Linux kernel that sign or encrypt, by their beginnings.
const CRYPTO_FUNCTIONS: [&str; 15] = [
    "aes_",
    "aesni_",
    "_aesni_",
    "__aes_",
    "gcm_",
    "crypto_gcm_",
    "crypto_ccm_",
    "crypto_cmac_",
    "ghash_",
    "clmul_ghash_",
    "sha256_",
    "sha512_",
    "__sha256_",
    "__sha512_",
    "crypto_aead_",
];

/// The module of a frame that signs or encrypts, or the kernel's code that does.
pub(super) fn crypto<'a>(module: Option<&'a str>, function: Option<&str>) -> Option<&'a str> {
    let name = module.map(short).unwrap_or_default();
    let lower = name.trim_matches(['[', ']']).to_ascii_lowercase();
    if CRYPTO_MODULES.iter().any(|known| lower.starts_with(known)) {
        return Some(name);
    }
    let is_kernel = module.is_none_or(|module| is_linux_kernel(linux_module(module)));
    let function = function.filter(|_| is_kernel)?;
    let is_known = CRYPTO_FUNCTIONS.iter().any(|begin| function.starts_with(begin));
    is_known.then_some("AES and SHA of the kernel")
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
        let module = |name| Frame::from_module(Some(name), None);
        assert_eq!(module("NdisImPlatform.sys"), Frame::Listed(Role::Team, "NdisImPlatform.sys"));
        assert_eq!(module("NETIO.SYS"), Frame::Listed(Role::Protocol, "NETIO.SYS"));
        assert_eq!(module("Ndu.sys"), Frame::Listed(Role::Filter, "Ndu.sys"));
        assert_eq!(module("mrxsmb20.sys"), Frame::Listed(Role::Receiver, "mrxsmb20.sys"));
        assert_eq!(module("NDIS.SYS"), Frame::Ndis("NDIS.SYS"));
        assert_eq!(module("ixn68x64.sys"), Frame::Unknown("ixn68x64.sys"));
        for kernel in ["hal.dll", "ntoskrnl.exe", "kdcom.dll", "[kernel.kallsyms]", "vmlinux"] {
            assert_eq!(module(kernel), Frame::Kernel, "{kernel}");
        }
        assert_eq!(module("[unknown]"), Frame::Kernel);
        assert_eq!(Frame::from_module(None, None), Frame::Kernel);
        assert_eq!(module("bonding.ko"), Frame::Listed(Role::Team, "bonding"));
        assert_eq!(module("[xt_conntrack]"), Frame::Listed(Role::Filter, "netfilter"));
        assert_eq!(module("[teamviewer]"), Frame::Unknown("[teamviewer]"));
        assert_eq!(module("[bpf]"), Frame::Listed(Role::Filter, "BPF"));
        let function = |name| Frame::from_module(Some("[kernel.kallsyms]"), Some(name));
        assert_eq!(function("net_rx_action.part.0"), Frame::Poll);
        assert_eq!(function("__netif_receive_skb_core"), Frame::Receive);
        assert_eq!(function("nft_do_chain"), Frame::Listed(Role::Filter, "netfilter"));
        assert_eq!(function("tcp_v4_rcv"), Frame::Listed(Role::Protocol, "TCP/IP"));
        assert_eq!(function("memcpy"), Frame::Kernel);
        assert_eq!(crypto(Some(r"\SystemRoot\cng.sys"), None), Some("cng.sys"));
        assert_eq!(crypto(Some("[aesni_intel]"), Some("x")), Some("[aesni_intel]"));
        assert_eq!(crypto(Some("/usr/lib/libnettle.so.8.6"), None), Some("libnettle.so.8.6"));
        let kernel = |function| crypto(Some("[kernel.kallsyms]"), Some(function));
        assert_eq!(kernel("aes_gcm_enc_update_vaes"), Some("AES and SHA of the kernel"));
        assert_eq!((kernel("tcp_v4_rcv"), crypto(Some("smbd"), Some("aes_x"))), (None, None));
        let own = Some((Role::Tracing, "tracing"));
        assert_eq!(of_function("smbscope_softirq_exit"), own);
        assert_eq!(of_function("bpf_prog_6deef7357e7b4530_smbscope_irq"), own);
        assert_eq!(of_function("bpf_prog_6deef7357e7b4530_fw"), Some((Role::Filter, "BPF")));
        assert_eq!(short(r"\SystemRoot\drivers\ndis.sys"), "ndis.sys");
    }
}
