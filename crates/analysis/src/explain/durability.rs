//! Files that are written and never flushed to stable storage: a backup, a database or a virtual disk
//! that a power failure would damage (MS-SMB2 sections 2.2.13, 2.2.17 and 2.2.21: FILE_WRITE_THROUGH, SMB2_WRITEFLAG_WRITE_THROUGH, FLUSH).

use hashbrown::HashMap;

use super::data::About;
use super::operation::{Act, Operation};

/// Most opens that are followed; when there are more, all are forgotten.
const OPENS_MAX: usize = 65_536;
/// Smaller files are not taken for a backup or database, bytes.
const BYTES_LEAST: u64 = 1 << 20;
/// Fewest writes for a note that all of them use write-through.
const WRITES_LEAST: u64 = 20;
/// Extensions of files that must survive a power failure.
const PRECIOUS: &[&str] = &[
    "bak", "vbk", "vib", "tib", "vhd", "vhdx", "vmdk", "vdi", "qcow2", "mdf", "ndf", "ldf", "edb",
    "mdb", "accdb", "sqlite", "sqlite3", "db", "dbf", "pst", "ost", "fdb", "ibd",
];

/// What was written on one open.
struct Open {
    bytes: u64,
    is_stable: bool,
    name: String,
}

/// Writes, and opens of files that must survive a power failure.
#[derive(Default)]
pub(super) struct Durability {
    opens: HashMap<(u32, u64), Open, foldhash::fast::RandomState>,
    writes: u64,
    through: u64,
    /// Files that were closed without a flush, their bytes, and the last of them.
    unflushed: (u64, u64, String),
}

impl Durability {
    pub(super) fn see(&mut self, op: &Operation) {
        match (op.act, op.handle) {
            (Act::Write, handle) => {
                let is_through = op.columns.write_through.is_set(op.row);
                self.writes += 1;
                self.through += u64::from(is_through);
                let Some((handle, path)) = handle.zip(op.path_name()) else { return };
                if let Some(open) = self.opens.get_mut(&handle) {
                    open.bytes = open.bytes.saturating_add(op.bytes);
                    // The last write represents all: a client that needs stable storage requests it each time.
                    open.is_stable = is_through;
                    return;
                }
                if !is_precious(path) {
                    return;
                }
                if self.opens.len() >= OPENS_MAX {
                    self.opens.clear();
                }
                let name = path.to_owned();
                self.opens.insert(handle, Open { bytes: op.bytes, is_stable: is_through, name });
            }
            (Act::Flush, Some(handle)) => {
                if let Some(open) = self.opens.get_mut(&handle) {
                    open.is_stable = true;
                }
            }
            (Act::Close, Some(handle)) => {
                if let Some(open) = self.opens.remove(&handle)
                    && !open.is_stable
                    && open.bytes >= BYTES_LEAST
                {
                    self.unflushed.0 += 1;
                    self.unflushed.1 = self.unflushed.1.saturating_add(open.bytes);
                    self.unflushed.2 = open.name;
                }
            }
            _ => {}
        }
    }

    pub(super) fn notes(&self, note: &mut impl FnMut(bool, About, String)) {
        let Durability { writes, through, unflushed: (files, bytes, name), .. } = self;
        note(
            *writes >= WRITES_LEAST && through == writes,
            About::WriteThrough,
            format!("all {writes} writes request stable storage before the reply (write-through)"),
        );
        note(
            *files > 0,
            About::NotStable,
            format!(
                "{files} databases, backups or virtual disks ({} MB, the last one {name}) were written and closed \
                 without a Flush or write-through: a power failure at the server may lose data that the client \
                 believes to be safe",
                bytes / 1_000_000
            ),
        );
    }
}

fn is_precious(path: &str) -> bool {
    let name = path.rsplit('\\').next().unwrap_or(path);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    PRECIOUS.iter().any(|one| end.eq_ignore_ascii_case(one))
}
