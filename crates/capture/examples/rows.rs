//! Decodes captures to full rows in memory and says what it took: the decoder's own benchmark.
//!
//! `cargo run --release -p smbscope-capture --example rows -- FILE...`

use smbscope_capture::{Decoder, Input, Options, Part};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inputs = std::env::args_os().skip(1).map(|path| Input::Path(path.into())).collect();
    let decoder = Decoder::open(inputs, Options::default())?;
    let (mut rows, mut batches) = (0, 0);
    for part in decoder {
        match part? {
            Part::Operations(batch) => {
                rows += batch.num_rows();
                batches += 1;
            }
            Part::Coverage(coverage) => {
                println!("{}", serde_json::to_string(&coverage)?);
            }
            _ => {}
        }
    }
    println!("{rows} operations in {batches} batches");
    Ok(())
}
