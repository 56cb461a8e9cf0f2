//! Recognises an input by its content.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use smbscope_tables::manifest::InputFile;

use super::packed_trace::{self, Unpacked};
use crate::capture;
use crate::capture::file::{Limits, Reader};
use crate::dataset::Dataset;
use crate::dataset::reader::FileInfo;
use crate::error::{Error, Result};
use crate::trace;

/// A recognised input.
#[derive(Clone, Debug)]
pub enum Input {
    /// A capture file.
    Capture {
        /// Where it is.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
        /// Its format and compression.
        format: String,
    },
    /// A trace of an operating system: of processors, of packets or of a server.
    Trace {
        /// Where it is.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
        /// Its format.
        format: trace::Format,
        /// The same unpacked in a temporary file, if it is compressed or on standard input.
        unpacked: Option<Unpacked>,
        /// What it is about.
        contents: trace::Contents,
    },
    /// A capture on standard input.
    Stdin,
    /// A pipe or device, which can be read only once.
    Pipe(PathBuf),
    /// A run folder.
    Dataset(Dataset),
    /// A Parquet file of smbscope.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its metadata.
        info: FileInfo,
    },
}

/// First bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

impl Input {
    /// The same for a name that may be that of a folder of Windows' event logs: each of them is an input.
    pub fn recognise_all(name: &str) -> Result<Vec<Input>> {
        let folder = Path::new(name);
        if name != "-" && folder.is_dir() {
            let logs = trace::event_logs(folder);
            if !logs.is_empty() {
                let names = logs.iter().map(|path| path.to_string_lossy());
                return names.map(|name| Input::recognise(&name)).collect();
            }
        }
        Input::recognise(name).map(|input| vec![input])
    }

    /// Recognises one input by content; `-` is standard input.
    pub fn recognise(name: &str) -> Result<Input> {
        let path = PathBuf::from(name);
        if name == "-" {
            let trace = packed_trace::of_standard_input()?;
            return trace.map_or(Ok(Input::Stdin), |unpacked| Input::of_unpacked(path, unpacked));
        }
        let metadata = std::fs::metadata(&path).map_err(Error::io(&path))?;
        if metadata.is_dir() {
            if let Some((format, size_bytes)) = trace::recognise_folder(&path) {
                let contents = trace::Contents::PROCESSORS;
                return Ok(Input::Trace { path, size_bytes, format, unpacked: None, contents });
            }
            return Dataset::open(&path).map(Input::Dataset);
        }
        if !metadata.is_file() {
            return Ok(Input::Pipe(path));
        }
        let head = head(&path)?;
        if head.starts_with(PARQUET_MAGIC) {
            let info = FileInfo::of(&path)?;
            return Ok(Input::File { path, info });
        }
        if let Some(format) = trace::recognise(&head) {
            let size_bytes = metadata.len();
            let contents = trace::contents(&path, format)?;
            return Ok(Input::Trace { path, size_bytes, format, unpacked: None, contents });
        }
        if let Some(unpacked) = packed_trace::unpack(&path, &head)? {
            return Input::of_unpacked(path, unpacked);
        }
        let reader = Reader::open(&path, Limits::default()).map_err(capture::Error::from)?;
        let format = reader.summary().description();
        Ok(Input::Capture { path, size_bytes: metadata.len(), format })
    }

    fn of_unpacked(path: PathBuf, unpacked: Unpacked) -> Result<Input> {
        let (size_bytes, format) = (unpacked.size_bytes, unpacked.format);
        let contents = trace::contents(&unpacked.file, format)?;
        let unpacked = Some(unpacked);
        Ok(Input::Trace { path, size_bytes, format, unpacked, contents })
    }

    /// Whether it can be read only once.
    pub fn is_stream(&self) -> bool {
        matches!(self, Input::Stdin | Input::Pipe(_))
    }

    /// Whether it has to be decoded.
    pub fn is_decoded(&self) -> bool {
        self.is_stream() || matches!(self, Input::Capture { .. } | Input::Trace { .. })
    }

    /// Name, size and format.
    pub fn describe(&self) -> InputFile {
        let (name, size_bytes, format) = match self {
            Input::Capture { path, size_bytes, format } => {
                (text(path), Some(*size_bytes), format.as_str())
            }
            Input::Trace { path, size_bytes, format, .. } => {
                (text(path), Some(*size_bytes), format.name())
            }
            Input::Stdin => ("-".to_owned(), None, "capture"),
            Input::Pipe(path) => (text(path), None, "capture"),
            Input::Dataset(dataset) => (text(dataset.dir()), None, "dataset"),
            Input::File { path, info } => (text(path), Some(info.size_bytes), "parquet"),
        };
        InputFile { name, size_bytes, format: format.to_owned() }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The first bytes of a file.
fn head(path: &Path) -> Result<Vec<u8>> {
    let mut first = Vec::new();
    let file = File::open(path).map_err(Error::io(path))?;
    file.take(trace::HEAD_BYTES as u64).read_to_end(&mut first).map_err(Error::io(path))?;
    Ok(first)
}
