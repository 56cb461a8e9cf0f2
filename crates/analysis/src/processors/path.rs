//! The path of received packets through the frames of one stack: which module is the driver of the adapter, which one
//! filters packets, and which one takes data from TCP.
//!
//! A module that is in no list of `roles` is known by its caller. Windows: the driver of an adapter passes packets to
//! NDIS, and its DPC may belong to a bus (vmbus.sys, USB); NDIS calls filters, and the filtering platform (netio.sys,
//! fwpkclnt.sys) calls callouts. Linux: the softirq polls the driver, the network core and netfilter call filters.
//! What TCP calls is above it; what the driver of an adapter calls, and what sends packets, is not in the path.

use std::collections::BTreeSet;

use super::roles::{Frame, Role};

/// Module and function of a frame.
pub(super) type Named<'a> = (Option<&'a str>, Option<&'a str>);

/// A frame of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// Its place in the stack; 0 is the outermost frame.
    pub(super) place: usize,
    pub(super) name: &'a str,
    pub(super) role: Role,
}

/// How far a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// In the driver of the adapter.
    Driver,
    /// Between the driver and TCP.
    Stack,
    /// In TCP or UDP, or above.
    Transport,
    /// On its way out, to this or another adapter.
    Sent,
}

/// What called a frame. The kernel and its libraries are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// NDIS, or the network core of Linux.
    Core,
    /// What calls filters only: the filtering platform of Windows, another filter.
    Filters,
    /// A protocol, a team or a switch.
    Layer,
    /// What is not in the path: the driver of the adapter, its helpers, the recording of the trace.
    Aside,
}

/// The driver of the adapter of a stack, outermost frame first, if it passes packets to NDIS.
pub(super) fn adapter<'a>(stack: &[Named<'a>]) -> Option<&'a str> {
    let frames = frames(stack);
    let begin = begin(&frames)?;
    driver(&frames, begin).filter(|found| found.passes_packets).map(|found| found.name)
}

/// The path of a stack, outermost frame first; `None` if it does not receive packets. `adapters` are drivers of
/// adapters that other stacks show.
pub(super) fn steps<'a>(stack: &[Named<'a>], adapters: &BTreeSet<&str>) -> Option<Vec<Step<'a>>> {
    let frames = frames(stack);
    let found = begin(&frames).map(|begin| (begin, driver(&frames, begin)));
    let (begin, driver) = found.or_else(|| {
        // The sample hit the driver, which a bus called.
        let (place, name) = frames.iter().enumerate().find_map(|(place, frame)| match frame {
            Frame::Unknown(name) if adapters.contains(name) => Some((place, *name)),
            _ => None,
        })?;
        let before = frames.iter().take(place);
        let is_sent = before.rev().any(|frame| matches!(frame, Frame::Listed(..)));
        (!is_sent).then_some((place, Some(Driver { place, name, passes_packets: false })))
    })?;
    let first = driver.map_or(begin, |driver| driver.place.min(begin));
    let before = frames.iter().take(first).rev();
    let passed = before
        .take_while(|frame| matches!(frame, Frame::Listed(Role::Team | Role::Switch, _)))
        .count();
    let first = first - passed;
    let name = driver.map(|driver| driver.name);
    let mut stage = Stage::Driver;
    let mut caller = Caller::Core;
    let mut steps = Vec::new();
    for (place, frame) in frames.iter().enumerate().skip(first) {
        let mut step = |name, role| steps.push(Step { place, name, role });
        match *frame {
            Frame::Kernel => {}
            Frame::Ndis(ndis) => {
                step(ndis, Role::System);
                let is_passed = driver.is_none_or(|driver| driver.place < place);
                if stage == Stage::Driver && is_passed {
                    stage = Stage::Stack;
                }
                caller = Caller::Core;
            }
            Frame::Poll => (stage, caller) = (Stage::Driver, Caller::Core),
            Frame::Receive => (stage, caller) = (Stage::Stack, Caller::Core),
            Frame::Send => (stage, caller) = (Stage::Sent, Caller::Aside),
            Frame::Listed(role, family) => {
                step(family, role);
                let (module, function) = stack.get(place).copied().unwrap_or_default();
                if Frame::is_transport(module, function) {
                    stage = Stage::Transport;
                }
                caller = match role {
                    Role::Filter => Caller::Filters,
                    Role::Protocol if is_filtering_platform(family) => Caller::Filters,
                    Role::Tracing => Caller::Aside,
                    _ => Caller::Layer,
                };
            }
            Frame::Unknown(module) if name == Some(module) => {
                step(module, Role::Adapter);
                caller = Caller::Aside;
            }
            Frame::Unknown(module) => match (stage, caller) {
                (Stage::Stack | Stage::Transport, Caller::Filters)
                | (Stage::Stack, Caller::Core) => {
                    step(module, Role::Filter);
                    caller = Caller::Filters;
                }
                _ if adapters.contains(module) => {
                    step(module, Role::Adapter);
                    caller = Caller::Aside;
                }
                (Stage::Driver | Stage::Sent, _) | (_, Caller::Aside) => caller = Caller::Aside,
                // NDIS sends.
                (Stage::Transport, Caller::Core) => caller = Caller::Aside,
                (_, Caller::Layer) => {
                    step(module, Role::Receiver);
                    caller = Caller::Layer;
                }
            },
        }
    }
    Some(steps)
}

