//! What a reply's command adds to its operation (MS-CIFS section 2.2.4, the responses).

use smbscope_tables::code;
use smbscope_tables::operation::{Column, Operation};
use smbscope_wire::smb1::create::NtCreateAndXResponse;
use smbscope_wire::smb1::negotiate::{NegotiateResponse, SecurityMode};
use smbscope_wire::smb1::open::{CreateResponse, OpenAndXResponse, OpenResponse};
use smbscope_wire::smb1::read::{ReadAndXResponse, ReadMpxResponse, ReadResponse};
use smbscope_wire::smb1::session::SessionSetupAndXResponse;
use smbscope_wire::smb1::transaction::Part;
use smbscope_wire::smb1::tree::{TreeConnectAndXResponse, TreeConnectResponse};
use smbscope_wire::smb1::write::{WriteAndXResponse, WriteResponse};
use smbscope_wire::smb1::{Block, Command, Header};
use smbscope_wire::smb2::tree::ShareType;
use smbscope_wire::status::{DosError, Status};

use super::member::{Answer, Member, answered_uid};
use super::open::{file_bytes, is_directory, oplock};
use super::stage::Stage;
use crate::outcome::{Open, Tree};
use crate::smb::pairing::Pairing;

/// Whether the header says that the (last) command failed.
pub fn is_error(header: &Header) -> bool {
    match header.dos_error() {
        Some((class, _)) => class != 0,
        None => Status(header.status).is_error(),
    }
}

/// Sets the status and, if it is not an NTSTATUS, its name.
pub fn set_status(row: &mut Operation, header: &Header) {
    row.set_status(header.status);
    if header.dos_error().is_some() && header.status != 0 {
        row.set_status_name(code::dos_status_name(header.status));
    } else {
        row.clear(Column::status_name);
    }
}

/// Whether a lock that may wait ended without being granted: it waited as long as it might.
pub fn is_lock_refused(status: u32) -> bool {
    /// ERRDOS, ERRlock.
    const DOS_LOCK: DosError = DosError { class: 1, code: 0x21 };
    matches!(
        Status(status),
        Status::FILE_LOCK_CONFLICT
            | Status::LOCK_NOT_GRANTED
            | Status::CANCELLED
            | Status::IO_TIMEOUT
    ) || DosError::from_status_field(status) == DOS_LOCK
}

/// Reads the reply to one command that was carried out, as far as captured.
pub fn decode(
    block: Block<'_>,
    header: &Header,
    member: &mut Member,
    stage: &Stage,
    pairing: &mut Pairing,
) {
    let row = &mut member.pending.row;
    match block.command() {
        Command::READ_AND_X => {
            set_transferred(row, ReadAndXResponse::new(block).data_length().map(u64::from));
        }
        Command::WRITE_AND_X => {
            set_transferred(row, WriteAndXResponse::new(block).count().map(u64::from));
        }
        Command::READ | Command::LOCK_AND_READ => {
            set_transferred(row, ReadResponse::new(block).count().map(u64::from));
        }
        Command::READ_MPX => {
            let before = row.transferred_bytes().unwrap_or(0);
            let part = ReadMpxResponse::new(block).data_length();
            set_transferred(row, part.map(|part| before + u64::from(part)));
        }
        Command::WRITE | Command::WRITE_AND_UNLOCK | Command::WRITE_COMPLETE => {
            set_transferred(row, WriteResponse::new(block).count().map(u64::from));
        }
        Command::WRITE_AND_CLOSE => {
            set_transferred(row, WriteResponse::new(block).count().map(u64::from));
            member.answer = Answer::Close;
        }
        Command::CLOSE | Command::CLOSE_AND_TREE_DISCONNECT | Command::CLOSE_PRINT_FILE => {
            member.answer = Answer::Close;
        }
        Command::NT_CREATE_AND_X => nt_create(block, member),
        Command::OPEN_AND_X => open_and_x(block, member),
        Command::OPEN => {
            let view = OpenResponse::new(block);
            let open = Open {
                directory: view.file_attributes().map(is_directory),
                size_bytes: view.file_size().map(u64::from),
                ..Open::default()
            };
            if let Some(level) = view.granted_oplock() {
                row.set_oplock_granted(oplock(level));
            }
            opened(view.fid(), open, member);
        }
        Command::CREATE
        | Command::CREATE_NEW
        | Command::CREATE_TEMPORARY
        | Command::OPEN_PRINT_FILE => {
            let view = CreateResponse::new(block);
            if let Some(level) = view.granted_oplock() {
                row.set_oplock_granted(oplock(level));
            }
            opened(view.fid(), Open::default(), member);
        }
        Command::TRANSACTION | Command::TRANSACTION2 | Command::NT_TRANSACT => {
            if let (Stage::Transaction(state), Some(part)) = (stage, Part::parse(block, false)) {
                state.reply(part, member);
            }
        }
        Command::NEGOTIATE => negotiate(block, stage, pairing),
        Command::SESSION_SETUP_AND_X => {
            let guest = SessionSetupAndXResponse::new(block).is_guest();
            member.answer = Answer::Session(guest);
            if let Some(uid) = answered_uid(header, Command::SESSION_SETUP_AND_X) {
                row.set_session_id(uid);
            }
        }
        Command::LOGOFF_AND_X => member.answer = Answer::Logoff,
        Command::TREE_CONNECT => {
            if let Some(tid) = TreeConnectResponse::new(block).tid() {
                row.set_tree_id(u32::from(tid));
            }
            member.answer = Answer::Tree(Box::default());
        }
        Command::TREE_CONNECT_AND_X => {
            row.set_tree_id(u32::from(header.tid));
            let service = TreeConnectAndXResponse::new(block).service();
            let share_type = service.map(|service| share_type(&service.decode()));
            member.answer = Answer::Tree(Box::new(Tree { share_type, ..Tree::default() }));
        }
        Command::TREE_DISCONNECT => member.answer = Answer::TreeDisconnect,
        _ => {}
    }
}

