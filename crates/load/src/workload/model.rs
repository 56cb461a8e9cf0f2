//! A workload after reading: scenarios, their steps and requests, the files they use.
//!
//! Owns the types that the executor walks. `parse` defines how they are written in TOML, `check` which
//! of them are valid, `plan` what one execution makes of them. Codes are `wire`'s (MS-SMB2 section 2.2,
//! MS-FSCC sections 2.3 to 2.6).

use std::time::Duration;

use smbscope_wire::smb2::Command;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::fsctl::Fsctl;
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType, SecurityInformation};
use smbscope_wire::smb2::lease::LeaseState;
use smbscope_wire::smb2::notify::CompletionFilter;
use smbscope_wire::status::Status;

use super::template::{PickId, Template};
use crate::fileset::{FileSet, Pool, Scale};

/// A whole workload: what one user does, how often, and with which files.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name of a built-in, or the file's name without its ending.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// When a user's executions are due.
    pub pacing: Pacing,
    /// Folders below the user's home that exist although no pool names them.
    pub folders: Vec<String>,
    /// The files, in the order of the TOML file; a pick names one by its index.
    pub pools: Vec<Pool>,
    /// The scenarios, in the order of the TOML file.
    pub scenarios: Vec<Scenario>,
}

impl Workload {
    /// Executions that one user starts in an hour, all scenarios together.
    pub fn runs_per_hour(&self) -> f64 {
        self.scenarios.iter().map(|scenario| scenario.runs_per_hour).sum()
    }

    /// Mean time between the starts of two executions of one user.
    pub fn mean_interval(&self) -> Duration {
        Duration::from_secs_f64(3600.0 / self.runs_per_hour())
    }

    /// The files of all its users. `seed` and `scale` must be those of the run that uses the set.
    pub fn file_set(&self, seed: u64, scale: Scale) -> FileSet {
        FileSet::new(&self.name, &self.folders, &self.pools, seed, scale)
    }

    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }
}

/// When a user's executions are due; the mean interval follows from the frequencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// One execution in every interval, at a random point in the interval's first part. `jitter` is the
    /// length of that part, from 0 (a metronome) to 1 (anywhere).
    Slotted {
        /// Share of the interval in which executions start.
        jitter: f64,
    },
    /// Exponential intervals: a Poisson process for each user.
    Exponential,
}

/// One thing that a user does, always with the same steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, unique in the workload.
    pub name: String,
    /// What it represents.
    pub description: String,
    /// Executions per user and hour, positive.
    pub runs_per_hour: f64,
    /// The files that one execution is about.
    pub picks: Vec<Pick>,
    /// All paths and search patterns of the steps; a [`PathId`] is an index.
    pub paths: Vec<Template>,
    /// Names of the handles; a [`Slot`] is an index.
    pub handles: Vec<String>,
    /// Names of the notifications; a [`NotifySlot`] is an index.
    pub notifications: Vec<String>,
    /// What is sent, in order.
    pub steps: Vec<Step>,
}

/// A file that an execution is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Its name in path templates.
    pub name: String,
    /// How it is found.
    pub how: PickHow,
}

/// How an execution chooses its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickHow {
    /// Any file of the pool, with equal probability.
    Any {
        /// Index of a static or volatile pool.
        pool: usize,
    },
    /// The next name of a pool of new files; this execution creates its file.
    Make {
        /// Index of a pool of class new.
        pool: usize,
    },
    /// A file that this execution deletes: the next one of the first pool that still has one.
    Take {
        /// Indices of volatile and new pools, in the order in which they are used up.
        pools: Vec<usize>,
    },
}

/// Index of a path in [`Scenario::paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

/// Index of an open handle; the executor keeps an array of [`Scenario::handles`]' length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

/// Index of a notification that waits on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotifySlot(pub u8);

/// One message of the client: a request, or several as one compound.
///
/// A read or write is the exception: its [`Transfer`] is sent as as many messages as it has blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What the application does with it.
    pub action: String,
    /// Notifications whose answer is awaited before this is sent (a change has fired them).
    pub wait: Vec<NotifySlot>,
    /// What is sent. More than one is a compound of related requests on one handle: the first
    /// names the handle (or is the Create that opens it), the others carry
    /// `SMB2_FLAGS_RELATED_OPERATIONS` and a FileId of all ones.
    pub requests: Vec<Request>,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The request.
    pub op: Op,
    /// The handle that it uses, or that a successful Create opens; `None` for a Create that must fail
    /// and for a Cancel.
    pub slot: Option<Slot>,
    /// The expected statuses. For a ChangeNotify, the status of its last answer.
    pub expect: Expect,
    /// Left out by the client cache `collapse`: the open only reaches the client's own cache.
    pub collapse: bool,
    /// Left out by the client cache `dirlease` while the client holds a lease on this directory.
    ///
    /// The decision is made once for each handle, at its Create: when that is left out, all
    /// marked requests on the handle are, and the others (queries, notifications) go to the
    /// handle that the client keeps open under the lease; a compound that lost its first request
    /// starts with the next. When the Create is sent, all are sent. A marked Create of the
    /// directory itself may ask for the lease ([`Scenario::may_acquire`]) and keeps its handle
    /// instead of the Close.
    pub lease: Option<PathId>,
}

