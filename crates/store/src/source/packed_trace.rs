//! Traces that are compressed with gzip, zstd or xz, or on standard input: written to a temporary file, because most formats
//! must be read at several places.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use tempfile::{NamedTempFile, TempPath};

use crate::capture;
use crate::capture::file::{look_at_standard_input, standard_input};
use crate::error::{Error, Result};
use crate::trace::{self, Format};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = b"\xfd7zXZ\0";
/// A file that unpacks to more than this many times its size, and more than this many bytes, is not a trace.
pub(super) const RATIO_MAX: u64 = 1_000;
pub(super) const UNPACKED_MIN: u64 = 64 << 20;
/// Compressed bytes that give the first unpacked ones: a block of Zstandard has at most 128 KiB.
const PACKED_HEAD_BYTES: usize = 256 << 10;

/// A trace in a temporary file, unpacked. The file is deleted with the last clone.
#[derive(Clone, Debug)]
pub struct Unpacked {
    pub file: Arc<TempPath>,
    pub size_bytes: u64,
    pub format: Format,
}

/// Unpacks a file that begins with `head`; `None` if it is not compressed, or not a trace.
pub fn unpack(path: &Path, head: &[u8]) -> Result<Option<Unpacked>> {
    let file = BufReader::new(File::open(path).map_err(Error::io(path))?);
    let Some(mut input) = unpacker(head, file) else { return Ok(None) };
    let packed = std::fs::metadata(path).map_err(Error::io(path))?.len();
    let Some((first, format)) = trace_of(&mut input) else { return Ok(None) };
    let most = packed.saturating_mul(RATIO_MAX).max(UNPACKED_MIN);
    let (file, size_bytes) = spool(&first, &mut input, most, path)?;
    Ok(Some(Unpacked { file, size_bytes, format }))
}

/// A trace on standard input, which is compressed or not; `None` if it is something else, which stays there.
pub fn of_standard_input() -> Result<Option<Unpacked>> {
    let mut head = look_at_standard_input(trace::HEAD_BYTES).map_err(capture::Error::from)?;
    if [GZIP, ZSTD, XZ].iter().any(|magic| head.starts_with(magic)) {
        head = look_at_standard_input(PACKED_HEAD_BYTES).map_err(capture::Error::from)?;
    }
    let is_trace = match unpacker(&head, BufReader::new(&*head)) {
        Some(mut input) => trace_of(&mut input).is_some(),
        None => trace::recognise(&head).is_some(),
    };
    if !is_trace {
        return Ok(None);
    }
    let mut input = standard_input().map_err(capture::Error::from)?;
    let (file, size_bytes) = spool(&[], &mut input, u64::MAX, Path::new("-"))?;
    match trace::recognise(&head) {
        Some(format) => Ok(Some(Unpacked { file, size_bytes, format })),
        None => unpack(&file, &head),
    }
}

/// What the first unpacked bytes say, and these.
fn trace_of(input: &mut dyn Read) -> Option<(Vec<u8>, Format)> {
    let mut first = Vec::new();
    // What cannot be unpacked is reported by the reader of captures.
    let _ = input.take(trace::HEAD_BYTES as u64).read_to_end(&mut first);
    let format = trace::recognise(&first)?;
    Some((first, format))
}

/// Writes what was read and the rest to a temporary file; returns it and its size.
fn spool(
    first: &[u8],
    rest: &mut dyn Read,
    most: u64,
    name: &Path,
) -> Result<(Arc<TempPath>, u64)> {
    let temporary = std::env::temp_dir();
    let mut file = NamedTempFile::with_prefix("smbscope-").map_err(Error::io(&temporary))?;
    file.write_all(first).map_err(Error::io(&temporary))?;
    let mut size_bytes = first.len() as u64;
    let mut piece = vec![0; 1 << 18];
    loop {
        // A file that was cut has as much as can be unpacked; its trace says that it is not whole.
        let read = match rest.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        size_bytes += read as u64;
        if size_bytes > most {
            let what =
                format!("unpacks to more than {RATIO_MAX} times its size: this is not a trace");
            return Err(Error::NotRecognised { path: name.to_owned(), what });
        }
        file.write_all(piece.get(..read).unwrap_or_default()).map_err(Error::io(&temporary))?;
    }
    Ok((Arc::new(file.into_temp_path()), size_bytes))
}

/// What unpacks bytes that begin with `head`; `None` if they are not compressed.
pub(super) fn unpacker<'a>(head: &[u8], input: impl BufRead + 'a) -> Option<Box<dyn Read + 'a>> {
    if head.starts_with(GZIP) {
        return Some(Box::new(flate2::bufread::MultiGzDecoder::new(input)));
    }
    if head.starts_with(XZ) {
        return Some(Box::new(capture::file::xz(input)));
    }
    let decoder = head.starts_with(ZSTD).then(|| zstd::stream::read::Decoder::with_buffer(input));
    decoder?.ok().map(|decoder| Box::new(decoder) as Box<dyn Read>)
}
