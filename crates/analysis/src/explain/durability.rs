//! What is written and never made stable: a backup, a database or a virtual disk that a power failure would
//! damage (MS-SMB2 sections 2.2.13, 2.2.17 and 2.2.21: FILE_WRITE_THROUGH, SMB2_WRITEFLAG_WRITE_THROUGH, FLUSH).

use hashbrown::HashMap;

use super::data::About;
use super::operation::{Act, Seen};

/// Opens that are followed at once; beyond that all are forgotten.
const OPENS_MAX: usize = 65_536;
/// Files of less are no backup, bytes.
const LEAST_BYTES: u64 = 1 << 20;
/// Writes without which nothing is said of them all.
const WRITES_LEAST: u64 = 20;
/// Ends of names of what must survive a power failure.
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

/// All writes.
#[derive(Default)]
pub(super) struct Durability {
    opens: HashMap<(u32, u64), Open, foldhash::fast::RandomState>,
    writes: u64,
    through: u64,
    /// Files that were closed without, their bytes, and one of them.
    bare: (u64, u64, String),
}

impl Durability {
    pub(super) fn see(&mut self, seen: &Seen) {
        match (seen.act, seen.handle) {
            (Act::Write, handle) => {
                let is_through = seen.columns.write_through.is_set(seen.row);
                self.writes += 1;
                self.through += u64::from(is_through);
                let Some((handle, path)) = handle.zip(seen.path_name()) else { return };
                if let Some(open) = self.opens.get_mut(&handle) {
                    open.bytes = open.bytes.saturating_add(seen.bytes);
                    // The last write stands for all: whoever cares asks for each.
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
                self.opens.insert(handle, Open { bytes: seen.bytes, is_stable: is_through, name });
            }
            (Act::Flush, Some(handle)) => {
                if let Some(open) = self.opens.get_mut(&handle) {
                    open.is_stable = true;
                }
            }
            (Act::Close, Some(handle)) => {
                if let Some(open) = self.opens.remove(&handle)
                    && !open.is_stable
                    && open.bytes >= LEAST_BYTES
                {
                    self.bare.0 += 1;
                    self.bare.1 = self.bare.1.saturating_add(open.bytes);
                    self.bare.2 = open.name;
                }
            }
            _ => {}
        }
    }

    pub(super) fn notes(&self, note: &mut impl FnMut(bool, About, String)) {
        let Durability { writes, through, bare: (files, bytes, name), .. } = self;
        note(
            *writes >= WRITES_LEAST && through == writes,
            About::WriteThrough,
            format!("all {writes} writes ask to be stable before they are answered"),
        );
        note(
            *files > 0,
            About::NotStable,
            format!(
                "{files} databases, backups or virtual disks ({} MB, {name} the last) were written and closed, and \
                 nothing asked for stable storage, neither a Flush nor write-through: a power failure at the \
                 server may lose them after the client believes them safe",
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
