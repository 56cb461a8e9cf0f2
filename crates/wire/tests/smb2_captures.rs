//! SMB2 views over real messages: the values read from public captures equal known answers, and no
//! truncation of any message makes an accessor panic.
//!
//! The walk is naive on purpose (Ethernet, IPv4, messages that start a segment): streams belong to the
//! capture crate. Captures are read in place and the tests skip if the folder does not exist.

// A test may panic.
#![allow(clippy::unwrap_used)]

use smbscope_wire::nbss;
use smbscope_wire::smb2::create::{CreateRequest, CreateResponse};
use smbscope_wire::smb2::create_context::{RequestContext, ResponseContext};
use smbscope_wire::smb2::error::{ErrorResponse, is_error_response};
use smbscope_wire::smb2::header::{Member, members};
use smbscope_wire::smb2::info::{QueryInfoRequest, SetInfoRequest};
use smbscope_wire::smb2::ioctl::{IoctlRequest, IoctlResponse};
use smbscope_wire::smb2::lock::LockRequest;
use smbscope_wire::smb2::negotiate::{NegotiateRequest, NegotiateResponse};
use smbscope_wire::smb2::oplock::OplockBreak;
use smbscope_wire::smb2::read::{ReadRequest, ReadResponse};
use smbscope_wire::smb2::transform::Protocol;
use smbscope_wire::smb2::tree::{TreeConnectRequest, TreeConnectResponse};
use smbscope_wire::smb2::write::{WriteRequest, WriteResponse};
use smbscope_wire::smb2::{Command, need, need_more};
use smbscope_wire::text::utf16le;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The bytes of a shared capture, or `None` with a message.
fn capture(name: &str) -> Option<Vec<u8>> {
    let shared = std::env::var_os("SMBSCOPE_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("captures").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        smbscope_testing::skip!("{} is not there", path.display());
    }
    bytes
}

/// Calls `look` with the frame number and each SMB2 message that starts a segment or follows one that
/// does, as far as it is in the same segment.
fn walk(pcap: &[u8], mut look: impl FnMut(usize, &[u8])) {
    let u32_at = |at: usize| smbscope_wire::read::u32_at(pcap, at).map(|value| value as usize);
    assert_eq!(u32_at(0), Some(0xa1b2_c3d4), "a little-endian pcap");
    let (mut at, mut frame) = (24, 0);
    while let Some(length) = u32_at(at + 8) {
        frame += 1;
        let packet = &pcap[at + 16..at + 16 + length];
        at += 16 + length;
        if packet.get(12..14) != Some(&[8, 0]) || packet.get(23) != Some(&6) {
            continue;
        }
        let ip = &packet[14..];
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let tcp = &ip[usize::from(ip[0] & 15) * 4..total.clamp(20, ip.len())];
        let mut payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
        while let Some(header) = nbss::Header::parse(payload) {
            let message = &payload[nbss::HEADER_BYTES..];
            if Protocol::from_message(message) != Some(Protocol::Smb2) {
                break;
            }
            let length = message.len().min(header.length as usize);
            look(frame, &message[..length]);
            payload = &message[length..];
        }
    }
}

/// Calls what a decoder would call for the member of a compound.
fn decode(member: &Member<'_>) {
    let (header, bytes) = (&member.header, member.bytes);
    let _ = (header.status().and_then(|status| status.name()), need_more(bytes));
    if header.is_response() && is_error_response(header, bytes) {
        let error = ErrorResponse(bytes);
        let _ = (error.symlink(), error.contexts().count());
        return;
    }
    match (header.command, header.is_response()) {
        (Command::NEGOTIATE, false) => {
            let view = NegotiateRequest(bytes);
            let _ = view.dialects().count();
            for context in view.contexts() {
                let _ = context.decode();
            }
        }
        (Command::NEGOTIATE, true) => {
            let view = NegotiateResponse(bytes);
            let _ = view.security_blob();
            for context in view.contexts() {
                let _ = context.decode();
            }
        }
        (Command::TREE_CONNECT, false) => {
            let _ = TreeConnectRequest(bytes).path();
        }
        (Command::TREE_CONNECT, true) => {
            let _ = TreeConnectResponse(bytes).maximal_access();
        }
        (Command::CREATE, false) => {
            let view = CreateRequest(bytes);
            let _ = (view.name(), view.disposition());
            for context in view.contexts() {
                let _ = context.request();
            }
        }
        (Command::CREATE, true) => {
            let view = CreateResponse(bytes);
            let _ = view.file_id();
            for context in view.contexts() {
                let _ = context.response();
            }
        }
        (Command::LOCK, false) => {
            let _ = LockRequest(bytes).may_block();
        }
        (Command::IOCTL, false) => {
            let _ = IoctlRequest(bytes).copy_chunks();
        }
        (Command::IOCTL, true) => {
            let view = IoctlResponse(bytes);
            let _ = (view.validate_negotiate_info(), view.copy_chunk_result());
            let _ = view.network_interfaces().count();
        }
        (Command::QUERY_INFO, false) => {
            let _ = QueryInfoRequest(bytes).class_name();
        }
        (Command::SET_INFO, false) => {
            let _ = SetInfoRequest(bytes).change();
        }
        (Command::OPLOCK_BREAK, _) => drop(OplockBreak::parse(bytes)),
        _ => {}
    }
}

