//! Kinds of slices: what a server spent the time of an operation on, as seen from inside it.
//!
//! [`Kind`] is generated from one list. A row of that list has everything that depends on the kind:
//! its name, the operation's column with its sum, its group (the disjoint part of the turnaround
//! that it belongs to), and its title, legend and colours in reports. The named questions `server`
//! and `slow-server` are generated from it, too.
//!
//! Kinds with a group are disjoint parts of the turnaround; `disk` and `offcpu` lie within those and
//! say what a part was spent on. In the table `slices` a slice may lie within another one of the
//! same operation: the times say in which.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array, new_null_array};
use arrow::error::ArrowError;

use crate::operation::{Column, Operation};
pub use crate::tables::Slice;

/// What a server does with a group of slices: the parts into which reports divide its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Waiting to be processed.
    Queue,
    /// The protocol: parsing and processing.
    Processing,
    /// Signing, verifying, encrypting and decrypting.
    Security,
    /// File-system calls, I/O and flushing. The wait for an I/O thread belongs here, because it is
    /// as long as the file system is slow.
    Filesystem,
    /// Waiting for locks and for other clients to acknowledge breaks.
    Locks,
    /// Handing the response to the network.
    Send,
}

impl Group {
    /// All groups, in the order in which an operation comes to them.
    pub const ALL: [Group; 6] = [
        Group::Queue,
        Group::Processing,
        Group::Security,
        Group::Filesystem,
        Group::Locks,
        Group::Send,
    ];

    /// The word for the group in SQL: the columns of the named question `server` begin with it.
    pub fn name(self) -> &'static str {
        match self {
            Group::Queue => "queue",
            Group::Processing => "processing",
            Group::Security => "security",
            Group::Filesystem => "filesystem",
            Group::Locks => "locks",
            Group::Send => "send",
        }
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident {
        $name:literal, $column:ident, $set:ident, $group:expr,
        title $title:literal, legend $letter:literal $legend:literal,
        colours $chart:literal $terminal:literal
    })*) => {
        /// What a slice was spent on, in the order in which an operation usually comes to it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])* $kind,)*
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

            /// The name of that column.
            pub fn column_name(self) -> &'static str {
                match self { $(Kind::$kind => stringify!($column),)* }
            }

            /// Puts the sum into that column, ns.
            pub fn set(self, row: &mut Operation, sum_ns: i64) {
                match self { $(Kind::$kind => row.$set(sum_ns),)* }
            }

            /// The sum in that column, ns.
            pub fn of(self, row: &Operation) -> Option<i64> {
                match self { $(Kind::$kind => row.$column(),)* }
            }

            /// The group that the kind belongs to; `None` if it lies within slices of other kinds.
            pub const fn group(self) -> Option<Group> {
                match self { $(Kind::$kind => $group,)* }
            }

            /// Its title in reports.
            pub fn title(self) -> &'static str {
                match self { $(Kind::$kind => $title,)* }
            }

            /// What the kind means, in one sentence.
            pub fn explanation(self) -> &'static str {
                match self { $(Kind::$kind => concat!($($doc),*).trim_ascii(),)* }
            }

            /// The letter in a bar of `smbscope top`, and the words of its legend.
            pub fn legend(self) -> (char, &'static str) {
                match self { $(Kind::$kind => ($letter, $legend),)* }
            }

            /// The number of its colour in the report's charts. 3 is the colour of what no slice
            /// explains.
            pub fn chart_colour(self) -> usize {
                match self { $(Kind::$kind => $chart,)* }
            }

            /// The name of its colour in a terminal, as ANSI terminals have them.
            pub fn terminal_colour(self) -> &'static str {
                match self { $(Kind::$kind => $terminal,)* }
            }
        }
    };
}

