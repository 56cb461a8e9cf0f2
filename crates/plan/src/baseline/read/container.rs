//! Containers: .zip and .cab to named files, with limits on their number, their bytes and their depth.
//!
//! APPNOTE.TXT for .zip, "Microsoft Cabinet Format" (MS-CAB) for .cab. The crate `cab` decompresses a folder from its
//! start for each file in it; here each folder is read once, as one file made for that, and then cut at the offsets of the
//! real files, so that work grows with the bytes.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Cursor, Read};

use super::sink::Output;
use super::{Format, Item, NamedBytes, format};

/// Bytes of all unpacked files together.
pub const BYTES_MAX: u64 = 256 << 20;
/// Files of one input, those in containers included.
pub const ENTRIES_MAX: usize = 20_000;
/// Containers within each other.
const DEPTH_MAX: usize = 3;
/// Bytes of a name in a cabinet (MS-CAB 2.3).
const CAB_NAME_MAX: usize = 256;

/// Unpacks containers, and finds out what each file is.
pub(super) fn unpack<'a>(files: &[NamedBytes<'a>], output: &mut Output) -> Vec<Item<'a>> {
    let mut unpacking = Unpacking { left: BYTES_MAX, entries: 0, output };
    let mut items = Vec::new();
    for file in files {
        // Members of a container follow it, in its order.
        let mut waiting = VecDeque::from([(slashes(file.name), Cow::Borrowed(file.bytes), 0)]);
        while let Some((name, bytes, depth)) = waiting.pop_front() {
            if !unpacking.enter(&name) {
                return items;
            }
            let format = format::of(&bytes);
            if matches!(format, Format::Zip | Format::Cabinet) {
                if depth >= DEPTH_MAX {
                    let message = format!("more than {DEPTH_MAX} containers within each other");
                    unpacking.output.damage(&name, 0, message);
                } else {
                    let members = if format == Format::Zip {
                        unpacking.zip(&name, &bytes)
                    } else {
                        unpacking.cabinet(&name, &bytes)
                    };
                    for (member, bytes) in members.into_iter().rev() {
                        waiting.push_front((member, Cow::Owned(bytes), depth + 1));
                    }
                }
                items.push(Item { name, bytes: Cow::Borrowed(&[]), format });
            } else {
                items.push(Item { name, bytes, format });
            }
        }
    }
    items
}

/// With slashes, so that folders are found.
fn slashes(name: &str) -> String {
    name.replace('\\', "/").chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A name in a container: without what leaves it.
fn plain(name: &str) -> String {
    let parts: Vec<&str> =
        name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | "..")).collect();
    slashes(&parts.join("/"))
}

type Members = Vec<(String, Vec<u8>)>;

struct Unpacking<'a> {
    left: u64,
    entries: usize,
    output: &'a mut Output,
}

