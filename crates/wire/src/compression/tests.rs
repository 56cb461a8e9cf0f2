//! Tests of decompression: the specifications' examples, round trips through the encoders of
//! `pack`, truncation at every length, and arbitrary bytes.

mod pack;

use super::*;
use pack::PACKERS;
use proptest::prelude::*;

const LIMIT: usize = 1 << 20;

fn unchained(algorithm: Algorithm, size: usize, start: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut message = b"\xfcSMB".to_vec();
    message.extend((size as u32).to_le_bytes());
    message.extend(algorithm.0.to_le_bytes());
    message.extend([0, 0]);
    message.extend((start.len() as u32).to_le_bytes());
    [&message, start, payload].concat()
}

fn chain(size: usize, payloads: &[(Algorithm, Option<u32>, &[u8])]) -> Vec<u8> {
    let mut message = b"\xfcSMB".to_vec();
    message.extend((size as u32).to_le_bytes());
    for (index, (algorithm, original, bytes)) in payloads.iter().enumerate() {
        let extra = if original.is_some() { 4 } else { 0 };
        message.extend(algorithm.0.to_le_bytes());
        message.extend(u16::from(index == 0).to_le_bytes());
        message.extend((bytes.len() as u32 + extra).to_le_bytes());
        message.extend(original.iter().flat_map(|size| size.to_le_bytes()));
        message.extend_from_slice(bytes);
    }
    message
}

fn unpacked(algorithm: Algorithm, size: usize, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let message = unchained(algorithm, size, b"", payload);
    decompress(&message, LIMIT, &mut out).unwrap();
    out
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

#[test]
fn lz77_examples_of_ms_xca_3_1() {
    let alphabet = [&hex("3f 00 00 00")[..], ALPHABET].concat();
    assert_eq!(unpacked(Algorithm::LZ77, 26, &alphabet), ALPHABET);
    let abc = hex("ff ff ff 1f 61 62 63 17 00 0f ff 26 01");
    assert_eq!(unpacked(Algorithm::LZ77, 300, &abc), b"abc".repeat(100));
}

/// A table of code lengths: all zero but these bytes.
fn table(nonzero: &[(usize, u8)], code: &str) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    for &(index, value) in nonzero {
        bytes[index] = value;
    }
    bytes.extend(hex(code));
    bytes
}

fn huffman_abc() -> Vec<u8> {
    let lengths = [(48, 0x30), (49, 0x23), (128, 0x02), (143, 0x20)];
    table(&lengths, "a8 dc 00 00 ff 26 01")
}

#[test]
fn huffman_examples_of_ms_xca_3_2() {
    let mut lengths = vec![(48, 0x50), (59, 0x45), (60, 0x44), (61, 0x04), (128, 0x04)];
    lengths.extend((49..59).map(|index| (index, 0x55)));
    let code = "d8 52 3e d7 94 11 5b e9 19 5f f9 d6 7c df 8d 04 00 00 00 00";
    let alphabet = table(&lengths, code);
    assert_eq!(unpacked(Algorithm::LZ77_HUFFMAN, 26, &alphabet), ALPHABET);
    let abc = unpacked(Algorithm::LZ77_HUFFMAN, 300, &huffman_abc());
    assert_eq!(abc, b"abc".repeat(100));
}

/// The block that Windows produces for 65,537 zeros, as reported on Samba's cifs-protocol list in
/// 2022.
#[test]
fn a_huffman_match_may_run_over_its_block() {
    let lengths = [(0, 0x02), (128, 0x02), (135, 0x10)];
    let zeros = table(&lengths, "00 98 00 00 ff fd ff");
    let out = unpacked(Algorithm::LZ77_HUFFMAN, 65_537, &zeros);
    assert_eq!(out, vec![0; 65_537]);
}

#[test]
fn huffman_codes_must_fill_their_space() {
    let mut out = Vec::new();
    for wrong in [0x31, 0x11] {
        let mut payload = huffman_abc();
        payload[48] = wrong;
        let message = unchained(Algorithm::LZ77_HUFFMAN, 300, b"", &payload);
        let error = decompress(&message, LIMIT, &mut out).unwrap_err();
        assert!(matches!(error, CompressionError::Malformed(_)), "{error}");
    }
}

