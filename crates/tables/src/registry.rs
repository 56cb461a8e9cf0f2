//! The list of all tables: what [`Table`] and [`Part`] are generated from.
//!
//! A new table is one line in the list below and one file that declares its row (`tables/*.rs`). An
//! entry says how the table's rows travel:
//!
//! - `batch`: as an Arrow batch, for tables with very many rows;
//! - `rows`: as a vector of structs, for tables with few rows;
//! - `one`: as a single struct per part.
//!
//! Everything else (schema, name, sensitivity of the columns) comes from the row's declaration.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::anonymize::Tokenizer;
use crate::operation::Operation;
use crate::tables::{
    Channel, Connection, Counter, Coverage, Cpu, Device, Handle, Image, Interface, Interrupt,
    InterruptTotal, NetInterval, NetRoundTrip, NetTest, Power, Referral, Sample, Scenario,
    ServerEvent, Session, Slice, StackFrame, Step, Switch, Trace, Tree, Wait,
};

macro_rules! carried {
    (batch $row:ty) => {
        RecordBatch
    };
    (rows $row:ty) => {
        Vec<$row>
    };
    (one $row:ty) => {
        Box<$row>
    };
}

macro_rules! to_batch {
    (batch $row:ty, $rows:ident) => {
        Ok($rows.clone())
    };
    (rows $row:ty, $rows:ident) => {
        <$row>::to_batch($rows)
    };
    (one $row:ty, $rows:ident) => {
        <$row>::to_batch(std::slice::from_ref($rows))
    };
}

macro_rules! from_batch {
    (batch $row:ty, $variant:path, $batch:ident) => {
        vec![$variant($batch)]
    };
    (rows $row:ty, $variant:path, $batch:ident) => {
        vec![$variant(<$row>::from_batch(&$batch))]
    };
    (one $row:ty, $variant:path, $batch:ident) => {
        <$row>::from_batch(&$batch).into_iter().map(|row| $variant(Box::new(row))).collect()
    };
}

macro_rules! anonymize {
    (batch $row:ty, $rows:ident, $tokenizer:ident) => {
        $tokenizer.batch(&$rows)?
    };
    (rows $row:ty, $rows:ident, $tokenizer:ident) => {
        <$row>::from_batch(&$tokenizer.batch(&<$row>::to_batch(&$rows)?)?)
    };
    (one $row:ty, $rows:ident, $tokenizer:ident) => {{
        let rows = [*$rows];
        let rows = <$row>::from_batch(&$tokenizer.batch(&<$row>::to_batch(&rows)?)?);
        Box::new(rows.into_iter().next().unwrap_or_default())
    }};
}

