//! Real messages: the SMB1 captures of the shared folder, walked segment by segment without any
//! reassembly, so that only a message at the start of a segment counts. Skips when the folder is
//! absent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::testing::truncate;
use super::*;
use crate::nbss;
use crate::read::slice_at;

fn capture(name: &str) -> Option<Vec<u8>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let shared = std::env::var_os("SMBSCOPE_SHARED").map(PathBuf::from);
    let folders = [shared, Some(workspace.join("shared"))];
    let found = folders
        .into_iter()
        .flatten()
        .find_map(|folder| std::fs::read(folder.join("captures").join(name)).ok());
    if found.is_none() {
        smbscope_testing::skip!("{name} is not in SMBSCOPE_SHARED or ../shared");
    }
    found
}

/// A message at the start of a segment: whether it goes to the server, what the segment holds of
/// it, its length.
type Found<'a> = (bool, &'a [u8], usize);

/// The messages of a little-endian pcap file of Ethernet and IPv4.
fn messages(pcap: &[u8]) -> Vec<Found<'_>> {
    let mut out = Vec::new();
    let mut at = 24;
    while let Some(length) = u32_at(pcap, at + 8) {
        let frame = slice_at(pcap, at + 16, length as usize).unwrap_or_default();
        at += 16 + length as usize;
        out.extend(segment(frame));
    }
    out
}

fn segment(frame: &[u8]) -> Option<Found<'_>> {
    let ip = frame.get(14..)?;
    let ip = ip.get(..u16::from_be_bytes(*array_at(ip, 2)?).into())?;
    let tcp = ip.get(usize::from(ip.first()? & 15) * 4..)?;
    let port = u16::from_be_bytes(*array_at(tcp, 2)?);
    let payload = tcp.get(usize::from(tcp.get(12)? >> 4) * 4..)?;
    let framing = nbss::Header::parse(payload)?;
    let message = payload.get(nbss::HEADER_BYTES..)?;
    let length = framing.length as usize;
    let message = message.get(..length).unwrap_or(message);
    (message.get(..4)? == MAGIC).then_some((port == 445 || port == 139, message, length))
}

/// Counts by name: requests, replies.
fn count(pcap: &[u8]) -> BTreeMap<String, (u32, u32)> {
    let mut counts = BTreeMap::<String, (u32, u32)>::new();
    for (to_server, bytes, length) in messages(pcap) {
        let message = Message::new(bytes, length).unwrap();
        let header = message.header().unwrap();
        assert_eq!(header.is_reply(), !to_server);
        let name = header.command.name().unwrap();
        let (requests, replies) = counts.entry(name.to_owned()).or_default();
        *if to_server { requests } else { replies } += 1;
    }
    counts
}

fn lines(counts: &BTreeMap<String, (u32, u32)>) -> Vec<String> {
    counts
        .iter()
        .map(|(name, (requests, replies))| format!("{name} {requests} {replies}"))
        .collect()
}

#[test]
fn counts_messages() {
    // As tshark 4.0.17 counts them with TCP reassembly off, less datagrams on port 138 and
    // messages that begin inside a segment.
    let expected: [(&str, &[&str]); 7] = [
        (
            "smb1-trans2-ntcreate.pcap",
            &[
                "Close 7 7",
                "Negotiate 1 1",
                "NtCreateAndX 11 11",
                "NtTransact 1 0",
                "QueryInformation 1 1",
                "SessionSetupAndX 2 2",
                "Transaction 7 7",
                "Transaction2 17 17",
                "TreeConnectAndX 4 4",
                "TreeDisconnect 3 3",
            ],
        ),
        (
            "smb1-4k-writeandx.pcap",
            &[
                "Close 7 7",
                "Echo 13 13",
                "LogoffAndX 1 1",
                "Negotiate 1 1",
                "NtCreateAndX 9 9",
                "NtTransact 25 34",
                "NtTransactSecondary 22 0",
                "ReadAndX 13 13",
                "SessionSetupAndX 2 2",
                "Transaction 37 48",
                "TreeConnectAndX 9 9",
                "TreeDisconnect 7 7",
                "WriteAndX 103 103",
            ],
        ),
        (
            "smb1-smbclient.pcap",
            &[
                "Close 1 1",
                "Echo 1 1",
                "Negotiate 1 1",
                "OpenAndX 1 1",
                "ReadAndX 1 1",
                "SessionSetupAndX 1 1",
                "Transaction2 2 2",
                "TreeConnectAndX 1 1",
                "TreeDisconnect 1 1",
            ],
        ),
        ("smb1-osx.pcap", &["LogoffAndX 3 3", "Negotiate 3 3", "SessionSetupAndX 3 3"]),
        (
            "smb1-trans-secondary.pcap",
            &[
                "Negotiate 1 1",
                "SessionSetupAndX 1 1",
                "Transaction 1 0",
                "TransactionSecondary 1 0",
                "TreeConnectAndX 1 1",
            ],
        ),
        (
            "smb1-port139-out-of-order.pcap",
            &[
                "Close 8 8",
                "LogoffAndX 2 2",
                "NtCreateAndX 9 9",
                "ReadAndX 6 6",
                "Transaction 46 46",
                "Transaction2 5 5",
                "TreeDisconnect 2 2",
            ],
        ),
        ("smb1-fragment-exhaustion.pcap", &["Transaction 4 0"]),
    ];
    for (name, expected) in expected {
        let Some(pcap) = capture(name) else { return };
        assert_eq!(lines(&count(&pcap)), expected, "{name}");
    }
}