#[test]
fn lznt1_example_of_ms_xca_3_3() {
    let packed = hex(concat!(
        "38 b0 88 46 23 20 00 20 47 20 41 00 10 a2 47 01 a0 45 20 44 00 08 45 01 50 79 00 c0 45 ",
        "20 05 24 13 88 05 b4 02 4a 44 ef 03 58 02 8c 09 16 01 48 45 00 be 00 9e 00 04 01 18 90 00"
    ));
    let plain = concat!(
        "F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# ",
        "D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0"
    );
    assert_eq!(unpacked(Algorithm::LZNT1, 142, &packed), plain.as_bytes());
    // A plain chunk of five bytes: 0x3004.
    let chunk = [&[0x04, 0x30][..], b"hello"].concat();
    assert_eq!(unpacked(Algorithm::LZNT1, 5, &chunk), b"hello");
}

#[test]
fn lz4_by_hand() {
    // Three literals, a match of 4 + 15 + 2 at distance 3, then two literals.
    let packed = [0x3f, b'a', b'b', b'c', 3, 0, 2, 0x20, b'x', b'y'];
    let plain = [&b"abc".repeat(8)[..], b"xy"].concat();
    assert_eq!(unpacked(Algorithm::LZ4, 26, &packed), plain);
}

#[test]
fn an_uncompressed_start_stays_as_it_is() {
    let abc = hex("ff ff ff 1f 61 62 63 17 00 0f ff 26 01");
    let message = unchained(Algorithm::LZ77, 300, b"\xfeSMB header", &abc);
    let header = Header::parse(&message).unwrap();
    assert_eq!((header.offset, header.message_bytes()), (11, 311));
    let mut out = vec![9; 5];
    decompress(&message, LIMIT, &mut out).unwrap();
    assert_eq!(out, [&b"\xfeSMB header"[..], &b"abc".repeat(100)].concat());
}

fn mixed_chain() -> (Vec<u8>, Vec<u8>) {
    let abc = hex("ff ff ff 1f 61 62 63 17 00 0f ff 26 01");
    let message = chain(
        11 + 40 + 300 + 5,
        &[
            (Algorithm::NONE, None, b"\xfeSMB header"),
            (Algorithm::PATTERN_V1, None, &[0x55, 0, 0, 0, 40, 0, 0, 0]),
            (Algorithm::LZ77, Some(300), &abc),
            (Algorithm::LZ4, Some(5), b"\x50hello"),
        ],
    );
    let plain = [&b"\xfeSMB header"[..], &[0x55; 40], &b"abc".repeat(100), b"hello"];
    (message, plain.concat())
}

#[test]
fn a_chain_of_payloads() {
    let (message, plain) = mixed_chain();
    let header = Header::parse(&message).unwrap();
    assert!(header.is_chained);
    assert_eq!(header.message_bytes(), 356);
    let mut out = Vec::new();
    decompress(&message, LIMIT, &mut out).unwrap();
    assert_eq!(out, plain);
}

#[test]
fn every_truncation_and_every_limit_gives_a_prefix() {
    let (message, plain) = mixed_chain();
    let mut out = Vec::new();
    let mut longest = 0;
    for length in 4..message.len() {
        let error = decompress(&message[..length], LIMIT, &mut out).unwrap_err();
        assert_eq!(error, CompressionError::Truncated, "{length}");
        assert!(plain.starts_with(&out) && out.len() >= longest, "{length}");
        longest = out.len();
    }
    assert_eq!(longest, plain.len() - 1);
    for limit in 0..plain.len() {
        let error = decompress(&message, limit, &mut out).unwrap_err();
        assert_eq!(error, CompressionError::Limit);
        assert_eq!(out, plain[..limit]);
    }
}

