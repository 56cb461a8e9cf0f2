//! Machines for a plan of cores: the published case, a Linux machine from pasted outputs, small and large ones.

use smbscope_plan::cores::assemble::assemble;
use smbscope_plan::cores::commands::{Request, commands};
use smbscope_plan::cores::findings::find;
use smbscope_plan::cores::layout::plan;
use smbscope_plan::cores::load::{Received, ReceivedCpu, load};
use smbscope_plan::cores::prediction::{Connection, predict};
use smbscope_plan::cores::processes::Process;
use smbscope_plan::cores::read::read;
use smbscope_plan::cores::topology::{Adapter, Cpu, Kind, Machine, Rss, System};
use smbscope_report::cores::CoresPlan;

use super::HOSTILE;

/// Two sockets of two cores with two threads each, one of them offline, and an adapter on the second one that
/// interrupts two CPUs of the first.
const LINUX: &str = "\
CPU NODE SOCKET CORE ONLINE
0   0    0      0    yes
1   0    0      1    yes
2   1    1      2    yes
3   1    1      3    yes
4   0    0      0    yes
5   0    0      1    yes
6   1    1      2    yes
7   -    -      -    no
# ethtool -i eth4
driver: ice
bus-info: 0000:3b:00.0
Channel parameters for eth4:
Pre-set maximums:
Combined: 4
Current hardware settings:
Combined: 2
RX flow hash indirection table for eth4 with 2 RX ring(s):
    0:      0     1     0     1     0     1     0     1
RSS hash key:
6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa
           CPU0       CPU1       CPU2
 41:     900000          0          0  PCI-MSI 1-edge  ice-eth4-TxRx-0
 42:          0     800000          0  PCI-MSI 2-edge  ice-eth4-TxRx-1
something that no program prints
";

/// The plan of a machine; `connections` of its first adapter are placed.
pub fn planned(machine: Machine, unknown_lines: u64, connections: &[Connection]) -> CoresPlan {
    let layout = plan(&machine);
    let commands = commands(&machine, &layout, &Request::default());
    let layout = layout.as_commanded(&commands);
    let prediction = (!connections.is_empty()).then(|| predict(&machine, &layout, connections));
    let received = machine.received.as_ref();
    CoresPlan {
        version: "0.0.0".to_owned(),
        inputs: vec!["machine.txt".to_owned()],
        findings: find(&machine),
        commands,
        load: received.and_then(|one| load(&machine, &layout, one, prediction.as_ref())),
        prediction,
        layout,
        machine,
        added: None,
        unknown_lines,
    }
}

/// Connections of clients of one network, the first with the most.
pub fn connections(count: u16) -> Vec<Connection> {
    let connection = |place: u16| Connection {
        card: 0,
        client: [192, 0, 2, place as u8 + 1].into(),
        client_port: 49_152 + place * 7,
        server: [192, 0, 2, 250].into(),
        server_port: 445,
        bytes: 9_000_000 / (u64::from(place) + 1),
        packets: 6_000 / (u64::from(place) + 1),
    };
    (0..count).map(connection).collect()
}

/// From pasted outputs, with a line that is not understood.
pub fn linux(connections_count: u16) -> CoresPlan {
    let reading = read(LINUX.as_bytes()).unwrap();
    let mut machine = assemble(&reading.pieces);
    // What no output says, but /sys does.
    for card in &mut machine.cards {
        card.node = Some(1);
        card.bits_per_second = Some(25_000_000_000);
        for ((_, allowed), cpu) in card.rss.interrupts.iter_mut().zip([0, 1]) {
            *allowed = vec![cpu];
        }
        (card.rss.rps, card.rss.xps) = (vec![Vec::new(); 2], vec![Vec::new(); 2]);
    }
    planned(machine, reading.unknown.count(), &connections(connections_count))
}

/// A machine of equal sockets, each a node.
pub fn machine(system: System, sockets: u32, cores: u32, threads: u32) -> Machine {
    let mut machine = Machine { system, ..Machine::default() };
    for number in 0..sockets * cores * threads {
        let core = number / threads;
        let socket = core / cores;
        let is_windows = system == System::Windows;
        let (group, number) = if is_windows { (number / 64, number % 64) } else { (0, number) };
        let thread = number % threads;
        machine.cpus.push(Cpu {
            number,
            group,
            socket,
            node: socket,
            core,
            thread,
            is_online: true,
        });
    }
    machine
}

