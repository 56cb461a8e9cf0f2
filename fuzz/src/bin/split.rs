//! Streams without loss, cut into segments in two ways: the rows must be the same.
#![no_main]

use arrow::array::RecordBatch;
use libfuzzer_sys::fuzz_target;
use smbscope_capture::Limits;
use smbscope_fuzz::segments::{Record, Segment, Writer, records};
use smbscope_fuzz::{Decoded, decode};

/// Fewer than a reply waits for its request.
const PACKETS: usize = 250;

fuzz_target!(|bytes: &[u8]| {
    let Some((&piece, input)) = bytes.split_first() else { return };
    let records: Vec<Record<'_>> =
        records(input).filter(|record| !record.payload.is_empty()).collect();
    let whole = decode(&capture(&records, usize::MAX), Limits::default(), 1).expect("a capture");
    // A reply waits for its request some packets long (`smb1::early`): with more packets rows can
    // come in another order, and rightly so.
    let packets = |piece: usize| -> usize {
        records.iter().map(|record| record.payload.len().div_ceil(piece)).sum()
    };
    if packets(usize::MAX) > PACKETS {
        return;
    }
    let mut pieces = usize::from(piece).max(1);
    while packets(pieces) > PACKETS {
        pieces *= 2;
    }
    let cut = decode(&capture(&records, pieces), Limits::default(), 1).expect("a capture");
    for (whole, cut) in rows(&whole).iter().zip(rows(&cut)) {
        for (place, field) in whole.schema().fields().iter().enumerate() {
            let (whole, cut) = (whole.column(place), cut.column(place));
            assert_eq!(whole, cut, "segments of {pieces} bytes change {}", field.name());
        }
    }
    assert_eq!(whole.batches.len(), cut.batches.len());
});

/// Records of one direction that follow each other are one run, which begins a segment.
fn capture(records: &[Record<'_>], piece: usize) -> Vec<u8> {
    let mut writer = Writer::new();
    let mut next = [1_u32, 1];
    for record in records {
        let from = record.what & 1;
        for payload in record.payload.chunks(piece) {
            let sequence = next[usize::from(from)];
            writer.packet(&Segment {
                from,
                port: 445,
                flags: 0x10,
                sequence,
                acknowledgement: next[usize::from(1 - from)],
                payload,
                captured: usize::MAX,
                time_us: 0,
            });
            next[usize::from(from)] = sequence.wrapping_add(payload.len() as u32);
        }
    }
    writer.bytes
}

/// What counts frames, and what follows from round trips, which take a segment to be measured.
const LEFT_OUT: [&str; 7] = [
    "request_frame",
    "response_frame",
    "pending_frame",
    "vantage",
    "server_ns",
    "server_error_ns",
    "client_gap_ns",
];

/// The rows without that.
fn rows(decoded: &Decoded) -> Vec<RecordBatch> {
    let batches = decoded.batches.iter();
    batches
        .map(|batch| {
            let schema = batch.schema();
            let kept: Vec<usize> = (0..schema.fields().len())
                .filter(|&column| !LEFT_OUT.contains(&schema.field(column).name().as_str()))
                .collect();
            batch.project(&kept).expect("columns of the schema")
        })
        .collect()
}