macro_rules! registry {
    ($($table:ident: $form:ident of $row:ty, time $time:expr, pass $pass:literal, $doc:literal;)*) => {
        /// A table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Table {
            $(#[doc = $doc] $table,)*
        }

        impl Table {
            /// All tables, in the order in which they are listed to users.
            pub const ALL: [Table; [$(Table::$table,)*].len()] = [$(Table::$table,)*];

            /// The name in SQL, in folders and in files.
            pub fn name(self) -> &'static str {
                match self { $(Table::$table => <$row>::TABLE,)* }
            }

            /// What a row is, in one sentence.
            pub fn description(self) -> &'static str {
                match self { $(Table::$table => $doc,)* }
            }

            /// The Arrow schema. Each field's metadata has unit, sensitivity and meaning
            /// ([`column`](mod@crate::column)).
            pub fn schema(self) -> SchemaRef {
                match self { $(Table::$table => <$row>::schema(),)* }
            }

            /// The column with the time by which the files of a dataset are described: of an
            /// operation the end, of everything else the beginning. `None`: rows have no time.
            pub fn time_column(self) -> Option<&'static str> {
                match self { $(Table::$table => $time,)* }
            }

            fn pass(self) -> u8 {
                match self { $(Table::$table => $pass,)* }
            }
        }

        /// Some rows of one table, in the order of time: what sources yield and readers take.
        #[derive(Clone, Debug)]
        pub enum Part {
            $(#[doc = $doc] $table(carried!($form $row)),)*
        }

        impl Part {
            /// The table that the rows belong to.
            pub fn table(&self) -> Table {
                match self { $(Part::$table(_) => Table::$table,)* }
            }

            /// The rows as a batch with the columns of [`Table::schema`].
            ///
            /// # Errors
            ///
            /// Arrow's, for rows that contradict the schema.
            pub fn to_batch(&self) -> Result<RecordBatch, ArrowError> {
                match self { $(Part::$table(rows) => to_batch!($form $row, rows),)* }
            }

            /// The parts of a batch of `table`: one, or one for each row where a part has a
            /// single row. Columns that the batch lacks read as absent.
            pub fn from_batch(table: Table, batch: RecordBatch) -> Vec<Part> {
                match table { $(Table::$table => from_batch!($form $row, Part::$table, batch),)* }
            }

            /// The part with tokens in place of names.
            ///
            /// # Errors
            ///
            /// Arrow's, for a sensitive column whose type has no tokens.
            pub fn anonymize(self, tokenizer: &Tokenizer) -> Result<Part, ArrowError> {
                Ok(match self {
                    $(Part::$table(rows) => Part::$table(anonymize!($form $row, rows, tokenizer)),)*
                })
            }
        }
    };
}

// `pass` is the order in which a dataset is read, lowest first: rows that say to which scenario of a
// load run an operation belongs come before the operations, slices after them, coverage last.
registry! {
    Operations: batch of Operation, time Some("response_end"), pass 3,
        "SMB operations, in the order in which they ended.";
    Connections: rows of Connection, time Some("started_at"), pass 5,
        "TCP connections that carried SMB. A row is written when the connection ends.";
    Sessions: rows of Session, time Some("started_at"), pass 5,
        "SMB sessions. Rows are written at the end of the recording.";
    Trees: rows of Tree, time Some("started_at"), pass 5,
        "Connected shares. Rows are written at the end of the recording.";
    Handles: rows of Handle, time Some("opened_at"), pass 5,
        "Opens, from Create to Close. Those that stay open are written at the end.";
    Channels: rows of Channel, time Some("interval_start"), pass 5,
        "What each connection of a session carried in each interval, and since when.";
    Interfaces: rows of Interface, time None, pass 5,
        "Network interfaces that servers offered for additional channels, and why each was used or not.";
    Referrals: rows of Referral, time None, pass 5,
        "Targets in DFS referral responses.";
    Waits: rows of Wait, time Some("started_at"), pass 5,
        "What clients waited for before SMB and apart from it: names, connections, tickets, retransmissions.";
    Slices: batch of Slice, time Some("start"), pass 4,
        "What the server did for each operation, and when, in the order of the operations.";
    Scenarios: rows of Scenario, time Some("scheduled_at"), pass 1,
        "Scenarios of simulated users (load runs).";
    Steps: rows of Step, time Some("started_at"), pass 0,
        "Parts of a load run with a constant number of users.";
    Counters: rows of Counter, time Some("time"), pass 2,
        "Samples of CPU, disk and network counters.";
    Interrupts: batch of Interrupt, time Some("start"), pass 5,
        "Handlers of interrupts and deferred work of CPUs, in the order in which they ended on each.";
    InterruptTotals: rows of InterruptTotal, time Some("start"), pass 5,
        "Sums of interrupts and deferred work, from inputs that have no single ones.";
    Samples: batch of Sample, time Some("time"), pass 5,
        "What CPUs executed at regular intervals.";
    Stacks: batch of StackFrame, time None, pass 5,
        "Chains of calls of the samples, one row for each frame.";
    Switches: batch of Switch, time Some("time"), pass 5,
        "Context switches of CPUs.";
    Cpus: rows of Cpu, time None, pass 5,
        "CPUs of a trace, and where they are in the machine.";
    Devices: rows of Device, time None, pass 5,
        "Devices that interrupt, and network adapters.";
    Power: batch of Power, time Some("time"), pass 5,
        "Idle states and frequencies of CPUs.";
    Images: rows of Image, time Some("loaded_at"), pass 5,
        "Code of the kernel, of drivers and of programs in memory.";
    ServerEvents: rows of ServerEvent, time Some("time"), pass 5,
        "What the Windows SMB server and client logged on their own: slow operations, refused and lost connections.";
    NetTests: rows of NetTest, time Some("started_at"), pass 5,
        "What a path carries by TCP alone, by phase and direction (`smbscope net send`).";
    NetIntervals: rows of NetInterval, time Some("time"), pass 5,
        "TCP streams of these tests, interval by interval.";
    NetRoundTrips: rows of NetRoundTrip, time Some("time"), pass 5,
        "Round trips of messages as large as SMB's, without SMB.";
    Traces: rows of Trace, time Some("started_at"), pass 5,
        "What CPU traces contain, lost and do not show.";
    Coverage: one of Coverage, time Some("started_at"), pass 6,
        "What was captured, lost and not decoded. The last part of every input.";
}

