//! Tests of the bundle of Windows: the script's properties are those that the readers know, and its file is a machine.

use serde_json::json;

use super::super::findings::{FindingKind, find, tests::trouble};
use super::super::read::{Piece, read as read_text};
use super::super::topology::System;
use super::{WINDOWS_SCRIPT, read_bytes};

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0u32, |bits, (index, byte)| bits | u32::from(*byte) << (16 - index * 8));
        for index in 0..4 {
            let letter = LETTERS[usize::try_from(bits >> (18 - index * 6) & 63).unwrap()];
            text.push(if index > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// The properties that a part of the script writes.
fn properties(part: &str) -> Vec<String> {
    let (_, block) = WINDOWS_SCRIPT.split_once(&format!("Get-Part '{part}'")).expect(part);
    let (_, block) = block.split_once("[ordered]@{").expect(part);
    let (block, _) = block.split_once("\n}").expect(part);
    let names = block.lines().filter_map(|line| Some(line.split_once('=')?.0.trim()));
    names.filter(|name| name.chars().all(char::is_alphanumeric)).map(str::to_owned).collect()
}

type IsComplete = fn(&Piece) -> bool;

/// An object with the properties that the script writes is recognised, and no property that a reader needs is missing.
#[test]
fn what_the_script_writes_is_recognised() {
    let parts: [(&str, IsComplete); 7] = [
        ("Get-NetAdapterRss", |piece| {
            matches!(piece, Piece::AdapterRss(rss) if rss.queues.is_some() && rss.base.is_some()
            && rss.last.is_some() && rss.processors_max.is_some() && rss.node.is_some() && rss.profile.is_some())
        }),
        ("Get-NetAdapterHardwareInfo", |piece| {
            matches!(piece, Piece::AdapterHardware(hardware)
            if hardware.bus.is_some() && hardware.node.is_some())
        }),
        ("Get-NetAdapter'", |piece| {
            matches!(piece, Piece::Adapter(adapter) if adapter.bits_per_second.is_some()
            && adapter.status.is_some() && adapter.index.is_some() && adapter.driver.is_some() && adapter.is_virtual.is_some())
        }),
        ("Get-NetAdapterAdvancedProperty", |piece| matches!(piece, Piece::AdvancedProperty(_))),
        ("Get-SmbMultichannelConnection", |piece| {
            matches!(piece, Piece::MultichannelConnection(connection)
            if connection.channels.is_some() && connection.channels_max.is_some() && connection.is_client_rss_capable.is_some())
        }),
        ("Get-SmbServerNetworkInterface", |piece| {
            matches!(piece, Piece::ServerInterface(interface)
            if interface.is_rss_capable.is_some() && interface.bits_per_second.is_some() && interface.name.is_some())
        }),
        (
            "ServerProcesses",
            |piece| matches!(piece, Piece::ServerProcess(process) if process.affinity == Some(1) && process.name == "1"),
        ),
    ];
    for (part, is_complete) in parts {
        let names = properties(part.trim_end_matches('\''));
        let mut object: serde_json::Map<_, _> =
            names.iter().map(|name| (name.clone(), serde_json::json!("1"))).collect();
        object.retain(|name, _| name != "RssProcessorArray" && name != "IndirectionTable");
        let reading = read_text(serde_json::to_string(&object).unwrap().as_bytes()).expect(part);
        assert!(is_complete(&reading.pieces[0]), "{part}: {names:?}: {reading:?}");
    }
}

/// Each keyword that the script collects changes something of the adapter.
#[test]
fn what_the_script_collects_is_used() {
    let (_, keywords) = WINDOWS_SCRIPT.split_once("$keywords = ").unwrap();
    let keywords: Vec<&str> = keywords
        .lines()
        .next()
        .unwrap()
        .split(['\'', ',', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    assert!(keywords.len() >= 5, "{keywords:?}");
    for keyword in keywords {
        let json =
            serde_json::json!({"Name": "A", "RegistryKeyword": keyword, "RegistryValue": ["1"]});
        let machine = read_bytes(json.to_string().as_bytes()).unwrap().machine;
        let nothing =
            super::super::topology::Adapter { name: "A".to_owned(), ..Default::default() };
        assert_ne!(machine.cards, [nothing], "{keyword}");
    }
}

/// Two sockets of two cores with two threads; an adapter on node 1 whose table is on node 0.
#[test]
fn a_machine_of_windows() {
    let json = serde_json::json!({
        "Format": "smbscope-machine-windows-1",
        "Processors": [{"LogicalProcessorInformation": base64(&super::super::read::processors::tests::buffer())}],
        "Model": [{"Model": "Xeon", "Socket": "CPU 1", "NumberOfCores": 2, "NumberOfLogicalProcessors": 4}],
        "Adapters": [{"Name": "NIC 1", "InterfaceDescription": "Intel X710", "InterfaceIndex": 7, "Status": "Up",
            "LinkSpeed": "10 Gbps", "Speed": 10_000_000_000u64, "Virtual": false, "HardwareInterface": true, "DriverFileName": "i40ea68.sys"}],
        "Hardware": [{"Name": "NIC 1", "SegmentNumber": 0, "BusNumber": 59, "DeviceNumber": 0, "FunctionNumber": 1, "NumaNode": 1}],
        "Rss": [{"Name": "NIC 1", "Enabled": true, "NumberOfReceiveQueues": 2, "Profile": "NUMAStatic", "BaseProcessorGroup": 0,
            "BaseProcessorNumber": 0, "MaxProcessorGroup": 1, "MaxProcessorNumber": 3, "MaxProcessors": 2, "NumaNode": null,
            "RssProcessorArray": [],
            "IndirectionTable": [{"ProcessorGroup": 0, "ProcessorNumber": 2, "PreferenceIndex": 0},
                {"ProcessorGroup": 1, "ProcessorNumber": 0, "PreferenceIndex": 0}]}],
        "Properties": [{"Name": "NIC 1", "RegistryKeyword": "*InterruptModeration", "RegistryValue": ["0"]}],
        "Multichannel": [], "Interfaces": [],
        "Failures": ["Get-SmbMultichannelConnection: no client"],
    });
    let machine =
        read_bytes(serde_json::to_string_pretty(&json).unwrap().as_bytes()).unwrap().machine;
    assert_eq!((machine.system, machine.cpus.len(), machine.cards.len()), (System::Windows, 8, 1));
    let card = &machine.cards[0];
    assert_eq!(
        (card.bus.as_deref(), card.node, card.rss.queues),
        (Some("0000:3b:00.1"), Some(1), Some(2))
    );
    assert_eq!((card.bits_per_second, card.is_up), (Some(10_000_000_000), Some(true)));
    assert_eq!(machine.failures, ["Get-SmbMultichannelConnection: no client"]);
    let troubles: Vec<_> = find(&machine).into_iter().map(trouble).collect();
    let expected = [
        (FindingKind::ForeignNode, json!({ "foreign": 1, "processors": 2, "node": 1 })),
        (FindingKind::ModerationOff, json!({})),
    ];
    assert_eq!(troubles, expected);
}

/// The script changes nothing: it calls no cmdlet that sets, and writes one file.
#[test]
fn the_script_only_reads() {
    for verb in [
        "Set-", "Enable-", "Disable-", "Remove-", "New-Net", "Restart-", "Invoke-", "Start-",
        "Stop-",
    ] {
        let commands = WINDOWS_SCRIPT.lines().filter(|line| !line.trim_start().starts_with('#'));
        assert!(!commands.clone().any(|line| line.contains(verb)), "{verb}");
    }
    assert_eq!(WINDOWS_SCRIPT.matches("WriteAllText").count(), 1);
    assert!(WINDOWS_SCRIPT.is_ascii());
}
