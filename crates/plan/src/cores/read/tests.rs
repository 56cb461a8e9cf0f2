//! Tests of the readers: every output of other people's machines, short examples, and damaged texts.

use std::path::PathBuf;

use super::*;

/// Outputs of other planners: no reader here knows them.
const OTHERS: [&str; 16] = [
    "Get-Dfsn",
    "Get-SR",
    "Test-SR",
    "Get-SmbClientConfiguration",
    "Get-SmbConnection",
    "Get-SmbMapping",
    "Get-SmbOpenFile",
    "Get-SmbServerConfiguration",
    "Get-SmbSession",
    "Get-SmbShare",
    "cifs__",
    "samba__",
    "smbstatus__",
    "index",
    "README",
    "interrupts__INT_INVALID_2",
];

/// Lines that are damaged in the outputs themselves, or that no program prints: file, line, text.
const EXCEPTIONS: [(&str, usize, &str); 13] = [
    ("ethtool__ETHTOOL_INFO_BAD_3.txt", 2, "Supported ports"),
    ("ethtool__ETHTOOL_INFO_BAD_3.txt", 3, "Supported link modes 10baseT/Half 10baseT/Full"),
    ("ethtool__ETHTOOL_K_MISSING_COLON.txt", 2, "rx-checksumming off [fixed]"),
    ("ethtool__ETHTOOL_K_MISSING_COLON.txt", 3, "tx-checksumming on"),
    ("ethtool__FAIL_ETHTOOL_A_2.txt", 2, "Usage:"),
    (
        "ethtool__FAIL_ETHTOOL_A_2.txt",
        3,
        "ethtool DEVNAME Display standard information about device",
    ),
    ("ethtool__FAIL_ETHTOOL_A_2.txt", 4, "ethtool -s|--change DEVNAME"),
    ("ethtool__TEST_ETHTOOL_G_4.txt", 4, "RX Mini: some-unexpected-value"),
    ("ethtool__TEST_ETHTOOL_G_4.txt", 5, "RX Jumbo: some-unexpected-value"),
    ("ethtool__TEST_ETHTOOL_G_4.txt", 9, "RX Mini: some-unexpected-value"),
    ("ethtool__TEST_ETHTOOL_G_4.txt", 10, "RX Jumbo: some-unexpected-value"),
    ("ethtool__TEST_ETHTOOL_I_MISSING_KEYS.txt", 9, "something without a colon here is ignored"),
    ("lscpu__BAD_LSCPU.txt", 2, "CPU op-mode(s) =        32-bit, 64-bit"),
];

fn outputs() -> Option<PathBuf> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder =
        std::env::var_os("SMBSCOPE_SHARED").map_or_else(default, PathBuf::from).join("outputs");
    if !folder.is_dir() {
        smbscope_testing::skip!("{} is not there (set SMBSCOPE_SHARED)", folder.display());
        return None;
    }
    Some(folder)
}

/// What an output of another machine contains; `None` if it is not there.
pub(crate) fn output(name: &str) -> Option<Reading> {
    let folder = outputs()?;
    let path = ["linux", "windows"]
        .iter()
        .map(|part| folder.join(part).join(name))
        .find(|path| path.is_file())?;
    Some(read(&std::fs::read(path).unwrap()).unwrap())
}

#[test]
fn every_output_of_other_machines_is_read_without_loss() {
    let Some(folder) = outputs() else { return };
    let mut unknown = Vec::new();
    let mut count = 0;
    for part in ["linux", "windows"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if OTHERS.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            count += 1;
            match read(&std::fs::read(&path).unwrap()) {
                Ok(reading) => {
                    unknown.extend(
                        reading.unknown.list.into_iter().map(|line| {
                            (name.clone(), line.position as usize, line.why + &line.text)
                        }),
                    )
                }
                Err(error) => unknown.push((name, error.line, format!("error: {}", error.message))),
            }
        }
    }
    println!("{count} outputs");
    unknown.retain(|(file, line, text)| !EXCEPTIONS.contains(&(file, *line, text)));
    unknown.sort();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(count >= 50, "{count} outputs");
}

