//! Why one operation took as long as it did: a pass that finds it, and one that looks at what happened
//! around it. If it is a member of a compound without a time of its own, a pass between the two finds
//! the compound's first operation.

use arrow::array::RecordBatch;
use smbscope_analysis::explain::why::{Explanation, Found, Miss, Search, Which, Why, columns};
use smbscope_store::source::Source;
use smbscope_store::{Part, Table};
use smbscope_tables::column::Sensitivity;
use smbscope_tables::tables::Slice;

use super::pass::{Analysis, Monitor, OfOperations, pass};

/// Explains the operation that `which` names, or says why there is not one.
pub fn why(
    source: &mut Source,
    which: Which,
    monitor: &dyn Monitor,
) -> anyhow::Result<Result<Explanation, Miss>> {
    source.spool()?;
    let search = Search::new(with_token(source, which));
    let found = match run(source, search, monitor)? {
        Ok(found) => found,
        Err(miss) => return Ok(Err(miss)),
    };
    let found = match found.lead() {
        Some(search) => found.or_lead(run(source, search, monitor)?),
        None => found,
    };
    let mut why = Why::new(found);
    pass(source, &mut [&mut why], monitor)?;
    Ok(Ok(why.finish()))
}

fn run(
    source: &Source,
    mut search: Search,
    monitor: &dyn Monitor,
) -> anyhow::Result<Result<Found, Miss>> {
    pass(source, &mut [&mut search], monitor)?;
    Ok(search.finish())
}

/// The rows of an anonymized source have a token instead of the file's name.
fn with_token(source: &Source, mut which: Which) -> Which {
    if let (Some(tokenizer), Some(file)) = (&source.options().tokenizer, &mut which.file) {
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
        *file = tokenizer.text("recording", Sensitivity::Machine, name);
    }
    which
}

impl OfOperations for Search {
    fn columns(&self) -> Vec<&'static str> {
        columns().to_vec()
    }

    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.operations(batch)?)
    }
}

impl Analysis for Why {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Operations, Table::Slices]
    }

    fn columns(&self) -> Vec<&'static str> {
        columns().to_vec()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Operations(batch) => self.operations(batch)?,
            Part::Slices(batch) => self.slices(&Slice::from_batch(batch)),
            _ => {}
        }
        Ok(())
    }
}
