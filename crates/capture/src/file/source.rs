//! Sources of bytes: a file, standard input or any reader, decompressed if necessary.
//!
//! Owns opening, recognition by content, decompression, and the distinction between a failing
//! device and damaged data. It does not own the formats (`pcap`, `pcapng`).

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::magic::{self, Found, HEAD_BYTES, Kind};
use super::{Compression, FileError, standard_input};

/// A named stream of capture bytes.
pub(super) struct Source {
    name: String,
    input: Box<dyn Read + Send>,
    gauge: Arc<Gauge>,
    total: Option<u64>,
    compression: Option<Compression>,
    /// A pipe: the data so far is useful now, and the rest may take long to arrive.
    pub(super) is_live: bool,
    /// Why the decompressor failed; if called again, it might report a regular end.
    damage: Option<String>,
}

/// The beginning of a capture, already taken from its source.
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

/// Why reading stopped early.
pub(super) enum Cause {
    /// The system failed.
    System(FileError),
    /// The compressed data end early or contradict themselves.
    Damaged(String),
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Source, FileError> {
        if path == Path::new("-") {
            return standard_input::source();
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => FileError::NotFound { name: name.clone() },
            io::ErrorKind::PermissionDenied => FileError::PermissionDenied { name: name.clone() },
            _ => FileError::Open { name: name.clone(), source },
        })?;
        Source::of_file(file, name)
    }

    pub(super) fn new(input: Box<dyn Read + Send>, name: String, total: Option<u64>) -> Source {
        let gauge = Arc::new(Gauge::default());
        Source {
            name,
            input: Box::new(Gauged { input, gauge: Arc::clone(&gauge) }),
            gauge,
            total,
            compression: None,
            is_live: false,
            damage: None,
        }
    }

    /// Reads the beginning, and inserts a decompressor if one is needed.
    pub(super) fn recognise(&mut self) -> Result<Head, FileError> {
        let mut bytes = self.head().map_err(|cause| self.fatal(cause))?;
        if bytes.is_empty() {
            return Err(FileError::Empty { name: self.name.clone() });
        }
        let mut found = magic::recognise(&bytes);
        if let Found::Compressed(compression) = found {
            self.unpack(compression, bytes)?;
            bytes = self.head().map_err(|cause| self.fatal(cause))?;
            if bytes.is_empty() {
                return Err(self.fatal(Cause::Damaged("it is empty".to_owned())));
            }
            found = magic::recognise(&bytes);
        }
        match found {
            Found::Capture(kind) => Ok(Head { kind, bytes }),
            Found::Unsupported { what, advice } => {
                Err(FileError::Unsupported { name: self.name.clone(), what, advice })
            }
            Found::Compressed(_) | Found::Unknown => Err(FileError::NotACapture {
                name: self.name.clone(),
                inside: match self.compression {
                    Some(compression) => format!(" inside its {} data", label(compression)),
                    None => String::new(),
                },
                first: magic::describe(&bytes),
            }),
        }
    }

    /// Reads until the buffer is full, or what a pipe has (`true`), or until the input ends
    /// (`false`); `filled` counts also what was read before an error.
    pub(super) fn fill(&mut self, bytes: &mut [u8], filled: &mut usize) -> Result<bool, Cause> {
        while let Some(room) = bytes.get_mut(*filled..)
            && !room.is_empty()
        {
            if let Some(reason) = &self.damage {
                return Err(Cause::Damaged(reason.clone()));
            }
            match self.input.read(room) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    *filled += count;
                    if self.is_live {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cause(error)),
            }
        }
        Ok(true)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Bytes taken from the input as stored.
    pub(super) fn consumed(&self) -> u64 {
        self.gauge.consumed.load(Ordering::Relaxed)
    }

    fn of_file(file: File, name: String) -> Result<Source, FileError> {
        let meta = file.metadata().ok();
        if meta.as_ref().is_some_and(|meta| meta.is_dir()) {
            return Err(FileError::IsFolder { name });
        }
        // A pipe's length says nothing.
        let total = meta.filter(|meta| meta.is_file()).map(|meta| meta.len());
        let mut source = Source::new(Box::new(file), name, total);
        source.is_live = total.is_none();
        Ok(source)
    }

    fn head(&mut self) -> Result<Vec<u8>, Cause> {
        let mut bytes = vec![0; HEAD_BYTES];
        let mut filled = 0;
        let result = loop {
            match self.fill(&mut bytes, &mut filled) {
                Ok(true) if filled < bytes.len() => {}
                result => break result,
            }
        };
        bytes.truncate(filled);
        match result {
            // The data unpacked before the damage may be enough; the damage is found again later.
            Err(Cause::Damaged(_)) if filled > 0 => Ok(bytes),
            Err(cause) => Err(cause),
            Ok(_) => Ok(bytes),
        }
    }

    fn unpack(&mut self, compression: Compression, head: Vec<u8>) -> Result<(), FileError> {
        self.compression = Some(compression);
        self.is_live = false;
        let rest = std::mem::replace(&mut self.input, Box::new(io::empty()));
        let packed = BufReader::with_capacity(128 << 10, Cursor::new(head).chain(rest));
        self.input = match compression {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Compression::Zstd => Box::new(
                zstd::stream::read::Decoder::with_buffer(packed)
                    .map_err(|error| self.fatal(Cause::Damaged(error.to_string())))?,
            ),
            Compression::Xz => Box::new(xz(packed)),
        };
        Ok(())
    }

    fn cause(&mut self, error: io::Error) -> Cause {
        match self.compression {
            Some(compression) if !self.gauge.failed.load(Ordering::Relaxed) => {
                let label = label(compression);
                let reason = match error.kind() {
                    io::ErrorKind::UnexpectedEof => format!("the {label} data is cut off"),
                    _ => format!("the {label} data is corrupt ({error})"),
                };
                Cause::Damaged(self.damage.insert(reason).clone())
            }
            _ => Cause::System(FileError::Read {
                name: self.name.clone(),
                offset: self.consumed(),
                source: error,
            }),
        }
    }

    fn fatal(&self, cause: Cause) -> FileError {
        match cause {
            Cause::System(error) => error,
            Cause::Damaged(reason) => FileError::NothingInside {
                name: self.name.clone(),
                compression: self.compression.map_or("", label),
                reason,
            },
        }
    }
}

fn label(compression: Compression) -> &'static str {
    match compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
        Compression::Xz => "xz",
    }
}

/// Memory of an unpacker of xz, KiB: twice what `xz -9` needs. A file can ask for 4 GiB.
const XZ_KIB_MAX: u32 = 128 << 10;

/// Unpacks xz, in bounded memory.
pub fn xz<R: Read>(packed: R) -> impl Read {
    lzma_rust2::XzReader::new_mem_limit(packed, true, XZ_KIB_MAX)
}

/// What happened below the decompressor.
#[derive(Default)]
struct Gauge {
    consumed: AtomicU64,
    failed: AtomicBool,
}

struct Gauged {
    input: Box<dyn Read + Send>,
    gauge: Arc<Gauge>,
}

impl Read for Gauged {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let result = self.input.read(bytes);
        match &result {
            Ok(count) => {
                let consumed = &self.gauge.consumed;
                consumed.fetch_add(*count as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.gauge.failed.store(true, Ordering::Relaxed),
        }
        result
    }
}
