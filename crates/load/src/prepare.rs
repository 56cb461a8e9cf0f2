//! Making the users' files on the share, bringing them back into shape, and taking them away.
//!
//! Owns what `load prepare` and `load clean` do for one user; it can be repeated at any time and
//! goes on where it was: a file is complete when its size and its time of last write are the file
//! set's, and the time is set last. It does not own which files there are (`fileset`).

mod restore;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

use smbscope_wire::read::{slice_at, u32_at, u64_at};
use smbscope_wire::smb2::FileId;
use smbscope_wire::smb2::access::{AccessMask, FileAttributes, ShareAccess};
use smbscope_wire::smb2::close::CloseFlags;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions, OplockLevel};
use smbscope_wire::smb2::directory::{QueryDirectoryFlags, QueryDirectoryResponse};
use smbscope_wire::smb2::encode::{self, OpenWish};
use smbscope_wire::smb2::info_class::{FileInfoClass, InfoType};
use smbscope_wire::smb2::write::WriteFlags;
use smbscope_wire::status::Status;
use smbscope_wire::text;

use crate::client::error::status_text;
use crate::client::{Ask, ClientError, Open, Session, Want};
use crate::fileset::{EntryKind, FileSet, FileSpec, content};
pub use restore::restore;

/// Bytes of a write while files are made.
const BLOCK_BYTES: u32 = 65_536;
/// Writes in flight.
const DEPTH: usize = 4;
/// Bytes of a listing's reply.
const LISTING_BYTES: u32 = 65_536;
/// Folders below each other that are listed: more is no file set of ours.
const DEPTH_MAX: usize = 32;
/// Entries of one user's home that are looked at.
const ENTRIES_MAX: usize = 1_000_000;

/// Why preparing cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The connection.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server refused something.
    #[error("{path}: {what}: {}{}", status_text(*.status), remedy(*.status))]
    Refused {
        /// Which file or folder.
        path: String,
        /// What was tried.
        what: &'static str,
        /// The answer.
        status: Status,
    },
    /// Something else lies there.
    #[error("{path}: {reason}")]
    InTheWay {
        /// Which file or folder.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl PrepareError {
    /// Whether another attempt over a new connection may help.
    pub fn may_pass(&self) -> bool {
        match self {
            PrepareError::Client(error) => {
                matches!(error, ClientError::Lost(_) | ClientError::Timeout(_))
            }
            PrepareError::Refused { status, .. } => {
                matches!(*status, Status::SHARING_VIOLATION | Status::DELETE_PENDING)
            }
            PrepareError::InTheWay { .. } => false,
        }
    }
}

/// What to do about a refusal, where it is known.
fn remedy(status: Status) -> &'static str {
    match status {
        Status::DISK_FULL => {
            "; the share is full: make room there, or ask for a smaller --scale or fewer --users"
        }
        _ => "",
    }
}

/// What was done for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Folders made or removed.
    pub folders: u64,
    /// Files made or removed.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Entries that were as they should be.
    pub kept: u64,
    /// Entries that runs had left and that were removed.
    pub surplus: u64,
}

impl Done {
    /// Adds another user's.
    pub fn add(&mut self, other: &Done) {
        self.folders += other.folders;
        self.files += other.files;
        self.bytes += other.bytes;
        self.kept += other.kept;
        self.surplus += other.surplus;
    }
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Whether it is a folder.
    pub directory: bool,
    /// Its size.
    pub bytes: u64,
    /// When it was last written (100 ns since 1601).
    pub modified: u64,
}