#[test]
fn reads_sizes_of_writes() {
    let Some(pcap) = capture("smb1-4k-writeandx.pcap") else {
        return;
    };
    let mut sizes = BTreeMap::<u32, u32>::new();
    let mut written = BTreeMap::<u32, u32>::new();
    for (to_server, bytes, length) in messages(&pcap) {
        let message = Message::new(bytes, length).unwrap();
        let block = message.blocks().next().unwrap();
        if block.command() != Command::WRITE_AND_X {
            continue;
        }
        if to_server {
            let request = write::WriteAndXRequest::new(block);
            let size = request.data_length().unwrap();
            *sizes.entry(size).or_default() += 1;
            let data_offset = usize::from(request.data_offset().unwrap());
            assert_eq!(data_offset + size as usize, length);
            assert!(need(bytes, true, length) <= data_offset);
        } else if let Some(count) = write::WriteAndXResponse::new(block).count() {
            *written.entry(count).or_default() += 1;
        }
    }
    // As tshark's smb.data_len_low and smb.count_low. The folder's README says 48x8 for the
    // eight writes that are neither 44, 72 nor 4096 bytes long; the server's counts deny it.
    let expected = BTreeMap::from([
        (44, 5),
        (52, 1),
        (72, 2),
        (104, 2),
        (192, 2),
        (512, 1),
        (712, 1),
        (1024, 1),
        (4096, 88),
    ]);
    assert_eq!((sizes, written), (expected.clone(), expected));
}

#[test]
fn reads_paths_and_files() {
    let Some(pcap) = capture("smb1-smbclient.pcap") else {
        return;
    };
    let mut told = Vec::new();
    for (to_server, bytes, length) in messages(&pcap) {
        let message = Message::new(bytes, length).unwrap();
        for block in message.blocks().filter(|_| to_server) {
            let path = names::request_path(block).map(|path| path.decode());
            let fid = names::request_fid(block);
            if path.is_some() || fid.is_some() {
                let path = path.unwrap_or_default();
                told.push(format!("{} {path} {fid:x?}", block.command().name().unwrap()));
            }
        }
    }
    let expected = [
        "Transaction2 \\tmp\\ None",
        "OpenAndX \\tmp\\foo None",
        "Transaction2  Some(42fe)",
        "ReadAndX  Some(42fe)",
        "Close  Some(42fe)",
    ];
    assert_eq!(told, expected);
}

#[test]
fn every_truncation_of_real_messages_is_absent_or_right() {
    /// Bytes up to which every length is tried.
    const CUT: usize = 200;
    for name in ["smb1-fuzzed.pcap", "smb1-trans2-ntcreate.pcap"] {
        let Some(pcap) = capture(name) else { return };
        let mut seen = BTreeMap::<(u8, bool), u32>::new();
        for (to_server, bytes, _) in messages(&pcap) {
            let times = seen.entry((bytes[4], to_server)).or_default();
            *times += 1;
            // Two of a kind, which keeps the debug build quick.
            if *times <= 2 {
                truncate(bytes.get(..CUT).unwrap_or(bytes));
            }
        }
        assert!(!seen.is_empty());
    }
}

#[test]
fn follows_a_real_chain() {
    let Some(pcap) = capture("smb1-trans2-ntcreate.pcap") else {
        return;
    };
    let chains: Vec<Vec<Command>> = messages(&pcap)
        .into_iter()
        .filter(|(to_server, ..)| *to_server)
        .map(|(_, bytes, length)| {
            let message = Message::new(bytes, length).unwrap();
            message.blocks().map(|block| block.command()).collect()
        })
        .filter(|chain: &Vec<Command>| chain.len() > 1)
        .collect();
    let expected = [[Command::NT_CREATE_AND_X, Command::READ_AND_X]];
    assert_eq!(chains, expected);
}
