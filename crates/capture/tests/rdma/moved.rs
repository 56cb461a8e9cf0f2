//! Payload that RDMA moves: channel descriptors, RDMA Reads and Writes (MS-SMB2 sections 2.2.19 to
//! 2.2.22, MS-SMBD section 2.2.3.1).

use crate::support::decode::{Decoded, decode, single};
use crate::support::smb2::*;
use crate::support::talk::Talk;
use crate::write::{Roce, fragments, pcap};

const LENGTH: u32 = 100_000;

/// Two descriptors that name the whole length.
fn descriptors() -> Vec<u8> {
    let mut bytes = Vec::new();
    for length in [65_536, LENGTH - 65_536] {
        bytes.extend(0x7000_u64.to_le_bytes());
        bytes.extend(5_u32.to_le_bytes());
        bytes.extend(length.to_le_bytes());
    }
    bytes
}

/// The server fetches what is written with RDMA Reads, and places what is read with RDMA Writes.
fn decoded(begins: bool) -> Decoded {
    let roce = Roce { mtu: 4_096, begins, ..Roce::default() };
    let mut talk = Talk::new();
    talk.connect();
    talk.exchange(create(4, "big.bin"), 100_000, created(4, 40));
    let mut packets = roce.send(&talk);
    let used = |to_server: bool| {
        let of = packets.iter().filter(|p| p.to_server == to_server && p.opcode <= 4);
        of.map(|p| p.psn).next_back()
    };
    // The numbers continue.
    let continued = Roce {
        psns: [used(true).unwrap() + 1, used(false).unwrap() + 1],
        begins: false,
        ..roce.clone()
    };
    let mut sender = continued.sender();
    let mut now = talk.now;

    let info = [&112_u16.to_le_bytes()[..], &32_u16.to_le_bytes()].concat();
    let request = write(5, 40, 0, &descriptors())
        .put(64 + 2, &[0, 0])
        .put(64 + 4, &[0; 4])
        .put(64 + 32, &1_u32.to_le_bytes())
        .put(64 + 36, &LENGTH.to_le_bytes())
        .put(64 + 40, &info);
    sender.fragment(now, true, &fragments(&request.framed()[4..], 1_340)[0]);
    now += 20_000;
    for length in [65_536_u32, LENGTH - 65_536] {
        let mut reth = vec![0; 12];
        reth.extend(length.to_be_bytes());
        let psn = sender.request(now, false, 0x0c, reth.clone());
        // Lost and retransmitted: one request.
        let again = sender.packets.last().cloned().unwrap();
        sender.packets.push(crate::write::Packet { time: now + 9_000_000, ..again });
        now += 10_000_000;
        let count = length.div_ceil(4_096);
        for index in 0..count {
            let bytes = 4_096.min(length - index * 4_096) as usize;
            let opcode = match index {
                0 => 0x0d,
                index if index + 1 == count => 0x0f,
                _ => 0x0e,
            };
            let aeth = if opcode == 0x0e { 0 } else { 4 };
            sender.respond(now, true, opcode, psn + index, vec![0; aeth + bytes]);
        }
        // The request takes as many numbers as its response has packets.
        sender.skip(false, count - 1);
    }
    sender.fragment(now, false, &fragments(&written(5, LENGTH).framed()[4..], 1_340)[0]);
    now += 50_000;

    let request = read(6, 40, 0, LENGTH).put(64 + 36, &1_u32.to_le_bytes());
    sender.fragment(now, true, &fragments(&request.framed()[4..], 1_340)[0]);
    now += 20_000;
    let count = LENGTH.div_ceil(4_096);
    for index in 0..count {
        let bytes = 4_096.min(LENGTH - index * 4_096) as usize;
        let opcode = match index {
            0 => 6,
            index if index + 1 == count => 8,
            _ => 7,
        };
        let reth = if index == 0 { 16 } else { 0 };
        sender.request(now, false, opcode, vec![0; reth + bytes]);
    }
    // DataRemaining has what was placed.
    let reply = data(6, &[]).put(64 + 8, &LENGTH.to_le_bytes());
    sender.fragment(now, false, &fragments(&reply.framed()[4..], 1_340)[0]);
    now += 50_000;
    sender.fragment(now, true, &fragments(&close(7, 40).framed()[4..], 1_340)[0]);
    sender.fragment(now + 9_000, false, &fragments(&closed(7).framed()[4..], 1_340)[0]);
    packets.append(&mut sender.packets);
    decode(&pcap(&packets, usize::MAX), &single())
}

#[test]
fn an_operation_has_the_length_that_rdma_moved() {
    // The MTU is known from the ConnectRequest, or not.
    for begins in [true, false] {
        let decoded = decoded(begins);
        let rows = decoded.rows();
        for command in ["Write", "Read"] {
            let row = rows.iter().find(|row| row["command"] == command).unwrap();
            assert_eq!(row["requested_bytes"], LENGTH.to_string(), "{row:?}");
            assert_eq!(row["transferred_bytes"], LENGTH.to_string(), "{row:?}");
            assert_eq!(row["status_name"], "STATUS_SUCCESS");
        }
        let write = rows.iter().find(|row| row["command"] == "Write").unwrap();
        // Header, body and descriptors, but not what RDMA moved.
        assert_eq!(write["request_wire_bytes"], "144");
        assert_eq!(rows.last().unwrap()["command"], "Close");
        let [connection] = &decoded.connections[..] else { panic!("one connection") };
        assert_eq!((connection.rdma_reads, connection.rdma_writes), (Some(2), Some(1)));
        assert_eq!(connection.rdma_bytes, Some(2 * u64::from(LENGTH)));
        assert_eq!(connection.retransmissions_to_client, 2);
        assert_eq!((connection.gaps_to_client, connection.gaps_to_server), (0, 0));
    }
}