/// `Get-NetAdapterRss` of a host with two groups of 40 processors: table and array are wrapped.
#[test]
fn rss_of_an_adapter_on_windows() {
    let Some(reading) = output("Get-NetAdapterRss_ConnectX3Pro_80cpu.txt") else { return };
    let [Piece::AdapterRss(rss)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!(
        (rss.name.as_str(), rss.queues, rss.profile.as_deref()),
        ("Slot0A x8", Some(8), Some("Closest"))
    );
    assert_eq!((rss.base, rss.last, rss.processors_max), (Some((0, 0)), Some((1, 38)), Some(8)));
    assert_eq!((rss.processors.len(), rss.table.len()), (40, 128));
    assert_eq!(rss.processors[39], RssProcessor { group: 1, number: 38, distance: 32_767 });
    assert_eq!(rss.table[127], (0, 14));
}

/// A driver of Intel: the array begins on the next line, the table has tabs. A team has neither queues nor a table.
#[test]
fn rss_of_an_adapter_with_tabs_and_of_a_team() {
    let text = "
        Name                                            : Port 1
        NumberOfReceiveQueues                           : 16
        Profile                                         : Conservative
        MaxProcessor: [Group:Number]                    : 1:6
        RssProcessorArray: [Group:Number/NUMA Distance] :
          1:0/0  1:2/0  1:4/0  1:6/0
          0:0/2688  0:2/2688
        IndirectionTable: [Group:Number]                : 1:0\t1:2\t1:0\t1:2\t
                                                          1:0\t1:2\t1:0\t1:2\t

        Name                                            : Team 1
        InterfaceDescription                            : Microsoft Network Adapter Multiplexor Driver
        Enabled                                         : True
        NumberOfReceiveQueues                           : 0
        IndirectionTable: [Group:Number]                :
";
    // Both as they are printed, and moved as in a mail.
    for text in [text.replace("\n        ", "\n"), text.to_owned()] {
        let reading = read(text.as_bytes()).unwrap();
        let [Piece::AdapterRss(rss), Piece::AdapterRss(team)] = &reading.pieces[..] else {
            panic!("{reading:?}")
        };
        assert_eq!((rss.processors.len(), rss.table.len(), rss.last), (6, 8, Some((1, 6))));
        assert_eq!(rss.processors[5], RssProcessor { group: 0, number: 2, distance: 2688 });
        assert_eq!((team.queues, team.table.len()), (Some(0), 0));
        let machine = crate::cores::assemble::assemble(&reading.pieces);
        let troubles: Vec<_> = crate::cores::findings::find(&machine)
            .into_iter()
            .map(crate::cores::findings::tests::trouble)
            .collect();
        use crate::cores::findings::FindingKind;
        use serde_json::json;
        let expected = [
            (FindingKind::FewQueuesInTable, json!({ "used": 2, "queues": 16, "entries": 8 })),
            (FindingKind::Teamed, json!({ "master": "Team 1" })),
        ];
        assert_eq!(troubles, expected);
    }
}

/// The same object as `ConvertTo-Json` writes it.
#[test]
fn rss_as_json() {
    let text = r#"[{"Name": "NIC 1", "Enabled": true, "NumberOfReceiveQueues": 16, "Profile": 5, "BaseProcessorGroup": 0,
        "BaseProcessorNumber": 2, "MaxProcessorGroup": 0, "MaxProcessorNumber": 10, "MaxProcessors": 4, "NumaNode": 65535,
        "RssProcessorArray": [{"ProcessorGroup": 0, "ProcessorNumber": 2, "PreferenceIndex": 0}],
        "IndirectionTable": [{"ProcessorGroup": 0, "ProcessorNumber": 2}, {"ProcessorGroup": 0, "ProcessorNumber": 4}]}]"#;
    let reading = read(text.as_bytes()).unwrap();
    let [Piece::AdapterRss(rss)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!(
        (rss.profile.as_deref(), rss.base, rss.last, rss.node),
        (Some("Conservative"), Some((0, 2)), Some((0, 10)), None)
    );
    assert_eq!(rss.table, [(0, 2), (0, 4)]);
}