#[test]
fn every_truncation_of_real_messages_decodes_without_panic() {
    for name in [
        "smb311-session-binding.pcap",
        "smb2-delete.pcap",
        "smb2-three-pdu-compound.pcap",
        "smb311-100-small-files.pcap",
    ] {
        let Some(pcap) = capture(name) else { return };
        let mut messages = 0;
        walk(&pcap, |_, message| {
            messages += 1;
            for end in 0..=message.len().min(600) {
                for member in members(&message[..end]) {
                    decode(&member);
                }
            }
        });
        assert!(messages > 0, "{name}");
    }
}

#[test]
fn a_message_cut_to_its_need_gives_the_same_sizes() {
    let Some(pcap) = capture("smb202-copy.pcap") else {
        return;
    };
    // By message id: retransmitted responses count once.
    let (mut read_bytes, mut written_bytes) = (BTreeMap::new(), BTreeMap::new());
    let mut requests = BTreeMap::new();
    walk(&pcap, |_, message| {
        for member in members(message) {
            let header = member.header;
            let need = need(header.command, !header.is_response());
            let bytes = &member.bytes[..member.bytes.len().min(need)];
            if !header.is_response() {
                requests.insert(header.message_id, header.command.name().unwrap());
            }
            match (header.command, header.is_response()) {
                (Command::READ, false) => assert!(ReadRequest(bytes).file_id().is_some()),
                (Command::READ, true) if !is_error_response(&header, bytes) => {
                    read_bytes.insert(header.message_id, ReadResponse(bytes).data_length());
                }
                (Command::WRITE, false) => assert!(WriteRequest(bytes).flags().is_some()),
                (Command::WRITE, true) => {
                    written_bytes.insert(header.message_id, WriteResponse(bytes).count());
                }
                _ => {}
            }
        }
    });
    let mut commands = BTreeMap::new();
    for command in requests.values() {
        *commands.entry(*command).or_insert(0) += 1;
    }
    // The counts of the captures' README; a message that only a retransmission carries occurs once.
    for (command, count) in [
        ("Create", 57),
        ("Close", 57),
        ("QueryInfo", 55),
        ("QueryDirectory", 4),
        ("Read", 38),
        ("Write", 17),
    ] {
        assert_eq!(commands.get(command), Some(&count), "{command}");
    }
    let sum = |bytes: &BTreeMap<u64, Option<u32>>| bytes.values().map(|b| b.unwrap()).sum::<u32>();
    assert_eq!((sum(&read_bytes), sum(&written_bytes)), (306083, 63061));
}

#[test]
fn names_leases_and_disk_ids_are_found() {
    let Some(pcap) = capture("smb311-multichannel.pcap") else {
        return;
    };
    let mut names = Vec::new();
    let (mut leases, mut disk_ids) = (0, 0);
    walk(&pcap, |_, message| {
        for member in members(message) {
            match (member.header.command, member.header.is_response()) {
                (Command::CREATE, false) => {
                    let view = CreateRequest(member.bytes);
                    names.push(utf16le(view.name().unwrap()));
                    leases += view
                        .contexts()
                        .filter(|context| matches!(context.request(), RequestContext::Lease(_)))
                        .count();
                }
                (Command::CREATE, true) if !is_error_response(&member.header, member.bytes) => {
                    disk_ids += CreateResponse(member.bytes)
                        .contexts()
                        .filter(|context| {
                            matches!(context.response(), ResponseContext::OnDiskId { .. })
                        })
                        .count();
                }
                _ => {}
            }
        }
    });
    assert_eq!((names.len(), leases, disk_ids), (81, 41, 56));
    assert!(names.iter().any(String::is_empty));
}
