//! One operation as the findings see it: a row of a batch with its texts as numbers and its times
//! within limits.

use std::hash::{BuildHasher as _, Hash};
use std::num::NonZeroU64;

use smbscope_tables::command_class::CommandClass;
use smbscope_tables::slice::Kind;

use super::data::{Example, FindingKind};
use crate::rows::create_intent::CreateIntent;

mod rows;

pub(super) use rows::Rows;

crate::rows::columns::columns! {
    recording: text,
    operation: u64,
    connection: u64,
    client: text,
    server: text,
    server_port: u16,
    share: text,
    protocol: u8,
    dialect: text,
    command: text,
    detail: text,
    message_id: u64,
    status: u32,
    file_id: bytes16,
    lease_key: bytes16,
    lease_requested: text,
    oplock_granted: text,
    path: text,
    handle: u64,
    desired_access: u32,
    create_options: u32,
    offset_bytes: u64,
    transferred_bytes: u64,
    request_wire_bytes: u64,
    response_wire_bytes: u64,
    write_through: bool,
    signed: bool,
    encrypted: bool,
    outstanding: u32,
    compound: u64,
    request_start: i64,
    pending_at: i64,
    response_start: i64,
    elapsed_ns: i64,
    request_transfer_ns: i64,
    turnaround_ns: i64,
    response_transfer_ns: i64,
    server_ns: i64,
    client_gap_ns: i64,
    session_id: u64,
    scenario_run: u64,
    busy_ns: i64,
    recovery_ns: i64,
    credit_charge: u16,
    credits_requested: u16,
    credits_granted: u16,
    waits: bool,
    queue_ns: i64,
    filesystem_ns: i64,
    io_wait_ns: i64,
    io_ns: i64,
    flush_ns: i64,
    lock_wait_ns: i64,
    crypto_in_ns: i64,
    crypto_out_ns: i64,
    filesystem_slow_ns: i64,
    security_ns: i64,
    request_frame: u64,
    response_frame: u64,
}

impl Columns {
    /// Whether any operation of the batch has a slice that is read here.
    fn has_slices(&self) -> bool {
        [
            &self.queue_ns,
            &self.filesystem_ns,
            &self.io_wait_ns,
            &self.io_ns,
            &self.flush_ns,
            &self.lock_wait_ns,
            &self.crypto_in_ns,
            &self.crypto_out_ns,
            &self.filesystem_slow_ns,
            &self.security_ns,
        ]
        .iter()
        .any(|column| !column.is_empty())
    }
}

/// Values beyond these limits come from damaged files.
const DURATION_MAX_NS: i64 = 1_000_000_000_000_000;
const TIME_MAX_NS: i64 = 4_000_000_000_000_000_000;
const BYTES_MAX: u64 = 1 << 30;
/// With at least this many others in flight, operations wait for those.
const CROWD: u32 = 8;
/// Messages of at least this size show the rate of the network.
const LONG_BYTES: u64 = 12 << 10;

fn duration(ns: i64) -> i64 {
    ns.clamp(0, DURATION_MAX_NS)
}

/// What a command does, as far as findings distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    Read,
    Write,
    Open,
    Close,
    List,
    /// Queries an open or a path.
    Query,
    Flush,
    Lock,
    Break,
    /// Negotiates, logs on or off, connects to a share or disconnects.
    Logon,
    /// Changes a file's attributes, size or name.
    Change,
    Other,
}

impl Act {
    pub(super) const ALL: [Act; 12] = [
        Act::Read,
        Act::Write,
        Act::Open,
        Act::Close,
        Act::List,
        Act::Query,
        Act::Flush,
        Act::Lock,
        Act::Break,
        Act::Logon,
        Act::Change,
        Act::Other,
    ];

    fn from_class(class: CommandClass) -> Act {
        match class {
            CommandClass::Read => Act::Read,
            CommandClass::Write => Act::Write,
            CommandClass::Open => Act::Open,
            CommandClass::Close => Act::Close,
            CommandClass::List => Act::List,
            CommandClass::Query => Act::Query,
            CommandClass::Flush => Act::Flush,
            CommandClass::Lock => Act::Lock,
            CommandClass::Break => Act::Break,
            CommandClass::Session => Act::Logon,
            CommandClass::Set | CommandClass::Namespace => Act::Change,
            CommandClass::Ioctl
            | CommandClass::Notify
            | CommandClass::Cancel
            | CommandClass::Transaction
            | CommandClass::Other => Act::Other,
        }
    }
}

/// A number that is the same for a text in every batch and recording: comparing numbers is cheaper
/// than comparing texts.
pub(super) type TextId = NonZeroU64;

/// Fixed, so that every run gives the same numbers.
const SEED: u64 = 0x6578_706c_6169_6e00;

