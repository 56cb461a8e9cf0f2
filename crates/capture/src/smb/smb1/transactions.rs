//! Transactions: what their requests and replies add to the row, and when they are complete.
//!
//! MS-CIFS sections 2.2.4.33, .34, .46, .47, .62, .63 (the messages), 2.2.5 to 2.2.7 (the
//! subcommands). A request is complete when its parts add up to the totals; that decides only
//! whether a reply without words asks for the rest, for the totals of real clients are not to be
//! relied on.

use smbscope_tables::code::{self, Detail};
use smbscope_wire::read::u16_at;
use smbscope_wire::smb1::extent::Extent;
use smbscope_wire::smb1::file::FileRequest;
use smbscope_wire::smb1::nt_transact::{self, IoctlSetup, NtFunction};
use smbscope_wire::smb1::trans2::{self, Trans2};
use smbscope_wire::smb1::transaction::{Part, PipeCommand};
use smbscope_wire::smb1::{Block, Command, Text};

use super::member::{Answer, Member};
use super::open::{self, file_bytes, set_path};
use crate::outcome::Open;
use crate::smb::logon;
use crate::smb::pending::Pending;

/// Bytes of parameters and data that were seen, and how many were announced.
#[derive(Clone, Copy, Debug)]
struct Parts {
    total: u64,
    seen: u64,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { total: u64::MAX, seen: 0 }
    }
}

impl Parts {
    /// Totals may shrink on the way: the smallest counts.
    fn add(&mut self, extent: Extent) {
        self.total = self.total.min(extent.total);
        self.seen = self.seen.saturating_add(extent.brings);
    }

    fn is_whole(&self) -> bool {
        self.seen >= self.total
    }
}

/// What counts as the answer of a subcommand.
#[derive(Clone, Copy, Debug, Default)]
enum Bulk {
    /// Not known, as the subcommand is not: data, if there is any.
    #[default]
    Unknown,
    Data,
    Parameters,
    None,
}

/// Progress of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transaction {
    sent: Parts,
    got: Parts,
    /// The server has asked for the secondary messages.
    pub interim: bool,
    /// Subcommand or function.
    subcommand: Option<u16>,
    bulk: Bulk,
    dfs: bool,
}

impl Transaction {
    /// Whether a reply without words asks for the rest of the request.
    pub fn wants_interim(&self) -> bool {
        !self.interim && !self.sent.is_whole()
    }

    /// Takes a part of the answer; whether that is all of it.
    pub fn answer(&mut self, extent: Extent) -> bool {
        self.got.add(extent);
        self.got.is_whole()
    }

    /// Takes a secondary message of the request, as far as captured.
    pub fn secondary(&mut self, block: Block<'_>, member: &mut Member) {
        if let Some(extent) = Extent::from_block(block, true) {
            self.sent.add(extent);
        }
        if let Some(part) = Part::parse(block, true)
            && part.counts().parameter_displacement == 0
            && part.counts().parameter_count > 0
        {
            self.parameters(part, member);
        }
    }

    /// Fills the row from the parameters of the request.
    fn parameters(&self, part: Part<'_>, member: &mut Member) {
        let Some(subcommand) = self.subcommand else { return };
        let command = member.command();
        let row = &mut member.pending.row;
        match command {
            Command::TRANSACTION2 => {
                let subcommand = Trans2(subcommand);
                if let Some(level) = trans2::level(subcommand, part) {
                    let code = u32::from(subcommand.0) << 16 | u32::from(level.0);
                    row.set_detail(code::detail(Detail::Transaction2, code));
                }
                if let Some(fid) = trans2::fid(subcommand, part) {
                    row.set_file_id(file_bytes(fid));
                }
                // A name that continues in a secondary message is not available.
                let whole = part.counts().parameter_count >= part.counts().total_parameter_count;
                if whole && let Some(path) = trans2::path_of(subcommand, part) {
                    self.path(subcommand, path, &mut member.pending);
                }
                if subcommand == Trans2::OPEN2 {
                    open::open2(part, &mut member.pending.row);
                }
            }
            Command::NT_TRANSACT => {
                let function = NtFunction(subcommand);
                if let Some(fid) = nt_transact::fid(function, part) {
                    row.set_file_id(file_bytes(fid));
                }
                if function == NtFunction::CREATE {
                    open::nt_transact_create(part, &mut member.pending, self.dfs);
                }
            }
            _ => {}
        }
    }

