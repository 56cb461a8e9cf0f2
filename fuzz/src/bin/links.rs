//! Any bytes behind each link type and in each tunnel, and as fragments: two bytes choose.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smbscope_capture::file::LinkType;
use smbscope_capture::frame::{LayerCounts, Layers, NotTcp, Reassembler, dissect, dissect_layers};

const LINKS: [LinkType; 26] = [
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::TOKEN_RING,
    LinkType::PPP,
    LinkType::FDDI,
    LinkType::PPP_HDLC,
    LinkType::PPP_ETHERNET,
    LinkType::ATM,
    LinkType::CISCO_HDLC,
    LinkType::WIRELESS,
    LinkType::FRAME_RELAY,
    LinkType::OPENBSD_ENC,
    LinkType::OPENBSD_PFLOG,
    LinkType::PRISM,
    LinkType::FIBRE_CHANNEL_IP,
    LinkType::SUN_ATM,
    LinkType::RADIOTAP,
    LinkType::FIREWIRE,
    LinkType::AVS,
    LinkType::PPP_PPPD,
    LinkType::PPI,
    LinkType::PPP_WITH_DIRECTION,
    LinkType::SOLARIS_IPNET,
    LinkType::NFLOG,
    LinkType::NET_ANALYZER,
    LinkType::PKTAP,
];
/// UDP ports of tunnels, and IP protocols.
const PORTS: [u16; 12] = [4789, 8472, 4790, 6081, 2152, 37008, 4754, 6635, 4341, 1701, 5247, 3544];
const PROTOCOLS: [u8; 8] = [4, 41, 47, 50, 51, 97, 115, 137];

/// An IPv4 header in front of the bytes; with a port, UDP's as well.
fn in_ip(protocol: u8, port: Option<u16>, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    if let Some(port) = port {
        packet.extend([0xc3, 0x50]);
        packet.extend(port.to_be_bytes());
        packet.extend((8 + bytes.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
    }
    packet.extend(bytes);
    packet
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[choice, which], rest)) = bytes.split_first_chunk() else { return };
    let which = usize::from(which);
    let (link, frame) = match choice % 4 {
        0 => (LINKS[which % LINKS.len()], rest.to_vec()),
        1 => (LinkType::RAW, in_ip(17, Some(PORTS[which % PORTS.len()]), rest)),
        2 => (LinkType::RAW, in_ip(PROTOCOLS[which % PROTOCOLS.len()], None, rest)),
        _ => return fragments(rest),
    };
    let mut layers = Layers::default();
    let mut counts = LayerCounts::default();
    if let Ok(segment) = dissect_layers(link, &frame, frame.len() as u32, &mut layers) {
        assert!(segment.payload.len() <= segment.payload_len as usize);
        assert!(segment.payload.len() <= frame.len());
    }
    counts.add(layers);
    let _ = counts.text();
});

/// Packets of a length in one byte, all through one reassembler.
fn fragments(mut rest: &[u8]) {
    let mut reassembler = Reassembler::default();
    let mut time_ns = 0;
    while let Some((&length, after)) = rest.split_first() {
        let packet = &after[..after.len().min(usize::from(length))];
        rest = &after[packet.len()..];
        time_ns += i64::from(length) * 1_000_000_000;
        if let Err(NotTcp::Fragment(fragment)) = dissect(LinkType::RAW, packet, packet.len() as u32)
            && let Some(whole) = reassembler.take(fragment, packet, time_ns)
        {
            assert!(whole.bytes.len() <= whole.original as usize);
            let _ = dissect(whole.link, &whole.bytes, whole.original);
        }
    }
    reassembler.end();
}