/// Up to four statuses, any of which is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expect {
    statuses: [Status; 4],
    count: u8,
}

impl Expect {
    /// Only success.
    pub const SUCCESS: Expect = Expect { statuses: [Status::SUCCESS; 4], count: 1 };

    /// Any of these; `None` if there are none or more than four.
    pub fn any_of(list: &[Status]) -> Option<Expect> {
        let mut statuses = [Status::SUCCESS; 4];
        statuses.get_mut(..list.len())?.copy_from_slice(list);
        (!list.is_empty()).then_some(Expect { statuses, count: list.len() as u8 })
    }

    /// The statuses.
    pub fn statuses(&self) -> &[Status] {
        self.statuses.get(..usize::from(self.count)).unwrap_or(&self.statuses)
    }

    /// Whether the status is one of them. That something does not exist may be said by any status that
    /// means it.
    #[inline]
    pub fn holds(&self, status: Status) -> bool {
        let statuses = self.statuses();
        statuses.contains(&status)
            || status.is_absent() && statuses.iter().any(|expected| expected.is_absent())
    }

    /// Whether all of them are errors: a Create with these opens nothing.
    pub fn fails(&self) -> bool {
        self.statuses().iter().all(|status| status.is_error())
    }
}

/// The contents of a request.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Op {
    Create(Create),
    Close {
        /// Requests the attributes in the reply (SMB2_CLOSE_FLAG_POSTQUERY_ATTRIB).
        post_query: bool,
    },
    Read(Transfer),
    Write(Transfer),
    Flush,
    Lock(Lock),
    Ioctl(Ioctl),
    QueryDirectory(QueryDirectory),
    QueryInfo(QueryInfo),
    SetInfo(SetInfo),
    ChangeNotify(ChangeNotify),
    Cancel {
        /// The notification that waits.
        notification: NotifySlot,
    },
}

impl Op {
    /// The command on the wire.
    pub fn command(&self) -> Command {
        match self {
            Op::Create(_) => Command::CREATE,
            Op::Close { .. } => Command::CLOSE,
            Op::Read(_) => Command::READ,
            Op::Write(_) => Command::WRITE,
            Op::Flush => Command::FLUSH,
            Op::Lock(_) => Command::LOCK,
            Op::Ioctl(_) => Command::IOCTL,
            Op::QueryDirectory(_) => Command::QUERY_DIRECTORY,
            Op::QueryInfo(_) => Command::QUERY_INFO,
            Op::SetInfo(_) => Command::SET_INFO,
            Op::ChangeNotify(_) => Command::CHANGE_NOTIFY,
            Op::Cancel { .. } => Command::CANCEL,
        }
    }
}

/// An open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create {
    /// The path.
    pub path: PathId,
    /// The requested rights.
    pub access: AccessMask,
    /// What to do if the file exists or does not exist.
    pub disposition: CreateDisposition,
    /// Options, as sent on the wire.
    pub options: CreateOptions,
    /// What other opens may do meanwhile.
    pub share: ShareAccess,
    /// Attributes of a created file.
    pub attributes: FileAttributes,
    /// The requested oplock if there is no lease (dialect 2.0.2, or [`Create::lease`] empty).
    pub oplock: OplockLevel,
    /// The requested lease (2.1 and later); `NONE` requests no lease.
    pub lease: LeaseState,
}

/// A read or write of (a part of) a file in blocks. The executor expands it; [`super::Plan::amount`]
/// gives its bytes and blocks in one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The file, for size and contents.
    pub file: PickId,
    /// Where it begins, in bytes.
    pub offset_bytes: u64,
    /// At most this many bytes; `None` up to the file's end.
    pub limit_bytes: Option<u64>,
    /// Bytes of one request; the last may have fewer.
    pub block_bytes: u32,
    /// Requests in flight at once.
    pub depth: u16,
    /// Writes: with SMB2_WRITEFLAG_WRITE_THROUGH (3.x).
    pub write_through: bool,
    /// Without the server's cache (SMB2_READFLAG_READ_UNBUFFERED, SMB2_WRITEFLAG_WRITE_UNBUFFERED;
    /// 3.0.2 and later).
    pub unbuffered: bool,
}

