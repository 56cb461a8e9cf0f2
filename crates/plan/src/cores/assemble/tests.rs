//! Outputs of one machine are joined, and names of vectors and adapters are known.

use super::*;
use crate::cores::read::read;

fn of(text: &str) -> Machine {
    assemble(&read(text.as_bytes()).unwrap().pieces)
}

#[test]
fn outputs_of_one_adapter_are_joined() {
    let machine = of("# ethtool -i eth4\ndriver: ice\nbus-info: 0000:3b:00.0\n\
        Channel parameters for eth4:\nPre-set maximums:\nCombined: 16\nCurrent hardware settings:\nCombined: 4\n\
        RX flow hash indirection table for eth4 with 4 RX ring(s):\n 0: 0 1 2 3\n\
        Features for eth4:\nntuple-filters: on\nreceive-hashing: on\n\
              CPU0 CPU2\n 7: 1 2 PCI-MSI 1-edge ice-eth4-TxRx-1\n 8: 3 0 PCI-MSI 0-edge ice-eth4-TxRx-0\n \
         9: 4 0 PCI-MSI 0-edge ice-eth4:misc\n 10: 0 0 PCI-MSI 0-edge ice-eth40-TxRx-0\n");
    let [card] = &machine.cards[..] else { panic!("{machine:?}") };
    assert_eq!(
        (card.driver.as_deref(), card.queues_max, card.rss.queues),
        (Some("ice"), Some(16), Some(4))
    );
    assert_eq!(
        (card.rss.is_enabled, card.has_ntuple_filters, card.kind),
        (None, Some(true), Kind::Physical)
    );
    assert_eq!(card.rss.interrupts, [(8, vec![]), (7, vec![])]);
    assert_eq!(card.rss.interrupt_counts, [vec![(0, 3)], vec![(0, 1), (2, 2)]]);
}

#[test]
fn the_summary_of_lscpu_needs_an_assumption_for_threads() {
    let text = "Architecture: x86_64\nOn-line CPU(s) list: 0-7\nThread(s) per core: 2\nCore(s) per socket: 2\nSocket(s): 2\n\
        NUMA node0 CPU(s): 0,1,4,5\nNUMA node1 CPU(s): 2,3,6,7\n";
    let machine = of(text);
    let cpu = machine.cpus[7];
    assert_eq!((cpu.core, cpu.thread, cpu.socket, cpu.node), (3, 1, 1, 1));
    assert_eq!(machine.assumptions.len(), 1);
    assert_eq!(of(&text.replace("core: 2", "core: 1")).assumptions.len(), 0);
}

#[test]
fn processors_of_windows_without_a_topology_are_those_of_rss() {
    let text = "Name : A\nNumberOfReceiveQueues : 2\nRssProcessorArray: [Group:Number/NUMA Distance] : 0:0/0 0:2/0 1:0/32767\n\
        \nName : B\nNumberOfReceiveQueues : 2\nRssProcessorArray: [Group:Number/NUMA Distance] : 1:0/0 0:0/32767 0:2/32767\n";
    let machine = of(text);
    let cpus: Vec<_> = machine.cpus.iter().map(|cpu| (cpu.group, cpu.number, cpu.node)).collect();
    assert_eq!(cpus, [(0, 0, 0), (0, 2, 0), (1, 0, 1)]);
    assert_eq!((machine.cards[0].node, machine.cards[1].node), (Some(0), Some(1)));
    assert_eq!(machine.assumptions.len(), 1);
}

#[test]
fn names_of_receive_interrupts() {
    for name in [
        "eno1-TxRx-0",
        "eth0-rx-3",
        "virtio0-input.0",
        "mlx5_comp3@pci:0000:3b:00.0",
        "bnx2x-eth0-fp-1",
    ] {
        assert!(is_receive_queue(name), "{name}");
    }
    for name in [
        "eno1",
        "i40e-0000:c3:00.0:fdir-TxRx-0",
        "mlx5_async0@pci:0000:3b:00.0",
        "virtio0-output.0",
        "virtio0-config",
        "eth0-tx-3",
        "ahci",
    ] {
        assert!(!is_receive_queue(name), "{name}");
    }
    assert_eq!(queue("mlx5_comp3@pci:0000:3b:00.0"), Some(3));
}

#[test]
fn kinds_of_adapters() {
    let kind = |driver: &str| {
        of(&format!("# ethtool -i a\ndriver: x\n# ethtool -i eth0\ndriver: {driver}\n")).cards[1]
            .kind
    };
    assert_eq!(kind("hv_netvsc"), Kind::Virtual);
    assert_eq!(kind("iavf"), Kind::VirtualFunction);
    assert_eq!(kind("ice"), Kind::Physical);
}
