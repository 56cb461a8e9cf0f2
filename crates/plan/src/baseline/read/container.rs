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
/// Folders of a cabinet; makers write one, or a few.
const FOLDERS_MAX: u16 = 1_000;
/// Characters of a path; longer ones are cut.
const NAME_MAX: usize = 500;
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
    let letters = name.chars().take(NAME_MAX);
    letters
        .map(|c| {
            if c == '\\' {
                '/'
            } else if c.is_control() {
                '?'
            } else {
                c
            }
        })
        .collect()
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

    /// Counts bytes that were unpacked.
    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes as u64);
        self.left = left.unwrap_or(0);
        let message = || format!("the unpacked files have more than {BYTES_MAX} bytes together");
        left.map(|_| ()).ok_or_else(message)
    }

    /// Reads all of a stream, as long as bytes are left.
    fn all(&mut self, reader: impl Read) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = reader.take(self.left + 1).read_to_end(&mut bytes);
        // What a damaged stream gave was work as well.
        self.spend(bytes.len())?;
        read.map_err(|error| error.to_string())?;
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
        let contents = match self.cabinet_folders(name, bytes, &folders) {
            Ok(contents) => contents,
            Err(error) => {
                self.output.damage(name, 0, format!("not a readable cabinet: {error}"));
                return members;
            }
        };
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

    /// Folders of a cabinet with their lengths, decompressed; damaged ones up to the damage.
    fn cabinet_folders(
        &mut self,
        name: &str,
        bytes: &[u8],
        folders: &BTreeMap<u16, u64>,
    ) -> Result<BTreeMap<u16, Vec<u8>>, String> {
        let offset = u32::try_from(bytes.len()).map_err(|_| "it is too large".to_owned())?;
        let count = u16::try_from(folders.len()).ok().filter(|count| *count <= FOLDERS_MAX);
        let count = count.ok_or_else(|| format!("it has more than {FOLDERS_MAX} folders"))?;
        // One file for each folder, in a list behind the end of the cabinet.
        let mut changed = bytes.to_vec();
        for (folder, length) in folders {
            changed.extend(u32::try_from(*length).unwrap_or(u32::MAX).to_le_bytes());
            changed.extend(0_u32.to_le_bytes());
            changed.extend(folder.to_le_bytes());
            changed.extend([0; 6]);
            changed.extend(format!("{folder}\0").bytes());
        }
        let header = "its header is too short";
        changed.get_mut(16..20).ok_or(header)?.copy_from_slice(&offset.to_le_bytes());
        changed.get_mut(28..30).ok_or(header)?.copy_from_slice(&count.to_le_bytes());
        let mut cabinet =
            cab::Cabinet::new(Cursor::new(changed)).map_err(|error| error.to_string())?;
        let mut contents = BTreeMap::new();
        for folder in folders.keys() {
            let mut content = Vec::new();
            let read = cabinet
                .read_file(&folder.to_string())
                .and_then(|file| file.take(self.left + 1).read_to_end(&mut content));
            let read = self.spend(content.len()).and(read.map_err(|error| error.to_string()));
            // What was decompressed before an error is kept: files in it are whole.
            if let Err(error) = read {
                self.output.damage(
                    name,
                    0,
                    format!("folder {folder} of the cabinet ends early: {error}"),
                );
            }
            if self.left == 0 {
                break;
            }
            contents.insert(*folder, content);
        }
        Ok(contents)
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