/// Netio.sys and fwpkclnt.sys call callouts; of other modules than Windows' own they call nothing else.
fn is_filtering_platform(module: &str) -> bool {
    module.eq_ignore_ascii_case("netio.sys") || module.eq_ignore_ascii_case("fwpkclnt.sys")
}

fn frames<'a>(stack: &[Named<'a>]) -> Vec<Frame<'a>> {
    stack.iter().map(|&(module, function)| Frame::from_module(module, function)).collect()
}

/// The first frame of NDIS, or of the network core, that receives. A protocol that calls NDIS sends.
fn begin(frames: &[Frame<'_>]) -> Option<usize> {
    let mut is_sent = false;
    for (place, frame) in frames.iter().enumerate() {
        match frame {
            Frame::Poll | Frame::Receive => return Some(place),
            Frame::Ndis(_) if !is_sent => return Some(place),
            // A switch or team passes packets in both directions.
            Frame::Listed(Role::Team | Role::Switch, _) => {}
            Frame::Listed(..) => is_sent = true,
            // An interrupt.
            Frame::Kernel => is_sent = false,
            _ => {}
        }
    }
    None
}

/// The driver of an adapter in a stack.
#[derive(Clone, Copy, Debug)]
struct Driver<'a> {
    place: usize,
    name: &'a str,
    passes_packets: bool,
}

