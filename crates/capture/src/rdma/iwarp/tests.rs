//! Streams of iWARP that are cut anywhere, have markers, lose bytes or begin mid-stream.

use super::*;

/// A frame (RFC 5044 section 4.1): length, content, padding, CRC.
fn frame(content: &[u8]) -> Vec<u8> {
    let mut bytes = (content.len() as u16).to_be_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(4) + 4, 0xcc);
    bytes
}

/// An untagged segment of queue `queue`.
fn untagged(opcode: u8, queue: u8, offset: u32, is_last: bool, payload: &[u8]) -> Vec<u8> {
    let mut content = vec![if is_last { 0x41 } else { 0x01 }, 0x40 | opcode, 0, 0, 0, 0];
    content.extend([0, 0, 0, queue, 0, 0, 0, 1]);
    content.extend(offset.to_be_bytes());
    content.extend_from_slice(payload);
    frame(&content)
}

fn tagged(opcode: u8, is_last: bool, payload: &[u8]) -> Vec<u8> {
    let mut content = vec![if is_last { 0xc1 } else { 0x81 }, 0x40 | opcode];
    content.extend([0; 12]);
    content.extend_from_slice(payload);
    frame(&content)
}

/// A data transfer message of SMB Direct.
fn transfer(remaining: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 1, 0, 0, 0, 0, 0];
    for field in [remaining, 24, data.len() as u32, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend_from_slice(data);
    bytes
}

fn startup(is_request: bool, flags: u8) -> Vec<u8> {
    let key = if is_request { b"MPA ID Req Frame" } else { b"MPA ID Rep Frame" };
    [&key[..], &[flags, 1, 0, 2], b"pd"].concat()
}

/// An SMB message in a Send of two segments between what RDMA moves.
fn stream() -> Vec<u8> {
    let send = transfer(0, b"\xfeSMB and more");
    [
        tagged(WRITE, false, &[7; 700]),
        tagged(WRITE, true, &[7; 30]),
        untagged(3, 0, 0, false, &send[..30]),
        untagged(READ_REQUEST, 1, 0, true, &[0; 28]),
        untagged(4, 0, 30, true, &send[30..]),
        tagged(READ_RESPONSE, true, &[9; 1_001]),
        untagged(TERMINATE, 2, 0, true, &[0; 4]),
    ]
    .concat()
}

const MESSAGE: &[u8] = b"\0\0\0\x0d\xfeSMB and more";

fn piece(bytes: &[u8]) -> Piece<'_> {
    Piece { bytes, length: bytes.len() as u32, time: 0, frame: 1, sequence: 0, lost: false }
}

/// What comes out of end 0's stream in pieces of that size.
fn put(iwarp: &mut Iwarp, bytes: &[u8], cut: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(cut) {
        iwarp.feed(0, piece(part), &mut |piece| out.extend_from_slice(piece.bytes));
    }
    out
}

/// With a marker at each 512th byte of the stream (RFC 5044 section 4.3).
fn marked(bytes: &[u8]) -> Vec<u8> {
    let parts = bytes.chunks(508);
    parts.flat_map(|part| [&[0xaa; 4][..], part].concat()).collect()
}

#[test]
fn any_cut_gives_the_same_messages() {
    let expected = Moved { reads: 1, writes: 1, bytes: 1_731, naks: 1 };
    for cut in [1, 2, 3, 19, 20, 21, 512, 9_999] {
        for has_markers in [false, true] {
            let request = startup(true, 0);
            let mut iwarp = Iwarp::recognise(&request[..cut.min(22)], true).unwrap();
            assert!(put(&mut iwarp, &request, cut).is_empty());
            let reply = startup(false, if has_markers { 0x80 } else { 0 });
            iwarp.feed(1, piece(&reply), &mut |_| panic!("the reply has no message"));
            let bytes = if has_markers { marked(&stream()) } else { stream() };
            assert_eq!(put(&mut iwarp, &bytes, cut), MESSAGE, "{cut} {has_markers}");
            assert_eq!((iwarp.moved(), iwarp.searches()), (expected, 0), "{cut} {has_markers}");
        }
    }
}

#[test]
fn bytes_that_rdma_moves_need_not_be_captured() {
    let request = startup(true, 0);
    let mut iwarp = Iwarp::recognise(&request, true).unwrap();
    put(&mut iwarp, &request, 100);
    let bytes = stream();
    put(&mut iwarp, &bytes[..100], 100);
    iwarp.feed(0, Piece::lost(0, 500, 0, 1), &mut |_| panic!("no message was lost"));
    assert_eq!(put(&mut iwarp, &bytes[600..], 100), MESSAGE);
    assert_eq!(iwarp.searches(), 0);
}

#[test]
fn a_stream_is_found_again_where_a_segment_begins_with_a_frame() {
    let bytes = stream();
    let send = untagged(3, 0, 0, true, &transfer(0, b"\xfeSMB and more"));
    let request = startup(true, 0);
    let mut iwarp = Iwarp::recognise(&request, true).unwrap();
    put(&mut iwarp, &request, 100);
    // The header of the first frame is lost.
    iwarp.feed(0, Piece::lost(0, 8, 0, 1), &mut |_| {});
    assert!(put(&mut iwarp, &bytes[8..400], 1_448).is_empty());
    assert_eq!(put(&mut iwarp, &send, 1_448), MESSAGE);
    assert_eq!(iwarp.searches(), 1);

    // Mid-stream.
    assert!(Iwarp::recognise(&bytes, true).is_none());
    let mut iwarp = Iwarp::recognise(&send, false).unwrap();
    assert_eq!(put(&mut iwarp, &send, 1_448), MESSAGE);
}

/// Any bytes: what the fuzz target `rdma` does, with bytes that a seed makes.
#[test]
fn damaged_streams_end_without_a_panic() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as usize
    };
    for _ in 0..2_000 {
        let mut bytes = [startup(true, (random() % 2 * 0x80) as u8), stream()].concat();
        for _ in 0..random() % 9 {
            let at = random() % bytes.len();
            bytes[at] = random() as u8;
        }
        bytes.truncate(random() % bytes.len() + 1);
        let Some(mut iwarp) = Iwarp::recognise(&bytes, true) else { continue };
        let out = put(&mut iwarp, &bytes, random() % 300 + 1);
        assert!(out.len() <= bytes.len() + 4 * (bytes.len() / 44 + 1));
    }
}
