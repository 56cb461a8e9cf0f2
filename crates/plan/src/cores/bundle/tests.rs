//! Tests of bundles: a made machine of Linux as a tar, this machine live and again from its bundle, damaged ones.

use super::super::findings::{FindingKind, find};
use super::super::topology::{Kind, System};
use super::*;

/// Two cores with two threads and one offline CPU; `eth0` with two queues on node 1, member of `bond0`.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/cpu4/uevent", ""),
        ("sys/devices/system/node/node0/cpulist", "0,2"),
        ("sys/devices/system/node/node1/cpulist", "1,3-4"),
        ("sys/class/net/lo/mtu", "65536"),
        ("sys/class/net/bond0/mtu", "1500"),
        ("sys/class/net/eth0/device/uevent", "DRIVER=ice\nPCI_SLOT_NAME=0000:3b:00.0\n"),
        ("sys/class/net/eth0/device/numa_node", "1"),
        ("sys/class/net/eth0/device/msi_irqs/31", "msix"),
        ("sys/class/net/eth0/operstate", "up"),
        ("sys/class/net/eth0/speed", "25000"),
        ("sys/class/net/eth0/master/uevent", "INTERFACE=bond0\nIFINDEX=9\n"),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000005"),
        ("sys/class/net/eth0/queues/rx-0/rps_flow_cnt", "2048"),
        ("sys/class/net/eth0/queues/rx-1/rps_cpus", "0"),
        ("sys/class/net/eth0/queues/tx-0/xps_cpus", "2"),
        ("sys/class/net/eth1/device/uevent", "DRIVER=virtio_net\n"),
        ("sys/class/net/eth1/device/numa_node", "-1"),
        ("sys/class/net/eth1/speed", "-1"),
        ("sys/class/net/eth1/statistics/rx_packets", "77"),
        ("link/sys/class/net/eth1/device", "../../../virtio3"),
        ("proc/irq/30/smp_affinity_list", "1"),
        ("proc/irq/31/smp_affinity_list", "0-3"),
        ("proc/irq/40/smp_affinity_list", "2"),
        (
            "proc/interrupts",
            "  CPU0 CPU1 CPU2 CPU3\n 30: 0 5 0 0 PCI-MSI 0-edge ice-eth0-TxRx-0\n 31: 0 0 0 9 PCI-MSI 1-edge ice-x-TxRx-1\n \
            40: 0 0 6 0 PCI-MSI 1-edge virtio3-input.0\n 41: 0 0 6 0 PCI-MSI 1-edge virtio3-output.0\n",
        ),
        (
            "proc/net/softnet_stat",
            "00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n",
        ),
        ("proc/sys/net/core/rps_sock_flow_entries", "32768"),
        ("smbscope/samba-multichannel", "no"),
        (
            "smbscope/processes.json",
            r#"{"list":[{"id":7,"name":"smbd","allowed":[[0,1],[0,3]],"last":[0,3],"cgroup":"/system.slice/smbd.service/x"}]}"#,
        ),
        ("smbscope/irqbalance", "/usr/sbin/irqbalance\n--foreground\n--banirq=30\n-i\n31\n"),
        (
            "ethtool/eth0/-l",
            "Channel parameters for eth0:\nPre-set maximums:\nCombined: 8\nCurrent hardware settings:\nCombined: 2\n",
        ),
        ("ethtool/eth0/-S", "NIC statistics:\n rx_dropped: 3\n rx_packets: 4\n what\n"),
    ];
    for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
        let topology = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        files.push((topology("thread_siblings_list").leak(), siblings));
        files.push((topology("physical_package_id").leak(), if cpu % 2 == 0 { "0" } else { "1" }));
        files.push((
            format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor").leak(),
            "schedutil",
        ));
    }
    files
        .into_iter()
        .map(|(path, contents)| (path.to_owned(), format!("{contents}\n").into_bytes()))
        .collect()
}

fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = tar::Writer::default();
    for (path, contents) in files {
        writer.add(path, Some(contents)).unwrap();
    }
    writer.finish()
}

