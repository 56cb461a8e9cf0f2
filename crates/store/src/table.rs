//! The tables by name, and parts of them as batches.
//!
//! Operations and slices come as Arrow batches already; the other tables' rows are few and come as
//! structs. Here both become batches and back, so that writing, reading and SQL need one way only.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use smbscope_tables::anonymize::{Anonymize, Tokenizer};
use smbscope_tables::operation;
use smbscope_tables::run::{Counter, Scenario, Step};
use smbscope_tables::slice::Slice;
use smbscope_tables::tables::{Connection, Coverage, Handle, Referral, Session, Tree};

pub use smbscope_tables::part::Part;

use crate::error::Result;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// SMB operations.
    Operations,
    /// TCP connections.
    Connections,
    /// SMB sessions.
    Sessions,
    /// Connected shares.
    Trees,
    /// Opens.
    Handles,
    /// Targets that DFS referrals answered.
    Referrals,
    /// What the server did for each operation, and when.
    Slices,
    /// Scenarios of simulated users.
    Scenarios,
    /// Steps of a load run.
    Steps,
    /// Samples of counters.
    Counters,
    /// What was seen and lost, by recording.
    Coverage,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 11] = [
        Table::Operations,
        Table::Connections,
        Table::Sessions,
        Table::Trees,
        Table::Handles,
        Table::Referrals,
        Table::Slices,
        Table::Scenarios,
        Table::Steps,
        Table::Counters,
        Table::Coverage,
    ];

    /// The name in SQL, in folders and in files.
    pub fn name(self) -> &'static str {
        match self {
            Table::Operations => "operations",
            Table::Connections => Connection::TABLE,
            Table::Sessions => Session::TABLE,
            Table::Trees => Tree::TABLE,
            Table::Handles => Handle::TABLE,
            Table::Referrals => Referral::TABLE,
            Table::Slices => Slice::TABLE,
            Table::Scenarios => Scenario::TABLE,
            Table::Steps => Step::TABLE,
            Table::Counters => Counter::TABLE,
            Table::Coverage => Coverage::TABLE,
        }
    }

    /// The table of that name.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// The Arrow schema.
    pub fn schema(self) -> SchemaRef {
        match self {
            Table::Operations => operation::schema(),
            Table::Connections => Connection::schema(),
            Table::Sessions => Session::schema(),
            Table::Trees => Tree::schema(),
            Table::Handles => Handle::schema(),
            Table::Referrals => Referral::schema(),
            Table::Slices => Slice::schema(),
            Table::Scenarios => Scenario::schema(),
            Table::Steps => Step::schema(),
            Table::Counters => Counter::schema(),
            Table::Coverage => Coverage::schema(),
        }
    }

    /// The time by which parts are described: of operations their end, of others their begin.
    pub fn time_column(self) -> Option<&'static str> {
        match self {
            Table::Operations => Some("response_end"),
            Table::Handles => Some("opened_at"),
            Table::Scenarios => Some("scheduled_at"),
            Table::Counters => Some("time"),
            Table::Referrals => None,
            _ => Some("start"),
        }
    }
}

/// The table and rows of a part.
pub fn to_batch(part: &Part) -> Result<(Table, RecordBatch)> {
    Ok(match part {
        Part::Operations(batch) => (Table::Operations, batch.clone()),
        Part::Connections(rows) => (Table::Connections, Connection::to_batch(rows)?),
        Part::Sessions(rows) => (Table::Sessions, Session::to_batch(rows)?),
        Part::Trees(rows) => (Table::Trees, Tree::to_batch(rows)?),
        Part::Handles(rows) => (Table::Handles, Handle::to_batch(rows)?),
        Part::Referrals(rows) => (Table::Referrals, Referral::to_batch(rows)?),
        Part::Slices(batch) => (Table::Slices, batch.clone()),
        Part::Scenarios(rows) => (Table::Scenarios, Scenario::to_batch(rows)?),
        Part::Steps(rows) => (Table::Steps, Step::to_batch(rows)?),
        Part::Counters(rows) => (Table::Counters, Counter::to_batch(rows)?),
        Part::Coverage(row) => (Table::Coverage, Coverage::to_batch(std::slice::from_ref(row))?),
    })
}

/// The parts of a batch of `table`: one, or of coverage one for each row.
pub fn to_parts(table: Table, batch: RecordBatch) -> Vec<Part> {
    match table {
        Table::Operations => vec![Part::Operations(batch)],
        Table::Connections => vec![Part::Connections(Connection::from_batch(&batch))],
        Table::Sessions => vec![Part::Sessions(Session::from_batch(&batch))],
        Table::Trees => vec![Part::Trees(Tree::from_batch(&batch))],
        Table::Handles => vec![Part::Handles(Handle::from_batch(&batch))],
        Table::Referrals => vec![Part::Referrals(Referral::from_batch(&batch))],
        Table::Slices => vec![Part::Slices(batch)],
        Table::Scenarios => vec![Part::Scenarios(Scenario::from_batch(&batch))],
        Table::Steps => vec![Part::Steps(Step::from_batch(&batch))],
        Table::Counters => vec![Part::Counters(Counter::from_batch(&batch))],
        Table::Coverage => Coverage::from_batch(&batch)
            .into_iter()
            .map(|row| Part::Coverage(Box::new(row)))
            .collect(),
    }
}

/// The part with tokens for names.
pub fn anonymize(part: Part, tokenizer: &Tokenizer) -> Result<Part> {
    Ok(match part {
        Part::Operations(batch) => Part::Operations(tokenizer.batch(&batch)?),
        Part::Connections(rows) => Part::Connections(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Sessions(rows) => Part::Sessions(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Trees(rows) => Part::Trees(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Handles(rows) => Part::Handles(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Referrals(rows) => Part::Referrals(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Slices(batch) => Part::Slices(tokenizer.batch(&batch)?),
        Part::Scenarios(rows) => Part::Scenarios(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Steps(rows) => Part::Steps(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Counters(rows) => Part::Counters(Anonymize::anonymize(&rows, tokenizer)?),
        Part::Coverage(row) => {
            let mut rows: Vec<Coverage> = Anonymize::anonymize(&[*row], tokenizer)?;
            Part::Coverage(Box::new(rows.pop().unwrap_or_default()))
        }
    })
}

/// A batch's columns at `projection`, keeping the number of rows when there are none.
#[cfg(feature = "sql")]
pub(crate) fn project(batch: &RecordBatch, projection: &[usize]) -> Result<RecordBatch> {
    let schema = std::sync::Arc::new(batch.schema().project(projection)?);
    let columns =
        projection.iter().filter_map(|&place| batch.columns().get(place).cloned()).collect();
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
