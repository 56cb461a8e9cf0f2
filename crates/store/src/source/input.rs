//! What an input is, by what it holds.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use smbscope_event::manifest::InputFile;

use crate::capture;
use crate::dataset::Dataset;
use crate::dataset::reader::FileInfo;
use crate::error::{Error, Result};

/// A recognised input.
#[derive(Clone, Debug)]
pub enum Input {
    /// A capture file.
    Capture {
        /// Where it is.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
    },
    /// Standard input.
    Stdin,
    /// A pipe or device, which can be read once only.
    Pipe(PathBuf),
    /// A run folder.
    Dataset(Dataset),
    /// A Parquet file of smbscope.
    File {
        /// Where it is.
        path: PathBuf,
        /// What it holds.
        info: FileInfo,
    },
}

/// Begin and end of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

impl Input {
    /// Recognises one input by content; `-` is standard input.
    pub fn recognise(name: &str) -> Result<Input> {
        if name == "-" {
            return Ok(Input::Stdin);
        }
        let path = PathBuf::from(name);
        let metadata = std::fs::metadata(&path).map_err(Error::io(&path))?;
        if metadata.is_dir() {
            return Dataset::open(&path).map(Input::Dataset);
        }
        if !metadata.is_file() {
            return Ok(Input::Pipe(path));
        }
        let first = first_bytes(&path)?;
        if first.starts_with(PARQUET_MAGIC) {
            let info = FileInfo::of(&path)?;
            return Ok(Input::File { path, info });
        }
        if capture::is_capture(&first) {
            let size_bytes = metadata.len();
            return Ok(Input::Capture { path, size_bytes });
        }
        let what = match first.is_empty() {
            true => "is empty",
            false => "is neither a capture (pcap, pcapng) nor a dataset of smbscope",
        };
        Err(Error::NotRecognised {
            path,
            what: what.into(),
        })
    }

    /// Whether it can be read once only.
    pub fn is_stream(&self) -> bool {
        matches!(self, Input::Stdin | Input::Pipe(_))
    }

    /// Whether it is decoded, not read.
    pub fn is_capture(&self) -> bool {
        self.is_stream() || matches!(self, Input::Capture { .. })
    }

    /// Name, size and format.
    pub fn describe(&self) -> InputFile {
        let (name, size_bytes, format) = match self {
            Input::Capture { path, size_bytes } => (text(path), Some(*size_bytes), "capture"),
            Input::Stdin => ("-".to_owned(), None, "capture"),
            Input::Pipe(path) => (text(path), None, "capture"),
            Input::Dataset(dataset) => (text(dataset.dir()), None, "dataset"),
            Input::File { path, info } => (text(path), Some(info.size_bytes), "parquet"),
        };
        InputFile {
            name,
            size_bytes,
            format: format.to_owned(),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Enough of a file to recognise it, also when it is compressed.
fn first_bytes(path: &Path) -> Result<Vec<u8>> {
    let mut first = Vec::new();
    File::open(path)
        .and_then(|file| file.take(64 * 1024).read_to_end(&mut first))
        .map_err(Error::io(path))?;
    Ok(first)
}
