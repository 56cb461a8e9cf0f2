//! Opening, reading and removing the files of a run.

use smbscope_client::{Ask, ClientError, Open, Session, Want};
use smbscope_wire::read::slice_at;
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::encode::{self, OpenWish};
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType};
use smbscope_wire::smb2::read::{ReadFlags, ReadResponse};
use smbscope_wire::status::Status;

/// Rights: read, write, delete (to rename), attributes, synchronise.
pub(super) const WRITE: AccessMask = AccessMask(0x0013_0183);
/// Rights: read data and attributes, synchronise.
const READ: AccessMask = AccessMask(0x0012_0081);
/// Rights: delete, read attributes, synchronise.
const DELETE: AccessMask = AccessMask(0x0011_0080);

/// The message of an open.
pub(super) fn create(
    name: &str,
    desired_access: AccessMask,
    disposition: CreateDisposition,
    options: CreateOptions,
    wish: OpenWish,
) -> encode::Create<'_> {
    encode::Create {
        name,
        desired_access,
        file_attributes: FileAttributes(0),
        share_access: ShareAccess(7),
        disposition,
        options,
        oplock: OplockLevel::NONE,
        wish,
    }
}

pub(super) fn ask(path: &str) -> Ask {
    Ask { path: Some(path.into()), ..Ask::default() }
}

/// Creates a folder and its parents; those that exist are kept.
pub(super) async fn make_folders(
    session: &mut Session,
    path: &str,
) -> Result<Result<(), Status>, ClientError> {
    let ends = path.match_indices('\\').map(|(at, _)| at).chain([path.len()]);
    for folder in ends.filter_map(|end| path.get(..end)) {
        let options = CreateOptions::DIRECTORY_FILE;
        let body = create(folder, READ, CreateDisposition::OPEN_IF, options, OpenWish::default());
        match session.call(&body, ask(folder)).await?.opened()? {
            Ok(open) => close(session, open.file_id).await?,
            Err(status) => return Ok(Err(status)),
        }
    }
    Ok(Ok(()))
}

pub(super) async fn close(session: &mut Session, file_id: FileId) -> Result<(), ClientError> {
    let body = encode::Close { file_id, flags: CloseFlags(0) };
    session.call(&body, Ask::default()).await.map(|_| ())
}

/// Opens a file for reading; the status if it cannot be.
pub(super) async fn open_to_read(
    session: &mut Session,
    path: &str,
) -> Result<Result<Open, Status>, ClientError> {
    let options = CreateOptions::NON_DIRECTORY_FILE;
    let body = create(path, READ, CreateDisposition::OPEN, options, OpenWish::default());
    session.call(&body, ask(path)).await?.opened()
}

/// Bytes of a Read that this server answers.
pub(super) fn read_bytes(session: &mut Session) -> u32 {
    let most = session.negotiated().max_read_bytes;
    let most = if session.channel().large_mtu { most.min(1 << 20) } else { most.min(65_536) };
    (most - most % 512).max(512)
}

/// Reads a range; what the file does not have is missing at the end. The status if it cannot be read.
pub(super) async fn read(
    session: &mut Session,
    file_id: FileId,
    offset: u64,
    length: u32,
) -> Result<Result<Vec<u8>, Status>, ClientError> {
    let piece = read_bytes(session);
    let mut ids = Vec::new();
    let mut data = Vec::new();
    let mut sent = 0;
    let mut failed = None;
    while sent < length || !ids.is_empty() {
        while sent < length && ids.len() < 4 {
            let length = piece.min(length - sent);
            let credits = session.channel().charge(length);
            if !ids.is_empty() && !session.has_credits(0, credits) {
                break;
            }
            let at = offset + u64::from(sent);
            let body = encode::Read { file_id, offset: at, length, flags: ReadFlags(0) };
            let ask = Ask { payload_bytes: length, want: Want::Message, ..Ask::default() };
            ids.push((session.submit(&body, ask).await?, sent));
            sent += length;
        }
        let (id, at) = ids.remove(0);
        let reply = session.answer(id).await?;
        match reply.status {
            Status::SUCCESS => {
                let view = ReadResponse(&reply.message);
                let bytes = view.data_offset().zip(view.data_length()).and_then(|(at, length)| {
                    slice_at(&reply.message, usize::from(at), length as usize)
                });
                let bytes = bytes.ok_or_else(|| {
                    ClientError::Protocol("the reply to a Read is shorter than it says".into())
                })?;
                // A short reply before the end would shift what follows.
                data.resize(at as usize, 0);
                data.extend_from_slice(bytes);
            }
            Status::END_OF_FILE => {}
            status => failed = failed.or(Some(status)),
        }
    }
    Ok(failed.map_or(Ok(data), Err))
}

/// Removes a file or an empty folder, if it is there.
pub(super) async fn remove(
    session: &mut Session,
    path: &str,
    options: CreateOptions,
) -> Result<(), ClientError> {
    let body = create(path, DELETE, CreateDisposition::OPEN, options, OpenWish::default());
    let Ok(open) = session.call(&body, ask(path)).await?.opened()? else { return Ok(()) };
    let body = encode::SetInfo {
        file_id: open.file_id,
        info_type: InfoType::FILE,
        info_class: FileInfoClass::DISPOSITION.0,
        additional_information: 0,
        data: &[1],
    };
    session.call(&body, ask(path)).await?;
    close(session, open.file_id).await
}
