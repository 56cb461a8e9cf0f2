//! The receive work of the network: which interrupts and deferred work belong to it, and on which CPUs it ran.
//!
//! Linux: the softirq NET_RX with its polls, and the interrupts of devices that are polled. Windows: DPCs and ISRs of
//! NDIS and of the drivers of network adapters; other DPCs of the network (timers of TCP) do not follow the adapter.

use std::collections::BTreeMap;

use serde::Serialize;

use super::data::{InterruptGroup, Report};
use super::roles::Role;

/// The receive work of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Receive {
    /// Exclusive time of receive work on each CPU that had any, in the order of their numbers.
    pub cpus: Vec<(u64, i64)>,
    /// What was counted: kind and name, the most time first.
    pub names: Vec<(String, String)>,
    /// Packets of polls (Linux).
    pub packets: Option<u64>,
}

impl Receive {
    /// Time of all CPUs.
    pub fn total_ns(&self) -> i64 {
        self.cpus.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }
}

impl Report {
    /// The receive work. `drivers` are names of services or modules that serve network adapters, where they are known
    /// in addition to those that stacks show.
    pub fn receive(&self, drivers: &[String]) -> Receive {
        let drivers: Vec<String> = drivers.iter().map(|name| stem(name)).collect();
        let adapters = self.adapters();
        let polled: Vec<&str> = self
            .devices
            .iter()
            .filter(|device| device.work.is_some())
            .map(|device| device.device.as_str())
            .collect();
        let is_device_irq = |name: &str| {
            polled.iter().any(|device| {
                name.strip_prefix(device)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '_', ' ']))
                    || name.split(['-', '@', ' ']).any(|word| word == *device)
            })
        };
        let is_receive = |group: &&InterruptGroup| {
            let name = group.name.as_deref().unwrap_or_default();
            match group.kind.as_str() {
                "softirq" => name == "NET_RX",
                "napi_poll" => true,
                "irq" => is_device_irq(name),
                "dpc" | "threaded_dpc" | "isr" | "isr_msi" => {
                    is_adapter(name, &adapters) || drivers.contains(&stem(name))
                }
                _ => false,
            }
        };
        let mut receive = Receive::default();
        let mut cpus: BTreeMap<u64, i64> = BTreeMap::new();
        for group in self.interrupts.iter().filter(is_receive) {
            receive.names.push((group.kind.clone(), group.name.clone().unwrap_or_default()));
            if group.kind == "napi_poll" {
                let packets = receive.packets.unwrap_or(0).saturating_add(group.work.unwrap_or(0));
                receive.packets = Some(packets);
            }
            for one in &group.cpus {
                let sum = cpus.entry(one.cpu).or_default();
                *sum = sum.saturating_add(one.exclusive_ns);
            }
        }
        receive.cpus = cpus.into_iter().filter(|(_, ns)| *ns > 0).collect();
        receive
    }

    /// Modules that stacks of received packets show as drivers of adapters.
    pub(super) fn adapters(&self) -> Vec<&str> {
        self.in_samples
            .iter()
            .flat_map(|samples| &samples.receive)
            .filter(|part| part.role == Role::Adapter)
            .map(|part| part.name.as_str())
            .collect()
    }
}

/// Whether a module of Windows is NDIS or one of `adapters`.
pub(super) fn is_adapter(module: &str, adapters: &[&str]) -> bool {
    module.eq_ignore_ascii_case("ndis.sys") || adapters.contains(&module)
}

/// A module or service in lower case without extension.
fn stem(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".sys").map_or(name.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::data::{Device, DeviceCpu};
    use super::*;
    use crate::stats::latency::{Grain, Latency};

    fn group(kind: &str, name: &str, work: Option<u64>, cpus: &[(u64, i64)]) -> InterruptGroup {
        let empty = || Latency::new(Grain::Coarse).distribution(false);
        InterruptGroup {
            kind: kind.to_owned(),
            name: Some(name.to_owned()),
            count: 1,
            exclusive_ns: 0,
            share: None,
            duration: empty(),
            limit_ns: 0,
            over_limit: 0,
            over_limit_ns: 0,
            longest: Vec::new(),
            delay: empty(),
            work,
            interval_ns: 0,
            intervals: Vec::new(),
            cpus: cpus
                .iter()
                .map(|&(cpu, exclusive_ns)| DeviceCpu { cpu, count: 1, exclusive_ns })
                .collect(),
        }
    }

    #[test]
    fn what_belongs_to_the_network_is_added_up_by_processor() {
        let device = Device {
            device: "eth0".to_owned(),
            count: 1,
            exclusive_ns: 0,
            work: Some(7),
            queues: 1,
            busiest_share: 1.0,
            nodes: Vec::new(),
            own_node: None,
            remote_ns: 0,
            cpus: Vec::new(),
        };
        let report = Report {
            interrupts: vec![
                group("softirq", "NET_RX", None, &[(1, 100), (0, 10)]),
                group("softirq", "TIMER", None, &[(1, 1_000)]),
                group("napi_poll", "eth0", Some(7), &[(1, 20)]),
                group("irq", "eth0-TxRx-3", None, &[(1, 3), (2, 4)]),
                group("irq", "eth01-TxRx-3", None, &[(3, 5)]),
            ],
            devices: vec![device],
            ..Report::default()
        };
        let receive = report.receive(&[]);
        assert_eq!(receive.cpus, [(0, 10), (1, 123), (2, 4)]);
        assert_eq!((receive.packets, receive.total_ns()), (Some(7), 137));

        let report = Report {
            interrupts: vec![
                group("dpc", "NDIS.SYS", None, &[(0, 50)]),
                group("isr_msi", "e1d68x64.sys", None, &[(0, 5)]),
                group("dpc", "storport.sys", None, &[(0, 500)]),
                group("timer_dpc", "tcpip.sys", None, &[(0, 500)]),
            ],
            ..Report::default()
        };
        assert_eq!(report.receive(&[]).cpus, [(0, 50)]);
        assert_eq!(report.receive(&["E1D68x64".to_owned()]).cpus, [(0, 55)]);
        assert_eq!(report.receive(&[]).packets, None);
    }
}
