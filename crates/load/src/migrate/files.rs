//! The files of a migration: folders, opens, sizes, removal.

use std::sync::Arc;

use smbscope_client::multichannel::Multichannel;
use smbscope_client::{Ask, ClientError, Open};
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::create_context::DurableFlags;
use smbscope_wire::smb2::encode::{self, DurableWish, OpenWish};
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType};
use smbscope_wire::status::Status;

use super::MigrateError;
use super::request::{Control, Opened};

/// Rights to read, write and delete a file.
const READ_WRITE_DELETE: AccessMask = AccessMask(0x0013_019f);
/// Rights to list a folder; and to delete it.
const LIST: AccessMask = AccessMask(0x0010_0081);
const DELETE: AccessMask = AccessMask(0x0011_0080);

/// What is opened, and how.
struct Wish {
    access: AccessMask,
    disposition: CreateDisposition,
    options: CreateOptions,
}

fn refused(path: &str, what: &'static str, status: Status) -> MigrateError {
    MigrateError::Refused { path: path.to_owned(), what, status }
}

/// Opens a file or folder. Other opens are allowed: a repeated Create whose first copy the server executed, but whose
/// replay it does not recognize (CreateGuid), would otherwise be in its own way.
async fn open(
    channels: &mut Multichannel,
    path: &str,
    wish: Wish,
) -> Result<Result<(Opened, Open), Status>, MigrateError> {
    let number = channels.next_handle();
    let mut create_guid = [0; 16];
    getrandom::fill(&mut create_guid)
        .map_err(|error| ClientError::Logon(format!("no random bytes: {error}")))?;
    let shown: Arc<str> = if path.is_empty() { "\\".into() } else { path.into() };
    let ask = Ask { path: Some(shown.clone()), handle: Some(number), ..Ask::default() };
    let name = path.to_owned();
    let Wish { access, disposition, options } = wish;
    let request = Control::new(ask, true, move |channel, (session_id, tree_id), ask| {
        let durable = DurableWish::V2 { timeout_ms: 0, flags: DurableFlags(0), create_guid };
        let is_version_3 =
            channel.dialect.is_some_and(|it| it >= smbscope_wire::smb2::Dialect::SMB_3_0);
        let wish = OpenWish { durable: is_version_3.then_some(durable), ..OpenWish::default() };
        let body = encode::Create {
            name: &name,
            desired_access: access,
            file_attributes: FileAttributes(0),
            share_access: ShareAccess(7),
            disposition,
            options,
            oplock: OplockLevel::NONE,
            wish,
        };
        channel.add(session_id, tree_id, false, &body, ask)
    });
    let opened = channels.call(request).await?.opened()?;
    Ok(opened.map(|open| (Opened { file_id: open.file_id, number, path: shown }, open)))
}

/// Opens a stream's file for reading and writing; returns its size too.
pub(super) async fn open_file(
    channels: &mut Multichannel,
    path: &str,
    empties: bool,
) -> Result<(Opened, u64), MigrateError> {
    let disposition =
        if empties { CreateDisposition::OVERWRITE_IF } else { CreateDisposition::OPEN_IF };
    let options = CreateOptions::NON_DIRECTORY_FILE;
    let wish = Wish { access: READ_WRITE_DELETE, disposition, options };
    let opened = open(channels, path, wish).await?;
    let (opened, open) = opened.map_err(|status| refused(path, "file cannot be opened", status))?;
    Ok((opened, open.size_bytes))
}

/// Makes the folders on the way to `path`.
pub(super) async fn make_folders(
    channels: &mut Multichannel,
    path: &str,
) -> Result<(), MigrateError> {
    let ends = path.match_indices('\\').map(|(end, _)| end);
    for end in ends {
        let folder = path.get(..end).unwrap_or_default();
        let (disposition, options) = (CreateDisposition::OPEN_IF, CreateOptions::DIRECTORY_FILE);
        let wish = Wish { access: LIST, disposition, options };
        let opened = open(channels, folder, wish).await?;
        let (opened, _) =
            opened.map_err(|status| refused(folder, "folder cannot be made", status))?;
        close(channels, &opened).await?;
    }
    Ok(())
}

/// Sets a file's size.
pub(super) async fn set_size(
    channels: &mut Multichannel,
    opened: &Opened,
    bytes: u64,
) -> Result<(), MigrateError> {
    let data = bytes.to_le_bytes();
    match set_info(channels, opened, FileInfoClass::END_OF_FILE, &data).await? {
        Status::SUCCESS => Ok(()),
        status => Err(refused(&opened.path, "its size cannot be set", status)),
    }
}

/// Makes the server write a file's data to its disk.
pub(super) async fn flush(
    channels: &mut Multichannel,
    opened: &Opened,
) -> Result<(), MigrateError> {
    let flush = Control::on_open(opened, false, encode::Flush { file_id: opened.file_id });
    match channels.call(flush).await?.status {
        Status::SUCCESS => Ok(()),
        status => Err(refused(&opened.path, "it cannot be flushed", status)),
    }
}

/// Closes a file.
pub(super) async fn close(
    channels: &mut Multichannel,
    opened: &Opened,
) -> Result<(), MigrateError> {
    let (file_id, flags) = (opened.file_id, CloseFlags(0));
    channels.call(Control::on_open(opened, false, encode::Close { file_id, flags })).await?;
    Ok(())
}

/// Removes an open file, and closes it.
pub(super) async fn remove(
    channels: &mut Multichannel,
    opened: &Opened,
) -> Result<(), MigrateError> {
    let status = set_info(channels, opened, FileInfoClass::DISPOSITION, &[1]).await?;
    close(channels, opened).await?;
    match status {
        Status::SUCCESS => Ok(()),
        status => Err(refused(&opened.path, "it cannot be removed", status)),
    }
}

/// Removes a folder if it is empty.
pub(super) async fn remove_folder(
    channels: &mut Multichannel,
    path: &str,
) -> Result<(), MigrateError> {
    let (disposition, options) = (CreateDisposition::OPEN, CreateOptions::DIRECTORY_FILE);
    let wish = Wish { access: DELETE, disposition, options };
    if let Ok((opened, _)) = open(channels, path, wish).await? {
        // A folder with other files stays.
        set_info(channels, &opened, FileInfoClass::DISPOSITION, &[1]).await?;
        close(channels, &opened).await?;
    }
    Ok(())
}

async fn set_info(
    channels: &mut Multichannel,
    opened: &Opened,
    class: FileInfoClass,
    data: &[u8],
) -> Result<Status, MigrateError> {
    let file_id: FileId = opened.file_id;
    let data = data.to_vec();
    let request = Control::new(opened.ask(), true, move |channel, (session_id, tree_id), ask| {
        let body = encode::SetInfo {
            file_id,
            info_type: InfoType::FILE,
            info_class: class.0,
            additional_information: 0,
            data: &data,
        };
        channel.add(session_id, tree_id, false, &body, ask)
    });
    Ok(channels.call(request).await?.status)
}
