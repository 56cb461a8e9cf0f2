//! Decodes captures to all columns and forgets them: the decoder alone, for a profiler.
//! `cargo run --release --example speed -- FILE... [--tables] [--without-channels]`
#![allow(clippy::unwrap_used)]

use smbscope_capture::{Decoder, Input, Options, Part, Tables};

fn main() {
    let mut tables = Tables { operations: true, ..Tables::NONE };
    let mut inputs = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--tables" => tables = Tables::ALL,
            "--without-channels" => (tables.channels, tables.interfaces) = (false, false),
            path => inputs.push(Input::Path(path.into())),
        }
    }
    let mut rows = [0; 2];
    for part in Decoder::open(inputs, Options { tables, ..Options::default() }).unwrap() {
        match part.unwrap() {
            Part::Operations(batch) => rows[0] += batch.num_rows(),
            Part::Handles(handles) => rows[1] += handles.len(),
            _ => {}
        }
    }
    println!("{} operations, {} handles", rows[0], rows[1]);
}
