//! A machine from `/proc/interrupts` without anything else: its CPUs are the columns, its adapters are in the names that
//! drivers give to the vectors of receive queues.
//!
//! It shows where receive work is today. What a plan needs besides (queues, cores, nodes) is not in it.

use super::super::read::Interrupts;
use super::super::topology::{Cpu, Machine};
use super::{card, is_receive_queue};

/// What stands before the number of a queue, in lower case.
const SEPARATORS: [&str; 6] = ["-txrx-", "-rx-", "-fp-", "-input.", "-queue-", "-q"];

/// Adds an adapter for each device with vectors of receive queues.
pub(super) fn add_adapters(machine: &mut Machine, interrupts: &Interrupts) {
    for row in interrupts.rows.iter().filter(|row| is_receive_queue(&row.name)) {
        let Some((name, bus)) = device(&row.name) else { continue };
        if let Some(card) = card(machine, Some(name)) {
            card.bus = bus.map(str::to_owned).or(card.bus.take());
        }
    }
}

/// The CPUs of the header, each a core of one node.
pub(super) fn add_cpus(machine: &mut Machine, interrupts: &Interrupts) {
    let cpus = interrupts.cpus.iter().map(|&number| Cpu {
        number,
        core: number,
        is_online: true,
        ..Cpu::default()
    });
    machine.cpus = cpus.collect();
    if !machine.cpus.is_empty() {
        machine.are_nodes_assumed = true;
        machine.assumptions.push(
            "The CPUs are the columns of /proc/interrupts, each taken for a core of one node (lscpu -e=CPU,NODE,SOCKET,CORE,ONLINE says it exactly)"
                .to_owned(),
        );
    }
}

/// The device in the name of a vector, and its address on the bus: `i40e-eth0-TxRx-3`, `eth0-rx-3`,
/// `mlx5_comp3@pci:0000:3b:00.0`.
fn device(name: &str) -> Option<(&str, Option<&str>)> {
    if let Some((_, bus)) = name.split_once("@pci:") {
        return Some((bus, Some(bus)));
    }
    let lower = name.to_ascii_lowercase();
    let end = SEPARATORS.iter().filter_map(|part| lower.rfind(part)).max()?;
    let device = name.get(..end).filter(|device| !device.is_empty())?;
    // Some drivers put their own name first.
    Some((device.split_once('-').map_or(device, |(_, device)| device), None))
}

#[cfg(test)]
mod tests {
    use super::super::assemble;
    use super::*;
    use crate::cores::current::current;
    use crate::cores::read::read;

    #[test]
    fn devices_are_in_the_names_of_vectors() {
        assert_eq!(device("i40e-eth0-TxRx-3"), Some(("eth0", None)));
        assert_eq!(device("eno1-rx-0"), Some(("eno1", None)));
        assert_eq!(device("virtio0-input.0"), Some(("virtio0", None)));
        let bus = "0000:3b:00.0";
        assert_eq!(device("mlx5_comp3@pci:0000:3b:00.0"), Some((bus, Some(bus))));
        assert_eq!(device("-TxRx-1"), None);
    }

    #[test]
    fn interrupts_alone_show_where_receive_work_is() {
        let text = "           CPU0       CPU1       CPU2\n 40:  900  1  0  IR-PCI-MSI 1-edge  i40e-eth0-TxRx-0\n \
             41:  0  0  800  IR-PCI-MSI 2-edge  i40e-eth0-TxRx-1\n \
             42:  5  0  0  IR-PCI-MSI 3-edge  i40e-0000:c3:00.0:fdir-TxRx-0\n \
             43:  0  7  0  IR-PCI-MSI 4-edge  eth1-TxRx-0\n";
        let machine = assemble(&read(text.as_bytes()).unwrap().pieces);
        let places: Vec<_> = current(&machine)
            .into_iter()
            .map(|one| (one.name, one.queues.iter().map(|queue| queue.cpu).collect::<Vec<_>>()))
            .collect();
        let cpu = |number| Some((0, number));
        let expected =
            [("eth0".to_owned(), vec![cpu(0), cpu(2)]), ("eth1".to_owned(), vec![cpu(1)])];
        assert_eq!((machine.cpus.len(), &places[..]), (3, &expected[..]));
        assert!(machine.assumptions[0].contains("lscpu -e"));
    }
}
