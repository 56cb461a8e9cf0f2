//! `smbscope decode` (hidden): decodes all columns of all operations and discards them. It measures
//! the decoder alone, without the other tables (`bench/run.sh`).

use smbscope_store::source::Request;
use smbscope_store::{Part, Table};

use crate::options::Decode;
use crate::output::Output;

/// Runs `smbscope decode`.
pub fn run(args: &Decode) -> anyhow::Result<()> {
    let source = args.reading.open(&args.inputs, None)?;
    let mut operations = 0;
    let request = Request { tables: vec![Table::Operations], projection: None };
    for part in source.parts(&request)? {
        if let Part::Operations(batch) = part? {
            operations += batch.num_rows();
        }
    }
    let mut output = Output::stdout();
    output.text(&format!("{operations} operations\n"))?;
    output.finish()
}
