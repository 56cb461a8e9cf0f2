//! Any bytes as events of Windows' providers of packets and of SMB in a log that is otherwise good. Each event is
//! its length, its provider, number, version and keyword, and its fields.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use smbscope_capture::Options;
use smbscope_fuzz::etl::{event_buffer, log_header};
use smbscope_tables::Part;
use smbscope_trace::etl::Reader;
use smbscope_trace::event::EventReader as _;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, events)) = bytes.split_first() else { return };
    let log = [&log_header(choice & !3)[..], &event_buffer(events)].concat();
    let reader = Reader::new(Cursor::new(&log[..])).expect("the first buffer is good");
    let mut reader = reader.with_operations("fuzz", Options::default());
    let mut parts = Vec::new();
    while reader.step(&mut |_| ()).expect("nothing can fail in memory") {
        parts.extend(reader.take_parts());
    }
    parts.extend(reader.take_parts());
    let mut operations = 0;
    for part in &parts {
        match part {
            Part::Operations(batch) => operations += batch.num_rows() as u64,
            Part::Coverage(coverage) => assert_eq!(coverage.operations, operations),
            _ => {}
        }
    }
});
