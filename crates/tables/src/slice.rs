//! Slices of the server's time: what a probe inside the server saw an operation do, and when.
//!
//! The sums by kind are columns of the operation too ([`Kind::column`]). The first eleven kinds are
//! disjoint parts of the turnaround ([`Kind::PARTS`]); `disk` and `offcpu` lie within those and say
//! what a part was spent on. In the table a slice may lie within another one of the same operation:
//! which one follows from the times.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array, new_null_array};
use arrow::error::ArrowError;

use crate::operation::{Column, Operation};
pub use crate::tables::Slice;

macro_rules! kinds {
    ($($kind:ident, $name:literal, $column:ident, $set:ident;)*) => {
        /// What a slice was spent on, in the order in which an operation usually comes to it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];

            /// The word in the table's column `kind`.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }

            /// The operation's column that has the sum of its slices of this kind.
            pub fn column(self) -> Column {
                match self { $(Kind::$kind => Column::$column,)* }
            }

            /// Puts the sum into that column.
            pub fn set(self, row: &mut Operation, sum_ns: i64) {
                match self { $(Kind::$kind => row.$set(sum_ns),)* }
            }
        }
    };
}

kinds! {
    Queue, "queue", queue_ns, set_queue_ns;
    CryptoIn, "crypto_in", crypto_in_ns, set_crypto_in_ns;
    Parse, "parse", parse_ns, set_parse_ns;
    Processing, "processing", processing_ns, set_processing_ns;
    Filesystem, "filesystem", filesystem_ns, set_filesystem_ns;
    IoWait, "io_wait", io_wait_ns, set_io_wait_ns;
    Io, "io", io_ns, set_io_ns;
    Flush, "flush", flush_ns, set_flush_ns;
    LockWait, "lock_wait", lock_wait_ns, set_lock_wait_ns;
    CryptoOut, "crypto_out", crypto_out_ns, set_crypto_out_ns;
    Send, "send", send_ns, set_send_ns;
    Disk, "disk", disk_ns, set_disk_ns;
    Offcpu, "offcpu", offcpu_ns, set_offcpu_ns;
}

impl Kind {
    /// How many of [`Kind::ALL`], from the first, are disjoint parts of the turnaround.
    pub const PARTS: usize = 11;

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether it is a part of the turnaround, not what a part was spent on.
    pub fn is_part(self) -> bool {
        (self as usize) < Kind::PARTS
    }
}

/// Rows of one recording by column: they are many.
#[derive(Clone, Default)]
pub struct Rows {
    operation: Vec<u64>,
    kind: Vec<&'static str>,
    start: Vec<i64>,
    duration_ns: Vec<i64>,
}

impl Rows {
    /// Adds a slice of an operation, on the recording's clock, ns.
    pub fn push(&mut self, operation: u64, kind: Kind, start: i64, duration_ns: i64) {
        self.operation.push(operation);
        self.kind.push(kind.name());
        self.start.push(start);
        self.duration_ns.push(duration_ns);
    }

    /// The rows so far as a batch of [`Slice::schema`]; then there are none.
    pub fn finish(&mut self, recording: &str) -> Result<RecordBatch, ArrowError> {
        let mut rows = std::mem::take(self);
        let count = rows.operation.len();
        let schema = Slice::schema();
        let columns = schema.fields().iter().map(|field| -> ArrayRef {
            match field.name().as_str() {
                "recording" => {
                    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(recording, count)))
                }
                "operation" => Arc::new(UInt64Array::from(std::mem::take(&mut rows.operation))),
                "kind" => Arc::new(StringArray::from_iter_values(&rows.kind)),
                "start" => Arc::new(Int64Array::from(std::mem::take(&mut rows.start))),
                "duration_ns" => Arc::new(Int64Array::from(std::mem::take(&mut rows.duration_ns))),
                _ => new_null_array(field.data_type(), count),
            }
        });
        RecordBatch::try_new(schema.clone(), columns.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_column_and_its_word_in_the_table() {
        let specs = crate::operation::specs();
        let doc = Slice::specs().into_iter().find(|spec| spec.name == "kind").unwrap().doc;
        for &kind in Kind::ALL {
            assert_eq!(specs[kind.column() as usize].name, format!("{}_ns", kind.name()));
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert!(doc.contains(kind.name()), "{}", kind.name());
            let mut row = Operation::default();
            kind.set(&mut row, 7);
            assert!(row.has(kind.column()), "{} sets another column", kind.name());
        }
        assert!(Kind::Send.is_part() && !Kind::Disk.is_part());
        assert_eq!(Kind::from_name("nonsense"), None);
    }

    #[test]
    fn columns_are_rows() {
        let mut rows = Rows::default();
        rows.push(3, Kind::Io, -5, 7);
        rows.push(4, Kind::Send, 2, 0);
        let slice = |operation, kind: Kind, start, duration_ns| Slice {
            recording: "r".into(),
            operation,
            kind: kind.name().into(),
            start,
            duration_ns,
            ..Slice::default()
        };
        let batch = rows.finish("r").unwrap();
        let wanted = [slice(3, Kind::Io, -5, 7), slice(4, Kind::Send, 2, 0)];
        assert_eq!(Slice::from_batch(&batch), wanted);
        assert_eq!(rows.finish("r").unwrap().num_rows(), 0);
    }

    #[test]
    fn rows_survive_the_way_through_arrow() {
        let row = Slice {
            recording: "r".into(),
            operation: 3,
            kind: Kind::Io.name().into(),
            start: -5,
            duration_ns: 7,
            cpu_ns: Some(2),
            ..Slice::default()
        };
        let batch = Slice::to_batch(&[row.clone(), Slice::default()]).unwrap();
        assert_eq!(Slice::from_batch(&batch), [row, Slice::default()]);
    }
}