#[test]
fn smb_interfaces_and_connections_of_windows() {
    let Some(reading) = output("Get-SmbServerNetworkInterface.txt") else { return };
    let is_fast = |piece: &&Piece| {
        matches!(piece, Piece::ServerInterface(interface)
            if interface.is_rss_capable == Some(true) && interface.bits_per_second == Some(32_000_000_000))
    };
    assert_eq!(
        (reading.pieces.len(), reading.pieces.iter().filter(is_fast).count()),
        (14 + 8 + 3 + 3, 8 + 8 + 2 + 2)
    );
    let Some(reading) = output("Get-SmbMultichannelConnection.txt") else { return };
    let is_connection = |piece: &&Piece| matches!(piece, Piece::MultichannelConnection(_));
    assert_eq!(reading.pieces.iter().filter(is_connection).count(), reading.pieces.len());
    let Piece::MultichannelConnection(first) = &reading.pieces[0] else { panic!("{reading:?}") };
    assert_eq!(
        (first.client_index, first.is_client_rdma_capable, first.is_selected),
        (Some(15), Some(true), Some(true))
    );
}

#[test]
fn adapters_and_their_hardware_on_windows() {
    let text = "\
Name                      InterfaceDescription                    ifIndex Status       MacAddress             LinkSpeed
----                      --------------------                    ------- ------       ----------             ---------
Ethernet 2                Mellanox ConnectX-5 Adapter                   7 Up           24-8A-07-00-00-01        25 Gbps

Name                           Segment Bus Device Function Slot NumaNode PcieLinkSpeed PcieLinkWidth Version
----                           ------- --- ------ -------- ---- -------- ------------- ------------- -------
Ethernet 2                           0  59      0        0    2        1      8.0 GT/s             8 1.1
";
    let reading = read(text.as_bytes()).unwrap();
    let [Piece::Adapter(adapter), Piece::AdapterHardware(hardware)] = &reading.pieces[..] else {
        panic!("{reading:?}")
    };
    assert_eq!((adapter.bits_per_second, adapter.index), (Some(25_000_000_000), Some(7)));
    assert_eq!((hardware.bus.as_deref(), hardware.node), (Some("0000:3b:00.0"), Some(1)));
    assert_eq!(reading.unknown.count(), 0);
}

/// Output that PowerShell's `>` wrote is UTF-16.
#[test]
fn utf16_is_decoded() {
    let text = "Name : A\r\nNumberOfReceiveQueues : 4\r\n";
    let bytes: Vec<u8> =
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    assert!(
        matches!(&read(&bytes).unwrap().pieces[..], [Piece::AdapterRss(rss)] if rss.queues == Some(4))
    );
}

