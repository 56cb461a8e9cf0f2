//! IP fragments put together: in order, out of order, twice, overlapping, missing, too many.

use super::super::reassembly::*;
use super::*;

const RAW: LinkType = LinkType::RAW;

/// The packet in pieces of these lengths; `identification` distinguishes packets.
fn pieces(packet: &[u8], identification: u16, length: usize) -> Vec<Vec<u8>> {
    match packet[0] >> 4 {
        4 => v4(packet, identification, length),
        _ => v6(packet, identification, length),
    }
}

fn v4(packet: &[u8], identification: u16, length: usize) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(20);
    let count = payload.len().div_ceil(length);
    let piece = |(n, part): (usize, &[u8])| {
        let mut bytes = header.to_vec();
        bytes[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        let more = if n + 1 < count { 0x2000 } else { 0 };
        let place = more | (n * length / 8) as u16;
        bytes[6..8].copy_from_slice(&place.to_be_bytes());
        bytes.extend(part);
        bytes
    };
    payload.chunks(length).enumerate().map(piece).collect()
}

fn v6(packet: &[u8], identification: u16, length: usize) -> Vec<Vec<u8>> {
    let (header, payload) = packet.split_at(40);
    let count = payload.len().div_ceil(length);
    let piece = |(n, part): (usize, &[u8])| {
        let mut bytes = header.to_vec();
        bytes[4..6].copy_from_slice(&(8 + part.len() as u16).to_be_bytes());
        bytes[6] = 44;
        let place = (n * length) as u16 | u16::from(n + 1 < count);
        bytes.extend([header[6], 0]);
        bytes.extend(place.to_be_bytes());
        bytes.extend(u32::from(identification).to_be_bytes());
        bytes.extend(part);
        bytes
    };
    payload.chunks(length).enumerate().map(piece).collect()
}

fn take(reassembler: &mut Reassembler, piece: &[u8], time_ns: i64) -> Option<Reassembled> {
    match dissect(RAW, piece, piece.len() as u32) {
        Err(NotTcp::Fragment(fragment)) => reassembler.take(fragment, piece, time_ns),
        other => panic!("{other:?}"),
    }
}

/// The payload that comes out of pieces in some order.
fn payload(pieces: &[&Vec<u8>]) -> (Option<Vec<u8>>, FragmentCounts) {
    let mut reassembler = Reassembler::default();
    let mut whole = None;
    for piece in pieces {
        if let Some(packet) = take(&mut reassembler, piece, 0) {
            assert!(whole.is_none(), "two packets");
            let segment = dissect(packet.link, &packet.bytes, packet.original).unwrap();
            assert_eq!(segment.payload.len(), segment.payload_len as usize);
            whole = Some(segment.payload.to_vec());
        }
    }
    reassembler.end();
    (whole, reassembler.counts())
}

#[test]
fn pieces_come_together_in_any_order() {
    let data: Vec<u8> = (0..250).collect();
    for packet in [ipv4(&tcp(&data)), ipv6(6, &tcp(&data))] {
        let pieces = pieces(&packet, 7, 96);
        let [a, b, c] = &pieces[..] else { panic!() };
        for order in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
            let (whole, counts) = payload(&order);
            assert_eq!(whole.as_deref(), Some(&data[..]));
            assert_eq!(counts, FragmentCounts { reassembled: 3, repeated: 0, lost: 0 });
        }
        // Copies, one after the other and all at the end.
        let (whole, counts) = payload(&[a, a, b, b, c, c, a, b]);
        assert_eq!((whole.as_deref(), counts.repeated, counts.lost), (Some(&data[..]), 5, 0));
        let (whole, counts) = payload(&[a, c]);
        assert_eq!((whole, counts.lost), (None, 2));
    }
}