/// The driver of the adapter: what calls the first frame that receives, or else what that frame calls before packets
/// are passed on.
fn driver<'a>(frames: &[Frame<'a>], begin: usize) -> Option<Driver<'a>> {
    let place = begin.checked_sub(1);
    let is_poll = matches!(frames.get(begin), Some(Frame::Poll));
    if let Some((place, Frame::Unknown(name))) = place.and_then(|at| Some((at, *frames.get(at)?)))
        && !is_poll
    {
        return Some(Driver { place, name, passes_packets: true });
    }
    let is_ndis = matches!(frames.get(begin), Some(Frame::Ndis(_)));
    if matches!(frames.get(begin), Some(Frame::Receive)) {
        return None;
    }
    let (mut first, mut last) = (None, None);
    for (place, frame) in frames.iter().enumerate().skip(begin + 1) {
        match *frame {
            Frame::Unknown(name) => {
                last = Some(Driver { place, name, passes_packets: true });
                first = first.or(last);
            }
            Frame::Ndis(_) if last.is_none() => {}
            // The last driver before NDIS passes packets to it; on Linux the first one is polled.
            Frame::Ndis(_) => return last,
            Frame::Receive | Frame::Send | Frame::Listed(..) => break,
            Frame::Kernel | Frame::Poll => {}
        }
    }
    first.map(|driver| Driver { passes_packets: !is_ndis, ..driver })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and roles of a stack of Windows, outermost module first, with these drivers of adapters.
    fn windows(stack: &str, adapters: &[&str]) -> Vec<String> {
        let stack: Vec<Named<'_>> = stack.split(" > ").map(|module| (Some(module), None)).collect();
        shown(&stack, adapters)
    }

    /// The same for Linux: function and, where it is not the kernel, module.
    fn linux(stack: &str) -> Vec<String> {
        let frame = |frame| match str::split_once(frame, ' ') {
            Some((function, module)) => (Some(module), Some(function)),
            None => (Some("[kernel.kallsyms]"), Some(frame)),
        };
        let stack: Vec<Named<'_>> = stack.split(" > ").map(frame).collect();
        shown(&stack, &[])
    }

    fn shown(stack: &[Named<'_>], adapters: &[&str]) -> Vec<String> {
        let adapters = adapters.iter().copied().collect();
        let steps = steps(stack, &adapters).unwrap_or_default();
        let mut shown: Vec<String> = Vec::new();
        for step in steps {
            let one = format!("{} {:?}", step.name, step.role);
            if !shown.contains(&one) {
                shown.push(one);
            }
        }
        shown
    }

    /// Stacks of net.4.5.2.x64.etl, a virtual machine of Hyper-V.
    #[test]
    fn a_bus_can_call_the_driver_of_the_adapter() {
        let bus = "ntoskrnl.exe > vmbus.sys > vmbkmcl.sys > netvsc63.sys";
        let path = format!(
            "{bus} > ndis.sys > tcpip.sys > ntoskrnl.exe > tcpip.sys > afd.sys > mrxsmb.sys > rdbss.sys > ntoskrnl.exe > hal.dll"
        );
        let expected = [
            "netvsc63.sys Adapter",
            "ndis.sys System",
            "tcpip.sys Protocol",
            "afd.sys Protocol",
            "mrxsmb.sys Receiver",
            "rdbss.sys Receiver",
        ];
        assert_eq!(windows(&path, &[]), expected);
        let filtered =
            format!("{bus} > ndis.sys > wfplwfs.sys > NETIO.SYS > fwpkclnt.sys > Ndu.sys");
        let expected = [
            "netvsc63.sys Adapter",
            "ndis.sys System",
            "wfplwfs.sys Filter",
            "NETIO.SYS Protocol",
            "fwpkclnt.sys Protocol",
            "Ndu.sys Filter",
        ];
        assert_eq!(windows(&filtered, &[]), expected);
        // The sample hit the driver itself, or the bus below it.
        assert_eq!(windows(bus, &["netvsc63.sys"]), ["netvsc63.sys Adapter"]);
        let below = format!("{bus} > vmbkmcl.sys");
        assert_eq!(windows(&below, &["netvsc63.sys"]), ["netvsc63.sys Adapter"]);
        assert!(windows(bus, &[]).is_empty());
    }

    #[test]
    fn callers_show_what_unknown_modules_are() {
        let nic = "ntoskrnl.exe > ndis.sys > nic.sys > hal.dll > nic.sys";
        let path = format!("{nic} > ndis.sys > av.sys > avhelper.sys > ndis.sys > tcpip.sys");
        let expected = [
            "ndis.sys System",
            "nic.sys Adapter",
            "av.sys Filter",
            "avhelper.sys Filter",
            "tcpip.sys Protocol",
        ];
        assert_eq!(windows(&path, &[]), expected);
        // A callout above TCP filters; what takes the data does not.
        let above = format!("{nic} > ndis.sys > tcpip.sys > NETIO.SYS > av.sys > hal.dll");
        assert!(windows(&above, &[]).contains(&"av.sys Filter".to_owned()));
        let taken = format!("{nic} > ndis.sys > tcpip.sys > afd.sys > server.sys");
        assert!(windows(&taken, &[]).contains(&"server.sys Receiver".to_owned()));
        // An acknowledgement is sent.
        let sent = format!("{taken} > tcpip.sys > ndis.sys > other.sys > busof.sys");
        assert_eq!(windows(&sent, &[]), windows(&format!("{taken} > tcpip.sys"), &[]));
        // A host receives from a virtual machine.
        let host = "ntoskrnl.exe > vmbus.sys > vmbkmcl.sys > vmswitch.sys > ndis.sys > tcpip.sys";
        let expected = ["vmswitch.sys Switch", "ndis.sys System", "tcpip.sys Protocol"];
        assert_eq!(windows(host, &[]), expected);
        let timer = "ntoskrnl.exe > tcpip.sys > ndis.sys > nic.sys > bus.sys";
        assert!(windows(timer, &["nic.sys"]).is_empty());
    }

    #[test]
    fn modules_above_tcp_of_linux_are_not_filters() {
        let driver = "common_interrupt > __do_softirq > net_rx_action > mlx5e_napi_poll [mlx5_core] > mlx5e_poll_rx_cq [mlx5_core]";
        for module in ["[sunrpc]", "[ksmbd]", "[nvmet_tcp]", "[tls]"] {
            let path = format!(
                "{driver} > napi_gro_receive > __netif_receive_skb_list_core > ip_rcv > ip_local_deliver > tcp_v4_rcv > tcp_data_ready > data_ready {module} > aes [aesni_intel]"
            );
            let expected = [
                "[mlx5_core] Adapter".to_owned(),
                "TCP/IP Protocol".to_owned(),
                format!("{module} Receiver"),
                "[aesni_intel] Receiver".to_owned(),
            ];
            assert_eq!(linux(&path), expected);
        }
        let helped = "net_rx_action > virtnet_poll [virtio_net] > virtqueue_get_buf [virtio_ring]";
        assert_eq!(linux(helped), ["[virtio_net] Adapter"]);
        let hooked = format!(
            "{driver} > napi_gro_receive > __netif_receive_skb_core > ip_rcv > nf_hook_slow > inspect [edr]"
        );
        let expected =
            ["[mlx5_core] Adapter", "TCP/IP Protocol", "netfilter Filter", "[edr] Filter"];
        assert_eq!(linux(&hooked), expected);
        let handled =
            format!("{driver} > napi_gro_receive > __netif_receive_skb_core > hook [edr]");
        assert_eq!(linux(&handled), ["[mlx5_core] Adapter", "[edr] Filter"]);
        let forwarded = format!(
            "{driver} > netif_receive_skb > ip_rcv > ip_forward > __dev_queue_xmit > fq_enqueue [sch_fq] > tun_net_xmit [tun]"
        );
        assert_eq!(linux(&forwarded), ["[mlx5_core] Adapter", "TCP/IP Protocol"]);
        assert_eq!(linux("net_rx_action > process_backlog > ip_rcv"), ["TCP/IP Protocol"]);
        assert!(linux("__do_softirq > run_timer_softirq > tcp_write_timer").is_empty());
    }
}
