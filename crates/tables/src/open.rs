//! One open from Create to Close, tracked from its operations: the source of a row of `handles`.
//!
//! All sources of operations use it. Finding the open of an operation is up to the source.

use std::sync::Arc;

use crate::operation::code;
use crate::operation::{Column, Operation};
use crate::tables::Handle;

/// Values of a Create response that are not columns of the operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateResult {
    /// Whether it is a directory.
    pub directory: Option<bool>,
    /// Size of the file.
    pub size_bytes: Option<u64>,
    /// Whether a durable handle was granted.
    pub durable: Option<bool>,
    /// Whether a persistent handle was granted.
    pub persistent: Option<bool>,
    /// The file's number on disk.
    pub disk_file_id: Option<u64>,
}

/// An open and its counts so far.
#[derive(Clone, Debug, Default)]
pub struct OpenLife {
    /// Its number.
    pub handle: u64,
    connection: u64,
    session_id: Option<u64>,
    tree_id: Option<u32>,
    opened: Option<Opened>,
    /// End: time, and the operation if one ended it.
    closed: Option<(i64, Option<u64>)>,
    size_bytes: Option<u64>,
    operations: u64,
    /// Reads and writes, and their bytes.
    transfers: [(u64, u64); 2],
}

/// Values from a Create.
#[derive(Clone, Debug)]
struct Opened {
    at: i64,
    operation: u64,
    desired_access: Option<u32>,
    share_access: Option<u32>,
    create_options: Option<u32>,
    write_through: Option<bool>,
    oplock: Option<u64>,
    lease: Option<u64>,
    result: CreateResult,
}

/// The texts of an open's row.
#[derive(Clone, Debug, Default)]
pub struct OpenNames {
    /// The recording.
    pub recording: Arc<str>,
    /// The client's address.
    pub client: Arc<str>,
    /// User.
    pub user: Option<Arc<str>>,
    /// Share.
    pub share: Option<Arc<str>>,
    /// File or directory.
    pub path: Option<Arc<str>>,
}

impl OpenLife {
    /// An open with number `handle` whose first operation is `row`.
    pub fn new(handle: u64, row: &Operation) -> OpenLife {
        let mut life = OpenLife::default();
        life.begin(handle, row);
        life
    }

    /// Replaces it by another open, as [`OpenLife::new`] would create it, without an allocation.
    pub fn begin(&mut self, handle: u64, row: &Operation) {
        let OpenLife {
            handle: number,
            connection,
            session_id,
            tree_id,
            opened,
            closed,
            size_bytes,
            operations,
            transfers,
        } = self;
        *number = handle;
        *connection = row.connection().unwrap_or_default();
        (*session_id, *tree_id) = (row.session_id(), row.tree_id());
        (*opened, *closed, *size_bytes) = (None, None, None);
        (*operations, *transfers) = (0, [(0, 0); 2]);
    }

    /// Takes the values of its Create, which ended at `time`.
    pub fn open(&mut self, row: &Operation, result: CreateResult, time: i64) {
        self.size_bytes = result.size_bytes;
        self.opened = Some(Opened {
            at: time,
            operation: row.operation().unwrap_or_default(),
            desired_access: row.desired_access(),
            share_access: row.share_access(),
            create_options: row.create_options(),
            write_through: row.write_through(),
            oplock: row.oplock_granted(),
            lease: row.lease_granted(),
            result,
        });
    }

    /// Counts an operation on it. `writes` is `Some` for an operation that moves data: true for a
    /// write.
    #[inline]
    pub fn count(&mut self, row: &Operation, writes: Option<bool>) {
        self.operations += 1;
        if let Some(writes) = writes {
            let (transfers, bytes) = &mut self.transfers[usize::from(writes)];
            *transfers += 1;
            *bytes += row.transferred_bytes().unwrap_or(0);
        }
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Whether it outlives its connection (MS-SMB2 section 3.3.7.1).
    pub fn is_durable(&self) -> bool {
        let lasting = |opened: &Opened| [opened.result.durable, opened.result.persistent];
        self.opened.as_ref().is_some_and(|opened| lasting(opened).contains(&Some(true)))
    }

    /// Whether it ends with a session, or with one tree of it.
    pub fn is_of(&self, session_id: u64, tree_id: Option<u32>) -> bool {
        self.session_id == Some(session_id) && (tree_id.is_none() || self.tree_id == tree_id)
    }

    /// Connection on which it was opened or first seen.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Takes the values of its Close, which ended at `time`.
    pub fn close(&mut self, row: &Operation, size_bytes: Option<u64>, time: i64) {
        self.closed = Some((time, row.operation()));
        self.size_bytes = size_bytes.or(self.size_bytes);
    }

    /// Ends it without a Close: with its tree or session, which `operation` ended, or with its
    /// connection.
    pub fn end(&mut self, time: i64, operation: Option<u64>) {
        self.closed.get_or_insert((time, operation));
    }

    /// Its row.
    pub fn row(&self, file_id: [u8; 16], names: OpenNames) -> Handle {
        let [(reads, read_bytes), (writes, written_bytes)] = self.transfers;
        let row = Handle {
            recording: names.recording,
            handle: self.handle,
            connection: self.connection,
            session_id: self.session_id,
            tree_id: self.tree_id.map(u64::from),
            client: names.client,
            user: names.user,
            share: names.share,
            path: names.path,
            file_id,
            closed_at: self.closed.map(|(at, _)| at),
            close_operation: self.closed.and_then(|(_, operation)| operation),
            operations: self.operations,
            reads,
            writes,
            read_bytes,
            written_bytes,
            size_bytes: self.size_bytes,
            ..Handle::default()
        };
        let Some(opened) = &self.opened else { return row };
        Handle {
            directory: opened.result.directory,
            opened_at: Some(opened.at),
            create_operation: Some(opened.operation),
            desired_access: opened.desired_access.map(u64::from),
            share_access: opened.share_access.map(u64::from),
            create_options: opened.create_options.map(u64::from),
            write_through: opened.write_through,
            oplock: opened.oplock.map(|level| code::text(Column::oplock_granted, level)),
            lease: opened.lease.map(|state| code::text(Column::lease_granted, state)),
            durable: opened.result.durable,
            persistent: opened.result.persistent,
            disk_file_id: opened.result.disk_file_id,
            ..row
        }
    }
}

/// Whether an SMB2 operation moves file data, and which way: `Some(true)` for a Write.
#[inline]
pub fn smb2_writes(row: &Operation) -> Option<bool> {
    const READ: u64 = 2 << 16 | 8;
    const WRITE: u64 = 2 << 16 | 9;
    match row.command() {
        Some(READ) => Some(false),
        Some(WRITE) => Some(true),
        _ => None,
    }
}
