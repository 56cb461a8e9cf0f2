//! Files of a trace: a folder, or its like in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The file with the metadata.
const METADATA: &str = "metadata";

/// Files by their number.
pub trait Files {
    /// The metadata as it is, up to `most` bytes.
    fn metadata(&mut self, most: u64) -> io::Result<Vec<u8>>;

    /// Names and sizes of the streams.
    fn streams(&self) -> Vec<(String, u64)>;

    /// Reads up to `length` bytes of a stream into `out`, fewer at its end.
    fn read(&mut self, stream: usize, at: u64, length: u64, out: &mut Vec<u8>) -> io::Result<()>;
}

/// A folder of LTTng.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    streams: Vec<(String, u64)>,
}

impl Folder {
    /// Opens a folder with `metadata`; `NotFound` if it has none of CTF.
    pub fn open(path: &Path) -> io::Result<Folder> {
        if !has_metadata(path) {
            let what = "the folder has no metadata of CTF";
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let mut streams = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let (name, metadata) = (entry.file_name(), entry.metadata()?);
            let name = name.to_string_lossy();
            // The folder `index` has nothing that streams do not have.
            if metadata.is_file() && name != METADATA && !name.starts_with('.') {
                streams.push((name.into_owned(), metadata.len()));
            }
        }
        streams.sort();
        Ok(Folder { path: path.to_owned(), streams })
    }

    /// Bytes of all streams.
    pub fn size_bytes(&self) -> u64 {
        self.streams.iter().map(|&(_, size_bytes)| size_bytes).sum()
    }
}

fn has_metadata(folder: &Path) -> bool {
    let mut head = Vec::new();
    let file = File::open(folder.join(METADATA));
    let read = file.and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && super::metadata::is_metadata(&head)
}

impl Files for Folder {
    fn metadata(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        File::open(self.path.join(METADATA))?.take(most).read_to_end(&mut text)?;
        Ok(text)
    }

    fn streams(&self) -> Vec<(String, u64)> {
        self.streams.clone()
    }

    fn read(&mut self, stream: usize, at: u64, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let Some((name, _)) = self.streams.get(stream) else { return Ok(()) };
        // A trace can have more streams than a process can have open files.
        let mut file = File::open(self.path.join(name))?;
        file.seek(SeekFrom::Start(at))?;
        file.take(length).read_to_end(out)?;
        Ok(())
    }
}

/// Metadata and streams in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub metadata: Vec<u8>,
    pub streams: Vec<Vec<u8>>,
}

impl Files for Memory {
    fn metadata(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let length = self.metadata.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(self.metadata.get(..length).unwrap_or_default().to_vec())
    }

    fn streams(&self) -> Vec<(String, u64)> {
        let streams = self.streams.iter().enumerate();
        streams.map(|(number, bytes)| (format!("stream {number}"), bytes.len() as u64)).collect()
    }

    fn read(&mut self, stream: usize, at: u64, length: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let bytes = self.streams.get(stream).map_or(&[][..], Vec::as_slice);
        let start = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let mut rest = bytes.get(start..).unwrap_or_default().take(length);
        rest.read_to_end(out)?;
        Ok(())
    }
}
