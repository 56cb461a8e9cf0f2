//! Layouts of the events of Microsoft-Windows-SMBServer: the fields that all requests or all responses begin
//! with, and the times in responses.
//!
//! Up to build 22631 a response has hits and CPU cycles of seven kinds of work. In build 26100 and later, with
//! the same version of the event, it also has the number of an instance of the server, times instead of cycles,
//! direct placement for reads and writes, and the total. The manifests do not say the unit of these times:
//! `calibration` finds it.

use smbscope_tables::slice::Kind;
use smbscope_wire::smb2::Command;

use crate::windows::fields::Fields;

/// Which of the two layouts responses have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Hits and cycles.
    Cycles,
    /// Hits and times, with a total.
    Times,
}

/// The first build with times.
pub const FIRST_BUILD_WITH_TIMES: u32 = 26_100;

impl Layout {
    /// Both layouts.
    pub const ALL: [Layout; 2] = [Layout::Cycles, Layout::Times];

    /// The layout that a build of Windows writes.
    pub fn of_build(build: u32) -> Layout {
        if build >= FIRST_BUILD_WITH_TIMES { Layout::Times } else { Layout::Cycles }
    }
}

/// What every request and every response begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub session_id: u64,
    pub process_id: u32,
    pub tree_id: u32,
    pub message_id: u64,
    /// Message id of the first request of the compound.
    pub master_message_id: u64,
    pub command: Command,
    /// Requested or granted.
    pub credits: u16,
    /// Flags of the SMB2 header.
    pub flags: u32,
}

impl Head {
    /// Reads it.
    pub fn parse(fields: &mut Fields<'_>) -> Option<Head> {
        Some(Head {
            session_id: fields.u64()?,
            process_id: fields.u32()?,
            tree_id: fields.u32()?,
            message_id: fields.u64()?,
            master_message_id: fields.u64()?,
            command: Command(fields.u16()?),
            credits: fields.u16()?,
            flags: fields.u32()?,
        })
    }
}

/// Kinds of work in a response, in the order of the fields; direct placement only for reads and writes.
pub const WORK: [Kind; 8] = [
    Kind::Processing,
    Kind::Queue,
    Kind::Filesystem,
    Kind::FilesystemSlow,
    Kind::Transport,
    Kind::TransportSlow,
    Kind::TransportDirect,
    Kind::Security,
];

/// How often and how long the server did each kind of work, in the order of [`WORK`]. The unit is that of the
/// log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub hits: [u32; 8],
    pub durations: [u64; 8],
    /// The whole time, if the layout has it.
    pub total: Option<u64>,
}

impl Work {
    /// The sum of the kinds.
    pub fn sum(&self) -> u64 {
        self.durations.iter().fold(0, |sum, one| sum.saturating_add(*one))
    }
}

/// Status and work of a response: the fields that follow [`Head`].
pub fn outcome(fields: &mut Fields<'_>, layout: Layout, is_io: bool) -> Option<(u32, Work)> {
    let status = fields.u32()?;
    if layout == Layout::Times {
        // Srv2Instance.
        fields.u32()?;
    }
    let mut work = Work::default();
    for ((kind, hits), duration) in WORK.iter().zip(&mut work.hits).zip(&mut work.durations) {
        if *kind == Kind::TransportDirect && !(is_io && layout == Layout::Times) {
            continue;
        }
        *hits = fields.u32()?;
        *duration = fields.u64()?;
    }
    if layout == Layout::Times {
        work.total = Some(fields.u64()?);
    }
    Some((status, work))
}
