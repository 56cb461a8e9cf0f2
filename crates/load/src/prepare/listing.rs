//! Lists the contents of a folder, and of its subfolders.

use std::collections::HashMap;

use smbscope_wire::read::{slice_at, u32_at, u64_at};
use smbscope_wire::smb2::access::FileAttributes;
use smbscope_wire::smb2::create::{CreateDisposition, CreateOptions};
use smbscope_wire::smb2::directory::{QueryDirectoryFlags, QueryDirectoryResponse};
use smbscope_wire::smb2::encode;
use smbscope_wire::smb2::info_class::FileInfoClass;
use smbscope_wire::status::Status;
use smbscope_wire::text;

use super::entry::{LIST, close, open};
use super::{PrepareError, join};
use smbscope_client::session::within;
use smbscope_client::{Ask, ClientError, Session, Want};

/// Bytes of a listing's reply.
const LISTING_BYTES: u32 = 65_536;
/// Deepest nesting of folders that is listed: the file sets have fewer levels.
const DEPTH_MAX: usize = 32;
/// Most entries of one user's home that are listed.
const ENTRIES_MAX: usize = 1_000_000;

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

/// Everything below a folder, by its path in lower case below that folder; `None` if the folder does
/// not exist.
pub(super) async fn list_tree(
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
                return Err(too_many(home));
            }
        }
    }
    Ok(Some(found))
}

/// The entries of a folder, in the time that the session's limit allows; `None` if it does not exist.
pub async fn list(session: &mut Session, path: &str) -> Result<Option<Vec<Entry>>, PrepareError> {
    within(session.limit(), list_all(session, path)).await
}

async fn list_all(session: &mut Session, path: &str) -> Result<Option<Vec<Entry>>, PrepareError> {
    let refused =
        |status| PrepareError::Refused { path: path.to_owned(), what: "cannot be listed", status };
    let options = CreateOptions::DIRECTORY_FILE;
    let opened = open(session, path, LIST, CreateDisposition::OPEN, options).await?;
    let opened = match opened {
        Ok(opened) => opened,
        Err(status) if status.is_absent() => return Ok(None),
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
            Status::SUCCESS => {
                let some = read_listing(&reply.message).ok_or_else(|| {
                    ClientError::Protocol("a listing continues without an entry".into())
                })?;
                entries.extend(some);
            }
            Status::NO_MORE_FILES | Status::NO_SUCH_FILE => break,
            status => {
                failed = Some(status);
                break;
            }
        }
        if entries.len() > ENTRIES_MAX {
            return Err(too_many(path));
        }
    }
    close(session, &opened).await?;
    match failed {
        None => Ok(Some(entries)),
        Some(status) => Err(refused(status)),
    }
}

fn too_many(path: &str) -> PrepareError {
    PrepareError::InTheWay { path: path.to_owned(), reason: "too many entries for a user's home" }
}

/// The entries of a QUERY_DIRECTORY reply with FileDirectoryInformation (MS-FSCC section 2.4.10),
/// without the folder itself and its parent. `None`: it has no entry at all, which no server may answer with success.
fn read_listing(message: &[u8]) -> Option<Vec<Entry>> {
    let view = QueryDirectoryResponse(message);
    let place = view.output_buffer_offset().zip(view.output_buffer_length());
    let bytes = place
        .and_then(|(offset, length)| slice_at(message, usize::from(offset), length as usize))
        .unwrap_or_default();
    let mut entries = Vec::new();
    let mut any = false;
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
        any = true;
        // A name that would lead out of the folder is not followed.
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
    any.then_some(entries)
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
        let entries = read_listing(&message).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["Briefe", "übung.txt"]);
        assert!(entries[0].directory);
        assert_eq!((entries[1].bytes, entries[1].modified), (12, 77));
        // A server that answers success without an entry would never end.
        assert_eq!(read_listing(&listing(&[])), None);
        assert_eq!(read_listing(&listing(&[(".", true, 0)])), Some(Vec::new()));
        for end in 0..message.len() {
            read_listing(&message[..end]);
        }
        for place in 0..message.len() {
            let mut broken = message.clone();
            broken[place] = 0xff;
            read_listing(&broken);
        }
    }
}
