//! What a request's command adds to its row (MS-CIFS section 2.2.4, the requests).

use smbscope_tables::code::{self, Detail};
use smbscope_tables::operation::Operation;
use smbscope_wire::read::u16_at;
use smbscope_wire::smb1::create::{NtCreateAndXRequest, OplockLevel};
use smbscope_wire::smb1::file::EchoRequest;
use smbscope_wire::smb1::lock::{LockByteRangeRequest, LockingAndXRequest};
use smbscope_wire::smb1::negotiate::NegotiateRequest;
use smbscope_wire::smb1::open::{CreateRequest, OpenAndXRequest, OpenRequest};
use smbscope_wire::smb1::read::{ReadAndXRequest, ReadRawRequest, ReadRequest};
use smbscope_wire::smb1::session::SessionSetupAndXRequest;
use smbscope_wire::smb1::strings::Text;
use smbscope_wire::smb1::transaction::Part;
use smbscope_wire::smb1::tree::{TreeConnectAndXRequest, TreeConnectRequest};
use smbscope_wire::smb1::write::{WriteAndXRequest, WriteMode, WriteRawRequest, WriteRequest};
use smbscope_wire::smb1::{Block, Command, Flags2, Header, names};
use smbscope_wire::smb2::create::CreateDisposition;

use super::member::Member;
use super::open::{
    file_bytes, oplock, set_access_mode, set_create, set_oplock_requested, set_path,
};
use super::stage::{Stage, WriteRaw};
use super::transactions::{Transaction, is_one_way};
use crate::outcome::Session;
use crate::smb::logon;
use crate::smb::pairing::Pairing;
use crate::smb::pending::Pending;

/// Dialects of a Negotiate that are remembered; clients offer a dozen.
const DIALECTS: usize = 64;

/// Fills the row from a command, as far as captured. `chained` says that the file is the one
/// that the command before opens.
pub fn decode(
    block: Block<'_>,
    header: &Header,
    chained: bool,
    member: &mut Member,
    pairing: &mut Pairing,
) -> Stage {
    let dfs = header.flags2.has(Flags2::DFS);
    let command = block.command();
    let pending = &mut member.pending;
    if !matches!(command, Command::TRANSACTION2 | Command::NT_TRANSACT) {
        if let Some(fid) = names::request_fid(block).filter(|&fid| fid != 0xffff && !chained) {
            pending.row.set_file_id(file_bytes(fid));
        }
        if let Some(path) = names::request_path(block).filter(|_| is_from_root(block)) {
            set_path(pending, path, dfs);
        }
    }
    let row = &mut pending.row;
    match command {
        Command::READ_AND_X => {
            let view = ReadAndXRequest::new(block);
            set_range(row, view.offset(), view.max_count().map(u64::from));
        }
        Command::WRITE_AND_X => {
            let view = WriteAndXRequest::new(block);
            set_range(row, view.offset(), view.data_length().map(u64::from));
            set_write_through(row, view.write_mode());
        }
        Command::READ | Command::LOCK_AND_READ => {
            let view = ReadRequest::new(block);
            set_range(row, view.offset().map(u64::from), view.count().map(u64::from));
        }
        Command::WRITE | Command::WRITE_AND_UNLOCK | Command::WRITE_AND_CLOSE => {
            let view = WriteRequest::new(block);
            set_range(row, view.offset().map(u64::from), view.count().map(u64::from));
        }
        Command::READ_RAW | Command::READ_MPX => {
            let view = ReadRawRequest::new(block);
            set_range(row, view.offset(), view.max_count().map(u64::from));
            return match command {
                Command::READ_RAW => Stage::ReadRaw,
                _ => Stage::ReadMpx(0),
            };
        }
        Command::WRITE_RAW | Command::WRITE_MPX => return write_raw(block, row),
        Command::NT_CREATE_AND_X => nt_create(block, row),
        Command::OPEN_AND_X => open_and_x(block, row),
        Command::OPEN => {
            let view = OpenRequest::new(block);
            set_disposition(row, CreateDisposition::OPEN);
            set_access_mode(row, view.access_mode());
            set_oplock_requested(row, view.requested_oplock());
        }
        Command::CREATE | Command::CREATE_NEW | Command::CREATE_TEMPORARY => {
            let disposition = match command {
                Command::CREATE => CreateDisposition::OVERWRITE_IF,
                _ => CreateDisposition::CREATE,
            };
            set_disposition(row, disposition);
            set_oplock_requested(row, CreateRequest::new(block).requested_oplock());
        }
        Command::LOCK_BYTE_RANGE | Command::UNLOCK_BYTE_RANGE => {
            let view = LockByteRangeRequest::new(block);
            set_range(row, view.offset().map(u64::from), view.count().map(u64::from));
            let kind = u32::from(command == Command::UNLOCK_BYTE_RANGE);
            row.set_detail(code::detail(Detail::Lock, kind));
        }
        Command::LOCKING_AND_X => return locking(block, row),
        Command::TRANSACTION | Command::TRANSACTION2 | Command::NT_TRANSACT => {
            let Some(part) = Part::parse(block, true) else {
                return Stage::Transaction(Transaction::cut(block, member));
            };
            let state = Transaction::request(part, member, dfs);
            return if is_one_way(part) { Stage::Silent } else { Stage::Transaction(state) };
        }
        Command::ECHO => {
            return match EchoRequest::new(block).echo_count() {
                Some(0) => Stage::Silent,
                count => Stage::Echo(count.unwrap_or(1)),
            };
        }
        Command::NT_CANCEL => return Stage::Silent,
        Command::NEGOTIATE => {
            let offered = NegotiateRequest::new(block);
            let is_required = header.flags2.has(Flags2::SECURITY_SIGNATURE_REQUIRED);
            pairing.table.client_signing_required = Some(is_required);
            let dialects = offered.dialects().take(DIALECTS);
            let codes = dialects.map(|name| code::smb1_dialect(&name.decode()));
            return Stage::Negotiate(codes.collect());
        }
        Command::SESSION_SETUP_AND_X => session_setup(block, pending, pairing),
        Command::TREE_CONNECT => share(TreeConnectRequest::new(block).path(), pending),
        Command::TREE_CONNECT_AND_X => share(TreeConnectAndXRequest::new(block).path(), pending),
        _ => {}
    }
    Stage::Plain
}