#[test]
fn pieces_that_overlap_or_contradict_are_discarded() {
    let data: Vec<u8> = (0..250).collect();
    let packet = ipv4(&tcp(&data));
    let (long, short) = (pieces(&packet, 7, 96), pieces(&packet, 7, 48));
    let (whole, counts) = payload(&[&long[0], &short[1], &long[1], &long[2]]);
    assert_eq!((whole, counts.reassembled, counts.lost), (None, 0, 4));
    // The same place with other bytes.
    let mut other = long[1].clone();
    other[30] ^= 1;
    assert_eq!(payload(&[&long[0], &long[1], &other, &long[2]]).0, None);
    // A length that eight does not divide, and an end behind 64 KiB.
    let mut odd = long[0].clone();
    odd[3] -= 1;
    assert_eq!(payload(&[&odd, &long[1], &long[2]]).0, None);
    let mut far = long[1].clone();
    far[6..8].copy_from_slice(&0x3fff_u16.to_be_bytes());
    assert_eq!(payload(&[&far]).1.lost, 1);
}

#[test]
fn packets_are_distinguished_and_old_pieces_forgotten() {
    let packets = [b"first   ", b"second  "].map(|name| name.repeat(20));
    let [one, two] = [(0, 1), (1, 2)]
        .map(|(n, identification)| pieces(&ipv4(&tcp(&packets[n])), identification, 96));
    let mut reassembler = Reassembler::default();
    assert_eq!(take(&mut reassembler, &one[0], 0), None);
    assert_eq!(take(&mut reassembler, &two[1], 0), None);
    assert!(take(&mut reassembler, &one[1], 1).is_some());
    assert!(take(&mut reassembler, &two[0], 1).is_some());
    // The same number a minute later is another packet.
    assert_eq!(take(&mut reassembler, &one[0], 1_000_000_000), None);
    assert_eq!(take(&mut reassembler, &one[1], 61_000_000_000), None);
    reassembler.end();
    assert_eq!(reassembler.counts(), FragmentCounts { reassembled: 4, repeated: 0, lost: 2 });
}

#[test]
fn a_piece_that_was_cut_ends_the_captured_bytes() {
    let data: Vec<u8> = (0..250).collect();
    let packet = ipv4(&tcp(&data));
    let pieces = pieces(&packet, 7, 96);
    let mut reassembler = Reassembler::default();
    let cut = &pieces[0][..80];
    let Err(NotTcp::Fragment(fragment)) = dissect(RAW, cut, 116) else { panic!() };
    assert_eq!(reassembler.take(fragment, cut, 0), None);
    assert_eq!(take(&mut reassembler, &pieces[1], 0), None);
    let packet = take(&mut reassembler, &pieces[2], 0).unwrap();
    let segment = dissect(packet.link, &packet.bytes, packet.original).unwrap();
    assert_eq!((segment.payload, segment.payload_len), (&data[..28], 250));
}

#[test]
fn memory_is_bounded() {
    let packet = ipv4(&tcp(&[7; 60_000]));
    let mut reassembler = Reassembler::default();
    let mut taken = 0;
    for identification in 0..3_000 {
        let pieces = pieces(&packet, identification, 40_000);
        assert_eq!(take(&mut reassembler, &pieces[0], i64::from(identification)), None);
        taken += 1;
    }
    let lost = reassembler.counts().lost;
    assert!(lost > 2_500, "{lost}");
    reassembler.end();
    assert_eq!(lost + reassembler.counts().lost, taken);
}

#[test]
fn changed_fragments_do_not_hurt() {
    let data: Vec<u8> = (0..250).collect();
    for packet in [ipv4(&tcp(&data)), ipv6(6, &tcp(&data))] {
        let pieces = pieces(&packet, 7, 96);
        let mut reassembler = Reassembler::default();
        for at in 0..60 {
            for value in [0, 1, 7, 0x20, 0x44, 0x60, 0x80, 0xff] {
                for (n, piece) in pieces.iter().enumerate() {
                    let mut changed = piece.clone();
                    changed[at] = if n == at % 3 { value } else { changed[at] };
                    let result = dissect(RAW, &changed, changed.len() as u32);
                    if let Err(NotTcp::Fragment(fragment)) = result
                        && let Some(packet) = reassembler.take(fragment, &changed, at as i64)
                    {
                        let _ = dissect(packet.link, &packet.bytes, packet.original);
                    }
                }
            }
        }
    }
}
