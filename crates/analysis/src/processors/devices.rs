//! On which CPUs the work for each device ran.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::Row;
use super::data::{Device, DeviceCpu};

/// Most devices.
pub(super) const DEVICES_MAX: usize = 1024;
/// Most queues of a device that are distinguished.
const QUEUES_MAX: usize = 4096;

#[derive(Debug, Default)]
struct Work {
    cpus: HashMap<u64, DeviceCpu>,
    queues: BTreeSet<u64>,
    work: Option<u64>,
}

/// All devices.
#[derive(Debug, Default)]
pub(super) struct Devices {
    by_name: HashMap<String, Work>,
    discarded: u64,
}

impl Devices {
    pub(super) fn add(&mut self, row: &Row<'_>) {
        let Some(device) = row.device else { return };
        if !self.by_name.contains_key(device) {
            if self.by_name.len() >= DEVICES_MAX {
                self.discarded += 1;
                return;
            }
            self.by_name.insert(device.to_owned(), Work::default());
        }
        let Some(work) = self.by_name.get_mut(device) else { return };
        let cpu =
            work.cpus.entry(row.cpu).or_insert(DeviceCpu { cpu: row.cpu, ..DeviceCpu::default() });
        cpu.count += 1;
        cpu.exclusive_ns = cpu.exclusive_ns.saturating_add(row.exclusive_ns.unwrap_or(0));
        if let Some(queue) = row.queue.filter(|_| work.queues.len() < QUEUES_MAX) {
            work.queues.insert(queue);
        }
        if let Some(packets) = row.work {
            work.work = Some(work.work.unwrap_or(0).saturating_add(packets));
        }
    }

    /// The devices, the most runs first, and how many rows belong to others.
    pub(super) fn finish(self) -> (Vec<Device>, u64) {
        let mut devices: Vec<_> = self
            .by_name
            .into_iter()
            .map(|(device, work)| {
                let mut cpus: Vec<_> = work.cpus.into_values().collect();
                cpus.sort_unstable_by_key(|one| (std::cmp::Reverse(one.count), one.cpu));
                let count: u64 = cpus.iter().map(|one| one.count).sum();
                let busiest = cpus.first().map_or(0, |one| one.count);
                Device {
                    device,
                    count,
                    exclusive_ns: cpus.iter().map(|one| one.exclusive_ns).sum(),
                    work: work.work,
                    queues: work.queues.len() as u64,
                    busiest_share: busiest as f64 / count.max(1) as f64,
                    nodes: Vec::new(),
                    own_node: None,
                    remote_ns: 0,
                    cpus,
                }
            })
            .collect();
        devices.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.device.cmp(&b.device)));
        (devices, self.discarded)
    }
}