/// Fills the row of an oplock break in either direction.
pub fn set_break(row: &mut Operation, view: &LockingAndXRequest<'_>, notification: bool) {
    if let Some(fid) = view.fid() {
        row.set_file_id(file_bytes(fid));
    }
    // Here 1 is level II (MS-CIFS section 2.2.4.32.1), unlike in the answer to an open.
    match view.new_oplock_level() {
        Some(OplockLevel(0)) => row.set_oplock_granted(oplock(OplockLevel::NONE)),
        Some(OplockLevel(1)) => row.set_oplock_granted(oplock(OplockLevel::LEVEL_II)),
        _ => {}
    }
    row.set_detail(code::detail(Detail::Break, if notification { 0 } else { 2 }));
}

/// Whether a name is a path from the share's root, not relative to an open directory.
fn is_from_root(block: Block<'_>) -> bool {
    block.command() != Command::NT_CREATE_AND_X
        || NtCreateAndXRequest::new(block).root_directory_fid() == Some(0)
}

#[inline]
fn set_range(row: &mut Operation, offset: Option<u64>, bytes: Option<u64>) {
    if let Some(offset) = offset {
        row.set_offset_bytes(offset);
    }
    if let Some(bytes) = bytes {
        row.set_requested_bytes(bytes);
    }
}

fn set_write_through(row: &mut Operation, mode: Option<WriteMode>) {
    if let Some(mode) = mode {
        row.set_write_through(mode.has(WriteMode::WRITE_THROUGH));
    }
}

fn set_disposition(row: &mut Operation, disposition: CreateDisposition) {
    row.set_detail(code::detail(Detail::Disposition, disposition.0));
}

fn nt_create(block: Block<'_>, row: &mut Operation) {
    let view = NtCreateAndXRequest::new(block);
    set_oplock_requested(row, view.requested_oplock());
    set_create(row, view.desired_access(), view.share_access(), view.create_options());
    if let Some(disposition) = view.create_disposition() {
        set_disposition(row, CreateDisposition(disposition));
    }
}