/// Makes what is missing of a user's files below `home`, and removes what runs left there. `tell`
/// hears of bytes as they are written or found to be there already.
pub async fn prepare(
    session: &mut Session,
    files: &FileSet,
    user: u64,
    home: &str,
    mut tell: impl FnMut(u64),
) -> Result<Done, PrepareError> {
    let mut done = Done::default();
    let found = list_tree(session, home).await?;
    if found.is_none() {
        // The home's own parents belong to nobody: they are made, never removed.
        for end in home.match_indices('\\').map(|(at, _)| at).chain([home.len()]) {
            make_folder(session, home.get(..end).unwrap_or_default()).await?;
        }
    }
    let found = found.unwrap_or_default();
    let restore = files.restore(user);
    // Longest paths first: a folder is empty when its turn comes.
    let mut surplus: Vec<_> =
        found.iter().filter(|(path, entry)| !entry.directory && restore.is_surplus(path)).collect();
    surplus.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, entry) in surplus {
        remove(session, &join(home, path), entry.directory).await?;
        done.surplus += 1;
    }
    let marker = files.marker();
    let mut marked = false;
    for path in found.keys().filter(|path| files.is_marker(path)) {
        // Before the files change; the right one is set when they are complete.
        marked |= path.eq_ignore_ascii_case(&marker);
        if !path.eq_ignore_ascii_case(&marker) {
            remove(session, &join(home, path), false).await?;
        }
    }
    for spec in files.user(user) {
        let path = join(home, &spec.path);
        let here = found.get(&spec.path.to_lowercase());
        match spec.kind {
            EntryKind::Folder => match here {
                Some(entry) if entry.directory => done.kept += 1,
                Some(_) => {
                    let reason = "a file lies where a folder must be: remove it";
                    return Err(PrepareError::InTheWay { path, reason });
                }
                None => {
                    make_folder(session, &path).await?;
                    done.folders += 1;
                }
            },
            EntryKind::File => {
                let Some(file) = spec.file else { continue };
                match here {
                    Some(entry) if entry.directory => {
                        let reason = "a folder lies where a file must be: remove it";
                        return Err(PrepareError::InTheWay { path, reason });
                    }
                    // Servers keep times more coarsely than 100 ns, some to the second.
                    Some(entry)
                        if entry.bytes == spec.bytes
                            && entry.modified.abs_diff(file.modified()) < 20_000_000 =>
                    {
                        done.kept += 1;
                        tell(spec.bytes);
                    }
                    _ => {
                        make_file(session, &path, &spec, &mut tell).await?;
                        done.files += 1;
                        done.bytes += spec.bytes;
                    }
                }
            }
        }
    }
    if !marked {
        let path = join(home, &marker);
        let options = CreateOptions::NON_DIRECTORY_FILE;
        match open(session, &path, WRITE, CreateDisposition::OPEN_IF, options).await? {
            Ok(opened) => close(session, &opened).await?,
            Err(status) => {
                return Err(PrepareError::Refused { path, what: "file cannot be made", status });
            }
        };
    }
    Ok(done)
}

/// Removes exactly what [`prepare`] and runs made below `home`, and the home itself when nothing
/// else is in it. `tell` hears of every entry.
pub async fn clean(
    session: &mut Session,
    files: &FileSet,
    user: u64,
    home: &str,
    mut tell: impl FnMut(),
) -> Result<Done, PrepareError> {
    let mut done = Done::default();
    let Some(found) = list_tree(session, home).await? else { return Ok(done) };
    let restore = files.restore(user);
    let mut paths: Vec<_> = found.iter().collect();
    paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, entry) in paths {
        tell();
        if !restore.is_ours(path) {
            done.kept += 1;
            continue;
        }
        match remove(session, &join(home, path), entry.directory).await {
            Ok(()) if entry.directory => done.folders += 1,
            Ok(()) => done.files += 1,
            // Something of somebody else's is in it.
            Err(PrepareError::Refused { status: Status::DIRECTORY_NOT_EMPTY, .. }) => {
                done.kept += 1;
            }
            Err(error) => return Err(error),
        }
    }
    if done.kept == 0 {
        remove(session, home, true).await?;
        done.folders += 1;
    }
    Ok(done)
}

fn join(home: &str, path: &str) -> String {
    match (home, path) {
        ("", path) => path.to_owned(),
        (home, "") => home.to_owned(),
        (home, path) => format!("{home}\\{path}"),
    }
}

/// An open, and what rows say of it: a run records what it does before its scenarios.
struct Opened {
    file_id: FileId,
    number: u64,
    path: Arc<str>,
}

impl Opened {
    fn ask(&self) -> Ask {
        Ask { path: Some(self.path.clone()), handle: Some(self.number), ..Ask::default() }
    }
}