    fn path(&self, subcommand: Trans2, path: Text<'_>, pending: &mut Pending) {
        match subcommand {
            // The name after which the search continues.
            Trans2::FIND_NEXT2 => {}
            // A path that begins with server and share, and is kept so.
            Trans2::GET_DFS_REFERRAL | Trans2::REPORT_DFS_INCONSISTENCY => {
                pending.name.clear();
                path.push_to(&mut pending.name);
                pending.has_name = true;
            }
            _ => set_path(pending, path, self.dfs),
        }
    }

    /// Fills the row from a primary message whose words were not captured whole.
    pub fn cut(block: Block<'_>, member: &mut Member) -> Transaction {
        let mut state = Transaction::default();
        if let Some(extent) = Extent::from_block(block, true) {
            state.sent.add(extent);
        }
        // A request that waits for minutes must not count as latency because it was cut.
        if nt_transact::is_notify_change(block) {
            let code = code::detail(Detail::NtTransact, u32::from(NtFunction::NOTIFY_CHANGE.0));
            member.pending.row.set_detail(code);
            member.pending.row.set_waits(true);
            state.bulk = Bulk::Parameters;
        }
        state
    }

    /// Fills the row from the primary message.
    pub fn request(part: Part<'_>, member: &mut Member, dfs: bool) -> Transaction {
        let mut state = Transaction { dfs, bulk: Bulk::Data, ..Transaction::default() };
        if let Some(extent) = Extent::from_block(part.block(), true) {
            state.sent.add(extent);
        }
        match part.block().command() {
            Command::TRANSACTION => state.pipe(part, member),
            Command::TRANSACTION2 => {
                state.subcommand = part.subcommand();
                let subcommand = part.subcommand().map(Trans2);
                if let Some(subcommand) = subcommand {
                    let code = u32::from(subcommand.0) << 16;
                    member.pending.row.set_detail(code::detail(Detail::Transaction2, code));
                }
                let sets = subcommand.is_some_and(sets);
                state.bulk = if sets { Bulk::None } else { Bulk::Data };
            }
            _ => {
                state.subcommand = part.nt_function();
                let function = part.nt_function().map(NtFunction);
                if let Some(function) = function {
                    let code = u32::from(function.0);
                    member.pending.row.set_detail(code::detail(Detail::NtTransact, code));
                }
                match function {
                    Some(NtFunction::IOCTL) => {
                        if let Some(fsctl) = IoctlSetup::new(part).function_code() {
                            member.pending.row.set_detail(code::detail(Detail::Fsctl, fsctl));
                        }
                    }
                    Some(NtFunction::NOTIFY_CHANGE) => {
                        member.pending.row.set_waits(true);
                        state.bulk = Bulk::Parameters;
                    }
                    Some(
                        NtFunction::SET_SECURITY_DESC
                        | NtFunction::SET_QUOTA
                        | NtFunction::CREATE
                        | NtFunction::RENAME,
                    ) => state.bulk = Bulk::None,
                    _ => {}
                }
            }
        }
        let requested = match (state.bulk, part.max_counts()) {
            (Bulk::None, _) => Some(part.counts().total_data_count),
            (Bulk::Data, Some((_, data))) => Some(data),
            _ => None,
        };
        if let Some(bytes) = requested {
            member.pending.row.set_requested_bytes(u64::from(bytes));
        }
        state.parameters(part, member);
        state
    }

    fn pipe(&mut self, part: Part<'_>, member: &mut Member) {
        let row = &mut member.pending.row;
        let detail = if is_mailslot(part) {
            self.bulk = Bulk::None;
            part.subcommand().map(|code| MAILSLOT | u32::from(code))
        } else if let Some(code) = part.subcommand() {
            if matches!(PipeCommand(code), PipeCommand::WRITE | PipeCommand::RAW_WRITE) {
                self.bulk = Bulk::None;
            }
            Some(u32::from(code))
        } else {
            part.rap_opcode().filter(|_| is_rap(part)).map(|code| RAP | u32::from(code))
        };
        if let Some(code) = detail {
            row.set_detail(code::detail(Detail::Transaction, code));
        }
    }