fn open_and_x(block: Block<'_>, row: &mut Operation) {
    let view = OpenAndXRequest::new(block);
    set_access_mode(row, view.access_mode());
    set_oplock_requested(row, view.requested_oplock());
    // Bits 0-1: when it exists fail, open, truncate; bit 4: when it does not, create.
    let disposition = match view.open_mode().map(|mode| (mode & 3, mode & 0x10 != 0)) {
        Some((0, true)) => CreateDisposition::CREATE,
        Some((1, false)) => CreateDisposition::OPEN,
        Some((1, true)) => CreateDisposition::OPEN_IF,
        Some((2, false)) => CreateDisposition::OVERWRITE,
        Some((2, true)) => CreateDisposition::OVERWRITE_IF,
        _ => return,
    };
    set_disposition(row, disposition);
}

fn write_raw(block: Block<'_>, row: &mut Operation) -> Stage {
    let view = WriteRawRequest::new(block);
    set_range(row, view.offset(), view.total_count().map(u64::from));
    set_write_through(row, view.write_mode());
    if block.command() == Command::WRITE_MPX {
        return Stage::Plain;
    }
    let (total, first) = (view.total_count().unwrap_or(0), view.data_length().unwrap_or(0));
    Stage::WriteRaw(WriteRaw {
        rest: u32::from(total.saturating_sub(first)),
        through: view.write_mode().is_none_or(|mode| mode.has(WriteMode::WRITE_THROUGH)),
        asked: None,
    })
}

fn locking(block: Block<'_>, row: &mut Operation) -> Stage {
    let view = LockingAndXRequest::new(block);
    let counts = view.unlock_count().zip(view.lock_count());
    if view.is_oplock_release() == Some(true) && counts == Some((0, 0)) {
        set_break(row, &view, false);
        return Stage::Silent;
    }
    let Some((unlocks, locks)) = counts else { return Stage::Plain };
    let ranges = u32::from(unlocks) + u32::from(locks);
    if let Some(first) = view.unlocks().chain(view.locks()).next() {
        row.set_offset_bytes(first.offset);
        // Several ranges have no common length.
        if ranges == 1 {
            row.set_requested_bytes(first.length);
        }
    }
    let kind = match (locks > 0, unlocks > 0) {
        (true, false) => 0,
        (false, true) => 1,
        (true, true) => 2,
        (false, false) => return Stage::Plain,
    };
    row.set_detail(code::lock(kind, ranges));
    let may_wait = locks > 0 && view.timeout().is_some_and(|timeout| timeout != 0);
    if may_wait { Stage::Lock } else { Stage::Plain }
}

fn session_setup(block: Block<'_>, pending: &mut Pending, pairing: &mut Pairing) {
    let view = SessionSetupAndXRequest::new(block);
    pairing.table.client_capabilities = view.capabilities().map(|bits| u64::from(bits.0));
    pending.row.set_detail(code::detail(Detail::SessionSetup, 0));
    let session = match view.security_blob() {
        Some(blob) => logon::session_of_blob(blob),
        None => plain_session(block, &view),
    };
    pending.session = Some(Box::new(session));
}

/// A plaintext user name, with a password or NTLM responses next to it.
fn plain_session(block: Block<'_>, view: &SessionSetupAndXRequest<'_>) -> Session {
    /// Bytes of an LM or NTLM response; no plaintext password is as long.
    const ANSWER_BYTES: u16 = 24;
    let Some(account) = view.account_name().map(|name| name.decode()) else {
        return Session::default();
    };
    let domain = view.primary_domain().map(|name| name.decode()).unwrap_or_default();
    let answers = [u16_at(block.words(), 14), u16_at(block.words(), 16)];
    let answered = answers.into_iter().flatten().any(|length| length >= ANSWER_BYTES);
    let is_null = account.is_empty();
    Session {
        user: Some(match (is_null, domain.is_empty()) {
            (true, _) => "ANONYMOUS LOGON".to_owned(),
            (false, true) => account,
            (false, false) => format!("{domain}\\{account}"),
        }),
        mechanism: (answered && !is_null && block.word_count() == Some(13))
            .then(|| "NTLM".to_owned()),
        guest: Some(is_null),
        ..Session::default()
    }
}

fn share(path: Option<Text<'_>>, pending: &mut Pending) {
    if let Some(path) = path {
        path.push_to(&mut pending.name);
    }
}
