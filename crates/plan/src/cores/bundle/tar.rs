//! A tar archive: written for a bundle, and read within limits. Nothing is unpacked.
//!
//! Extensions (pax and GNU long names) are passed over; links and devices are not read.

use std::collections::{BTreeMap, BTreeSet};

use tar::{Archive, Builder, EntryType, Header};

use super::files::link_path;
use super::{FILE_BYTES_MAX, Files, MEMBERS_MAX};

/// Entries of an archive.
const ENTRIES_MAX: usize = 500_000;

/// Whether bytes begin like an archive.
pub fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// An archive in memory.
#[derive(Debug, Default)]
pub struct Tar<'a> {
    files: BTreeMap<String, &'a [u8]>,
    folders: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Tar<'a> {
    /// An error says what is damaged.
    pub fn new(bytes: &'a [u8]) -> Result<Self, String> {
        let damaged = |error: std::io::Error| format!("damaged archive: {error}");
        let mut tar = Tar::default();
        let mut archive = Archive::new(bytes);
        for (number, entry) in archive.entries().map_err(damaged)?.raw(true).enumerate() {
            if number >= ENTRIES_MAX {
                return Err(format!("an archive of more than {ENTRIES_MAX} entries"));
            }
            let entry = entry.map_err(damaged)?;
            let size = usize::try_from(entry.size()).unwrap_or(usize::MAX);
            let contents = usize::try_from(entry.raw_file_position())
                .ok()
                .and_then(|start| bytes.get(start..)?.get(..size))
                .ok_or("damaged archive: a file is cut")?;
            let Ok(path) = std::str::from_utf8(&entry.path_bytes()).map(str::to_owned) else {
                return Err("damaged archive: a path is not UTF-8".to_owned());
            };
            match entry.header().entry_type() {
                EntryType::Regular if size <= FILE_BYTES_MAX => tar.add(&path, Some(contents)),
                EntryType::Directory => tar.add(&path, None),
                _ => {}
            }
        }
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

/// Writes an archive. Times are zero, so that the same files give the same bytes.
pub struct Writer(Builder<Vec<u8>>);

impl Default for Writer {
    fn default() -> Self {
        Writer(Builder::new(Vec::new()))
    }
}

impl Writer {
    /// Adds a file, or a folder (without contents). An error if the path is too long or leaves the archive.
    pub fn add(&mut self, path: &str, contents: Option<&[u8]>) -> Result<(), String> {
        let contents_or_none = contents.unwrap_or_default();
        let (mode, kind) = match contents {
            Some(_) => (0o644, EntryType::Regular),
            None => (0o755, EntryType::Directory),
        };
        let mut header = Header::new_ustar();
        header.set_path(path).map_err(|error| error.to_string())?;
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(contents_or_none.len() as u64);
        header.set_cksum();
        self.0.append(&header, contents_or_none).map_err(|error| error.to_string())
    }

    /// The archive.
    pub fn finish(self) -> Vec<u8> {
        // Writing to memory does not fail.
        self.0.into_inner().unwrap_or_default()
    }
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
        let mut changed = bytes.clone();
        changed[3] ^= 1;
        assert!(Tar::new(&changed).unwrap_err().contains("checksum"));
        assert_eq!(Tar::new(&bytes[..514]).unwrap_err(), "damaged archive: a file is cut");
        for length in 0..bytes.len() {
            let _ = Tar::new(&bytes[..length]);
        }
    }

    /// A path that leaves the archive is not read.
    #[test]
    fn paths_stay_inside() {
        let mut writer = Writer::default();
        assert!(writer.add("../etc/passwd", Some(b"x")).is_err());
        for name in ["../../x", "sys/../../x"] {
            writer.add(name.replace("..", "aa").as_str(), Some(b"x")).unwrap();
        }
        writer.add("sys/a", Some(b"y")).unwrap();
        let mut bytes = writer.0.into_inner().unwrap();
        // The same headers with another path, and a checksum that fits.
        for block in bytes.chunks_exact_mut(512).step_by(2).take(2) {
            let mut header = Header::from_byte_slice(block).clone();
            let name = &mut header.as_old_mut().name;
            name.iter_mut().filter(|byte| **byte == b'a').for_each(|byte| *byte = b'.');
            header.set_cksum();
            block.copy_from_slice(header.as_bytes());
        }
        let tar = Tar::new(&bytes).unwrap();
        assert_eq!(
            (tar.list(""), tar.read("sys/a")),
            (vec!["sys".to_owned()], Some(b"y".to_vec()))
        );
    }
}