    /// Fills the row from a part of the answer.
    pub fn reply(&self, part: Part<'_>, member: &mut Member) {
        let counts = part.counts();
        let bytes = match self.bulk {
            Bulk::Unknown => Some(counts.data_count).filter(|&bytes| bytes > 0),
            Bulk::Data => Some(counts.data_count),
            Bulk::Parameters => Some(counts.parameter_count),
            Bulk::None => None,
        };
        let row = &mut member.pending.row;
        if let Some(bytes) = bytes {
            let before = row.transferred_bytes().unwrap_or(0);
            row.set_transferred_bytes(before + u64::from(bytes));
        }
        match (part.block().command(), self.subcommand) {
            (Command::NT_TRANSACT, Some(NT_CREATE)) => {
                let view = nt_transact::CreateResponse::new(part);
                let Some(fid) = view.fid() else { return };
                row.set_file_id(file_bytes(fid));
                if let Some(level) = view.oplock_level() {
                    row.set_oplock_granted(open::oplock(level));
                }
                member.answer = Answer::Open(Box::new(Open {
                    directory: view.directory().map(|directory| directory != 0),
                    size_bytes: view.end_of_file(),
                    disk_file_id: view.file_id().filter(|&id| id != 0),
                    ..Open::default()
                }));
            }
            (Command::TRANSACTION2, Some(FIND_FIRST2)) => {
                if let Some(sid) = trans2::FindFirst2Response::new(part).sid() {
                    member.answer = Answer::Search(sid);
                }
            }
            (Command::TRANSACTION2, Some(OPEN2)) => {
                let view = trans2::Open2Response::new(part);
                let Some(fid) = view.fid() else { return };
                row.set_file_id(file_bytes(fid));
                if let (Some(action), Some(asked)) = (view.action_taken(), row.oplock_requested()) {
                    row.set_oplock_granted(if action & 0x8000 != 0 { asked } else { 0 });
                }
                member.answer = Answer::Open(Box::new(Open {
                    directory: view.file_attributes().map(open::is_directory),
                    size_bytes: view.file_data_size().map(u64::from),
                    ..Open::default()
                }));
            }
            (Command::TRANSACTION2, Some(SET_PATH))
                if row.detail() == Some(code::detail(Detail::Transaction2, POSIX_OPEN)) =>
            {
                // Directories are made with it too, and have no FID.
                let Some(fid) = u16_at(part.data(), 2).filter(|&fid| fid != 0) else { return };
                row.set_file_id(file_bytes(fid));
                member.answer = Answer::Open(Box::default());
            }
            (Command::TRANSACTION2, Some(GET_DFS_REFERRAL)) => {
                let targets = logon::referrals(part.data());
                if !targets.is_empty() {
                    member.answer = Answer::Referrals(targets);
                }
            }
            _ => {}
        }
    }
}

const NT_CREATE: u16 = NtFunction::CREATE.0;
const FIND_FIRST2: u16 = Trans2::FIND_FIRST2.0;
const OPEN2: u16 = Trans2::OPEN2.0;
const SET_PATH: u16 = Trans2::SET_PATH_INFORMATION.0;
/// SMB_POSIX_PATH_OPEN of SetPathInformation in the detail: of the UNIX extensions, after the oplock
/// two bytes of FID (Samba's source3/smbd/smb1_trans2.c).
const POSIX_OPEN: u32 = (SET_PATH as u32) << 16 | 0x209;
const GET_DFS_REFERRAL: u16 = Trans2::GET_DFS_REFERRAL.0;

/// Upper bits of [`Detail::Transaction`].
const MAILSLOT: u32 = 1 << 16;
const RAP: u32 = 2 << 16;

/// The listing that a request continues or ends.
pub fn search_of(block: Block<'_>) -> Option<u16> {
    match block.command() {
        Command::FIND_CLOSE2 => FileRequest::new(block).fid(),
        Command::TRANSACTION2 => {
            let part = Part::parse(block, true)?;
            let goes_on = part.subcommand().map(Trans2) == Some(Trans2::FIND_NEXT2);
            trans2::FindNext2Request::new(part).sid().filter(|_| goes_on)
        }
        _ => None,
    }
}

/// Whether a Transaction writes to a mailslot and is not answered.
pub fn is_one_way(part: Part<'_>) -> bool {
    /// NO_RESPONSE in the Flags of a Transaction request.
    const NO_RESPONSE: u8 = 0x02;
    is_mailslot(part)
        && part.counts().is_whole()
        && part.block().words().get(10).is_some_and(|flags| flags & NO_RESPONSE != 0)
}

/// Calls of MS-RAP go to a pipe of this name.
fn is_rap(part: Part<'_>) -> bool {
    part.name().is_some_and(|name| name.decode().eq_ignore_ascii_case("\\PIPE\\LANMAN"))
}

fn is_mailslot(part: Part<'_>) -> bool {
    part.pipe_command_name() == Some("MailslotWrite")
}

fn sets(subcommand: Trans2) -> bool {
    matches!(
        subcommand,
        Trans2::SET_FS_INFORMATION
            | Trans2::SET_PATH_INFORMATION
            | Trans2::SET_FILE_INFORMATION
            | Trans2::CREATE_DIRECTORY
            | Trans2::OPEN2
    )
}
