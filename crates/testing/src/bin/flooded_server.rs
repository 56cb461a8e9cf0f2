//! Writes the event trace logs of the flooded backup server (`smbscope_testing::flooded_server`).
//!
//!     flooded_server DIR                      # flood.etl, without-team.etl, after.etl: 10 s each
//!     flooded_server DIR --long plain|xpress  # long.etl: 20 million events, for benchmarks

// A tool for tests and benchmarks: it may panic.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use smbscope_testing::etl::Compression;
use smbscope_testing::flooded_server::{Recording, Stage};

/// As many tens of seconds have 20 million events.
const LONG: u64 = 27;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let write = |dir: &str, name: &str, recording: Recording| {
        let path = Path::new(dir).join(name);
        let mut out = BufWriter::new(File::create(&path).unwrap());
        let events = recording.write(&mut out).unwrap();
        println!("{}: {events} events", path.display());
    };
    match words[..] {
        [dir] => Stage::ALL
            .into_iter()
            .for_each(|stage| write(dir, stage.file_name(), Recording::from_stage(stage))),
        [dir, "--long", compression] => {
            let compression = match compression {
                "plain" => Compression::None,
                _ => Compression::Xpress,
            };
            let stage = Stage::Before;
            write(dir, "long.etl", Recording { stage, tens_of_seconds: LONG, compression });
        }
        _ => panic!("usage: flooded_server DIR [--long plain|xpress]"),
    }
}
