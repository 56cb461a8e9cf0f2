//! Imports captures into a run folder and says what it took: the writer's own benchmark.
//!
//! `cargo run --release -p smbscope-store --example import -- FOLDER INPUT...`

use std::path::Path;
use std::time::Instant;

use smbscope_store::dataset::{DatasetWriter, ManifestSeed, WriteOptions};
use smbscope_store::source::{OpenOptions, Request, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: import FOLDER INPUT...")?;
    let inputs: Vec<_> = arguments.collect();
    let begin = Instant::now();
    let source = Source::open(&inputs, OpenOptions::default())?;
    let seed = ManifestSeed::now(Default::default(), source.describe());
    let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
    let mut writer = DatasetWriter::create(Path::new(&folder), seed, options)?;
    for part in source.parts(&Request::all())? {
        writer.part(part?)?;
    }
    let manifest = writer.finish(true)?;
    println!(
        "{} operations in {:.3} s",
        manifest.rows("operations"),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
