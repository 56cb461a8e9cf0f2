//! What the fuzz targets share: decoding a capture that is in memory, and what must hold of the
//! result whatever the input was.

pub mod elf;
pub mod etl;
pub mod policies;
pub mod segments;
pub mod traces;
pub mod views;

use std::path::PathBuf;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use smbscope_capture::{Decoder, Error, Input, Limits, Options, Part};
use smbscope_tables::tables::Coverage;

/// Everything that a capture decodes to.
pub struct Decoded {
    pub batches: Vec<RecordBatch>,
    pub coverage: Vec<Coverage>,
}

/// Limits so small that a short input reaches them.
pub fn small_limits() -> Limits {
    Limits {
        connections: 4,
        candidates: 2,
        reorder_bytes: 4096,
        reorder_bytes_total: 6144,
        message_bytes: 2048,
        pending: 4,
        early: 2,
        sessions: 2,
        handles: 3,
        state_bytes: 64 << 10,
    }
}

/// Decodes a capture and checks what must hold for any capture; none if it is not a capture.
pub fn decode(capture: &[u8], limits: Limits, threads: usize) -> Option<Decoded> {
    let path = scratch();
    std::fs::write(&path, capture).expect("the scratch file can be written");
    let options = Options { limits, threads, ..Options::default() };
    let decoder = match Decoder::open(vec![Input::Path(path)], options) {
        Ok(decoder) => decoder,
        Err(Error::File(_)) => return None,
        Err(error) => panic!("{error}"),
    };
    let mut decoded = Decoded { batches: Vec::new(), coverage: Vec::new() };
    for part in decoder {
        match part {
            Ok(Part::Operations(batch)) => decoded.batches.push(batch),
            Ok(Part::Coverage(coverage)) => decoded.coverage.push(*coverage),
            Ok(_) => {}
            Err(Error::File(_)) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    check(&decoded);
    Some(decoded)
}

/// In memory where the system has such a place; one file per process.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("smbscope-fuzz-{}", std::process::id()))
}

fn check(decoded: &Decoded) {
    assert_eq!(decoded.coverage.len(), 1, "one coverage record per recording");
    let coverage = &decoded.coverage[0];
    let rows: usize = decoded.batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows as u64, coverage.operations, "every operation is a row");
    let mut number = 0;
    for batch in &decoded.batches {
        let numbers = batch.column_by_name("operation").expect("operation");
        let numbers = numbers.as_primitive::<UInt64Type>();
        let columns =
            ["elapsed_ns", "request_transfer_ns", "turnaround_ns", "response_transfer_ns"]
                .map(|name| batch.column_by_name(name).expect(name).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            number += 1;
            assert_eq!(numbers.value(row), number, "operations are numbered without a gap");
            if columns.iter().all(|column| column.is_valid(row)) {
                let [elapsed, parts @ ..] = columns.map(|column| column.value(row));
                assert_eq!(elapsed, parts.iter().sum::<i64>(), "elapsed is the sum of its parts");
                assert!(parts[0] >= 0 && parts[2] >= 0, "a message ends after it began");
            }
        }
    }
}
