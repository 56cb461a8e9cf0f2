//! The same segment in every tunnel and behind every link that has headers of its own.

use super::*;

const ETHERNET: LinkType = LinkType::ETHERNET;

/// IPv4 with another protocol than TCP.
fn outer(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = ipv4(rest);
    bytes[9] = protocol;
    ethernet(&[8, 0], &bytes)
}

fn udp(port: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = 50_000_u16.to_be_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.extend((8 + rest.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(rest);
    outer(17, &bytes)
}

/// 802.11 with this frame control, QoS control and rest of the header.
fn wireless(control: [u8; 2], header: usize, rest: &[u8]) -> Vec<u8> {
    let mut bytes = control.to_vec();
    bytes.resize(header, 0);
    bytes.extend(rest);
    bytes
}

/// Each tunnel with the layer that is counted.
#[rustfmt::skip]
fn tunnels() -> Vec<(&'static str, LinkType, Vec<u8>, Layer)> {
    let four = ipv4(&tcp(b"payload"));
    let six = ipv6(6, &tcp(b"payload"));
    let inner = ethernet(&[8, 0], &four);
    let snap = behind(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &four);
    let subframe = behind(&[&MACS[..], &[0, 67]].concat(), &snap);
    let ppp = behind(&[0xff, 3, 0, 0x21], &four);
    let radiotap = [0, 0, 26, 0, 0x2f, 0x48, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let authenticated = behind(&[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], &tcp(b"payload"));
    let mut nested = inner.clone();
    for _ in 0..6 {
        nested = udp(4789, &behind(&[8, 0, 0, 0, 0, 0, 1, 0], &nested));
    }
    vec![
        ("IP in IP", ETHERNET, outer(4, &four), Layer::IpInIp),
        ("6in4", ETHERNET, outer(41, &six), Layer::IpInIp),
        ("4in6", ETHERNET, ethernet(&[0x86, 0xdd], &ipv6(4, &four)), Layer::IpInIp),
        ("GRE", ETHERNET, outer(47, &behind(&[0, 0, 8, 0], &four)), Layer::Gre),
        ("GRE, all fields", ETHERNET, outer(47, &behind(&[0xb0, 0, 0x86, 0xdd, 1, 1, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3], &six)), Layer::Gre),
        ("NVGRE", ETHERNET, outer(47, &behind(&[0x20, 0, 0x65, 0x58, 0, 0, 1, 0], &inner)), Layer::Gre),
        ("PPTP", ETHERNET, outer(47, &behind(&[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], &ppp)), Layer::Gre),
        ("WCCP", ETHERNET, outer(47, &behind(&[0, 0, 0x88, 0x3e, 1, 2, 3, 4], &four)), Layer::Gre),
        ("ERSPAN I", ETHERNET, outer(47, &behind(&[0, 0, 0x88, 0xbe], &inner)), Layer::Erspan1),
        ("ERSPAN II", ETHERNET, outer(47, &behind(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 100, 0, 1, 0, 0, 0, 7], &inner)), Layer::Erspan2),
        ("ERSPAN III", ETHERNET, outer(47, &behind(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 100, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0], &inner)), Layer::Erspan3),
        ("ERSPAN III, platform", ETHERNET, outer(47, &behind(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 100, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9], &inner)), Layer::Erspan3),
        ("ERSPAN III, IP", ETHERNET, outer(47, &behind(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 100, 0, 1, 0, 0, 0, 7, 0, 0, 8, 0], &four)), Layer::Erspan3),
        ("EtherIP", ETHERNET, outer(97, &behind(&[0x30, 0], &inner)), Layer::EtherIp),
        ("MPLS in IP", ETHERNET, outer(137, &behind(&[0, 1, 1, 64], &four)), Layer::Mpls),
        ("AH", ETHERNET, outer(51, &authenticated), Layer::Vlan),
        ("VXLAN", ETHERNET, udp(4789, &behind(&[8, 0, 0, 0, 0, 0, 1, 0], &inner)), Layer::Vxlan),
        ("VXLAN, Linux", ETHERNET, udp(8472, &behind(&[8, 0, 0, 0, 0, 0, 1, 0], &inner)), Layer::Vxlan),
        ("VXLAN-GPE", ETHERNET, udp(4790, &behind(&[12, 0, 0, 1, 0, 0, 1, 0], &four)), Layer::Vxlan),
        ("VXLAN-GPE, NSH", ETHERNET, udp(4790, &behind(&[12, 0, 0, 4, 0, 0, 1, 0, 0, 2, 2, 3, 0, 0, 0, 0], &inner)), Layer::Nsh),
        ("VXLAN, six deep", ETHERNET, nested, Layer::Vxlan),
        ("Geneve", ETHERNET, udp(6081, &behind(&[0, 0, 0x65, 0x58, 0, 0, 1, 0], &inner)), Layer::Geneve),
        ("Geneve, options, IP", ETHERNET, udp(6081, &behind(&[2, 0, 8, 0, 0, 0, 1, 0, 1, 2, 3, 1, 9, 9, 9, 9], &four)), Layer::Geneve),
        ("GTP-U", ETHERNET, udp(2152, &behind(&[0x30, 255, 0, 59, 0, 0, 0, 9], &four)), Layer::Gtp),
        ("GTP-U, extensions", ETHERNET, udp(2152, &behind(&[0x34, 255, 0, 71, 0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0, 0, 0xc0, 1, 0, 0, 0], &four)), Layer::Gtp),
        ("TZSP", ETHERNET, udp(37008, &behind(&[1, 0, 0, 1, 0, 10, 1, 200, 1], &inner)), Layer::Tzsp),
        ("TZSP, wireless", ETHERNET, udp(37008, &behind(&[1, 0, 0, 18, 1], &wireless([8, 1], 24, &snap))), Layer::Tzsp),
        ("LISP", ETHERNET, udp(4341, &behind(&[0; 8], &four)), Layer::Lisp),
        ("MPLS in UDP", ETHERNET, udp(6635, &behind(&[0, 1, 1, 64], &six)), Layer::Mpls),
        ("GRE in UDP", ETHERNET, udp(4754, &behind(&[0, 0, 8, 0], &four)), Layer::Gre),
        ("L2TP", ETHERNET, udp(1701, &behind(&[0x42, 2, 0, 99, 0, 1, 0, 2, 0, 2, 7, 7], &ppp)), Layer::L2tp),
        ("Teredo", ETHERNET, udp(3544, &behind(&[0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6], &six)), Layer::Teredo),
        ("CAPWAP", ETHERNET, udp(5247, &behind(&[0, 0x10, 0, 0, 0, 0, 0, 0], &inner)), Layer::Capwap),
        ("MPLS, Ethernet", ETHERNET, ethernet(&[0x88, 0x47, 0, 1, 1, 64], &inner), Layer::Mpls),
        ("MPLS, control word", ETHERNET, ethernet(&[0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 1], &inner), Layer::Mpls),
        ("802.1ah", ETHERNET, ethernet(&[0x88, 0xe7, 0, 0, 0, 1], &inner), Layer::Pbb),
        ("TRILL", ETHERNET, ethernet(&[0x22, 0xf3, 0, 0x41, 0, 1, 0, 2, 9, 9, 9, 9], &inner), Layer::Trill),
        ("FabricPath", ETHERNET, ethernet(&[0x89, 3, 0, 1], &inner), Layer::Trill),
        ("VN-Tag", ETHERNET, ethernet(&[0x89, 0x26, 0, 1, 0, 2, 8, 0], &four), Layer::VnTag),
        ("Cisco MetaData", ETHERNET, ethernet(&[0x89, 9, 1, 1, 0, 1, 0, 99, 8, 0], &four), Layer::CiscoMetaData),
        ("HSR", ETHERNET, ethernet(&[0x89, 0x2f, 0, 1, 0, 2, 8, 0], &four), Layer::Hsr),
        ("MACsec", ETHERNET, ethernet(&[0x88, 0xe5, 0x20, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 0], &four), Layer::MacSec),
        ("LLC, SAP of IP", ETHERNET, ethernet(&[0, 62, 6, 6, 3], &four), Layer::Vlan),
        ("802.11", LinkType::WIRELESS, wireless([8, 1], 24, &snap), Layer::Wireless),
        ("802.11, QoS", LinkType::WIRELESS, wireless([0x88, 2], 26, &snap), Layer::Wireless),
        ("802.11, QoS, padded", LinkType::WIRELESS, wireless([0x88, 2], 28, &snap), Layer::Wireless),
        ("802.11, four addresses, HT", LinkType::WIRELESS, wireless([0x88, 0x83], 36, &snap), Layer::Wireless),
        ("802.11, decrypted", LinkType::WIRELESS, wireless([0x88, 0x42], 34, &snap), Layer::Wireless),
        ("802.11, aggregated", LinkType::WIRELESS, { let mut bytes = wireless([0x88, 2], 26, &subframe); bytes[24] = 0x80; bytes }, Layer::Wireless),
        ("radiotap", LinkType::RADIOTAP, behind(&radiotap, &wireless([8, 2], 24, &snap)), Layer::Wireless),
        ("Prism", LinkType::PRISM, behind(&[&[0x44, 0, 0, 0, 144, 0, 0, 0][..], &[0; 136]].concat(), &wireless([8, 2], 24, &snap)), Layer::Wireless),
        ("AVS", LinkType::AVS, behind(&[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56]].concat(), &wireless([8, 2], 24, &snap)), Layer::Wireless),
        ("PPI", LinkType::PPI, behind(&[0, 0, 8, 0, 105, 0, 0, 0], &wireless([8, 2], 24, &snap)), Layer::Wireless),
        ("PKTAP", LinkType::PKTAP, behind(&[&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 96]].concat(), &ethernet(&[0x81, 0, 0, 1, 8, 0], &four)), Layer::Vlan),
        ("PPP", LinkType::PPP, ppp.clone(), Layer::Ppp),
        ("PPP, short", LinkType::PPP, behind(&[0x57], &six), Layer::Ppp),
        ("PPP, Cisco", LinkType::PPP_HDLC, behind(&[0x0f, 0, 8, 0], &four), Layer::Ppp),
        ("PPP, direction", LinkType::PPP_WITH_DIRECTION, behind(&[1], &ppp), Layer::Ppp),
        ("PPPoE", LinkType::PPP_ETHERNET, behind(&[0x11, 0, 0, 1, 0, 99, 0, 0x21], &four), Layer::PppoE),
        ("Cisco HDLC", LinkType::CISCO_HDLC, behind(&[0x0f, 0, 8, 0], &four), Layer::Vlan),
        ("Frame Relay", LinkType::FRAME_RELAY, behind(&[0x18, 0x41, 3, 0xcc], &four), Layer::Vlan),
        ("ATM, bridged", LinkType::ATM, behind(&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0], &inner), Layer::Snap),
        ("SunATM", LinkType::SUN_ATM, behind(&[2, 0, 0, 5], &snap), Layer::Snap),
        ("FDDI", LinkType::FDDI, behind(&[&[0x50][..], &MACS].concat(), &snap), Layer::Snap),
        ("Token Ring", LinkType::TOKEN_RING, behind(&[0x10, 0x40, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 2, 4, 0, 0, 0], &snap), Layer::Snap),
        ("enc", LinkType::OPENBSD_ENC, behind(&[2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], &four), Layer::IpsecDecrypted),
        ("pflog", LinkType::OPENBSD_PFLOG, behind(&[&[61, 2][..], &[0; 62]].concat(), &four), Layer::Vlan),
        ("NFLOG", LinkType::NFLOG, behind(&[2, 0, 0, 0, 6, 0, 10, 0, 1, 2, 0, 0, 63, 0, 9, 0], &four), Layer::Vlan),
        ("IPNET", LinkType::SOLARIS_IPNET, behind(&[&[1, 2, 0, 1, 0, 0, 0, 59][..], &[0; 16]].concat(), &four), Layer::Vlan),
        ("IEEE 1394", LinkType::FIREWIRE, behind(&[&[0; 16][..], &[8, 0]].concat(), &four), Layer::Vlan),
        ("netANALYZER", LinkType::NET_ANALYZER, behind(&[0; 4], &inner), Layer::Vlan),
    ]
}

