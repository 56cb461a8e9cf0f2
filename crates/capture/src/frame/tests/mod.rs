//! Tests of the headers below SMB: frames made by hand, and etherparse as a second opinion.

use super::*;

mod oracle;
mod segments;

/// TCP: port 50000 to 445, sequence 0x01020304, 12 bytes of options, then the payload.
fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc3, 0x50, 0x01, 0xbd, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x18];
    bytes.extend([0x12, 0x34, 0, 0, 0, 0]);
    bytes.extend([1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 1, 0]);
    bytes.extend(payload);
    bytes
}

fn ipv4(rest: &[u8]) -> Vec<u8> {
    let length = (20 + rest.len()) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    // Don't Fragment is no fragment.
    bytes.extend([0, 1, 0x40, 0, 128, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(rest);
    bytes
}

fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(rest);
    bytes
}

fn behind(header: &[u8], rest: &[u8]) -> Vec<u8> {
    [header, rest].concat()
}

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn ethernet(tags: &[u8], rest: &[u8]) -> Vec<u8> {
    [&MACS, tags, rest].concat()
}

/// The same segment in every wrapping that is dissected.
fn wrappings(payload: &[u8]) -> Vec<(&'static str, LinkType, Vec<u8>)> {
    let four = ipv4(&tcp(payload));
    let six = ipv6(6, &tcp(payload));
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let length = [0, 100];
    let mut sll = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    let sll2 = [0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    let ether = LinkType::ETHERNET;
    let mut options = four.clone();
    options[0] = 0x46;
    options[3] += 4;
    options.splice(20..20, [0x94, 4, 0, 0]);
    // Hop-by-hop, routing, destination, authentication, then an atomic fragment header.
    let mut extended = vec![43, 0, 1, 4, 0, 0, 0, 0];
    extended.extend([60, 0, 0, 0, 0, 0, 0, 0]);
    extended.extend([51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    extended.extend([44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    extended.extend([6, 0, 0, 0, 0, 0, 0, 7]);
    extended.extend(tcp(payload));
    let eight_tags: Vec<u8> = [0x81, 0, 0, 5].repeat(8);
    let mut cases = vec![
        ("Ethernet", ether, ethernet(&[8, 0], &four)),
        ("Ethernet, IPv6", ether, ethernet(&[0x86, 0xdd], &six)),
        ("Ethernet, options", ether, ethernet(&[8, 0], &options)),
        ("extensions", ether, ethernet(&[0x86, 0xdd], &ipv6(0, &extended))),
        ("VLAN", ether, ethernet(&[0x81, 0, 0, 5, 8, 0], &four)),
        ("QinQ", ether, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &four)),
        ("QinQ 9100", ether, ethernet(&[0x91, 0, 0, 5, 0x81, 0, 0, 6, 8, 0], &four)),
        ("VLAN, IPv6", ether, ethernet(&[0x81, 0, 0, 5, 0x86, 0xdd], &six)),
        ("eight tags", ether, ethernet(&[&eight_tags[..], &[8, 0]].concat(), &four)),
        ("SNAP", ether, ethernet(&[length, [0xaa, 0xaa]].concat(), &behind(&snap[2..], &four))),
        ("VLAN, SNAP", ether, ethernet(&[0x81, 0, 0, 5, 0, 100], &behind(&snap, &four))),
        ("MPLS", ether, ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], &four)),
        ("PPPoE", ether, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 99, 0, 0x21], &four)),
        ("PPPoE 6", ether, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 99, 0, 0x57], &six)),
        ("SLL2", LinkType::LINUX_SLL2, [&[8, 0], &sll2[..], &four].concat()),
        ("SLL2, IPv6", LinkType::LINUX_SLL2, [&[0x86, 0xdd], &sll2[..], &six].concat()),
        ("raw IPv4", LinkType::IPV4, four.clone()),
        ("raw IPv6", LinkType::IPV6, six.clone()),
        ("loop", LinkType::LOOP, behind(&[0, 0, 0, 2], &four)),
    ];
    sll.extend([8, 0]);
    cases.push(("SLL", LinkType::LINUX_SLL, behind(&sll, &four)));
    sll[14..].copy_from_slice(&[0x81, 0]);
    sll.extend([0, 5, 8, 0]);
    cases.push(("SLL, VLAN", LinkType::LINUX_SLL, behind(&sll, &four)));
    sll[14..16].copy_from_slice(&[0, 4]);
    sll.truncate(16);
    sll.extend(snap);
    cases.push(("SLL, SNAP", LinkType::LINUX_SLL, behind(&sll, &four)));
    for link in [101, 12, 14] {
        cases.push(("raw", LinkType(link), four.clone()));
        cases.push(("raw", LinkType(link), six.clone()));
    }
    for family in [[2, 0, 0, 0], [0, 0, 0, 2]] {
        cases.push(("null", LinkType::NULL, behind(&family, &four)));
    }
    for family in [10, 23, 24, 28, 30] {
        cases.push(("null, IPv6", LinkType::NULL, behind(&[family, 0, 0, 0], &six)));
        cases.push(("loop, IPv6", LinkType::LOOP, behind(&[0, 0, 0, family], &six)));
    }
    cases
}
