//! One file or folder: opening, creating, removing it.

use std::collections::VecDeque;
use std::sync::Arc;

use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, OpenWish};
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType};
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;

use super::PrepareError;
use crate::fileset::{FileSpec, content};
use smbscope_client::{Ask, ClientError, Open, Session};

/// Bytes of one write while files are created.
const BLOCK_BYTES: u32 = 65_536;
/// Writes in flight.
const DEPTH: usize = 4;

/// An open, and how rows name it: a run records what it does before its scenarios.
pub(super) struct Opened {
    pub(super) file_id: FileId,
    number: u64,
    path: Arc<str>,
}

impl Opened {
    pub(super) fn ask(&self) -> Ask {
        Ask { path: Some(self.path.clone()), handle: Some(self.number), ..Ask::default() }
    }
}

pub(super) async fn open(
    session: &mut Session,
    path: &str,
    access: AccessMask,
    disposition: CreateDisposition,
    options: CreateOptions,
) -> Result<Result<Opened, Status>, ClientError> {
    let body = encode::Create {
        name: path,
        desired_access: access,
        file_attributes: FileAttributes(0),
        share_access: ShareAccess(7),
        disposition,
        options,
        oplock: OplockLevel::NONE,
        wish: OpenWish::default(),
    };
    let number = session.next_handle();
    let path: Arc<str> = if path.is_empty() { "\\".into() } else { path.into() };
    let ask = Ask { path: Some(path.clone()), handle: Some(number), ..Ask::default() };
    let opened = session.call(&body, ask).await?.opened()?;
    Ok(opened.map(|Open { file_id, .. }| Opened { file_id, number, path }))
}

pub(super) async fn close(session: &mut Session, opened: &Opened) -> Result<Status, ClientError> {
    let body = encode::Close { file_id: opened.file_id, flags: CloseFlags(0) };
    Ok(session.call(&body, opened.ask()).await?.status)
}

/// Rights: list a directory, read its attributes, synchronise.
pub(super) const LIST: AccessMask = AccessMask(0x0010_0081);
/// Rights: write data and attributes, read attributes, synchronise.
const WRITE: AccessMask = AccessMask(0x0010_0182);
/// Rights: delete, read attributes, synchronise.
const DELETE: AccessMask = AccessMask(0x0011_0080);

pub(super) async fn make_folder(session: &mut Session, path: &str) -> Result<(), PrepareError> {
    let options = CreateOptions::DIRECTORY_FILE;
    make_sure(session, path, LIST, options, "folder cannot be made").await
}

pub(super) async fn make_empty_file(session: &mut Session, path: &str) -> Result<(), PrepareError> {
    let options = CreateOptions::NON_DIRECTORY_FILE;
    make_sure(session, path, WRITE, options, "file cannot be made").await
}

/// Creates it if it does not exist.
async fn make_sure(
    session: &mut Session,
    path: &str,
    access: AccessMask,
    options: CreateOptions,
    what: &'static str,
) -> Result<(), PrepareError> {
    match open(session, path, access, CreateDisposition::OPEN_IF, options).await? {
        Ok(opened) => {
            close(session, &opened).await?;
            Ok(())
        }
        Err(status) => Err(PrepareError::Refused { path: path.to_owned(), what, status }),
    }
}

pub(super) async fn make_file(
    session: &mut Session,
    path: &str,
    spec: &FileSpec,
    progress: &mut impl FnMut(u64),
) -> Result<(), PrepareError> {
    let refused = |what, status| PrepareError::Refused { path: path.to_owned(), what, status };
    let Some(file) = &spec.file else { return Ok(()) };
    let options = CreateOptions::NON_DIRECTORY_FILE;
    let opened = open(session, path, WRITE, CreateDisposition::OVERWRITE_IF, options).await?;
    let opened = opened.map_err(|status| refused("file cannot be made", status))?;
    let file_id = opened.file_id;
    let largest = session.negotiated().max_write_bytes.max(1);
    let block = BLOCK_BYTES.min(largest);
    let mut flying: VecDeque<(u64, u32)> = VecDeque::new();
    let mut data = vec![0; block as usize];
    let mut offset = 0;
    let mut failed = None;
    loop {
        while flying.len() < DEPTH && offset < spec.bytes && failed.is_none() {
            let length = u64::from(block).min(spec.bytes - offset) as u32;
            let credits = session.channel().charge(length);
            if !flying.is_empty() && !session.has_credits(0, credits) {
                break;
            }
            let bytes = data.get_mut(..length as usize).unwrap_or_default();
            content(file, offset, bytes);
            let body = encode::Write { file_id, offset, flags: WriteFlags(0), data: bytes };
            let ask = Ask { payload_bytes: length, ..opened.ask() };
            let id = session.submit(&body, ask).await?;
            flying.push_back((id, length));
            offset += u64::from(length);
        }
        let Some((id, length)) = flying.pop_front() else { break };
        let reply = session.answer(id).await?;
        match reply.status {
            Status::SUCCESS if reply.transferred == length => {}
            // A disk that becomes full during a write takes its first part.
            Status::SUCCESS => {
                failed.get_or_insert(Status::DISK_FULL);
            }
            status => {
                failed.get_or_insert(status);
            }
        }
        progress(u64::from(length));
    }
    if failed.is_none() {
        // The time marks the file as complete; it is set last.
        let time = file.modified().to_le_bytes();
        let mut basic = [0; 40];
        basic[..8].copy_from_slice(&time);
        basic[16..24].copy_from_slice(&time);
        let body = encode::SetInfo {
            file_id,
            info_type: InfoType::FILE,
            info_class: FileInfoClass::BASIC.0,
            additional_information: 0,
            data: &basic,
        };
        let status = session.call(&body, opened.ask()).await?.status;
        if status != Status::SUCCESS {
            failed = Some(status);
        }
    }
    close(session, &opened).await?;
    match failed {
        None => Ok(()),
        Some(status) => Err(refused("file cannot be written", status)),
    }
}

/// Removes a file or an empty folder; a missing one is not an error.
pub(super) async fn remove(
    session: &mut Session,
    path: &str,
    directory: bool,
) -> Result<(), PrepareError> {
    let refused =
        |status| PrepareError::Refused { path: path.to_owned(), what: "cannot be removed", status };
    let kind =
        if directory { CreateOptions::DIRECTORY_FILE } else { CreateOptions::NON_DIRECTORY_FILE };
    let opened = open(session, path, DELETE, CreateDisposition::OPEN, kind).await?;
    let opened = match opened {
        Ok(opened) => opened,
        Err(status) if status.is_absent() => return Ok(()),
        Err(status) => return Err(refused(status)),
    };
    let body = encode::SetInfo {
        file_id: opened.file_id,
        info_type: InfoType::FILE,
        info_class: FileInfoClass::DISPOSITION.0,
        additional_information: 0,
        data: &[1],
    };
    let status = session.call(&body, opened.ask()).await?.status;
    close(session, &opened).await?;
    if status == Status::SUCCESS { Ok(()) } else { Err(refused(status)) }
}
