//! `smbscope decode`, hidden: all columns of all operations in memory, then forgotten. It is the
//! decoder alone, for the benchmark (`bench/run.sh`).

use smbscope_store::Part;
use smbscope_store::source::Request;

use crate::options::Decode;
use crate::output::Output;

/// Decodes and counts.
pub fn run(args: &Decode) -> anyhow::Result<()> {
    let source = args.reading.open(&args.inputs, None)?;
    let mut operations = 0;
    for part in source.parts(&Request::all())? {
        if let Part::Operations(batch) = part? {
            operations += batch.num_rows();
        }
    }
    let mut output = Output::stdout();
    output.text(&format!("{operations} operations\n"))?;
    output.finish()
}
