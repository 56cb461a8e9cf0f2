//! Redacted packets decode to the same rows and hold nothing of what is in files.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::Part;
use crate::decoder::Decoder;
use crate::file::{self, Reader};
use crate::frame::{Address, dissect};
use crate::options::{Input, Options};

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// Writes a capture's packets masked, each cut to `head` bytes; returns their payloads before and
/// after by sequence number and direction.
fn mask(name: &str, head: usize, out: &Path) {
    let mut masked = RedactedPcap::create(out, true).unwrap();
    let mut reader = Reader::open(fixture(name), file::Limits::default()).unwrap();
    while let Some(chunk) = reader.next_chunk(None).unwrap() {
        for frame in &chunk.frames {
            // From the IP header on, as the socket gives them.
            assert_eq!(frame.link, LinkType::ETHERNET, "{name}");
            let bytes = &chunk.frame(frame)[14..];
            let bytes = &bytes[..bytes.len().min(head)];
            let original = frame.original - 14;
            let segment = dissect(LinkType::RAW, bytes, original).unwrap();
            masked
                .packet(&Packet { bytes, original, time: frame.time_ns, interface: 1 }, &segment)
                .unwrap();
        }
    }
    masked.flush().unwrap();
}

fn rows(path: &Path) -> Vec<arrow::array::RecordBatch> {
    let options = Options { threads: 1, ..Options::default() };
    let mut out = Vec::new();
    for part in Decoder::open(vec![Input::Path(path.to_owned())], options).unwrap() {
        if let Part::Operations(batch) = part.unwrap() {
            let names = ["recording", "capture_file"];
            let places: Vec<usize> = (0..batch.num_columns())
                .filter(|&at| !names.contains(&batch.schema().field(at).name().as_str()))
                .collect();
            out.push(batch.project(&places).unwrap());
        }
    }
    out
}

#[test]
fn a_masked_capture_decodes_to_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("masked.pcap");
    for name in [
        "smb311.pcapng",
        "smb210.pcap",
        "mtu-1500.pcap",
        "compound-related.pcapng.gz",
        "dfs.pcapng",
    ] {
        mask(name, usize::MAX, &out);
        assert_eq!(rows(&out), rows(&fixture(name)), "{name}");
    }
}

fn smb2_message(members: &[(u16, bool, usize, u8)]) -> Vec<u8> {
    let mut message = Vec::new();
    for (at, &(command, is_reply, length, fill)) in members.iter().enumerate() {
        let mut member = vec![fill; length];
        member[..64].fill(0);
        member[..4].copy_from_slice(b"\xfeSMB");
        member[4] = 64;
        member[12..14].copy_from_slice(&command.to_le_bytes());
        member[16] = u8::from(is_reply);
        if at + 1 < members.len() {
            member[20..24].copy_from_slice(&(length as u32).to_le_bytes());
        }
        message.extend(member);
    }
    let mut out = (message.len() as u32).to_be_bytes().to_vec();
    out.extend(message);
    out
}

/// The stream of one direction, cut into segments of `size` bytes, after masking.
fn masked_stream(stream: &[u8], size: usize, captured: usize) -> Vec<u8> {
    let mut half = Half { next: Some(1), ..Half::default() };
    let mut out = Vec::new();
    for (place, piece) in stream.chunks(size).enumerate() {
        let mut bytes = piece[..piece.len().min(captured)].to_vec();
        half.mask(&mut bytes, &segment(1 + (place * size) as u32, piece.len()));
        bytes.resize(piece.len(), 0);
        out.extend(bytes);
    }
    out
}

fn segment(sequence: u32, length: usize) -> TcpSegment<'static> {
    TcpSegment {
        source: Address::v4([10, 0, 0, 1]),
        destination: Address::v4([10, 0, 0, 2]),
        source_port: 50_000,
        destination_port: 445,
        sequence,
        acknowledgement: 0,
        flags: TcpFlags::ACK,
        window: 1,
        ttl: 64,
        options: &[],
        payload: &[],
        payload_len: length as u32,
    }
}

const WRITE: u16 = 9;
const CLOSE: u16 = 6;
const CREATE: u16 = 5;
const SECRET: u8 = 0x77;

#[test]
fn data_is_zero_also_inside_a_compound_however_it_is_cut_into_packets() {
    let mut stream = smb2_message(&[(WRITE, false, 112 + 3000, SECRET)]);
    stream.extend(smb2_message(&[
        (CREATE, false, 200, 0x11),
        (WRITE, false, 112 + 500, SECRET),
        (CLOSE, false, 88, 0x22),
    ]));
    stream.extend(smb2_message(&[(CREATE, false, 160, 0x33)]));
    let whole = masked_stream(&stream, stream.len(), usize::MAX);
    let count = |bytes: &[u8], of: u8| bytes.iter().filter(|&&byte| byte == of).count();
    // The fixed parts of two writes: 48 bytes each behind the header.
    assert_eq!(count(&whole, SECRET), 2 * 48);
    assert_eq!((count(&whole, 0x11), count(&whole, 0x22), count(&whole, 0x33)), (136, 24, 96));
    for size in [1, 3, 7, 64, 100, 1448] {
        assert_eq!(masked_stream(&stream, size, usize::MAX), whole, "in pieces of {size}");
    }
    let cut = masked_stream(&stream, 1448, 200);
    assert!(count(&cut, SECRET) <= 2 * 48);
}

#[test]
fn lost_bytes_are_zero_until_a_message_begins() {
    let message = smb2_message(&[(WRITE, false, 112 + 400, SECRET)]);
    let mut half = Half::default();
    let mut seen = BTreeMap::new();
    let mut feed = |half: &mut Half, what: &'static str, sequence: u32, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let segment = segment(sequence, bytes.len());
        half.mask(&mut bytes, &segment);
        seen.insert(what, bytes.iter().filter(|&&byte| byte != 0).count());
    };
    feed(&mut half, "1 in mid-message", 1000, &message[300..]);
    let at = 1000 + (message.len() - 300) as u32;
    feed(&mut half, "2 the next", at, &message);
    feed(&mut half, "3 retransmitted", at, &message);
    feed(&mut half, "4 after a hole", at + 10_000, &message[200..]);
    feed(
        &mut half,
        "5 raw data",
        at + 10_000 + (message.len() - 200) as u32,
        &[0, 0, 0, 40, SECRET, SECRET, SECRET, SECRET, SECRET, SECRET],
    );
    let kept = seen["2 the next"];
    assert!((48..80).contains(&kept), "{kept}");
    let rest: Vec<usize> = seen.values().copied().filter(|&count| count > 0).collect();
    assert_eq!(rest, [kept], "{seen:?}");
}

#[test]
fn encrypted_compressed_and_smb1_data_are_zero() {
    for (magic, keep) in [(0xfd, TRANSFORM_BYTES), (0xfc, COMPRESSION_BYTES)] {
        let mut stream = 500_u32.to_be_bytes().to_vec();
        stream.extend([magic, b'S', b'M', b'B']);
        stream.resize(504, SECRET);
        let masked = masked_stream(&stream, 100, usize::MAX);
        assert_eq!(masked.iter().filter(|&&byte| byte == SECRET).count(), keep - 4);
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("masked.pcap");
    for name in ["nt1-write.pcap.gz", "nt1.pcap"] {
        mask(name, usize::MAX, &out);
        let count = |batches: &[arrow::array::RecordBatch]| -> usize {
            batches.iter().map(arrow::array::RecordBatch::num_rows).sum()
        };
        assert_eq!(count(&rows(&out)), count(&rows(&fixture(name))), "{name}");
    }
}