fn whole(link: LinkType, bytes: &[u8]) -> Result<TcpSegment<'_>, NotTcp> {
    dissect(link, bytes, bytes.len() as u32)
}

#[test]
fn every_tunnel_holds_the_same_segment_and_is_counted() {
    for (name, link, bytes, layer) in tunnels() {
        let mut layers = Layers::default();
        let segment = dissect_layers(link, &bytes, bytes.len() as u32, &mut layers);
        let segment = segment.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!((segment.source_port, segment.destination_port), (50_000, 445), "{name}");
        assert_eq!(segment.sequence, 0x0102_0304, "{name}");
        assert_eq!((segment.payload, segment.payload_len), (&b"payload"[..], 7), "{name}");
        // Where nothing is counted, the list says VLAN.
        assert!(layers.has(layer) || layer == Layer::Vlan, "{name}: {layers:?}");
        assert!(link.name().is_some(), "{name}");
        // With a check sum or a trailer behind it, it is the same.
        let trailed = [&bytes[..], &[0xee; 4]].concat();
        assert_eq!(whole(link, &trailed).unwrap().payload, b"payload", "{name}");
    }
}

#[test]
fn what_is_cut_is_not_invented() {
    for (name, link, bytes, _) in tunnels() {
        for cut in 0..bytes.len() {
            match dissect(link, &bytes[..cut], bytes.len() as u32) {
                Ok(segment) => {
                    assert_eq!(segment.sequence, 0x0102_0304, "{name} at {cut}");
                    assert_eq!(segment.payload_len, 7, "{name} at {cut}");
                }
                Err(NotTcp::Truncated | NotTcp::Udp(_) | NotTcp::Tunnel) => {}
                // Padding is recognised by what follows it.
                Err(NotTcp::OtherProtocol) if name.ends_with("padded") => {}
                Err(other) => panic!("{name} at {cut}: {other:?}"),
            }
        }
    }
}