/// A byte-range lock or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// First byte.
    pub offset_bytes: u64,
    /// Number of bytes.
    pub length_bytes: u64,
    /// The operation.
    pub kind: LockKind,
    /// Fails instead of waiting (SMB2_LOCKFLAG_FAIL_IMMEDIATELY).
    pub fail_immediately: bool,
}

/// What a lock request does to its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LockKind {
    Shared,
    Exclusive,
    Unlock,
}

/// A control request. The executor adds the input for the code (nothing for most; the whole file's
/// range for FSCTL_QUERY_ALLOCATED_RANGES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioctl {
    /// The control code.
    pub code: Fsctl,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

/// A part of a directory's listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryDirectory {
    /// The information for each entry.
    pub class: FileInfoClass,
    /// The search pattern (a name, not a path).
    pub pattern: PathId,
    /// Starts again at the first entry (SMB2_RESTART_SCANS).
    pub restart: bool,
    /// Only one entry (SMB2_RETURN_SINGLE_ENTRY).
    pub single: bool,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

/// A query of a file, its file system or its security descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryInfo {
    /// The type of information.
    pub info_type: InfoType,
    /// The class within the type; 0 for security.
    pub class: u8,
    /// For security: the requested parts.
    pub security: SecurityInformation,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

/// A change of a file's information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetInfo {
    /// FileDispositionInformation.
    Disposition {
        /// Whether the file is deleted when it is closed; false cancels that.
        delete: bool,
    },
    /// FileRenameInformation.
    Rename {
        /// The new path.
        to: PathId,
        /// Whether a file of that name may be replaced.
        replace: bool,
    },
    /// FileBasicInformation.
    Basic {
        /// The four times.
        times: Times,
        /// The attributes; 0 leaves them unchanged.
        attributes: FileAttributes,
    },
    /// FileEndOfFileInformation.
    EndOfFile(Length),
    /// FileAllocationInformation.
    Allocation(Length),
}

/// The times of a FileBasicInformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// All 0: unchanged.
    Keep,
    /// All -1: operations on this handle no longer change them (MS-FSCC section 2.4.7).
    Freeze,
    /// Creation and last write are those of that file ([`crate::fileset::FileRef::modified`]); the
    /// others stay.
    Of(PickId),
}

/// A file length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The length of that file.
    Of(PickId),
    /// A number of bytes.
    Bytes(u64),
}

/// A notification that is left waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeNotify {
    /// Its name for waits and cancels.
    pub notification: NotifySlot,
    /// The requested changes.
    pub filter: CompletionFilter,
    /// Also in subfolders (SMB2_WATCH_TREE).
    pub tree: bool,
    /// Longest answer in bytes.
    pub output_bytes: u32,
}

impl Scenario {
    /// Whether the Create that begins this step may request a lease on its directory and keep its
    /// handle under it (opened at least with the rights for a listing): it is marked for a lease, opens
    /// the lease's directory itself, and no notification that the lease would answer is sent on its
    /// handle. (A handle that was watched before answers a later notification with the changes since
    /// then: such an open is sent without a lease, and closed.) `step` is one of [`Scenario::steps`]
    /// itself.
    pub fn may_acquire(&self, step: &Step) -> bool {
        let place = self.steps.iter().position(|own| std::ptr::eq(own, step));
        let rest = place.and_then(|place| self.steps.get(place..)).unwrap_or_default();
        let first = rest.first().and_then(|step| step.requests.first());
        let Some(Request { op: Op::Create(create), slot: Some(slot), lease: Some(lease), .. }) =
            first
        else {
            return false;
        };
        let on_handle = rest
            .iter()
            .flat_map(|step| &step.requests)
            .filter(|request| request.slot == Some(*slot));
        let until_closed = on_handle.take_while(|request| !matches!(request.op, Op::Close { .. }));
        let watched = |request: &Request| {
            matches!(request.op, Op::ChangeNotify(_)) && request.lease.is_some()
        };
        create.path == *lease && !until_closed.into_iter().any(watched)
    }

    /// The pools that its files come from.
    pub(super) fn pools(&self) -> impl Iterator<Item = usize> + '_ {
        self.picks.iter().flat_map(|pick| match &pick.how {
            PickHow::Any { pool } | PickHow::Make { pool } => vec![*pool],
            PickHow::Take { pools } => pools.clone(),
        })
    }

    /// The path of an id, in TOML form.
    pub fn template(&self, path: PathId) -> Option<&Template> {
        self.paths.get(usize::from(path.0))
    }

    /// All requests, in order.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.steps.iter().flat_map(|step| &step.requests)
    }
}