// Disjoint parts of the turnaround (with a group) come first, then what lies within them.
// Related kinds have similar colours, neighbours different ones.
kinds! {
    /// Waiting until the server begins to process the request.
    Queue {
        "queue", queue_ns, set_queue_ns, Some(Group::Queue),
        title "Queue", legend 'Q' "queue", colours 0 "yellow"
    }
    /// Verifying the signature of the request and decrypting it.
    CryptoIn {
        "crypto_in", crypto_in_ns, set_crypto_in_ns, Some(Group::Security),
        title "Verify and decrypt", legend 'c' "verify, decrypt", colours 5 "magenta"
    }
    /// Parsing the request.
    Parse {
        "parse", parse_ns, set_parse_ns, Some(Group::Processing),
        title "Parse", legend 'p' "parse", colours 6 "light blue"
    }
    /// The server's own work on the request.
    Processing {
        "processing", processing_ns, set_processing_ns, Some(Group::Processing),
        title "Processing", legend 'P' "processing", colours 1 "blue"
    }
    /// File-system calls other than reading, writing and flushing.
    Filesystem {
        "filesystem", filesystem_ns, set_filesystem_ns, Some(Group::Filesystem),
        title "File system", legend 'F' "file system", colours 7 "green"
    }
    /// Waiting for an I/O thread.
    IoWait {
        "io_wait", io_wait_ns, set_io_wait_ns, Some(Group::Filesystem),
        title "Wait for I/O thread", legend 'w' "I/O wait", colours 8 "light cyan"
    }
    /// Reading and writing files.
    Io {
        "io", io_ns, set_io_ns, Some(Group::Filesystem),
        title "I/O", legend 'I' "I/O", colours 9 "light green"
    }
    /// Flushing files to disk.
    Flush {
        "flush", flush_ns, set_flush_ns, Some(Group::Filesystem),
        title "Flush", legend 'f' "flush", colours 10 "cyan"
    }
    /// Waiting for locks and for other clients to acknowledge breaks.
    LockWait {
        "lock_wait", lock_wait_ns, set_lock_wait_ns, Some(Group::Locks),
        title "Locks and breaks", legend 'L' "locks", colours 2 "red"
    }
    /// Signing and encrypting the response.
    CryptoOut {
        "crypto_out", crypto_out_ns, set_crypto_out_ns, Some(Group::Security),
        title "Sign and encrypt", legend 'C' "sign, encrypt", colours 11 "magenta"
    }
    /// Handing the response to the network.
    Send {
        "send", send_ns, set_send_ns, Some(Group::Send),
        title "Send", legend 's' "send", colours 4 "light magenta"
    }
    /// File-system calls that did not return at once. Windows' events count them apart.
    FilesystemSlow {
        "filesystem_slow", filesystem_slow_ns, set_filesystem_slow_ns, Some(Group::Filesystem),
        title "File system, waiting", legend 'S' "file system, waiting", colours 10 "cyan"
    }
    /// Signing, verifying, encrypting and decrypting together, as Windows' events count them.
    Security {
        "security", security_ns, set_security_ns, Some(Group::Security),
        title "Signing and encryption", legend 'E' "signing, encryption", colours 5 "magenta"
    }
    /// Calls of the transport: receiving and sending, as Windows' events count them.
    Transport {
        "transport", transport_ns, set_transport_ns, Some(Group::Send),
        title "Transport", legend 't' "transport", colours 4 "light magenta"
    }
    /// Calls of the transport that did not return at once.
    TransportSlow {
        "transport_slow", transport_slow_ns, set_transport_slow_ns, Some(Group::Send),
        title "Transport, waiting", legend 'T' "transport, waiting", colours 2 "red"
    }
    /// Direct placement of payload by RDMA.
    TransportDirect {
        "transport_direct", transport_direct_ns, set_transport_direct_ns, Some(Group::Send),
        title "Direct placement (RDMA)", legend 'D' "direct placement", colours 9 "light green"
    }
    /// Waiting for the disk. Lies within the slices above.
    Disk {
        "disk", disk_ns, set_disk_ns, None,
        title "Disk", legend '?' "unexplained", colours 12 "gray"
    }
    /// Not running on a CPU. Lies within the slices above.
    Offcpu {
        "offcpu", offcpu_ns, set_offcpu_ns, None,
        title "Off processor", legend '?' "unexplained", colours 13 "gray"
    }
}

impl Kind {
    /// How many of [`Kind::ALL`], from the first, are disjoint parts of the turnaround.
    pub const PARTS: usize = {
        let mut parts = 0;
        while parts < Kind::ALL.len() && Kind::ALL[parts].is_part() {
            parts += 1;
        }
        parts
    };

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kinds that are disjoint parts of the turnaround.
    pub fn parts() -> impl Iterator<Item = Kind> + Clone {
        Kind::ALL.iter().copied().filter(|kind| kind.is_part())
    }

    /// Whether the kind is a disjoint part of the turnaround; otherwise it lies within such parts.
    pub const fn is_part(self) -> bool {
        self.group().is_some()
    }
}

/// Rows of one recording, stored by column because they are many.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    operation: Vec<u64>,
    kind: Vec<&'static str>,
    start: Vec<i64>,
    duration_ns: Vec<i64>,
    cycles: Vec<Option<u64>>,
    hits: Vec<Option<u64>>,
}

impl Rows {
    /// Adds a slice of an operation, on the recording's clock, ns.
    pub fn push(&mut self, operation: u64, kind: Kind, start: i64, duration_ns: i64) {
        self.cycles.push(None);
        self.hits.push(None);
        self.push_times(operation, kind, start, duration_ns);
    }

    /// Adds a slice that represents several pieces of work, which a source counted.
    pub fn push_counted(
        &mut self,
        operation: u64,
        kind: Kind,
        start: i64,
        duration_ns: i64,
        hits: u64,
        cycles: Option<u64>,
    ) {
        self.cycles.push(cycles);
        self.hits.push(Some(hits));
        self.push_times(operation, kind, start, duration_ns);
    }

    fn push_times(&mut self, operation: u64, kind: Kind, start: i64, duration_ns: i64) {
        self.operation.push(operation);
        self.kind.push(kind.name());
        self.start.push(start);
        self.duration_ns.push(duration_ns);
    }

    /// Returns the rows as a batch of [`Slice::schema`] and empties the builder.
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
                "cycles" => Arc::new(UInt64Array::from(std::mem::take(&mut rows.cycles))),
                "hits" => Arc::new(UInt64Array::from(std::mem::take(&mut rows.hits))),
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
            assert_eq!(kind.column_name(), format!("{}_ns", kind.name()));
            assert!(kind.explanation().ends_with('.'), "{}", kind.explanation());
            assert!(!kind.title().is_empty() && kind.chart_colour() != 3);
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert!(doc.contains(kind.name()), "{}", kind.name());
            let mut row = Operation::default();
            kind.set(&mut row, 7);
            assert!(row.has(kind.column()), "{} sets another column", kind.name());
        }
        assert!(Kind::Send.is_part() && !Kind::Disk.is_part());
        assert!(Kind::parts().eq(Kind::ALL[..Kind::PARTS].iter().copied()), "parts come first");
        for group in Group::ALL {
            assert!(Kind::parts().any(|kind| kind.group() == Some(group)), "{}", group.name());
        }
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
