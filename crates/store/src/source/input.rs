//! Recognises an input by its content.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use smbscope_tables::manifest::InputFile;
use tempfile::TempDir;

use super::archive;
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
    /// A trace of an operating system: of CPUs, of packets or of a server.
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
        /// A log of the same machine and time whose packets are about the same operations. It is read together with
        /// this one.
        companion: Option<Box<Input>>,
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
    /// The same for a name that may be that of a folder with captures and traces: each of them is an input.
    pub fn recognise_all(name: &str) -> Result<Vec<Input>> {
        Input::recognise_folder(Path::new(name), name)
    }

    /// The inputs in an archive, and the folder in which they are unpacked; `None` for other files.
    pub fn recognise_archive(name: &str) -> Result<Option<(Vec<Input>, TempDir)>> {
        let path = Path::new(name);
        if name == "-" || !path.is_file() {
            return Ok(None);
        }
        let Some(folder) = archive::unpack(path, &head(path)?)? else { return Ok(None) };
        let inputs = recordings(folder.path(), 0)?;
        if inputs.is_empty() {
            let what = "is an archive without captures, traces or recordings".to_owned();
            return Err(Error::NotRecognised { path: path.to_owned(), what });
        }
        Ok(Some((inputs, folder)))
    }

    fn recognise_folder(folder: &Path, name: &str) -> Result<Vec<Input>> {
        let is_folder = name != "-" && folder.is_dir() && trace::recognise_folder(folder).is_none();
        if !is_folder {
            return Input::recognise(name).map(|input| vec![input]);
        }
        match Dataset::open(folder) {
            Ok(dataset) => Ok(vec![Input::Dataset(dataset)]),
            Err(error @ Error::NotRecognised { .. }) => match recordings(folder, 0)? {
                found if found.is_empty() => Err(error),
                found => Ok(found),
            },
            Err(error) => Err(error),
        }
    }

    /// Logs of Windows that show the same operations, one as events of the server and one as packets, become one input.
    pub fn join_logs(inputs: &mut Vec<Input>) {
        let log = |input: &Input| match input {
            Input::Trace { contents, companion: None, .. } => contents.log,
            _ => None,
        };
        let mut place = 0;
        while let Some(input) = inputs.get(place) {
            let events = log(input);
            let is_other = |other: &Input| {
                events.zip(log(other)).is_some_and(|(events, other)| events.has_packets_in(&other))
            };
            if let Some(found) = inputs.iter().position(is_other) {
                let packets = inputs.remove(found);
                place -= usize::from(found < place);
                if let Some(Input::Trace { companion, .. }) = inputs.get_mut(place) {
                    *companion = Some(Box::new(packets));
                }
            }
            place += 1;
        }
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
                return Ok(Input::of_trace(path, size_bytes, format, None, contents));
            }
            return Dataset::open(&path).map(Input::Dataset);
        }
        if !metadata.is_file() {
            return Ok(Input::Pipe(path));
        }
        let head = head(&path)?;
        if head.starts_with(PARQUET_MAGIC) {
            let info = FileInfo::from_path(&path)?;
            return Ok(Input::File { path, info });
        }
        if let Some(format) = trace::recognise(&head) {
            let size_bytes = metadata.len();
            let contents = trace::contents(&path, format)?;
            return Ok(Input::of_trace(path, size_bytes, format, None, contents));
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
        Ok(Input::of_trace(path, size_bytes, format, Some(unpacked), contents))
    }

    fn of_trace(
        path: PathBuf,
        size_bytes: u64,
        format: trace::Format,
        unpacked: Option<Unpacked>,
        contents: trace::Contents,
    ) -> Input {
        Input::Trace { path, size_bytes, format, unpacked, contents, companion: None }
    }

    /// Whether it can be read only once.
    pub fn is_stream(&self) -> bool {
        matches!(self, Input::Stdin | Input::Pipe(_))
    }

    /// Whether it has to be decoded.
    pub fn is_decoded(&self) -> bool {
        self.is_stream() || matches!(self, Input::Capture { .. } | Input::Trace { .. })
    }

    /// Name, size and format of its files.
    pub fn describe(&self) -> Vec<InputFile> {
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
        let companion = match self {
            Input::Trace { companion: Some(companion), .. } => companion.describe(),
            _ => Vec::new(),
        };
        let file = InputFile { name, size_bytes, format: format.to_owned() };
        [file].into_iter().chain(companion).collect()
    }

    /// The file to read: a trace that was compressed is in a temporary one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Input::Trace { unpacked: Some(unpacked), .. } => Some(&unpacked.file),
            Input::Trace { path, .. } | Input::Capture { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Most files of a folder that are inputs: as many as Windows has event logs.
const FOLDER_FILES_MAX: usize = 1_000;

/// How deep folders in folders are looked into: lttng makes NAME/ust/uid/1000/64-bit.
const DEPTH_MAX: usize = 5;

/// Recordings in a folder and in those below it, by name. Other files are left out.
fn recordings(folder: &Path, depth: usize) -> Result<Vec<Input>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        // A link may lead back.
        let is_folder = path.is_dir() && !path.is_symlink();
        match Input::recognise(&path.to_string_lossy()) {
            Ok(input @ (Input::Capture { .. } | Input::Trace { .. })) => found.push(input),
            // A dataset next to captures may be made of them: only one alone is taken.
            Ok(input @ Input::Dataset(_)) if depth > 0 => found.push(input),
            Err(Error::NotRecognised { .. }) if is_folder && depth < DEPTH_MAX => {
                found.extend(recordings(&path, depth + 1)?);
            }
            Err(error @ Error::Io { .. }) => return Err(error),
            _ => {}
        }
        if found.len() >= FOLDER_FILES_MAX {
            break;
        }
    }
    Ok(found)
}

fn text(path: &Path) -> String {
    archive::shown(path).to_string_lossy().into_owned()
}

/// The first bytes of a file.
fn head(path: &Path) -> Result<Vec<u8>> {
    let mut first = Vec::new();
    let file = File::open(path).map_err(Error::io(path))?;
    file.take(trace::HEAD_BYTES as u64).read_to_end(&mut first).map_err(Error::io(path))?;
    Ok(first)
}
