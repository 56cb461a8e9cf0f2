//! What is found in a frame, whole, cut, padded and broken.

use std::net::IpAddr;

use super::*;

const ETHERNET: LinkType = LinkType::ETHERNET;

fn whole(link: LinkType, bytes: &[u8]) -> Result<TcpSegment<'_>, NotTcp> {
    dissect(link, bytes, bytes.len() as u32)
}

#[test]
fn every_wrapping_holds_the_same_segment() {
    for (name, link, bytes) in wrappings(b"payload") {
        let segment = whole(link, &bytes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let (source, destination, ttl) = match segment.source.ip() {
            IpAddr::V4(_) => ("10.0.0.1", "10.0.0.2", 128),
            IpAddr::V6(_) => ("fe80::1", "fe80::2", 64),
        };
        assert_eq!(segment.source.to_string(), source, "{name}");
        assert_eq!(segment.destination.to_string(), destination, "{name}");
        assert_eq!(segment.ttl, ttl, "{name}");
        assert_eq!((segment.source_port, segment.destination_port), (50_000, 445));
        assert_eq!(segment.sequence, 0x0102_0304);
        assert_eq!(segment.acknowledgement, 0x0506_0708);
        assert_eq!(segment.flags, TcpFlags::PSH | TcpFlags::ACK);
        assert_eq!(segment.window, 0x1234);
        assert_eq!(segment.timestamps(), Some((9, 256)));
        assert_eq!(segment.payload, b"payload", "{name}");
        assert_eq!(segment.payload_len, 7, "{name}");
    }
}

#[test]
fn every_truncation_keeps_the_length_or_says_truncated() {
    for (name, link, bytes) in wrappings(b"payload") {
        let original = bytes.len() as u32;
        // The twenty bytes of TCP's header, twelve of options, seven of payload.
        let header = bytes.len() - 19;
        for cut in 0..bytes.len() {
            let result = dissect(link, &bytes[..cut], original);
            if cut < header {
                assert_eq!(result, Err(NotTcp::Truncated), "{name} at {cut}");
                continue;
            }
            let segment = result.unwrap();
            assert_eq!(segment.payload_len, 7, "{name} at {cut}");
            let payload = cut.saturating_sub(bytes.len() - 7);
            assert_eq!(segment.payload, &b"payload"[..payload], "{name} at {cut}");
            assert_eq!(segment.options.len(), (cut - header).min(12));
            if cut < bytes.len() - 7 {
                assert_eq!(segment.timestamps(), None);
            }
        }
    }
}

#[test]
fn padding_and_check_sums_are_no_payload() {
    for (name, link, mut bytes) in wrappings(b"") {
        bytes.extend([0xee; 11]);
        let segment = whole(link, &bytes).unwrap();
        assert_eq!((segment.payload, segment.payload_len), (&b""[..], 0), "{name}");
        assert_eq!(segment.options.len(), 12);
    }
}

#[test]
fn a_length_of_zero_means_to_the_end_of_the_frame() {
    let payload = vec![7; 100_000];
    let four = ethernet(&[8, 0], &ipv4(&tcp(&payload)));
    let six = ethernet(&[0x86, 0xdd], &ipv6(6, &tcp(&payload)));
    for (name, mut bytes, length_at) in [("IPv4", four, 16), ("IPv6", six, 18)] {
        bytes[length_at..length_at + 2].copy_from_slice(&[0, 0]);
        let segment = whole(ETHERNET, &bytes).unwrap();
        assert_eq!(segment.payload_len, 100_000, "{name}");
        assert_eq!(segment.payload.len(), 100_000, "{name}");
        // The wire's length counts, not what was captured of it.
        let segment = dissect(ETHERNET, &bytes[..200], bytes.len() as u32).unwrap();
        assert_eq!(segment.payload_len, 100_000, "{name}");
        assert!(segment.payload.len() < 200);
    }
}

#[test]
fn other_protocols_and_fragments_are_distinguished() {
    let four = ethernet(&[8, 0], &ipv4(&tcp(b"payload")));
    let six = ethernet(&[0x86, 0xdd], &ipv6(44, &behind(&[6, 0, 0, 0, 0, 0, 0, 1], &tcp(b"x"))));
    let change = |bytes: &[u8], at: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = value;
        bytes
    };
    assert!(whole(ETHERNET, &six).is_ok());
    for (bytes, expected) in [
        (change(&four, 23, 1), NotTcp::OtherProtocol),
        (change(&four, 12, 9), NotTcp::OtherProtocol),
        (change(&four, 20, 0x20), NotTcp::Fragment(Fragment { at: 14 })),
        (change(&four, 21, 1), NotTcp::Fragment(Fragment { at: 14 })),
        (change(&six, 20, 58), NotTcp::OtherProtocol),
        (change(&six, 57, 1), NotTcp::Fragment(Fragment { at: 14 })),
        (change(&six, 56, 1), NotTcp::Fragment(Fragment { at: 14 })),
        (change(&four, 14, 0x55), NotTcp::Malformed),
        (change(&four, 14, 0x44), NotTcp::Malformed),
        (change(&four, 17, 19), NotTcp::Malformed),
        (change(&four, 17, 39), NotTcp::Malformed),
        (change(&four, 46, 0x40), NotTcp::Malformed),
        (change(&four, 46, 0xf0), NotTcp::Malformed),
        (change(&six, 14, 0x40), NotTcp::Malformed),
        (change(&six, 19, 7), NotTcp::Malformed),
    ] {
        assert_eq!(whole(ETHERNET, &bytes), Err(expected), "{bytes:02x?}");
    }
    assert_eq!(whole(LinkType(147), &four), Err(NotTcp::UnknownLink));
    assert_eq!(whole(LinkType::NULL, &[7, 0, 0, 0, 0x45]), Err(NotTcp::OtherProtocol));
    assert_eq!(whole(LinkType::RAW, &[0x55; 40]), Err(NotTcp::OtherProtocol));
    // A spanning tree's LLC, an ARP request, PPP's control protocol.
    let stp = ethernet(&[0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0], &[0; 40]);
    assert_eq!(whole(ETHERNET, &stp), Err(NotTcp::OtherProtocol));
    let lcp = ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0xc0, 0x21], &[0; 40]);
    assert_eq!(whole(ETHERNET, &lcp), Err(NotTcp::OtherProtocol));
}