#[test]
fn encrypted_and_unknown_packets_stay_closed() {
    let four = ipv4(&tcp(b"payload"));
    let snap = behind(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &four);
    let mut fragment = wireless([8, 1], 24, &four);
    fragment[22] = 1;
    for (name, link, bytes) in [
        ("ESP", ETHERNET, outer(50, &[7; 60])),
        ("L2TP version 3", ETHERNET, outer(115, &[7; 60])),
        ("GRE, routing", ETHERNET, outer(47, &behind(&[0x40, 0, 8, 0], &four))),
        ("802.11, encrypted", LinkType::WIRELESS, wireless([8, 0x41], 24, &[7; 90])),
        ("802.11, later fragment", LinkType::WIRELESS, fragment),
        ("MACsec, encrypted", ETHERNET, ethernet(&[0x88, 0xe5, 0x2c], &[7; 90])),
        ("PPP, compressed", LinkType::PPP, behind(&[0, 0xfd], &[7; 60])),
    ] {
        assert_eq!(whole(link, &bytes), Err(NotTcp::Tunnel), "{name}");
    }
    // Data without a payload, a beacon, a control frame.
    for control in [[0x48, 1], [0x80, 0], [0xd4, 0]] {
        let bytes = wireless(control, 24, &snap);
        assert_eq!(whole(LinkType::WIRELESS, &bytes), Err(NotTcp::OtherProtocol));
    }
    // A frame with a wrong check sum is retransmitted.
    let bad = [0, 0, 9, 0, 2, 0, 0, 0, 0x40];
    let bytes = behind(&bad, &wireless([8, 2], 24, &snap));
    assert_eq!(whole(LinkType::RADIOTAP, &bytes), Err(NotTcp::Malformed));
}

