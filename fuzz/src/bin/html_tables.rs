//! Any bytes as the report of Test-SRTopology.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use smbscope_plan::replication::html::tables;

fuzz_target!(|bytes: &[u8]| {
    let found = tables(bytes);
    black_box(found.troubles());
    // Text of a cell is at most as long as that of the page: entities only become shorter, and a byte that is not UTF-8
    // becomes a character of three.
    let cells = found.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    assert!(cells.map(String::len).sum::<usize>() <= 3 * bytes.len() + 16);
});
