//! A tar archive (POSIX ustar): written for a bundle, and read within limits.
//!
//! POSIX.1-2017, `pax`, section "ustar Interchange Format". Extensions (pax and GNU long names) are passed over; links and
//! devices are not read.

use std::collections::{BTreeMap, BTreeSet};

use super::files::link_path;
use super::{FILE_BYTES_MAX, Files, MEMBERS_MAX};

const BLOCK: usize = 512;
/// Entries of an archive.
const ENTRIES_MAX: usize = 500_000;
const NAME_BYTES: usize = 100;
const PREFIX_BYTES: usize = 155;

/// Whether bytes begin like an archive.
pub fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// An archive in memory. Nothing is unpacked.
#[derive(Debug)]
pub struct Tar<'a> {
    files: BTreeMap<String, &'a [u8]>,
    folders: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Tar<'a> {
    /// An error says at which byte the archive is damaged.
    pub fn new(bytes: &'a [u8]) -> Result<Self, String> {
        let mut tar = Tar { files: BTreeMap::new(), folders: BTreeMap::new() };
        let mut offset = 0;
        let mut entries = 0;
        while let Some(header) = bytes.get(offset..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
            if header.iter().all(|byte| *byte == 0) {
                return Ok(tar);
            }
            entries += 1;
            if entries > ENTRIES_MAX {
                return Err(format!("an archive of more than {ENTRIES_MAX} entries"));
            }
            let damaged = |what: &str| format!("damaged archive at byte {offset}: {what}");
            let entry = Header::read(header).ok_or_else(|| damaged("not a header"))?;
            let contents = bytes.get(offset + BLOCK..).and_then(|rest| rest.get(..entry.size));
            let contents = contents.ok_or_else(|| damaged("the file is cut"))?;
            match entry.kind {
                b'0' | 0 if entry.size <= FILE_BYTES_MAX => tar.add(&entry.path, Some(contents)),
                b'5' => tar.add(&entry.path, None),
                _ => {}
            }
            offset += BLOCK + entry.size.div_ceil(BLOCK) * BLOCK;
        }
        // Some programs leave out the two empty blocks at the end.
        Ok(tar)
    }

    fn add(&mut self, path: &str, contents: Option<&'a [u8]>) {
        let parts: Vec<&str> =
            path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.is_empty() || parts.contains(&"..") {
            return;
        }
        let mut folder = String::new();
        for part in &parts {
            let members = self.folders.entry(folder.clone()).or_default();
            if members.len() < MEMBERS_MAX {
                members.insert((*part).to_owned());
            }
            if !folder.is_empty() {
                folder.push('/');
            }
            folder.push_str(part);
        }
        if let Some(contents) = contents {
            self.files.insert(folder, contents);
        }
    }
}

impl Files for Tar<'_> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.files.get(path).map(|contents| contents.to_vec())
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.folders.get(path).into_iter().flatten().cloned().collect()
    }

    fn link(&self, path: &str) -> Option<String> {
        String::from_utf8(self.read(&link_path(path))?).ok()
    }
}

struct Header {
    path: String,
    size: usize,
    kind: u8,
}

impl Header {
    fn read(header: &[u8; BLOCK]) -> Option<Self> {
        let (before, rest) = header.split_at_checked(148)?;
        let (checksum, after) = rest.split_at_checked(8)?;
        let sum: usize = before.iter().chain(after).map(|byte| usize::from(*byte)).sum::<usize>()
            + 8 * usize::from(b' ');
        if octal(checksum)? != sum {
            return None;
        }
        let (name, prefix) =
            (text(header.get(..NAME_BYTES)?)?, text(header.get(345..345 + PREFIX_BYTES)?)?);
        // GNU's format has times where POSIX has a prefix.
        let path = if prefix.is_empty() || header.get(257..265) == Some(b"ustar  \0") {
            name
        } else {
            format!("{prefix}/{name}")
        };
        Some(Self { path, size: octal(header.get(124..136)?)?, kind: *header.get(156)? })
    }
}

fn text(field: &[u8]) -> Option<String> {
    let field = field.split(|byte| *byte == 0).next()?;
    String::from_utf8(field.to_vec()).ok()
}

fn octal(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?;
    usize::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok().filter(|size| *size <= 1 << 33)
}

