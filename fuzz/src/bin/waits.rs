//! Any bytes as packets of the services that clients use before SMB: names, tickets, LDAP, WebDAV, ICMP, attempts to
//! connect.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_capture::file::LinkType;
use smbscope_capture::{Options, Part, PushDecoder};

/// UDP and TCP ports of these services.
const PORTS: [u16; 12] = [53, 88, 137, 389, 445, 139, 5353, 5355, 80, 443, 464, 636];
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// An IPv4 packet between two of four machines.
fn packet(protocol: u8, ends: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, ends & 3, 10, 0, 0, ends >> 2 & 3]);
    packet.extend(payload);
    packet
}

/// A header of UDP or TCP in front of bytes.
fn with_ports(protocol: u8, port: u16, to_server: bool, flags: u8, bytes: &[u8]) -> Vec<u8> {
    let ports = if to_server { [50_000, port] } else { [port, 50_000] };
    let mut out: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    if protocol == UDP {
        out.extend((8 + bytes.len() as u16).to_be_bytes());
        out.extend([0, 0]);
    } else {
        out.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    }
    out.extend(bytes);
    out
}

fuzz_target!(|bytes: &[u8]| {
    let options = Options { threads: 1, ..Options::default() };
    let mut decoder = PushDecoder::new("fuzz", &options).expect("no projection");
    let (mut rest, mut time, mut packets) = (bytes, 0_i64, 0);
    while let Some((&[choice, ends, flags, length, passed], after)) = rest.split_first_chunk() {
        let (payload, after) = after.split_at_checked(length.into()).unwrap_or((after, &[]));
        rest = after;
        time += i64::from(passed) * 100_000_000;
        let port = PORTS[usize::from(choice >> 3) % PORTS.len()];
        let to_server = choice & 4 != 0;
        let frame = match choice & 3 {
            0 => packet(UDP, ends, &with_ports(UDP, port, to_server, flags, payload)),
            1 => {
                let quoted = packet(TCP, ends, &with_ports(TCP, port, true, 2, &[]));
                let report = [&[3, flags, 0, 0, 0, 0, 5, 20][..], payload, &quoted[..]].concat();
                packet(ICMP, ends, &report)
            }
            _ => packet(TCP, ends, &with_ports(TCP, port, to_server, flags, payload)),
        };
        decoder.frame(LinkType::RAW, &frame, frame.len() as u32, time);
        packets += 1;
    }
    let parts = decoder.end(&mut |_, _| (), |_| ()).expect("parts");
    for part in parts {
        if let Part::Waits(rows) = part {
            assert!(rows.len() <= packets);
            for row in rows {
                assert!(row.end.is_none_or(|end| end >= row.start), "{row:?}");
                assert!(row.attempts >= 1 && row.last_attempt >= row.start, "{row:?}");
            }
        }
    }
});
