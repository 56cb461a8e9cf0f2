//! Traces that are compressed with gzip or zstd: unpacked to a temporary file, because most formats must be read at
//! several places.

use std::fs::File;
use std::io::{BufReader, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use tempfile::{NamedTempFile, TempPath};

use crate::error::{Error, Result};
use crate::trace::{self, Format};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A file that unpacks to more than this many times its size, and more than this many bytes, is not a trace.
const RATIO_MAX: u64 = 1_000;
const UNPACKED_LEAST: u64 = 64 << 20;

/// An unpacked trace. The file is deleted with the last clone.
#[derive(Clone, Debug)]
pub struct Unpacked {
    pub file: Arc<TempPath>,
    pub size_bytes: u64,
    pub format: Format,
}

/// Unpacks a file that begins with `head`; `None` if it is not compressed, or not a trace.
pub fn unpack(path: &Path, head: &[u8]) -> Result<Option<Unpacked>> {
    if !head.starts_with(GZIP) && !head.starts_with(ZSTD) {
        return Ok(None);
    }
    let Some(mut input) = open(path, head)? else { return Ok(None) };
    let mut first = Vec::new();
    // What cannot be unpacked is reported by the reader of captures.
    let _ = input.by_ref().take(trace::HEAD_BYTES as u64).read_to_end(&mut first);
    let Some(format) = trace::recognise(&first) else { return Ok(None) };
    let temporary = std::env::temp_dir();
    let mut file = NamedTempFile::with_prefix("smbscope-").map_err(Error::io(&temporary))?;
    file.write_all(&first).map_err(Error::io(&temporary))?;
    let packed = std::fs::metadata(path).map_err(Error::io(path))?.len();
    let most = packed.saturating_mul(RATIO_MAX).max(UNPACKED_LEAST);
    let mut size_bytes = first.len() as u64;
    let mut piece = vec![0; 1 << 18];
    loop {
        // A file that was cut has as much as can be unpacked; its trace says that it is not whole.
        let read = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        size_bytes += read as u64;
        if size_bytes > most {
            let what =
                format!("unpacks to more than {RATIO_MAX} times its size: this is not a trace");
            return Err(Error::NotRecognised { path: path.to_owned(), what });
        }
        file.write_all(piece.get(..read).unwrap_or_default()).map_err(Error::io(&temporary))?;
    }
    let file = Arc::new(file.into_temp_path());
    Ok(Some(Unpacked { file, size_bytes, format }))
}

fn open(path: &Path, head: &[u8]) -> Result<Option<Box<dyn Read>>> {
    let file = BufReader::new(File::open(path).map_err(Error::io(path))?);
    Ok(match head.starts_with(GZIP) {
        true => Some(Box::new(flate2::bufread::MultiGzDecoder::new(file))),
        false => match zstd::stream::read::Decoder::with_buffer(file) {
            Ok(decoder) => Some(Box::new(decoder)),
            Err(_) => None,
        },
    })
}
