//! etherparse builds frames and says where things lie; random bytes must not hurt.

use etherparse::{LaxSlicedPacket, PacketBuilder, TcpOptionElement, TransportSlice, VlanId};
use proptest::prelude::*;

use super::*;

fn vlan(id: u16) -> VlanId {
    VlanId::try_new(id).unwrap()
}

proptest! {
    #[test]
    fn frames_of_etherparse_are_read_back(
        tags in 0..3,
        six: bool,
        addresses: [[u8; 16]; 2],
        ports: [u16; 2],
        numbers: [u32; 2],
        window: u16,
        options in 0usize..3,
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        padding in 0usize..20,
    ) {
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]);
        let [source, destination] = addresses;
        let elements = [
            TcpOptionElement::MaximumSegmentSize(numbers[0] as u16),
            TcpOptionElement::WindowScale(7),
        ];
        macro_rules! with_ip {
            ($builder:expr) => {
                if six {
                    $builder.ipv6(source, destination, 61)
                } else {
                    let four = |a: [u8; 16]| [a[0], a[1], a[2], a[3]];
                    $builder.ipv4(four(source), four(destination), 61)
                }
            };
        }
        let builder = match tags {
            0 => with_ip!(builder),
            1 => with_ip!(builder.single_vlan(vlan(7))),
            _ => with_ip!(builder.double_vlan(vlan(7), vlan(8))),
        };
        let builder = builder
            .tcp(ports[0], ports[1], numbers[0], window)
            .ack(numbers[1])
            .options(&elements[..options])
            .unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &payload).unwrap();
        bytes.extend(vec![0; padding]);

        let ours = dissect(LinkType::ETHERNET, &bytes, bytes.len() as u32).unwrap();
        prop_assert_eq!(ours.payload, &payload[..]);
        prop_assert_eq!(ours.payload_len as usize, payload.len());
        prop_assert_eq!((ours.source_port, ours.destination_port), (ports[0], ports[1]));
        prop_assert_eq!((ours.sequence, ours.acknowledgement), (numbers[0], numbers[1]));
        prop_assert_eq!((ours.window, ours.ttl), (window, 61));
        prop_assert_eq!(ours.flags, TcpFlags::ACK);
        prop_assert_eq!(ours.mss(), (options > 0).then_some(numbers[0] as u16));
        prop_assert_eq!(ours.window_scale(), (options > 1).then_some(7));
        match (ours.source.ip(), ours.destination.ip()) {
            (std::net::IpAddr::V4(s), std::net::IpAddr::V4(d)) => {
                prop_assert_eq!((&s.octets()[..], &d.octets()[..]), (&source[..4], &destination[..4]));
            }
            (s, d) => {
                prop_assert!(six);
                prop_assert_eq!(s, std::net::IpAddr::from(source));
                prop_assert_eq!(d, std::net::IpAddr::from(destination));
            }
        }
    }

    /// Wherever a changed byte still leaves TCP for both, both find the same.
    #[test]
    fn changed_frames_are_read_as_etherparse_reads_them(
        which in 0usize..9,
        at in 0usize..90,
        value: u8,
    ) {
        let (_, link, mut bytes) = wrappings(b"payload").swap_remove(which);
        prop_assume!(link == LinkType::ETHERNET && at < bytes.len());
        bytes[at] = value;
        let ours = dissect(link, &bytes, bytes.len() as u32);
        let theirs = LaxSlicedPacket::from_ethernet(&bytes).unwrap();
        if let (Ok(ours), Some(TransportSlice::Tcp(theirs))) = (ours, theirs.transport) {
            prop_assert_eq!(ours.source_port, theirs.source_port());
            prop_assert_eq!(ours.sequence, theirs.sequence_number());
            prop_assert_eq!(ours.options, theirs.options());
            prop_assert_eq!(ours.payload, theirs.payload());
        }
    }

    #[test]
    fn random_bytes_do_not_hurt(
        link in 0u16..300,
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        original: u32,
    ) {
        if let Ok(segment) = dissect(LinkType(link), &bytes, original) {
            segment.options().for_each(drop);
            segment.sack_blocks().for_each(drop);
        }
    }

    #[test]
    fn changed_wrappings_do_not_hurt(
        which in 0usize..99,
        changes in proptest::collection::vec((0usize..120, any::<u8>()), 1..6),
        original: u32,
    ) {
        let mut cases = wrappings(b"payload");
        let which = which % cases.len();
        let (_, link, mut bytes) = cases.swap_remove(which);
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(segment) = dissect(link, &bytes, original) {
            assert!(segment.payload.len() <= segment.payload_len as usize);
            segment.options().for_each(drop);
        }
    }
}