#[inline]
fn set_transferred(row: &mut Operation, bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        row.set_transferred_bytes(bytes);
    }
}

fn opened(fid: Option<u16>, open: Open, member: &mut Member) {
    if let Some(fid) = fid {
        member.pending.row.set_file_id(file_bytes(fid));
        member.answer = Answer::Open(Box::new(open));
    }
}

fn nt_create(block: Block<'_>, member: &mut Member) {
    let view = NtCreateAndXResponse::new(block);
    if let Some(level) = view.oplock_level() {
        member.pending.row.set_oplock_granted(oplock(level));
    }
    let open = Open {
        directory: view.directory().map(|directory| directory != 0),
        size_bytes: view.end_of_file(),
        disk_file_id: view.file_id().filter(|&id| id != 0),
        ..Open::default()
    };
    opened(view.fid(), open, member);
}

fn open_and_x(block: Block<'_>, member: &mut Member) {
    let view = OpenAndXResponse::new(block);
    let row = &mut member.pending.row;
    if let (Some(granted), Some(asked)) = (view.has_oplock(), row.oplock_requested()) {
        row.set_oplock_granted(if granted { asked } else { 0 });
    }
    let open = Open {
        directory: view.file_attributes().map(is_directory),
        size_bytes: view.file_data_size().map(u64::from),
        ..Open::default()
    };
    opened(view.fid(), open, member);
}

/// The service's name as SMB2 calls the type of a share.
fn share_type(service: &str) -> String {
    let known = match service {
        "A:" => ShareType::DISK.name(),
        "IPC" => ShareType::PIPE.name(),
        "LPT1:" => ShareType::PRINT.name(),
        _ => None,
    };
    known.unwrap_or(service).to_owned()
}

/// Takes what a Negotiate reply says of the connection.
fn negotiate(block: Block<'_>, stage: &Stage, pairing: &mut Pairing) {
    let view = NegotiateResponse::new(block);
    let offered = match stage {
        Stage::Negotiate(offered) => {
            view.dialect_index().and_then(|index| offered.get(usize::from(index)).copied())
        }
        // Only NT LM 0.12 is answered by 17 words.
        _ => (block.word_count() == Some(17)).then(|| code::smb1_dialect("NT LM 0.12")),
    };
    if let Some(dialect) = offered {
        pairing.dialect = Some(dialect);
        pairing.table.dialect = Some(code::text(Column::dialect, dialect).into_owned());
    }
    let table = &mut *pairing.table;
    table.max_transact_bytes = view.max_buffer_size().map(u64::from);
    table.max_outstanding = view.max_mpx_count().map(u64::from);
    table.server_capabilities = view.capabilities().map(|bits| u64::from(bits.0));
    table.signing_required =
        view.security_mode().map(|mode| mode.has(SecurityMode::SIGNATURES_REQUIRED));
}