#[test]
fn a_table_of_72_rings_and_one_of_4() {
    let Some(reading) = output("rss_linux_03.txt") else { return };
    let [Piece::Indirection(table)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!((table.rings, table.table.len(), table.table[95]), (Some(72), 96, 23));
    let Some(reading) = output("mfd_ethtool_03.txt") else { return };
    let [Piece::Indirection(table)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!(
        (table.function.as_deref(), table.key.len(), table.table[127]),
        (Some("toeplitz"), 0, 3)
    );
}

#[test]
fn interrupts_in_wrapped_lines() {
    let Some(reading) = output("rss_linux_01.txt") else { return };
    let [Piece::Interrupts(interrupts)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!((interrupts.cpus.len(), interrupts.rows.len()), (32, 9));
    let row = &interrupts.rows[1];
    assert_eq!(
        (row.number, row.name.as_str(), row.counts.iter().sum::<u64>()),
        (35, "eno1-TxRx-0", 18 + 12_730)
    );
    let Some(reading) = output("interrupts__INT_MULTI.txt") else { return };
    let [Piece::Interrupts(interrupts)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!(interrupts.rows.iter().filter(|row| row.name.is_empty()).count(), 1);
    assert!(interrupts.rows.iter().any(|row| row.name == "enp0s25" && row.counts[0] == 974_462));
}

/// A mail joins the end of a row and the start of the next one.
#[test]
fn interrupts_in_joined_lines() {
    let text = " 292: 1 0\n 0 2 PCI-MSI 1-edge eth0-TxRx-32 293: 4\n 0 5 0\n PCI-MSI 2-edge eth0-TxRx-33 294:\n 0 0\n 0 6 PCI-MSI 3-edge a\n";
    let reading = read(text.as_bytes()).unwrap();
    let [Piece::Interrupts(interrupts)] = &reading.pieces[..] else { panic!("{reading:?}") };
    let rows: Vec<_> = interrupts
        .rows
        .iter()
        .map(|row| (row.number, row.name.as_str(), row.counts.clone()))
        .collect();
    let expected = [
        (292, "eth0-TxRx-32", vec![1, 0, 0, 2]),
        (293, "eth0-TxRx-33", vec![4, 0, 5, 0]),
        (294, "a", vec![0, 0, 0, 6]),
    ];
    assert_eq!((rows, reading.unknown.count()), (expected.to_vec(), 0));
}

#[test]
fn several_outputs_with_their_prompts() {
    let text = "[root@nas ~]# ethtool -i eth4\ndriver: ice\nbus-info: 0000:3b:00.0\n[root@nas ~]# ethtool -S eth4\nNIC statistics:\n     \
                rx_dropped: 7\n     rx_packets: 9\n$ lscpu -p=cpu,core,socket,node\n# The following is the parsable format\n\
                # CPU,Core,Socket,Node\n0,0,0,0\n1,0,0,\n# cat /proc/softirqs\n  CPU0 CPU1\n HI: 0 0\n NET_RX: 5 6\n";
    let reading = read(text.as_bytes()).unwrap();
    let [
        Piece::Driver(driver),
        Piece::Statistics(statistics),
        Piece::LscpuTable(rows),
        Piece::Softirqs(softirqs),
    ] = &reading.pieces[..]
    else {
        panic!("{reading:?}")
    };
    assert_eq!(
        (driver.device.as_deref(), statistics.device.as_deref()),
        (Some("eth4"), Some("eth4"))
    );
    assert_eq!(
        (statistics.receive_losses(), statistics.received()),
        (vec![("rx_dropped".to_owned(), 7)], Some(9))
    );
    assert_eq!((rows[0].node, rows[1].node, rows[1].core), (Some(0), None, Some(0)));
    assert_eq!(softirqs.net_rx, [5, 6]);
    assert_eq!(reading.unknown.list, []);
}

#[test]
fn a_table_of_lscpu_with_offline_cpus() {
    let text = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE    MAXMHZ\n  0    0      0    0 0:0:0:0          yes 3000.0000\n  \
                1    -      -    - -                 no 3000.0000\n";
    let reading = read(text.as_bytes()).unwrap();
    let [Piece::LscpuTable(rows)] = &reading.pieces[..] else { panic!("{reading:?}") };
    assert_eq!(
        (rows[0].is_online, rows[1].is_online, rows[1].core),
        (Some(true), Some(false), None)
    );
}

/// What is damaged is named with its line.
#[test]
fn damaged_texts_are_named_with_their_line() {
    let cases = [
        (
            "RX flow hash indirection table for eth0 with 4 RX ring(s):\n    0:  0 1\n    8:  0 1\n",
            3,
            "after 2 entries",
        ),
        (
            "RX flow hash indirection table for eth0 with 4 RX ring(s):\n    0:  0 x\n",
            2,
            "not the number of a queue",
        ),
        (
            "   CPU0 CPU1\n 0:  5 6 IO-APIC 2-edge timer\n 1: 5 IO-APIC 1-edge i8042\n",
            3,
            "1 counts for 2 CPUs",
        ),
        ("[{\"Name\": \"A\",\n \"NumberOfReceiveQueues\" 4}]", 2, "damaged JSON"),
        ("\n\nName : A\nRssProcessorArray : 0:0/0 0-1\n", 3, "not a list of processors"),
        ("Architecture:  x86_64\nOn-line CPU(s) list: 0-x\n", 2, "not a number or a list"),
        ("CPU0 CPU1\n HI: 1 2\nNET_RX: 1\n", 3, "2 counts"),
        ("CPU NODE CORE\n0 0 0\n1x 0 0\n", 3, "a CPU without a number"),
        ("hello\n", 1, "no known output"),
    ];
    for (text, line, message) in cases {
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

/// Truncated and changed outputs give an answer or an error, never a panic; what the fuzz target `machine` does at length.
#[test]
fn changed_outputs_do_not_panic() {
    let Some(folder) = outputs() else { return };
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    for part in ["linux", "windows"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            for _ in 0..60 {
                let mut changed = bytes.clone();
                changed.truncate(random(bytes.len() + 1));
                for _ in 0..random(6) {
                    let (position, value) =
                        (random(changed.len()), u8::try_from(random(256)).unwrap());
                    if let Some(byte) = changed.get_mut(position) {
                        *byte = value;
                    }
                }
                let _ = read(&changed);
            }
        }
    }
}

/// Small texts of each format, changed at random: what the fuzz target `machine` does at length.
#[test]
fn changed_texts_do_not_panic() {
    const TEXTS: [&str; 7] = [
        "RX flow hash indirection table for a with 2 RX ring(s):\n 0: 0 1\nRSS hash key:\n6d:5a:56\nNIC statistics:\n a: 1\n",
        "Coalesce parameters for a:\nAdaptive RX: on TX: off\nrx-usecs: 1\nSettings for a:\n Speed: 10000Mb/s\ndriver: x\nbus-info: 0\n",
        "   CPU0  CPU1\n  1:  2 3 PCI-MSI 1-edge a-TxRx-0\nNMI: 1 2\nCPU NODE SOCKET CORE\n0 0 0 0\n",
        "Architecture: x\nOn-line CPU(s) list: 0-3\nThread(s) per core: 2\nSocket(s): 2\nNUMA node0 CPU(s): 0-3\nCPU0 CPU1\nNET_RX: 1 2\n",
        "Name : A\nNumberOfReceiveQueues : 2\nIndirectionTable : 0:0 0:2\n\nServer Name Client IP Selected\n----------- --------- --------\nA           1.2.3.4   True\n",
        "[{\"Name\":\"A\",\"IndirectionTable\":[{\"Group\":0,\"Number\":2}]},{\"LogicalProcessorInformation\":\"AAAAADAAAAAAAAAA\"}]",
        "00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n",
    ];
    let mut state = 3u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    let mut readable = 0;
    for _ in 0..20_000 {
        let mut bytes =
            [TEXTS[random(TEXTS.len())], TEXTS[random(TEXTS.len())]].concat().into_bytes();
        for _ in 0..random(4) {
            let position = random(bytes.len());
            match random(3) {
                0 => drop(bytes.remove(position)),
                1 => bytes.insert(position, b"0123456789-:, \n\"{}[]xA"[random(22)]),
                _ => bytes[position] = u8::try_from(random(256)).unwrap(),
            }
        }
        if let Ok(reading) = read(&bytes) {
            readable += 1;
            let _ =
                crate::cores::findings::find(&crate::cores::assemble::assemble(&reading.pieces));
        }
    }
    assert!(readable > 2_000, "{readable}");
}