#[test]
fn a_machine_of_linux() {
    let bundle = read_bytes(&archive(&files())).unwrap();
    let machine = &bundle.machine;
    let cpus: Vec<_> = machine
        .cpus
        .iter()
        .map(|cpu| (cpu.number, cpu.socket, cpu.node, cpu.core, cpu.thread, cpu.is_online))
        .collect();
    let expected = [
        (0, 0, 0, 0, 0, true),
        (1, 1, 1, 1, 0, true),
        (2, 0, 0, 0, 1, true),
        (3, 1, 1, 1, 1, true),
        (4, 0, 1, 2, 0, false),
    ];
    assert_eq!(cpus, expected);
    let [eth0, eth1] = &machine.cards[..] else { panic!("{machine:?}") };
    assert_eq!(
        (eth0.driver.as_deref(), eth0.node, eth0.bits_per_second),
        (Some("ice"), Some(1), Some(25_000_000_000))
    );
    assert_eq!(
        (eth0.master.as_deref(), eth0.is_up, eth0.queues_max, eth0.rss.queues),
        (Some("bond0"), Some(true), Some(8), Some(2))
    );
    assert_eq!(eth0.rss.interrupts, [(30, vec![1]), (31, vec![0, 1, 2, 3])]);
    assert_eq!(eth0.rss.interrupt_counts, [vec![(1, 5)], vec![(3, 9)]]);
    assert_eq!((&eth0.rss.rps[..], &eth0.rss.xps[..]), (&[vec![0, 2], vec![]][..], &[vec![1]][..]));
    assert_eq!((eth0.losses.len(), eth0.received, &eth0.rss.flows[..]), (1, Some(4), &[2048][..]));
    assert_eq!((eth1.kind, eth1.node, eth1.bits_per_second), (Kind::Virtual, None, None));
    assert_eq!(eth1.received, Some(77));
    assert_eq!(eth1.rss.interrupts, [(40, vec![2])]);
    assert_eq!((machine.irqbalance, &machine.irqbalance_banned[..]), (Some(true), &[30, 31][..]));
    assert_eq!((machine.flow_entries, machine.softnet.len()), (Some(32_768), 1));
    assert_eq!(machine.governors, ["schedutil"]);
    let [smbd] = &machine.processes.list[..] else { panic!("{machine:?}") };
    assert_eq!(
        (smbd.last, smbd.allowed.len(), smbd.unit()),
        (Some((0, 3)), 2, Some("smbd.service"))
    );
    assert_eq!(machine.samba_multichannel, Some(false));
    assert_eq!(
        (bundle.unknown.count(), bundle.unknown.list[0].file.as_str()),
        (1, "ethtool/eth0/-S")
    );
    assert!(find(machine).iter().any(|finding| finding.kind == FindingKind::SiblingThreads
        && finding.details.evidence["cores"] == 1));
}

/// A bundle has exactly what is read, and gives the same machine.
#[test]
fn a_bundle_of_a_machine_is_the_machine() {
    let mut all = files();
    all.push(("etc/shadow".to_owned(), b"secret".to_vec()));
    all.push(("sys/class/net/lo/address".to_owned(), b"00:00".to_vec()));
    let bytes = archive(&all);
    let files = Tar::new(&bytes).unwrap();
    let collected = collect(&files).unwrap();
    assert_eq!(read_bytes(&collected), read(&files));
    let tar = Tar::new(&collected).unwrap();
    assert_eq!((tar.read("etc/shadow"), tar.read("sys/class/net/lo/address")), (None, None));
    assert_eq!(collect(&tar).unwrap(), collected);
}

