//! Archives with recordings (tar, zip, and tar that is compressed): unpacked into a temporary folder, because a trace
//! must be read at several places and a pass may be repeated.
//!
//! A stranger's archive is bounded like a stranger's gzip: by the ratio of its sizes and by the number of its files.
//! Only regular files are unpacked, and none outside the folder.

use std::fs::File;
use std::io::{BufReader, Read, Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use super::packed_trace::{RATIO_MAX, UNPACKED_MIN, unpacker};
use crate::error::{Error, Result};

const ZIP: &[u8] = b"PK\x03\x04";
/// Where a tar header has its magic (POSIX ustar, GNU), and how much of a file has to be seen for it.
const TAR_AT: usize = 257;
const TAR: &[u8] = b"ustar";
const TAR_HEAD_BYTES: u64 = 512;
/// Most files of an archive.
const FILES_MAX: usize = 10_000;
/// How the temporary folders begin; names of inputs are shown without them.
const PREFIX: &str = "smbscope-archive-";

/// Unpacks an archive that begins with `head`; `None` for other files.
///
/// # Errors
/// It is damaged, too large, or there is no room for it.
pub fn unpack(path: &Path, head: &[u8]) -> Result<Option<TempDir>> {
    let open = || File::open(path).map(BufReader::new).map_err(Error::io(path));
    let packed = std::fs::metadata(path).map_err(Error::io(path))?.len();
    let mut folder = Folder::new(path, packed)?;
    if head.starts_with(ZIP) {
        folder.unzip(open()?)?;
    } else if is_tar(head) {
        folder.untar(open()?)?;
    } else {
        let Some(mut input) = unpacker(head, open()?) else { return Ok(None) };
        let mut first = Vec::new();
        // What cannot be unpacked is reported by the reader of captures.
        let _ = input.by_ref().take(TAR_HEAD_BYTES).read_to_end(&mut first);
        if !is_tar(&first) {
            return Ok(None);
        }
        folder.untar(std::io::Cursor::new(first).chain(input))?;
    }
    Ok(Some(folder.temporary))
}

/// A path below an unpacked archive without the temporary folder: `share.zip/day1.pcap`.
pub fn shown(path: &Path) -> &Path {
    let temporary = std::env::temp_dir();
    let Ok(below) = path.strip_prefix(&temporary) else { return path };
    let mut parts = below.components();
    match parts.next() {
        Some(Component::Normal(name)) if name.to_string_lossy().starts_with(PREFIX) => {
            parts.as_path()
        }
        _ => path,
    }
}

fn is_tar(head: &[u8]) -> bool {
    head.get(TAR_AT..).is_some_and(|rest| rest.starts_with(TAR))
}

/// Where an archive is unpacked, and how much it may still become.
struct Folder<'a> {
    temporary: TempDir,
    archive: &'a Path,
    bytes_left: u64,
    files_left: usize,
}