/// The number of a text, or of several texts and numbers together.
pub(super) fn text_id(of: impl Hash) -> TextId {
    let hash = foldhash::fast::FixedState::with_seed(SEED).hash_one(of);
    TextId::new(hash).unwrap_or(TextId::MIN)
}

/// Parts of an operation's time, which most detectors read.
#[derive(Clone, Copy)]
struct Times {
    turnaround_ns: Option<i64>,
    transfer_ns: i64,
    reply_ns: i64,
    recovery_ns: i64,
    split: Option<(i64, i64)>,
}

impl Times {
    fn from_row(columns: &Columns, row: usize, elapsed_ns: i64) -> Times {
        let within = |ns: Option<i64>| ns.map(|ns| duration(ns).min(elapsed_ns));
        let turnaround_ns = within(columns.turnaround_ns.get(row));
        let reply_ns = within(columns.response_transfer_ns.get(row)).unwrap_or(0);
        let request_ns = duration(columns.request_transfer_ns.get(row).unwrap_or(0));
        let transfer_ns = (request_ns + reply_ns).min(elapsed_ns);
        let recovery_ns = within(columns.recovery_ns.get(row)).unwrap_or(0);
        let split = turnaround_ns.zip(columns.server_ns.get(row)).map(|(turnaround, server)| {
            let server = duration(server).min(turnaround);
            let network = turnaround - server;
            // The recovery is part of the transfer times, as far as those are long enough.
            let recovery = (recovery_ns - transfer_ns).max(0);
            ((server - recovery).max(0), network - (recovery - server).clamp(0, network))
        });
        Times { turnaround_ns, transfer_ns, reply_ns, recovery_ns, split }
    }
}

/// One operation.
pub(super) struct Operation<'a> {
    pub(super) columns: &'a Columns,
    pub(super) row: usize,
    pub(super) recording: u32,
    times: Times,
    /// Whether its share is that of pipes.
    pub(super) is_pipe: bool,
    /// Whether any operation of its batch has a slice of the server's time.
    pub(super) has_slices: bool,
    pub(super) command: Option<TextId>,
    /// The texts of these columns as numbers.
    pub(super) client: Option<TextId>,
    pub(super) server_text: Option<TextId>,
    pub(super) share: Option<TextId>,
    pub(super) path: Option<TextId>,
    pub(super) folder: Option<TextId>,
    pub(super) act: Act,
    /// For an open: whether it opens an existing file only, and the access and options that it requests.
    pub(super) opens_existing: bool,
    pub(super) intent: CreateIntent,
    /// Whether it has a time of its own, and does not wait by design.
    pub(super) is_timed: bool,
    pub(super) elapsed_ns: i64,
    pub(super) busy_ns: i64,
    pub(super) connection: u64,
    pub(super) handle: Option<(u32, u64)>,
    pub(super) status: Option<u32>,
    /// The finding that explains its time by itself, so that the file system, load or chance do not.
    pub(super) explained: Option<FindingKind>,
    /// How long its connection was silent before its reply, ns: with many requests in flight, the wait
    /// for one of them includes the replies before it.
    pub(super) silent_ns: i64,
    /// The number of its server, across recordings.
    pub(super) server: u32,
    /// Its number among the operations that are kept for replaying.
    pub(super) number: Option<u32>,
    pub(super) start: Option<i64>,
    pub(super) bytes: u64,
}