#[test]
fn nonsense_is_reported() {
    let mut out = Vec::new();
    let mut error = |message: &[u8]| decompress(message, LIMIT, &mut out).unwrap_err();
    assert_eq!(error(b"\xfeSMB"), CompressionError::NotCompressed);
    let unknown = unchained(Algorithm(77), 1, b"", b"x");
    let expected = CompressionError::UnknownAlgorithm(Algorithm(77));
    assert_eq!(error(&unknown), expected);
    let malformed = |e| matches!(e, CompressionError::Malformed(_));
    let before_start = hex("00 00 00 80 00 00");
    assert!(malformed(error(&unchained(Algorithm::LZ77, 9, b"", &before_start))));
    let too_long = [0x1f, b'a', 1, 0, 200];
    assert!(malformed(error(&unchained(Algorithm::LZ4, 9, b"", &too_long))));
    assert!(malformed(error(&unchained(Algorithm::LZNT1, 9, b"", &[0, 0]))));
    let bomb: &[u8] = &[0, 0, 0, 0, 255, 255, 255, 255];
    let bomb = chain(100, &[(Algorithm::PATTERN_V1, None, bomb)]);
    assert!(malformed(error(&bomb)));
}

#[test]
fn a_forged_size_stops_at_the_limit() {
    let pattern: &[u8] = &[7, 0, 0, 0, 255, 255, 255, 255];
    let message = chain(u32::MAX as usize, &[(Algorithm::PATTERN_V1, None, pattern)]);
    let mut out = Vec::new();
    let error = decompress(&message, 1000, &mut out).unwrap_err();
    assert_eq!(error, CompressionError::Limit);
    assert_eq!(out, [7; 1000]);
}

/// Text-like data of an xorshift: a few words, now and then noise or a long run.
fn sample(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::new();
    while out.len() < length {
        match next() % 40 {
            0 => out.extend(vec![next() as u8; (next() % 5000) as usize]),
            1 => out.extend((0..next() % 60).map(|_| (next() >> 8) as u8)),
            word => out.extend(format!("word{word} ").bytes()),
        }
    }
    out.truncate(length);
    out
}

#[test]
fn round_trips() {
    for (seed, length) in [(1, 1), (2, 100), (3, 5000), (4, 70_000), (5, 300_000)] {
        let plain = sample(seed, length);
        for (algorithm, pack) in PACKERS {
            let name = algorithm.name().unwrap();
            let out = unpacked(algorithm, length, &pack(&plain));
            assert!(out == plain, "{name} {length}");
        }
    }
}

/// Runs longer than 16 bits can say.
#[test]
fn round_trips_of_a_long_run() {
    let plain = vec![b'z'; 250_000];
    for (algorithm, pack) in PACKERS {
        let out = unpacked(algorithm, plain.len(), &pack(&plain));
        assert!(out == plain, "{}", algorithm.name().unwrap());
    }
}

#[test]
fn every_truncation_of_every_algorithm_gives_a_prefix() {
    let plain = sample(7, 1500);
    let mut out = Vec::new();
    for (algorithm, pack) in PACKERS {
        let message = unchained(algorithm, plain.len(), b"", &pack(&plain));
        let mut longest = 0;
        for length in 4..=message.len() {
            let _ = decompress(&message[..length], LIMIT, &mut out);
            assert!(plain.starts_with(&out), "{} {length}", algorithm.0);
            assert!(out.len() >= longest, "{} {length}", algorithm.0);
            longest = out.len();
        }
        assert_eq!(longest, plain.len());
    }
}

proptest! {
    #[test]
    fn any_payload_is_survived(
        payload in proptest::collection::vec(any::<u8>(), 0..600),
        algorithm in 0..7u16,
        size in 0..5000usize,
        kept in 0..600usize,
    ) {
        let mut out = Vec::new();
        let message = unchained(Algorithm(algorithm), size, b"", &payload);
        let _ = decompress(&message, 2000, &mut out);
        prop_assert!(out.len() <= 2000);
        let message = chain(size, &[(Algorithm(algorithm), Some(size as u32), &payload)]);
        let _ = decompress(&message, 2000, &mut out);
        prop_assert!(out.len() <= 2000);
        // Valid data that turn into noise, so that the inner states are reached.
        for (algorithm, pack) in PACKERS {
            let mut packed = pack(&sample(size as u64, 3000));
            packed.truncate(kept.max(256));
            packed.extend_from_slice(&payload);
            let _ = decompress(&unchained(algorithm, 4000, b"", &packed), 4000, &mut out);
        }
    }
}