#[test]
fn endless_stacks_end() {
    let tags = ethernet(&[], &[0x81, 0].repeat(600));
    assert_eq!(whole(ETHERNET, &tags), Err(NotTcp::TooDeep));
    let labels = ethernet(&[0x88, 0x47], &[0; 400]);
    assert_eq!(whole(ETHERNET, &labels), Err(NotTcp::TooDeep));
    let extensions = ethernet(&[0x86, 0xdd], &ipv6(0, &[0; 1000]));
    assert_eq!(whole(ETHERNET, &extensions), Err(NotTcp::TooDeep));
}

#[test]
fn options_of_a_syn_are_read() {
    let bytes = ethernet(&[8, 0], &ipv4(&tcp(b"")));
    let mut segment = whole(ETHERNET, &bytes).unwrap();
    segment.options = &[
        2, 4, 5, 0xb4, 1, 3, 3, 20, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 254, 3, 9, 5, 18, 0, 0, 0,
        1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 9, 0, 2, 4,
    ];
    assert_eq!(segment.mss(), Some(1460));
    assert_eq!(segment.window_scale(), Some(14));
    assert!(segment.sack_permitted());
    assert_eq!(segment.timestamps(), Some((1, 2)));
    assert_eq!(segment.sack_blocks().collect::<Vec<_>>(), [(1, 2), (5, 9)]);
    assert_eq!(segment.options().count(), 6);
    assert_eq!(segment.options().nth(4), Some(TcpOption::Other(254, &[9])));
    // Lengths that lie: zero, one, beyond the end.
    for broken in [&[2, 0, 1, 1][..], &[2, 1], &[2, 5, 1, 1], &[2], &[]] {
        segment.options = broken;
        assert_eq!(segment.options().count(), 0);
        assert_eq!((segment.mss(), segment.timestamps()), (None, None));
        assert_eq!(segment.sack_blocks().count(), 0);
    }
    assert_eq!((TcpFlags::SYN | TcpFlags::ACK).sequence_len(), 1);
    assert_eq!((TcpFlags::SYN | TcpFlags::FIN).sequence_len(), 2);
    assert_eq!(TcpFlags::ACK.sequence_len(), 0);
}

#[test]
fn both_directions_have_one_key() {
    for kind in [[8, 0], [0x86, 0xdd]] {
        let ip = match kind {
            [8, 0] => ipv4(&tcp(b"")),
            _ => ipv6(6, &tcp(b"")),
        };
        let bytes = ethernet(&kind, &ip);
        let there = whole(ETHERNET, &bytes).unwrap();
        let back = TcpSegment {
            source: there.destination,
            destination: there.source,
            source_port: there.destination_port,
            destination_port: there.source_port,
            ..there
        };
        let (key, forward) = FlowKey::from_segment(&there);
        assert_eq!(FlowKey::from_segment(&back), (key, !forward));
        assert!(forward, "10.0.0.1 is below 10.0.0.2");
        assert_eq!(key.lower().port(), 50_000);
        assert_eq!(key.lower().ip(), there.source.ip());
        assert_eq!(key.higher().port(), 445);
        assert_eq!(key.higher().ip(), there.destination.ip());
        let other = TcpSegment { source_port: 50_001, ..there };
        assert_ne!(FlowKey::from_segment(&other).0, key);
        // One address on both sides: the ports decide.
        let own = TcpSegment { source: there.destination, ..there };
        let (key, forward) = FlowKey::from_segment(&own);
        assert_eq!((key.lower().port(), forward), (445, false));
    }
    assert!(size_of::<FlowKey>() <= 40);
}

#[test]
fn connections_spread_over_the_workers() {
    let bytes = ethernet(&[8, 0], &ipv4(&tcp(b"")));
    let segment = whole(ETHERNET, &bytes).unwrap();
    for shards in [1, 2, 3, 8] {
        let mut counts = vec![0; shards];
        for source_port in 49_152..59_152 {
            let (key, _) = FlowKey::from_segment(&TcpSegment { source_port, ..segment });
            counts[key.shard(shards)] += 1;
        }
        let fair = 10_000 / shards;
        for count in counts {
            assert!((fair * 8 / 10..=fair * 12 / 10).contains(&count), "{count} of {fair}");
        }
    }
}
