//! `smbscope ops`: operations as log lines or rows, in the order in which they ended.
//!
//! Without a condition the rows come directly from the inputs. A condition is SQL and needs the
//! store's engine (`condition`). [`mod@line`] formats a line.

#[cfg(feature = "sql")]
mod condition;
mod line;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use smbscope_store::source::{Request, Source};
use smbscope_store::{Part, Table};
use smbscope_tables::operation;

use crate::cli::Ops;
use crate::exit::Failure;
use crate::format::{JsonNulls, RowFormat, RowWriter, row_writer};
use crate::interrupt;
use crate::options::Verbosity;
use crate::output::Output;
use crate::progress::Shown;

/// Runs `smbscope ops`.
pub fn run(args: &Ops, verbosity: Verbosity) -> anyhow::Result<()> {
    Output::check(args.out.as_ref(), args.format.is_binary())?;
    let columns = columns(args)?;
    let tokenizer = args.anonymize.tokenizer()?;
    let mut source = args.decode.reading.open(&args.decode.inputs, tokenizer)?;
    args.filter.apply(&mut source, &verbosity)?;
    let is_filtered = source.filter().is_some();
    // Lines and a progress bar would mix on one terminal.
    let output = Output::open(args.out.as_ref())?;
    let verbosity =
        Verbosity { no_progress: verbosity.no_progress || output.is_terminal(), ..verbosity };
    let written = match &args.condition {
        None => {
            let written = unconditional(args, verbosity, &source, columns, output)?;
            if written == 0 && args.limit != Some(0) {
                args.filter.refuse_nothing(&source)?;
            }
            written
        }
        #[cfg(feature = "sql")]
        Some(condition) => condition::run(args, verbosity, source, condition, columns, output)?,
        #[cfg(not(feature = "sql"))]
        Some(_) => return Err(super::no_sql::error("--where")),
    };
    if written == 0 && args.limit != Some(0) {
        verbosity.say(match args.condition {
            None => "no SMB operations found; `smbscope report` shows what the input contains",
            Some(_) if is_filtered => "no operation matches the condition and the filter",
            Some(_) => "no operation matches the condition",
        });
    }
    Ok(())
}

/// Indexes of the requested columns in the schema; `None` for all.
fn columns(args: &Ops) -> anyhow::Result<Option<Vec<usize>>> {
    let schema = operation::schema();
    let place = |name: &str| {
        schema.index_of(name.trim()).map_err(|_| {
            let message =
                format!("{name}: no such column; `smbscope schema operations` lists them");
            Failure::usage(message)
        })
    };
    let as_lines = args.format == RowFormat::Text;
    match &args.columns {
        Some(names) => names.iter().map(|name| place(name)).collect::<Result<_, _>>().map(Some),
        None if as_lines => {
            line::COLUMNS.iter().map(|name| place(name)).collect::<Result<_, _>>().map(Some)
        }
        None => Ok(None),
    }
}

fn unconditional(
    args: &Ops,
    verbosity: Verbosity,
    source: &Source,
    columns: Option<Vec<usize>>,
    output: Output,
) -> anyhow::Result<u64> {
    let schema = match &columns {
        Some(places) => operation::schema().project(places)?.into(),
        None => operation::schema(),
    };
    let parts = source.parts(&Request { tables: vec![Table::Operations], projection: columns })?;
    let _shown = Shown::begin(verbosity, parts.progress());
    let batches = parts.filter_map(|part| match part {
        Ok(Part::Operations(batch)) => Some(Ok(batch)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    write(args, &schema, batches, output)
}

/// Writes the operations and returns their number.
fn write(
    args: &Ops,
    schema: &SchemaRef,
    batches: impl Iterator<Item = smbscope_store::Result<RecordBatch>>,
    output: Output,
) -> anyhow::Result<u64> {
    let mut writer: Box<dyn RowWriter> = match (args.format, &args.columns) {
        (RowFormat::Text, None) => {
            Box::new(line::LineWriter::new(args.time, args.filter.clone(), output))
        }
        (format, None) => row_writer(format, JsonNulls::LeftOut, false, schema, output)?,
        (format, Some(_)) => row_writer(format, JsonNulls::Explicit, false, schema, output)?,
    };
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut left = limit;
    for batch in batches {
        let batch = batch?;
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(batch.num_rows());
        writer.write(&batch.slice(0, rows))?;
        left -= rows as u64;
        if left == 0 || interrupt::asked() {
            break;
        }
    }
    // Also after Ctrl-C, so that the file is valid.
    writer.finish()?;
    if left > 0 {
        interrupt::check()?;
    }
    Ok(limit - left)
}