impl Unpacking<'_> {
    /// Counts a file; false if there are too many.
    fn enter(&mut self, name: &str) -> bool {
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            self.output.damage(
                name,
                0,
                format!("more than {ENTRIES_MAX} files: the rest is not read"),
            );
            return false;
        }
        true
    }

    /// Reads all of a stream, as long as bytes are left.
    fn all(&mut self, reader: impl Read) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        reader.take(self.left + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > self.left {
            self.left = 0;
            return Err(format!("the unpacked files have more than {BYTES_MAX} bytes together"));
        }
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    fn zip(&mut self, name: &str, bytes: &[u8]) -> Members {
        let mut members = Vec::new();
        let mut archive = match zip::ZipArchive::new(Cursor::new(bytes)) {
            Ok(archive) => archive,
            Err(error) => {
                self.output.damage(name, 0, format!("not a readable .zip: {error}"));
                return members;
            }
        };
        for position in 0..archive.len() {
            if members.len() + self.entries >= ENTRIES_MAX || self.left == 0 {
                self.output.damage(name, 0, format!("member {position} and those behind it are not read: too many files or bytes"));
                break;
            }
            let file = match archive.by_index(position) {
                Ok(file) => file,
                Err(error) => {
                    self.output.damage(
                        name,
                        0,
                        format!("member {position} cannot be read: {error}"),
                    );
                    continue;
                }
            };
            if file.is_dir() {
                continue;
            }
            let member = String::from_utf8_lossy(file.name_raw()).into_owned();
            let member = format!("{name}/{}", plain(&member));
            let start = file.data_start().unwrap_or(0);
            match self.all(file) {
                Ok(bytes) => members.push((member, bytes)),
                Err(error) => self.output.damage(&member, start, error),
            }
        }
        members
    }

    fn cabinet(&mut self, name: &str, bytes: &[u8]) -> Members {
        let mut members = Vec::new();
        let (entries, damage) = cabinet_entries(bytes);
        if let Some((at, message)) = damage {
            self.output.damage(name, at as u64, message);
        }
        let folders: BTreeMap<u16, u64> =
            entries.iter().fold(BTreeMap::new(), |mut folders, entry| {
                let end = u64::from(entry.start) + u64::from(entry.size);
                let longest = folders.entry(entry.folder).or_insert(0);
                *longest = end.max(*longest);
                folders
            });
        let mut contents = BTreeMap::new();
        for (folder, length) in folders {
            match self.cabinet_folder(bytes, folder, length) {
                Ok(content) => drop(contents.insert(folder, content)),
                Err(error) => {
                    self.output.damage(name, 0, format!("folder {folder} of the cabinet: {error}"))
                }
            }
        }
        for entry in entries.iter().take(ENTRIES_MAX) {
            let Some(content) = contents.get(&entry.folder) else { continue };
            let member = format!("{name}/{}", plain(&entry.name));
            let start = entry.start as usize;
            let found =
                start.checked_add(entry.size as usize).and_then(|end| content.get(start..end));
            // Entries may overlap: their copies count.
            match found {
                Some(found) => match self.all(found) {
                    Ok(bytes) => members.push((member, bytes)),
                    Err(error) => self.output.damage(&member, 0, error),
                },
                None => self.output.damage(&member, 0, "the cabinet ends before this file does"),
            }
        }
        members
    }

    /// One folder of a cabinet, decompressed; damaged folders up to the damage.
    fn cabinet_folder(
        &mut self,
        bytes: &[u8],
        folder: u16,
        length: u64,
    ) -> Result<Vec<u8>, String> {
        let offset =
            u32::try_from(bytes.len()).map_err(|_| "the cabinet is too large".to_owned())?;
        let mut changed = bytes.to_vec();
        let size = u32::try_from(length).map_err(|_| "the folder is too large".to_owned())?;
        // One file from the folder's start, behind the end of the cabinet.
        changed.extend(size.to_le_bytes());
        changed.extend(0_u32.to_le_bytes());
        changed.extend(folder.to_le_bytes());
        changed.extend([0; 6]);
        changed.extend(*b"all\0");
        let header = "the header of the cabinet is too short";
        changed.get_mut(16..20).ok_or(header)?.copy_from_slice(&offset.to_le_bytes());
        changed.get_mut(28..30).ok_or(header)?.copy_from_slice(&1_u16.to_le_bytes());
        let mut cabinet =
            cab::Cabinet::new(Cursor::new(changed)).map_err(|error| error.to_string())?;
        let mut reader = cabinet.read_file("all").map_err(|error| error.to_string())?;
        let mut content = Vec::new();
        // What was decompressed before an error is kept: files in it are whole.
        let read = reader.by_ref().take(self.left + 1).read_to_end(&mut content);
        if content.len() as u64 > self.left {
            return Err(format!("the unpacked files have more than {BYTES_MAX} bytes together"));
        }
        match read {
            Err(error) if content.is_empty() => Err(error.to_string()),
            Err(error) => {
                self.output.damage(
                    "",
                    0,
                    format!("folder {folder} of a cabinet ends early: {error}"),
                );
                Ok(content)
            }
            Ok(_) => Ok(content),
        }
    }
}

struct CabinetEntry {
    name: String,
    size: u32,
    start: u32,
    folder: u16,
}

/// The entries of a cabinet's files (MS-CAB 2.3), and where the list is damaged.
fn cabinet_entries(bytes: &[u8]) -> (Vec<CabinetEntry>, Option<(usize, String)>) {
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let short = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let mut entries = Vec::new();
    let (Some(first), Some(count)) = (number(16), short(28)) else {
        return (entries, Some((bytes.len(), "the cabinet ends within its header".to_owned())));
    };
    let mut at = first as usize;
    for position in 0..count {
        let fields = (number(at), number(at + 4), short(at + 8), short(at + 14));
        let rest = bytes.get(at.saturating_add(16)..).unwrap_or_default();
        let rest = rest.get(..CAB_NAME_MAX + 1).unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == 0);
        let ((Some(size), Some(start), Some(folder), Some(attributes)), Some(end)) = (fields, end)
        else {
            return (entries, Some((at, format!("the entry of file {position} is not complete"))));
        };
        let raw = rest.get(..end).unwrap_or_default();
        const NAME_IS_UTF: u16 = 0x80;
        let name = if attributes & NAME_IS_UTF == 0 && std::str::from_utf8(raw).is_err() {
            encoding_rs::WINDOWS_1252.decode(raw).0.into_owned()
        } else {
            String::from_utf8_lossy(raw).into_owned()
        };
        at += 16 + end + 1;
        // These continue in another cabinet (MS-CAB 2.3, iFolder).
        if folder >= 0xfffd {
            return (
                entries,
                Some((at, format!("`{name}` continues in another cabinet of the set"))),
            );
        }
        entries.push(CabinetEntry { name, size, start, folder });
    }
    (entries, None)
}