impl Table {
    /// The table of that name.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// All tables in the order in which a dataset is read.
    pub fn in_reading_order() -> [Table; Table::ALL.len()] {
        let mut tables = Table::ALL;
        tables.sort_by_key(|table| table.pass());
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{DOC_KEY, SENSITIVITY_KEY, Sensitivity, UNIT_KEY, Unit};

    #[test]
    fn every_table_has_one_file_and_every_file_one_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tables");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        // The operation's row is not declared by `table!`.
        files.push("operations".to_owned());
        files.sort_unstable();
        let mut names = Table::ALL.map(Table::name);
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn names_and_time_columns_are_those_of_the_schema() {
        for table in Table::ALL {
            assert_eq!(Table::from_name(table.name()), Some(table));
            assert!(table.description().ends_with('.'), "{}", table.name());
            let schema = table.schema();
            for field in schema.fields() {
                assert!(field.metadata().contains_key(DOC_KEY), "{}", field.name());
            }
            if let Some(name) = table.time_column() {
                let field = schema.field_with_name(name).unwrap();
                assert_eq!(field.metadata()[UNIT_KEY], Unit::Time.name(), "{}", table.name());
            }
        }
        assert_eq!(Table::from_name("nonsense"), None);
    }

    #[test]
    fn parts_survive_arrow_and_lose_names() {
        let tokenizer = Tokenizer::new([7; 32]);
        for table in Table::ALL {
            let empty = RecordBatch::new_empty(table.schema());
            for part in Part::from_batch(table, empty.clone()) {
                assert_eq!(part.table(), table);
                assert_eq!(part.to_batch().unwrap(), empty);
                assert_eq!(part.anonymize(&tokenizer).unwrap().to_batch().unwrap(), empty);
            }
        }
        let part = Part::Coverage(Box::new(Coverage {
            recording: "monday.pcap".into(),
            operations: 5,
            ..Coverage::default()
        }));
        let batch = part.clone().anonymize(&tokenizer).unwrap().to_batch().unwrap();
        let row = Coverage::from_batch(&batch).remove(0);
        let token = tokenizer.text("recording", Sensitivity::Machine, "monday.pcap");
        assert_eq!((row.recording, row.operations), (token, 5));
        let recording = batch.schema().field_with_name("recording").unwrap().clone();
        assert_eq!(recording.metadata()[SENSITIVITY_KEY], Sensitivity::Machine.name());
    }

    #[test]
    fn a_dataset_is_read_in_the_order_that_readers_rely_on() {
        let names = Table::in_reading_order().map(Table::name);
        assert_eq!(names[..5], ["steps", "scenarios", "counters", "operations", "slices"]);
        assert_eq!(names.last(), Some(&"coverage"));
    }
}