#[test]
fn a_port_alone_makes_no_tunnel() {
    for port in [4789, 4790, 8472, 6081, 2152, 37008, 1701, 3544, 5247, 4754, 6635, 4341] {
        let bytes = udp(port, &[0xff; 60]);
        let mut layers = Layers::default();
        let result = dissect_layers(ETHERNET, &bytes, bytes.len() as u32, &mut layers);
        assert!(
            matches!(result, Err(NotTcp::Udp(_) | NotTcp::OtherProtocol | NotTcp::Tunnel)),
            "{port}: {result:?}"
        );
    }
    // A header that fits, and nothing that could be a packet behind it.
    let bytes = udp(
        2152,
        &[
            0x30, 255, 0, 30, 0, 0, 0, 9, 0x4f, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0,
        ],
    );
    let mut layers = Layers::default();
    let result = dissect_layers(ETHERNET, &bytes, bytes.len() as u32, &mut layers);
    assert!(matches!(result, Err(NotTcp::Udp(_) | NotTcp::OtherProtocol)), "{result:?}");
}

#[test]
fn netbios_without_tcp_is_recognised() {
    let mut ipx = vec![0xff, 0xff, 0, 60, 0, 20];
    ipx.extend([0; 10]);
    ipx.extend([4, 0x55]);
    ipx.extend([0; 10]);
    ipx.extend([4, 0x55]);
    ipx.extend([0; 20]);
    let netbeui = behind(&[0xf0, 0xf0, 3, 44, 0, 0xff, 0xef], &[0; 40]);
    for (name, bytes) in [
        ("EtherType", ethernet(&[0x81, 0x37], &ipx)),
        ("raw 802.3", ethernet(&[0, 60], &ipx)),
        ("LLC", ethernet(&[0, 63, 0xe0, 0xe0, 3], &ipx)),
        ("NetBEUI", ethernet(&[0, 47], &netbeui)),
    ] {
        assert_eq!(whole(ETHERNET, &bytes), Err(NotTcp::NetBios), "{name}");
    }
    // A file server of Novell.
    ipx[16..18].copy_from_slice(&[4, 0x51]);
    ipx[28..30].copy_from_slice(&[4, 0x51]);
    assert_eq!(whole(ETHERNET, &ethernet(&[0x81, 0x37], &ipx)), Err(NotTcp::OtherProtocol));
}

