//! The path of received packets through the frames of one stack: which module is the driver of the adapter, which one
//! filters packets, and which one takes data from TCP.
//!
//! A module that is in no list of `roles` is known by its caller. Windows: the driver of an adapter passes packets to
//! NDIS, and its DPC may belong to a bus (vmbus.sys, USB); NDIS calls filters, and the filtering platform (netio.sys,
//! fwpkclnt.sys) calls callouts. Linux: the softirq polls the driver, the network core and netfilter call filters.
//! What TCP calls is above it; what the driver of an adapter calls, and what sends packets, is not in the path. A module between
//! the driver of an adapter and NDIS is a team, unless the driver is that of a bus. Tcpip.sys calls sockets of the kernel by
//! afd.sys, so what it calls itself inspects packets.

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

/// Drivers of adapters, and what is between them and NDIS, as whole stacks show them: a sample in one of them has a stack
/// that ends before NDIS.
#[derive(Clone, Debug, Default)]
pub(super) struct Known<'a> {
    adapters: BTreeSet<&'a str>,
    teams: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    /// What these stacks show, outermost frame first.
    pub(super) fn from_stacks(stacks: impl Iterator<Item = Vec<Named<'a>>>) -> Known<'a> {
        let mut known = Known::default();
        for stack in stacks {
            let frames = frames(&stack);
            let driver = begin(&frames).and_then(|begin| driver(&frames, begin));
            let Some(driver) = driver.filter(|found| found.passes_packets) else { continue };
            known.adapters.insert(driver.name);
            known.teams.extend(driver.team);
        }
        known.adapters.retain(|name| !known.teams.contains(name));
        known
    }
}

/// The path of a stack, outermost frame first; `None` if it does not receive packets. `known` is what
/// other stacks show.
pub(super) fn steps<'a>(stack: &[Named<'a>], known: &Known<'_>) -> Option<Vec<Step<'a>>> {
    let Known { adapters, teams } = known;
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
        let driver = Driver { place, name, passes_packets: false, team: None };
        (!is_sent).then_some((place, Some(driver)))
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
            Frame::Unknown(module) if stage == Stage::Driver && teams.contains(module) => {
                step(module, Role::Team);
                caller = Caller::Aside;
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

/// Tcpip.sys, netio.sys and fwpkclnt.sys call callouts; of other modules than Windows' own they call nothing else.
fn is_filtering_platform(module: &str) -> bool {
    ["tcpip.sys", "netio.sys", "fwpkclnt.sys"]
        .iter()
        .any(|known| module.eq_ignore_ascii_case(known))
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
    /// What is between it and NDIS.
    team: Option<&'a str>,
}

impl<'a> Driver<'a> {
    /// The driver of an adapter that passes packets through `inner`, or that of a bus, which calls the adapter's driver.
    fn with(
        outer: (usize, &'a str),
        inner: (usize, &'a str),
        is_called_by_ndis: bool,
    ) -> Driver<'a> {
        let is_bus = ["bus", "vbd", "bda", "usb", "pci"].iter().any(|part| has_part(outer.1, part));
        let is_team = ["team", "bond", "lbfo"].iter().any(|part| has_part(inner.1, part));
        let is_between = is_team || is_called_by_ndis && !is_bus;
        let ((place, name), team) = if is_between { (outer, Some(inner.1)) } else { (inner, None) };
        Driver { place, name, passes_packets: true, team }
    }
}

fn has_part(name: &str, part: &str) -> bool {
    name.to_ascii_lowercase().contains(part)
}

/// The driver of the adapter: what calls the first frame that receives, or else what that frame calls before packets
/// are passed on.
fn driver<'a>(frames: &[Frame<'a>], begin: usize) -> Option<Driver<'a>> {
    let place = begin.checked_sub(1);
    let is_poll = matches!(frames.get(begin), Some(Frame::Poll));
    if let Some((place, Frame::Unknown(name))) = place.and_then(|at| Some((at, *frames.get(at)?)))
        && !is_poll
    {
        let outer =
            frames.iter().enumerate().take(place).rev().find_map(|(at, frame)| match *frame {
                Frame::Kernel => None,
                Frame::Unknown(other) if other == name => None,
                Frame::Unknown(other) => Some(Some((at, other))),
                _ => Some(None),
            });
        let alone = Driver { place, name, passes_packets: true, team: None };
        return Some(
            outer.flatten().map_or(alone, |outer| Driver::with(outer, (place, name), false)),
        );
    }
    let is_ndis = matches!(frames.get(begin), Some(Frame::Ndis(_)));
    if matches!(frames.get(begin), Some(Frame::Receive)) {
        return None;
    }
    let (mut first, mut last) = (None, None);
    for (place, frame) in frames.iter().enumerate().skip(begin + 1) {
        match *frame {
            Frame::Unknown(name) => {
                last = Some(Driver { place, name, passes_packets: true, team: None });
                first = first.or(last);
            }
            Frame::Ndis(_) if last.is_none() => {}
            // The last driver before NDIS passes packets to it; on Linux the first one is polled.
            Frame::Ndis(_) => {
                return last.zip(first).map(|(last, first)| {
                    if last.name == first.name {
                        last
                    } else {
                        Driver::with((first.place, first.name), (last.place, last.name), is_ndis)
                    }
                });
            }
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
        let mut known = Known::from_stacks(std::iter::once(stack.to_vec()));
        known.adapters.extend(adapters);
        let steps = steps(stack, &known).unwrap_or_default();
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
        // What is between the adapter and NDIS, or called by tcpip.sys itself, has no name that a list knows.
        let team = windows(
            "ntoskrnl.exe > ndis.sys > nic.sys > between.sys > ndis.sys > tcpip.sys > inspect64.sys",
            &[],
        );
        let expected = [
            "ndis.sys System",
            "nic.sys Adapter",
            "between.sys Team",
            "tcpip.sys Protocol",
            "inspect64.sys Filter",
        ];
        assert_eq!(team, expected);
        let team = windows("ntoskrnl.exe > nic.sys > team60e.sys > ndis.sys > tcpip.sys", &[]);
        assert_eq!(team[..2], ["nic.sys Adapter", "team60e.sys Team"]);
        let bus =
            windows("ntoskrnl.exe > mlx4_bus.sys > mlx4eth63.sys > ndis.sys > tcpip.sys", &[]);
        assert_eq!(bus[0], "mlx4eth63.sys Adapter");
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
