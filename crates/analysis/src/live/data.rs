//! What a live view can be asked for, and the answer.

use std::cmp::Ordering;

use smbscope_tables::slice::Kind;

use crate::stats::latency::Distribution;

/// What operations are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The command.
    #[default]
    Command,
    /// The share.
    Share,
    /// The client's address.
    Client,
    /// Share and path.
    File,
    /// The session's user.
    User,
    /// The process that served it, which only a recording from inside the server knows.
    Process,
}

impl Key {
    /// All keys.
    pub const ALL: [Key; 6] =
        [Key::Command, Key::Share, Key::Client, Key::File, Key::User, Key::Process];

    /// Its label.
    pub fn name(self) -> &'static str {
        match self {
            Key::Command => "command",
            Key::Share => "share",
            Key::Client => "client",
            Key::File => "file",
            Key::User => "user",
            Key::Process => "process",
        }
    }
}

/// The period of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// The last complete slot.
    #[default]
    Slot,
    /// All slots that are kept.
    Window,
}

/// A part of operations' time. The parts of an operation that is alone in its message add up to its
/// elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// First to last byte of the request.
    RequestTransfer,
    /// What the server did, slice by slice (one of the first [`Kind::PARTS`] kinds).
    Slice(Kind),
    /// Turnaround that no slice explains, of operations that have some.
    Unexplained,
    /// The server, if it is not known in more detail: turnaround minus the round trip behind the capture
    /// point.
    Server,
    /// That round trip.
    Network,
    /// Turnaround whose server part is not known.
    Turnaround,
    /// First to last byte of the reply.
    ResponseTransfer,
}

/// Number of parts.
pub(super) const PARTS: usize = Kind::PARTS + 6;

impl Part {
    /// All parts, in the order in which an operation comes to them.
    pub fn all() -> impl Iterator<Item = Part> {
        let slices = Kind::ALL.iter().take(Kind::PARTS).map(|&kind| Part::Slice(kind));
        let rest = [
            Part::Unexplained,
            Part::Server,
            Part::Network,
            Part::Turnaround,
            Part::ResponseTransfer,
        ];
        std::iter::once(Part::RequestTransfer).chain(slices).chain(rest)
    }

    /// Its name; for slices, the name in the slices table.
    pub fn name(self) -> &'static str {
        match self {
            Part::RequestTransfer => "request_transfer",
            Part::Slice(kind) => kind.name(),
            Part::Unexplained => "unexplained",
            Part::Server => "server",
            Part::Network => "network",
            Part::Turnaround => "turnaround",
            Part::ResponseTransfer => "response_transfer",
        }
    }

    /// Its place in [`Row::parts_ns`].
    pub(super) fn place(self) -> usize {
        match self {
            Part::RequestTransfer => 0,
            Part::Slice(kind) => 1 + kind as usize,
            Part::Unexplained => Kind::PARTS + 1,
            Part::Server => Kind::PARTS + 2,
            Part::Network => Kind::PARTS + 3,
            Part::Turnaround => Kind::PARTS + 4,
            Part::ResponseTransfer => Kind::PARTS + 5,
        }
    }
}

/// Operations that have something in common.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What they have in common; none for operations for which it is not known.
    pub name: Option<String>,
    /// Operations.
    pub operations: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Operations that looked up a name that does not exist.
    pub not_found: u64,
    /// Operations that wait by design; they count in no time.
    pub waits: u64,
    /// Bytes of files that were read.
    pub read_bytes: u64,
    /// Bytes of files that were written.
    pub written_bytes: u64,
    /// Last byte of the request to first byte of the reply.
    pub turnaround: Distribution,
    pub(super) parts_ns: [i64; PARTS],
}

impl Row {
    /// The sum of a part of the operations' time.
    pub fn part_ns(&self, part: Part) -> i64 {
        self.parts_ns.get(part.place()).copied().unwrap_or(0)
    }

    /// Bytes of files that were read and written.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

/// What happened in a period.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What rows have in common.
    pub key: Key,
    /// Length of the period; shorter than requested at the beginning.
    pub span_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// All operations.
    pub total: Row,
    /// Groups in no order.
    pub rows: Vec<Row>,
    /// Operations of groups beyond the limit.
    pub others: Option<Row>,
    /// Whether slices at the server were seen, now or earlier.
    pub has_slices: bool,
    /// Operations so far that came after their slot was complete, and were not in it when it was the
    /// last one, but are in the window; or so far before it that they count in an earlier one.
    pub late: u64,
}

/// The order of rows: the greatest first, but names ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Operations.
    #[default]
    Operations,
    /// Bytes read and written.
    Bytes,
    /// Operations that failed.
    Errors,
    /// Median of the turnaround.
    P50,
    /// Its 95th percentile.
    P95,
    /// Its 99th percentile.
    P99,
    /// Its maximum.
    Max,
    /// Its sum.
    Time,
    /// The name.
    Name,
}

impl Sort {
    /// All, in the order of the columns.
    pub const ALL: [Sort; 9] = [
        Sort::Name,
        Sort::Operations,
        Sort::Bytes,
        Sort::Errors,
        Sort::P50,
        Sort::P95,
        Sort::P99,
        Sort::Max,
        Sort::Time,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Operations => "ops",
            Sort::Bytes => "bytes",
            Sort::Errors => "errors",
            Sort::P50 => "p50",
            Sort::P95 => "p95",
            Sort::P99 => "p99",
            Sort::Max => "max",
            Sort::Time => "time",
        }
    }
}

/// Sorts rows. Equal ones are in the order of their names, so that they keep their places.
pub fn sort(rows: &mut [Row], by: Sort, reverse: bool) {
    let falls = |value: fn(&Row) -> Option<i128>| move |a: &Row, b: &Row| value(b).cmp(&value(a));
    let order = |a: &Row, b: &Row| -> Ordering {
        let ordered = match by {
            Sort::Name => a.name.cmp(&b.name),
            Sort::Operations => falls(|row| Some(row.operations.into()))(a, b),
            Sort::Bytes => falls(|row| Some(row.bytes().into()))(a, b),
            Sort::Errors => falls(|row| Some(row.errors.into()))(a, b),
            Sort::P50 => falls(|row| row.turnaround.p50_ns.map(i128::from))(a, b),
            Sort::P95 => falls(|row| row.turnaround.p95_ns.map(i128::from))(a, b),
            Sort::P99 => falls(|row| row.turnaround.p99_ns.map(i128::from))(a, b),
            Sort::Max => falls(|row| row.turnaround.max_ns.map(i128::from))(a, b),
            Sort::Time => falls(|row| Some(row.turnaround.sum_ns.into()))(a, b),
        };
        if reverse { ordered.reverse() } else { ordered }
    };
    rows.sort_by(|a, b| order(a, b).then_with(|| a.name.cmp(&b.name)));
}