/// The published case: two sockets of six cores with hyper-threads, six adapters, all on the same CPUs.
pub fn published() -> CoresPlan {
    let mut machine = machine(System::Windows, 2, 6, 2);
    for slot in 0..6 {
        machine.cards.push(Adapter {
            name: format!("Slot {} Port 1", slot + 1),
            node: Some(slot / 3),
            queues_max: Some(8),
            bits_per_second: Some(10_000_000_000),
            driver: Some("Intel(R) X550".into()),
            rss: Rss {
                is_enabled: Some(true),
                queues: Some(8),
                profile: Some("NUMAStatic".into()),
                base: Some((0, 0)),
                last: Some((0, 23)),
                processors_max: Some(8),
                processor_table: [(0, 0), (0, 2), (0, 4), (0, 6)].repeat(32),
                ..Rss::default()
            },
            ..Adapter::default()
        });
    }
    planned(machine, 0, &connections(40))
}

/// The published case from a trace: four CPUs do all receive work of 10 s.
pub fn flooded() -> CoresPlan {
    let mut machine = published().machine;
    machine.received = Some(Received {
        length_ns: 10_000_000_000,
        cpus: machine
            .cpus
            .iter()
            .map(|cpu| ReceivedCpu {
                cpu: (cpu.group, cpu.number),
                receive_ns: if [0, 2, 4, 6].contains(&cpu.number) { 9_200_000_000 } else { 0 },
                other_ns: 700_000_000,
                is_idle_known: true,
            })
            .collect(),
        counted: vec!["dpc ndis.sys".to_owned()],
        ..Received::default()
    });
    planned(machine, 0, &[])
}

/// A server whose processes may not run on the adapter's node.
pub fn confined() -> CoresPlan {
    let mut machine = linux(0).machine;
    machine.processes.list = (0..3)
        .map(|number| Process {
            id: 100 + number,
            name: "smbd".into(),
            allowed: vec![(0, 0), (0, 1)],
            memory_nodes: vec![0],
            last: Some((0, number % 2)),
            memory: vec![(0, 50 << 20)],
            cgroup: Some("/system.slice/smbd.service".into()),
            ..Process::default()
        })
        .collect();
    planned(machine, 0, &[])
}

/// A large machine with two adapters on each socket; CPUs of the last core are offline.
pub fn large(system: System, sockets: u32, cores: u32, threads: u32) -> CoresPlan {
    let mut machine = machine(system, sockets, cores, threads);
    let count = machine.cpus.len();
    for cpu in machine.cpus.iter_mut().skip(count - threads as usize) {
        cpu.is_online = false;
    }
    for number in 0..2 * sockets {
        let interrupts = (0..16).map(|queue| (100 + number * 16 + queue, vec![queue]));
        machine.cards.push(Adapter {
            name: format!("enp{number}s0f0"),
            node: Some(number / 2),
            queues_max: Some(64),
            bits_per_second: Some(100_000_000_000),
            driver: Some("mlx5_core".into()),
            rss: Rss {
                queues: Some(16),
                queue_table: (0..128).map(|entry| entry % 16).collect(),
                interrupts: interrupts.collect(),
                rps: vec![Vec::new(); 16],
                xps: vec![Vec::new(); 16],
                ..Rss::default()
            },
            ..Adapter::default()
        });
    }
    planned(machine, 0, &connections(200))
}

/// A virtual machine whose CPUs are sockets of their own, with an adapter whose name is not to be trusted.
pub fn virtual_machine(cpus: u32) -> CoresPlan {
    let mut machine = machine(System::Linux, cpus, 1, 1);
    for cpu in &mut machine.cpus {
        cpu.node = 0;
    }
    machine.cards.push(Adapter {
        name: HOSTILE.into(),
        kind: Kind::Virtual,
        driver: Some("virtio_net".into()),
        queues_max: Some(1),
        rss: Rss { interrupts: vec![(30, vec![0, 1])], ..Rss::default() },
        ..Adapter::default()
    });
    machine.failures.push(format!("ethtool: {HOSTILE}"));
    planned(machine, 0, &connections(1))
}