impl Operation<'_> {
    pub(super) fn client_name(&self) -> Option<&str> {
        self.columns.client.get(self.row)
    }

    pub(super) fn server_name(&self) -> Option<&str> {
        self.columns.server.get(self.row)
    }

    pub(super) fn share_name(&self) -> Option<&str> {
        self.columns.share.get(self.row)
    }

    /// Whether its time is that of a queue: many others are in flight on its connection.
    pub(super) fn is_crowded(&self) -> bool {
        self.columns.outstanding.get(self.row).unwrap_or(0) >= CROWD
    }

    /// Whether the client paused before it for half of its time or more: it was not waiting to send it.
    pub(super) fn has_paused(&self) -> bool {
        let gap_ns = self.columns.client_gap_ns.get(self.row).unwrap_or(0);
        gap_ns.saturating_mul(2) > self.elapsed_ns
    }

    /// The folder that a listing is of: SMB1 names a pattern in it.
    pub(super) fn listed_folder(&self) -> Option<TextId> {
        let is_pattern = self.path_name().is_some_and(|path| {
            path.rsplit('\\').next().is_some_and(|name| name.contains(['*', '?', '"', '<', '>']))
        });
        if is_pattern { self.folder } else { self.path }
    }

    pub(super) fn path_name(&self) -> Option<&str> {
        self.columns.path.get(self.row)
    }

    /// The busy time that corresponds to a part of the operation's own time. Operations in flight
    /// together share the time of their connection.
    pub(super) fn of_busy(&self, ns: i64) -> i64 {
        let ns = ns.clamp(0, self.elapsed_ns);
        match (self.elapsed_ns, self.busy_ns.checked_mul(ns)) {
            (0, _) => 0,
            (elapsed, Some(product)) => product / elapsed,
            // 128-bit division is slow and rarely needed.
            (elapsed, None) => {
                (i128::from(self.busy_ns) * i128::from(ns) / i128::from(elapsed)) as i64
            }
        }
    }

    /// The operation's own time that corresponds to a part of its busy time: the reverse of
    /// [`Operation::of_busy`].
    pub(super) fn of_own(&self, busy_ns: i64) -> i64 {
        if self.busy_ns <= 0 {
            return 0;
        }
        let ns = i128::from(self.elapsed_ns) * i128::from(busy_ns) / i128::from(self.busy_ns);
        ns.clamp(0, i128::from(self.elapsed_ns)) as i64
    }

    /// Whether it is an open with an interim response: it waits for other clients, as a lock does. Other
    /// requests have one because they take long.
    pub(super) fn waits_for_others(&self) -> bool {
        let is_pending = self.columns.pending_at.get(self.row).is_some();
        self.act == Act::Lock || self.act == Act::Open && is_pending
    }

    /// Bytes and time of the reply and of the request, each if it is long enough to show the rate of
    /// the network.
    pub(super) fn long_messages(&self) -> [Option<(u64, i64)>; 2] {
        let columns = self.columns;
        [
            (&columns.response_wire_bytes, &columns.response_transfer_ns),
            (&columns.request_wire_bytes, &columns.request_transfer_ns),
        ]
        .map(|(bytes, ns)| {
            let bytes = bytes.get(self.row).filter(|bytes| *bytes >= LONG_BYTES)?;
            Some((bytes.min(BYTES_MAX), duration(ns.get(self.row)?)))
        })
    }

    /// When a message that took `ns` began; `direction` is 0 for the reply.
    pub(super) fn message_begin(&self, direction: usize, ns: i64) -> i64 {
        let start = self.start.unwrap_or(0);
        if direction == 0 { start.saturating_add(self.elapsed_ns - ns) } else { start }
    }

    /// The time `ns` before the first byte of the reply.
    pub(super) fn silent_from(&self, ns: i64) -> i64 {
        self.message_begin(0, self.reply_ns()).saturating_sub(ns)
    }

    /// Time in which the request and the reply were in flight.
    pub(super) fn transfer_ns(&self) -> i64 {
        self.times.transfer_ns
    }

    /// From the first to the last byte of the reply.
    pub(super) fn reply_ns(&self) -> i64 {
        self.times.reply_ns
    }

    /// From the last byte of the request to the first of the reply, within the time it took.
    pub(super) fn turnaround_ns(&self) -> Option<i64> {
        self.times.turnaround_ns
    }

    /// The server's and the network's part of the turnaround, without the recovery from losses.
    pub(super) fn split(&self) -> Option<(i64, i64)> {
        self.times.split
    }

    /// Time in which TCP recovered from losses.
    pub(super) fn recovery_ns(&self) -> i64 {
        self.times.recovery_ns
    }

    /// A slice of the server's time. Windows' events count the file system in two slices, and signing and
    /// encryption in one for both directions.
    pub(super) fn slice(&self, kind: Kind) -> Option<i64> {
        if !self.has_slices {
            return None;
        }
        let more = match kind {
            Kind::Filesystem => self.columns.filesystem_slow_ns.get(self.row),
            Kind::CryptoIn => self.columns.security_ns.get(self.row),
            _ => None,
        };
        let column = match kind {
            Kind::Queue => &self.columns.queue_ns,
            Kind::Filesystem => &self.columns.filesystem_ns,
            Kind::IoWait => &self.columns.io_wait_ns,
            Kind::Io => &self.columns.io_ns,
            Kind::Flush => &self.columns.flush_ns,
            Kind::LockWait => &self.columns.lock_wait_ns,
            Kind::CryptoIn => &self.columns.crypto_in_ns,
            Kind::CryptoOut => &self.columns.crypto_out_ns,
            _ => return None,
        };
        match (column.get(self.row), more) {
            (None, None) => None,
            (own, more) => Some(duration(own.unwrap_or(0).saturating_add(more.unwrap_or(0)))),
        }
    }

    pub(super) fn example(&self) -> Example {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Example {
            recording: text(self.columns.recording.get(self.row)),
            operation: self.columns.operation.get(self.row),
            command: self.columns.command.get(self.row).unwrap_or("(unknown)").to_owned(),
            path: text(self.path_name()),
            elapsed_ns: self.columns.elapsed_ns.get(self.row).map(duration),
            pending_ns: self
                .columns
                .pending_at
                .get(self.row)
                .zip(self.start)
                .map(|(at, start)| duration(at.saturating_sub(start))),
            request_frame: self.columns.request_frame.get(self.row),
            response_frame: self.columns.response_frame.get(self.row),
        }
    }
}