async fn open(
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

async fn close(session: &mut Session, opened: &Opened) -> Result<Status, ClientError> {
    let body = encode::Close { file_id: opened.file_id, flags: CloseFlags(0) };
    Ok(session.call(&body, opened.ask()).await?.status)
}

/// Rights: list a directory, read its attributes, synchronise.
const LIST: AccessMask = AccessMask(0x0010_0081);
/// Rights: write data and attributes, read attributes, synchronise.
const WRITE: AccessMask = AccessMask(0x0010_0182);
/// Rights: delete, read attributes, synchronise.
const DELETE: AccessMask = AccessMask(0x0011_0080);

async fn make_folder(session: &mut Session, path: &str) -> Result<(), PrepareError> {
    let options = CreateOptions::DIRECTORY_FILE;
    match open(session, path, LIST, CreateDisposition::OPEN_IF, options).await? {
        Ok(opened) => {
            close(session, &opened).await?;
            Ok(())
        }
        Err(status) => {
            let what = "folder cannot be made";
            Err(PrepareError::Refused { path: path.to_owned(), what, status })
        }
    }
}

async fn make_file(
    session: &mut Session,
    path: &str,
    spec: &FileSpec,
    tell: &mut impl FnMut(u64),
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
            session.have_credits(0, credits).await?;
            let bytes = data.get_mut(..length as usize).unwrap_or_default();
            content(file, offset, bytes);
            let body = encode::Write { file_id, offset, flags: WriteFlags(0), data: bytes };
            let ask = Ask { payload_bytes: length, ..opened.ask() };
            let id = session.add(0, false, &body, ask);
            session.send(0).await?;
            flying.push_back((id, length));
            offset += u64::from(length);
        }
        let Some((id, length)) = flying.pop_front() else { break };
        let reply = session.wait(0, id).await?;
        match reply.status {
            Status::SUCCESS if reply.transferred == length => {}
            // A disk that becomes full in the middle of a write takes its first part.
            Status::SUCCESS => {
                failed.get_or_insert(Status::DISK_FULL);
            }
            status => {
                failed.get_or_insert(status);
            }
        }
        tell(u64::from(length));
    }
    if failed.is_none() {
        // The time says that the file is complete; it is set last.
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

/// Removes a file or an empty folder; what is not there is no error.
async fn remove(session: &mut Session, path: &str, directory: bool) -> Result<(), PrepareError> {
    let refused =
        |status| PrepareError::Refused { path: path.to_owned(), what: "cannot be removed", status };
    let kind =
        if directory { CreateOptions::DIRECTORY_FILE } else { CreateOptions::NON_DIRECTORY_FILE };
    let opened = open(session, path, DELETE, CreateDisposition::OPEN, kind).await?;
    let opened = match opened {
        Ok(opened) => opened,
        Err(Status::OBJECT_NAME_NOT_FOUND | Status::OBJECT_PATH_NOT_FOUND) => return Ok(()),
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

/// Everything below a folder, by its path in lower case below that folder; `None` when the folder
/// is not there.
async fn list_tree(
    session: &mut Session,
    home: &str,
) -> Result<Option<HashMap<String, Entry>>, PrepareError> {
    let mut found = HashMap::new();
    let mut todo = vec![String::new()];
    while let Some(folder) = todo.pop() {
        let path = join(home, &folder);
        let Some(entries) = list(session, &path).await? else {
            if folder.is_empty() {
                return Ok(None);
            }
            continue;
        };
        for entry in entries {
            let below = join(&folder, &entry.name);
            if entry.directory && below.matches('\\').count() < DEPTH_MAX {
                todo.push(below.clone());
            }
            found.insert(below.to_lowercase(), entry);
            if found.len() > ENTRIES_MAX {
                let reason = "too many entries for a user's home";
                return Err(PrepareError::InTheWay { path: home.to_owned(), reason });
            }
        }
    }
    Ok(Some(found))
}

/// The entries of a folder; `None` when it is not there.
pub async fn list(session: &mut Session, path: &str) -> Result<Option<Vec<Entry>>, PrepareError> {
    let refused =
        |status| PrepareError::Refused { path: path.to_owned(), what: "cannot be listed", status };
    let options = CreateOptions::DIRECTORY_FILE;
    let opened = open(session, path, LIST, CreateDisposition::OPEN, options).await?;
    let opened = match opened {
        Ok(opened) => opened,
        Err(Status::OBJECT_NAME_NOT_FOUND | Status::OBJECT_PATH_NOT_FOUND) => return Ok(None),
        Err(status) => return Err(refused(status)),
    };
    let mut entries = Vec::new();
    let mut failed = None;
    loop {
        let body = encode::QueryDirectory {
            file_id: opened.file_id,
            info_class: FileInfoClass::DIRECTORY,
            flags: QueryDirectoryFlags(0),
            pattern: "*",
            output_bytes: LISTING_BYTES.min(session.negotiated().max_transact_bytes),
        };
        let ask = Ask { payload_bytes: LISTING_BYTES, want: Want::Message, ..opened.ask() };
        let reply = session.call(&body, ask).await?;
        match reply.status {
            Status::SUCCESS => entries.extend(read_listing(&reply.message)),
            Status::NO_MORE_FILES | Status::NO_SUCH_FILE => break,
            status => {
                failed = Some(status);
                break;
            }
        }
        if entries.len() > ENTRIES_MAX {
            break;
        }
    }
    close(session, &opened).await?;
    match failed {
        None => Ok(Some(entries)),
        Some(status) => Err(refused(status)),
    }
}

/// The entries of a QUERY_DIRECTORY reply with FileDirectoryInformation (MS-FSCC section 2.4.10),
/// without the folder itself and its parent.
fn read_listing(message: &[u8]) -> Vec<Entry> {
    let view = QueryDirectoryResponse(message);
    let place = view.output_buffer_offset().zip(view.output_buffer_length());
    let bytes = place
        .and_then(|(offset, length)| slice_at(message, usize::from(offset), length as usize))
        .unwrap_or_default();
    let mut entries = Vec::new();
    let mut rest = bytes;
    loop {
        let one = || {
            let length = u32_at(rest, 60)? as usize;
            let mut name = String::new();
            text::push_utf16le(&mut name, slice_at(rest, 64, length)?);
            Some(Entry {
                name,
                directory: FileAttributes(u32_at(rest, 56)?).contains(FileAttributes::DIRECTORY),
                bytes: u64_at(rest, 40)?,
                modified: u64_at(rest, 24)?,
            })
        };
        let Some(entry) = one() else { break };
        // A name that would lead elsewhere is not followed.
        let plain = !entry.name.contains(['\\', '/']) && !entry.name.is_empty();
        if entry.name != "." && entry.name != ".." && plain {
            entries.push(entry);
        }
        let next = u32_at(rest, 0).unwrap_or(0) as usize;
        match rest.get(next..) {
            Some(behind) if next >= 64 => rest = behind,
            _ => break,
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[(&str, bool, u64)]) -> Vec<u8> {
        let mut message = vec![0; 72];
        message[64] = 9;
        message[66] = 72;
        for (place, (name, directory, bytes)) in names.iter().enumerate() {
            let text: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let mut one = vec![0; 64];
            one[24..32].copy_from_slice(&77_u64.to_le_bytes());
            one[40..48].copy_from_slice(&bytes.to_le_bytes());
            one[56] = if *directory { 0x10 } else { 0x20 };
            one[60] = text.len() as u8;
            one.extend(text);
            one.resize(one.len().next_multiple_of(8), 0);
            if place + 1 < names.len() {
                one[0] = one.len() as u8;
            }
            message.extend(one);
        }
        let length = (message.len() - 72) as u32;
        message[68..72].copy_from_slice(&length.to_le_bytes());
        message
    }

    #[test]
    fn listings_are_read() {
        let message = listing(&[
            (".", true, 0),
            ("..", true, 0),
            ("Briefe", true, 0),
            ("übung.txt", false, 12),
            ("..\\evil", false, 1),
        ]);
        let entries = read_listing(&message);
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["Briefe", "übung.txt"]);
        assert!(entries[0].directory);
        assert_eq!((entries[1].bytes, entries[1].modified), (12, 77));
        for end in 0..message.len() {
            read_listing(&message[..end]);
        }
        for place in 0..message.len() {
            let mut broken = message.clone();
            broken[place] = 0xff;
            read_listing(&broken);
        }
    }

    #[test]
    fn paths_are_joined() {
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("a", ""), "a");
        assert_eq!(join("a", "b\\c"), "a\\b\\c");
    }
}