#[test]
fn tunnels_in_tunnels_end() {
    let mut bytes = ipv4(&tcp(b""));
    for _ in 0..12 {
        bytes = ipv4(&bytes);
        bytes[9] = 4;
    }
    assert_eq!(whole(LinkType::RAW, &bytes), Err(NotTcp::TooDeep));
    let mut inside = ethernet(&[8, 0], &ipv4(&tcp(b"")));
    for _ in 0..20 {
        inside = ethernet(&[0x88, 0xe7, 0, 0, 0, 1], &inside);
    }
    assert_eq!(whole(ETHERNET, &inside), Err(NotTcp::TooDeep));
}

/// Each byte of each tunnel changed: the calls that the fuzz target `links` makes.
#[test]
fn changed_tunnels_do_not_hurt() {
    for (name, link, bytes, _) in tunnels() {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x0f, 0x40, 0x45, 0x60, 0x80, 0xaa, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(segment) = whole(link, &changed) {
                    let length = segment.payload_len as usize;
                    assert!(segment.payload.len() <= length, "{name} {at} {value}");
                    segment.options().for_each(drop);
                }
            }
        }
    }
}

/// Tunnels that tshark reads in another way by default: its settings leave out a port, the IP form of
/// ERSPAN and frames that were decrypted; it guesses whether a control word is there; and it wants
/// more of netANALYZER's header than its length, and a check sum at the end of FabricPath.
const NOT_IN_TSHARK: &[&str] = &[
    "ERSPAN III, IP",
    "VXLAN, Linux",
    "MPLS, Ethernet",
    "MPLS, control word",
    "802.11, decrypted",
    "netANALYZER",
    "FabricPath",
];

/// A pcapng file with an interface for each frame.
fn pcapng(cases: &[(&str, LinkType, Vec<u8>, Layer)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = (padded as u32 + 12).to_le_bytes();
        let mut bytes = [&kind.to_le_bytes()[..], &length, body].concat();
        bytes.resize(8 + padded, 0);
        bytes.extend(length);
        bytes
    };
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    let mut file = block(0x0a0d_0d0a, &section);
    for (_, link, _, _) in cases {
        file.extend(block(1, &[&link.0.to_le_bytes()[..], &[0; 6]].concat()));
    }
    for (number, (_, _, bytes, _)) in (0_u32..).zip(cases) {
        let length = bytes.len() as u32;
        let mut body: Vec<u8> =
            [number, 0, 1, length, length].iter().flat_map(|n| n.to_le_bytes()).collect();
        body.extend(bytes);
        file.extend(block(6, &body));
    }
    file
}

#[test]
fn tshark_finds_the_same_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tunnels.pcapng");
    let cases = tunnels();
    std::fs::write(&path, pcapng(&cases)).unwrap();
    let fields = ["-T", "fields", "-e", "tcp.dstport", "-e", "tcp.len"];
    let ran = std::process::Command::new("tshark").arg("-r").arg(&path).args(fields).output();
    let Ok(output) = ran else {
        smbscope_testing::skip!("tshark is not installed");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), cases.len());
    let pairs = cases.iter().zip(text.lines());
    let wrong: Vec<_> = pairs
        .filter(|((name, ..), line)| !NOT_IN_TSHARK.contains(name) && *line != "445\t7")
        .map(|((name, ..), line)| format!("{name}: {line}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