/// This machine, by the kernel's files and the drivers' answers, again from its bundle. Counters change in between.
#[cfg(target_os = "linux")]
#[test]
fn this_machine_from_its_bundle() {
    let live = Live::new();
    let bytes = collect(&live).unwrap();
    let from_bundle = read_bytes(&bytes).unwrap().machine;
    let machine = read(&live).unwrap().machine;
    assert_eq!(machine.cpus, from_bundle.cpus);
    assert!(!machine.cpus.is_empty() && machine.cpus.iter().any(|cpu| cpu.is_online));
    let names = |machine: &Machine| {
        machine
            .cards
            .iter()
            .map(|card| (card.name.clone(), card.driver.clone(), card.rss.interrupts.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&machine), names(&from_bundle));
    println!(
        "{} bytes, {} CPUs, {} adapters: {:?}",
        bytes.len(),
        machine.cpus.len(),
        machine.cards.len(),
        machine.cards
    );
}

/// The drivers' answers by ioctl and what the program ethtool prints agree wherever it prints a value.
#[cfg(target_os = "linux")]
#[test]
fn answers_of_drivers_are_those_of_ethtool() {
    let mut compared = 0;
    for card in read(&Live::new()).unwrap().machine.cards {
        for option in ["-i", "-l", "-g", "-c"] {
            let Ok(output) =
                std::process::Command::new("ethtool").args([option, &card.name]).output()
            else {
                smbscope_testing::skip!("ethtool does not run");
                return;
            };
            let text = format!(
                "# ethtool {option} {}\n{}",
                card.name,
                String::from_utf8_lossy(&output.stdout)
            );
            let Ok(reading) = read_text(text.as_bytes()) else { continue };
            let printed = assemble::assemble(&reading.pieces).cards.remove(0);
            let agree =
                |printed: Option<u32>, answer: Option<u32>| printed.is_none() || printed == answer;
            assert!(
                printed.driver.is_none()
                    || (printed.driver == card.driver && printed.bus == card.bus),
                "{card:?}"
            );
            assert!(
                agree(printed.ring, card.ring) && agree(printed.ring_max, card.ring_max),
                "{card:?}"
            );
            assert!(
                agree(printed.queues_max, card.queues_max)
                    && agree(printed.rss.queues, card.rss.queues),
                "{card:?}"
            );
            assert!(agree(printed.moderation.delay_usecs, card.moderation.delay_usecs), "{card:?}");
            assert!(agree(printed.moderation.frames, card.moderation.frames), "{card:?}");
            compared += 1;
        }
    }
    println!("{compared} outputs");
}

/// A folder of pasted outputs, among them one of Windows.
#[test]
fn a_folder_of_outputs() {
    let folder = std::env::temp_dir().join(format!("smbscope-plan-folder-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("b")).unwrap();
    std::fs::write(folder.join("a.txt"), "Name : A\nNumberOfReceiveQueues : 4\n").unwrap();
    std::fs::write(
        folder.join("b/c.txt"),
        r#"{"Name": "A", "Segment": 0, "Bus": 1, "Device": 0, "Function": 0, "NumaNode": 1}"#,
    )
    .unwrap();
    let machine = read(&Folder::new(&folder)).unwrap().machine;
    assert_eq!((machine.system, machine.cards.len()), (System::Windows, 1));
    assert_eq!((machine.cards[0].rss.queues, machine.cards[0].node), (Some(4), Some(1)));
    assert_eq!(Folder::new(&folder).read("../etc/passwd"), None);
    std::fs::write(folder.join("d.txt"), "nothing\n").unwrap();
    // Another file that no plan needs is named, and alone it is an error.
    let bundle = read(&Folder::new(&folder)).unwrap();
    assert_eq!((bundle.machine.cards.len(), bundle.unknown.count()), (1, 1));
    std::fs::remove_file(folder.join("a.txt")).unwrap();
    std::fs::remove_file(folder.join("b/c.txt")).unwrap();
    assert_eq!(read(&Folder::new(&folder)).unwrap_err().path, "d.txt");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn damaged_bundles_are_errors() {
    let error = |path: &str, contents: &str| {
        let mut files = files();
        files.retain(|(other, _)| other != path);
        files.push((path.to_owned(), contents.as_bytes().to_vec()));
        read_bytes(&archive(&files)).unwrap_err().to_string()
    };
    assert_eq!(
        error("sys/devices/system/cpu/online", "0-x"),
        "sys/devices/system/cpu/online: not a list of CPUs"
    );
    assert!(error("ethtool/eth0.json", "[{").starts_with("ethtool/eth0.json: EOF"));
    assert!(error("proc/interrupts", "CPU0\n 1: 1 2 x\n").starts_with("proc/interrupts: line 2: "));
    assert!(read_bytes(b"").is_err());
    let mut bytes = archive(&files());
    let mut state = 7u64;
    for _ in 0..300 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let position = usize::try_from(state >> 20).unwrap() % bytes.len();
        let before = bytes[position];
        bytes[position] = u8::try_from(state >> 56).unwrap();
        let _ = read_bytes(&bytes);
        bytes[position] = before;
    }
}

/// Processes as Linux describes them, in a folder.
#[test]
fn processes_of_servers_are_read() {
    let folder = std::env::temp_dir().join(format!("smbscope-processes-{}", std::process::id()));
    let write = |path: &str, text: &str| {
        let path = folder.join("proc").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("1/comm", "systemd\n");
    write("41/comm", "smbd[10.1.2.3]\n");
    write("41/status", "Name:\tsmbd\nCpus_allowed_list:\t0-1,4\nMems_allowed_list:\t0-1\n");
    let zeros = "0 ".repeat(35);
    write("41/stat", &format!("41 (smbd) [10.) S {zeros}5 0 0\n"));
    write("41/numa_maps", "7f0 default anon=3 N0=1 N1=2 kernelpagesize_kB=4\n");
    write("41/cgroup", "1:cpuset:/x\n0::/system.slice/smbd.service\n");
    write("self/comm", "smbd\n");
    write("50/comm", "ksmbd:445\n");
    let found = super::super::processes::read(&Folder::new(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
    let [smbd, ksmbd] = &found.list[..] else { panic!("{found:?}") };
    assert_eq!((smbd.id, smbd.name.as_str(), smbd.last), (41, "smbd", Some((0, 5))));
    assert_eq!(smbd.allowed, [(0, 0), (0, 1), (0, 4)]);
    assert_eq!(
        (&smbd.memory_nodes[..], &smbd.memory[..]),
        (&[0, 1][..], &[(0, 4096), (1, 8192)][..])
    );
    assert_eq!(smbd.unit(), Some("smbd.service"));
    assert!(ksmbd.is_kernel && ksmbd.allowed.is_empty() && ksmbd.memory.is_empty());
}

#[test]
fn sambas_setting_is_read_as_samba_reads_it() {
    let of = linux::samba_multichannel;
    assert_eq!(of("[global]\n  Server Multi Channel Support = No\n"), "no");
    assert_eq!(of("servermultichannelsupport=yes\n# server multi channel support = no"), "yes");
    assert_eq!(of("interfaces = eth0\n"), "");
}