impl<'a> Folder<'a> {
    fn new(archive: &'a Path, packed: u64) -> Result<Folder<'a>> {
        let temporary = tempfile::Builder::new().prefix(PREFIX).tempdir();
        Ok(Folder {
            temporary: temporary.map_err(Error::io(&std::env::temp_dir()))?,
            archive,
            bytes_left: packed.saturating_mul(RATIO_MAX).max(UNPACKED_MIN),
            files_left: FILES_MAX,
        })
    }

    fn damaged(&self, why: &dyn std::fmt::Display) -> Error {
        let what = format!("is an archive that cannot be unpacked: {why}");
        Error::NotRecognised { path: self.archive.to_owned(), what }
    }

    fn unzip(&mut self, input: BufReader<File>) -> Result<()> {
        let mut archive = zip::ZipArchive::new(input).map_err(|error| self.damaged(&error))?;
        for place in 0..archive.len() {
            let mut member = archive.by_index(place).map_err(|error| self.damaged(&error))?;
            if let Some(name) = member.enclosed_name().filter(|_| member.is_file()) {
                self.file(&name, &mut member)?;
            }
        }
        Ok(())
    }

    fn untar(&mut self, input: impl Read) -> Result<()> {
        let mut archive = tar::Archive::new(input);
        let members = archive.entries().map_err(|error| self.damaged(&error))?;
        for member in members {
            let mut member = member.map_err(|error| self.damaged(&error))?;
            if member.header().entry_type().is_file() {
                let name = member.path().map_err(|error| self.damaged(&error))?.into_owned();
                self.file(&name, &mut member)?;
            }
        }
        Ok(())
    }

    /// Writes one member. Names that lead out of the folder, or exist already, are left out.
    fn file(&mut self, name: &Path, content: &mut dyn Read) -> Result<()> {
        let parts: Option<PathBuf> = name
            .components()
            .filter(|part| *part != Component::CurDir)
            .map(|part| match part {
                Component::Normal(part) => Some(part),
                _ => None,
            })
            .collect();
        let Some(name) = parts.filter(|name| !name.as_os_str().is_empty()) else { return Ok(()) };
        let archive = self.archive.file_name().unwrap_or_default();
        let path = self.temporary.path().join(archive).join(name);
        if path.exists() {
            return Ok(());
        }
        let Some(left) = self.files_left.checked_sub(1) else {
            return Err(self.damaged(&format!("it has more than {FILES_MAX} files")));
        };
        self.files_left = left;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let mut file = File::create_new(&path).map_err(Error::io(&path))?;
        let mut piece = vec![0; 1 << 18];
        loop {
            let read = match content.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                // A file that was cut has as much as can be unpacked; its reader says that it is not whole.
                Err(error) if file.stream_position().is_ok_and(|at| at == 0) => {
                    return Err(self.damaged(&error));
                }
                Err(_) => break,
            };
            let Some(left) = self.bytes_left.checked_sub(read as u64) else {
                return Err(self.damaged(&format!("it has more than {RATIO_MAX} times its size")));
            };
            self.bytes_left = left;
            file.write_all(piece.get(..read).unwrap_or_default()).map_err(Error::io(&path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            // Not set_path, which refuses names that lead elsewhere.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in members {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn unpacked(path: &Path) -> Result<Option<TempDir>> {
        let bytes = std::fs::read(path).unwrap();
        unpack(path, &bytes[..bytes.len().min(16_384)])
    }

    #[test]
    fn members_are_unpacked_below_the_archive_s_name_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let members: [(&str, &[u8]); 4] =
            [("a/day1.pcap", b"one"), ("../out", b"no"), ("/etc/out", b"no"), ("./b", b"two")];
        for (name, bytes) in
            [("x.tar", tar(&members)), ("x.tgz", gzip(&tar(&members))), ("x.zip", zip(&members))]
        {
            let path = archive(folder.path(), name, &bytes);
            let made = unpacked(&path).unwrap().expect(name);
            let below = made.path().join(name);
            assert_eq!(std::fs::read(below.join("a/day1.pcap")).unwrap(), b"one", "{name}");
            assert_eq!(std::fs::read(below.join("b")).unwrap(), b"two", "{name}");
            assert!(!made.path().join("out").exists() && !Path::new("/etc/out").exists());
            let inside = format!("{name}/a/day1.pcap");
            assert_eq!(shown(&below.join("a/day1.pcap")), Path::new(&inside));
        }
        assert_eq!(shown(Path::new("/data/x.pcap")), Path::new("/data/x.pcap"));
        let other = archive(folder.path(), "x.pcap", b"\xd4\xc3\xb2\xa1 no archive");
        assert!(unpacked(&other).unwrap().is_none());
    }

    #[test]
    fn archives_that_are_damaged_or_too_large_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let zeros = vec![0; UNPACKED_MIN as usize + 1];
        // Gzip itself ends at this ratio.
        let packed = zstd::encode_all(&*tar(&[("zeros", &zeros)]), 1).unwrap();
        let bomb = archive(folder.path(), "bomb.tar.zst", &packed);
        let error = unpacked(&bomb).unwrap_err().to_string();
        assert!(error.contains("more than 1000 times its size"), "{error}");
        let mut bytes = zip(&[("a", b"text")]);
        bytes.truncate(20);
        let error = unpacked(&archive(folder.path(), "cut.zip", &bytes)).unwrap_err().to_string();
        assert!(error.contains("cannot be unpacked"), "{error}");
    }
}
