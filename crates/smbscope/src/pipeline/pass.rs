//! One pass over the inputs, shared by any number of analyses.
//!
//! Owns the only loop over the parts of recorded inputs that feeds analyses: which tables and columns are
//! read, which analysis gets which part, progress, and cancellation. An analysis says what it wants
//! ([`Analysis`]); the front end watches the pass ([`Monitor`]).

use std::any::Any;
use std::sync::Arc;

use arrow::array::RecordBatch;
use smbscope_store::source::{Progress, Request, Source};
use smbscope_store::{Part, Table};
use smbscope_tables::description::RunDescription;
use smbscope_tables::operation;

/// Something that is computed from the rows of a recording.
pub trait Analysis {
    /// The tables that it reads. Parts of other tables may arrive too, because another analysis of the same
    /// pass wants them: ignore those.
    fn tables(&self) -> Vec<Table>;

    /// The columns of operations that it reads, by name.
    fn columns(&self) -> Vec<&'static str>;

    /// Takes the description of one machine's part of a load run, and whether it is complete. All
    /// descriptions arrive before the first part.
    fn run(&mut self, _run: &RunDescription, _is_complete: bool) {}

    /// Takes some rows of one table. Steps and scenarios of a load run arrive before its operations.
    fn part(&mut self, part: &Part) -> anyhow::Result<()>;
}

/// An analysis that reads operations only.
pub trait OfOperations {
    /// The columns that it reads, by name.
    fn columns(&self) -> Vec<&'static str>;

    /// Takes some rows.
    fn batch(&mut self, batch: &RecordBatch) -> anyhow::Result<()>;
}

impl<A: OfOperations> Analysis for A {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Operations]
    }

    fn columns(&self) -> Vec<&'static str> {
        OfOperations::columns(self)
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        match part {
            Part::Operations(batch) => self.batch(batch),
            _ => Ok(()),
        }
    }
}

/// Watches a pass on behalf of the front end.
pub trait Monitor {
    /// A pass begins. The returned value is dropped when the pass ends.
    fn begin(&self, progress: Arc<Progress>) -> Box<dyn Any>;

    /// Called between parts; an error cancels the pass.
    fn check(&self) -> anyhow::Result<()>;
}

/// Reads the inputs once and gives each part to every analysis.
///
/// Stops with an error when the monitor cancels it: the result of half a recording would be taken for that of
/// the whole.
pub fn pass(
    source: &Source,
    analyses: &mut [&mut dyn Analysis],
    monitor: &dyn Monitor,
) -> anyhow::Result<()> {
    let parts = source.parts(&request(analyses)?)?;
    let _shown = monitor.begin(parts.progress());
    for (run, is_complete) in source.runs() {
        analyses.iter_mut().for_each(|analysis| analysis.run(&run, is_complete));
    }
    for part in parts {
        let part = part?;
        for analysis in &mut *analyses {
            analysis.part(&part)?;
        }
        monitor.check()?;
    }
    Ok(())
}

/// The tables and columns that any of the analyses wants.
fn request(analyses: &[&mut dyn Analysis]) -> anyhow::Result<Request> {
    let mut tables: Vec<Table> = analyses.iter().flat_map(|analysis| analysis.tables()).collect();
    tables.sort_unstable();
    tables.dedup();
    let schema = operation::schema();
    let columns = analyses.iter().flat_map(|analysis| analysis.columns());
    let mut indices =
        columns.map(|name| schema.index_of(name)).collect::<Result<Vec<usize>, _>>()?;
    indices.sort_unstable();
    indices.dedup();
    Ok(Request { tables, projection: Some(indices) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wants(&'static [Table], &'static [&'static str]);

    impl Analysis for Wants {
        fn tables(&self) -> Vec<Table> {
            self.0.to_vec()
        }

        fn columns(&self) -> Vec<&'static str> {
            self.1.to_vec()
        }

        fn part(&mut self, _: &Part) -> anyhow::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_shared_pass_reads_the_union_of_tables_and_columns() {
        let mut one = Wants(&[Table::Coverage, Table::Operations], &["status", "command"]);
        let mut two = Wants(&[Table::Operations, Table::Connections], &["command"]);
        let request = request(&[&mut one, &mut two]).unwrap();
        let schema = operation::schema();
        let mut columns = ["command", "status"].map(|name| schema.index_of(name).unwrap());
        columns.sort_unstable();
        assert_eq!(request.projection.unwrap(), columns);
        assert_eq!(request.tables, [Table::Operations, Table::Connections, Table::Coverage]);
    }

    #[test]
    fn an_unknown_column_is_an_error() {
        let mut wants = Wants(&[Table::Operations], &["no such column"]);
        assert!(request(&[&mut wants]).is_err());
    }
}