/// Writes an archive. Times are zero, so that the same files give the same bytes.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Adds a file, or a folder (without contents). An error if the path is too long.
    pub fn add(&mut self, path: &str, contents: Option<&[u8]>) -> Result<(), String> {
        let too_long = || "the path is too long for a tar archive".to_owned();
        let (prefix, name) = split(path).ok_or_else(too_long)?;
        let size = contents.map_or(0, <[u8]>::len);
        let mut header = Vec::with_capacity(BLOCK);
        field(&mut header, name.as_bytes(), NAME_BYTES);
        field(&mut header, if contents.is_some() { b"0000644" } else { b"0000755" }, 8);
        field(&mut header, b"0000000", 8);
        field(&mut header, b"0000000", 8);
        field(&mut header, format!("{size:011o}").as_bytes(), 12);
        field(&mut header, b"00000000000", 12);
        header.extend([b' '; 8]);
        header.push(if contents.is_some() { b'0' } else { b'5' });
        field(&mut header, b"", 100);
        header.extend(b"ustar\x0000");
        field(&mut header, b"", 32 + 32 + 8 + 8);
        field(&mut header, prefix.as_bytes(), PREFIX_BYTES);
        header.resize(BLOCK, 0);
        let sum: usize = header.iter().map(|byte| usize::from(*byte)).sum();
        if let Some(checksum) = header.get_mut(148..156) {
            checksum.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        self.bytes.extend(header);
        self.bytes.extend(contents.unwrap_or_default());
        self.pad();
        Ok(())
    }

    /// The archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0; 2 * BLOCK]);
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().div_ceil(BLOCK) * BLOCK, 0);
    }
}

fn field(header: &mut Vec<u8>, value: &[u8], length: usize) {
    let end = header.len() + length;
    header.extend(value.iter().take(length));
    header.resize(end, 0);
}

/// Prefix and name of a path.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME_BYTES {
        return Some(("", path));
    }
    let fits = |(position, _): &(usize, &str)| {
        *position <= PREFIX_BYTES && path.len() - position - 1 <= NAME_BYTES
    };
    let (position, _) = path.match_indices('/').find(fits)?;
    Some((path.get(..position)?, path.get(position + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut writer = Writer::default();
        writer.add("a/b", Some(b"hello")).unwrap();
        writer.add("a/c", None).unwrap();
        writer.add(&format!("{}/{}", "d".repeat(90), "e".repeat(90)), Some(&[7; 513])).unwrap();
        writer.finish()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = archive();
        let tar = Tar::new(&bytes).unwrap();
        assert_eq!(tar.read("a/b"), Some(b"hello".to_vec()));
        assert_eq!(
            (tar.list("a"), tar.list("a/c")),
            (vec!["b".to_owned(), "c".to_owned()], vec![])
        );
        assert_eq!(tar.read(&format!("{}/{}", "d".repeat(90), "e".repeat(90))), Some(vec![7; 513]));
        assert!(is_tar(&bytes));
        assert!(Writer::default().add(&"x".repeat(101), None).is_err());
    }

    /// The system's own tar reads it, and writes one that is read.
    #[test]
    fn the_systems_tar_agrees() {
        let folder = std::env::temp_dir().join(format!("smbscope-plan-tar-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ours.tar"), archive()).unwrap();
        let run = |arguments: &[&str]| {
            std::process::Command::new("tar").current_dir(&folder).args(arguments).status()
        };
        match run(&["-xf", "ours.tar"]) {
            Ok(status) => {
                assert!(status.success());
                assert_eq!(std::fs::read(folder.join("a/b")).unwrap(), b"hello");
                assert!(run(&["-cf", "theirs.tar", "./a"]).unwrap().success());
                let bytes = std::fs::read(folder.join("theirs.tar")).unwrap();
                assert_eq!(Tar::new(&bytes).unwrap().read("a/b"), Some(b"hello".to_vec()));
            }
            Err(error) => smbscope_testing::skip!("tar does not run: {error}"),
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn damaged_archives_are_errors() {
        let bytes = archive();
        let error = |bytes: &[u8]| Tar::new(bytes).unwrap_err();
        let mut changed = bytes.clone();
        changed[3] ^= 1;
        assert_eq!(error(&changed), "damaged archive at byte 0: not a header");
        assert_eq!(error(&bytes[..BLOCK + 2]), "damaged archive at byte 0: the file is cut");
        for length in 0..bytes.len() {
            let _ = Tar::new(&bytes[..length]);
        }
    }

    /// A path that leaves the archive is not read.
    #[test]
    fn paths_stay_inside() {
        let mut writer = Writer::default();
        writer.add("../etc/passwd", Some(b"x")).unwrap();
        writer.add("/sys/a", Some(b"y")).unwrap();
        let bytes = writer.finish();
        let tar = Tar::new(&bytes).unwrap();
        assert_eq!(
            (tar.list(""), tar.read("sys/a")),
            (vec!["sys".to_owned()], Some(b"y".to_vec()))
        );
    }
}
