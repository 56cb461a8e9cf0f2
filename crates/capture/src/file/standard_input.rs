//! Standard input, which can be looked at before it is read.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::{Mutex, PoisonError};

use super::FileError;
use super::magic::{self, Found, Kind};
use super::source::Source;

/// What messages call it.
const NAME: &str = "standard input";

/// What was looked at and not read yet; there is one standard input.
static LOOKED_AT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The first bytes of standard input, at most `most`; they stay in it. If it begins like a capture of packets, which can
/// be one that is being recorded, that beginning is enough.
///
/// # Errors
///
/// Those of the operating system.
pub fn look_at_standard_input(most: usize) -> Result<Vec<u8>, FileError> {
    let mut looked_at = LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut input, _) = open()?;
    let failed = |source| FileError::Open { name: NAME.to_owned(), source };
    while looked_at.len() < most && !is_packets(&looked_at) {
        let length = looked_at.len();
        looked_at.resize(most, 0);
        let room = looked_at.get_mut(length..).unwrap_or_default();
        let read = input.read(room);
        looked_at.truncate(length + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(looked_at.clone())
}

/// All of standard input that was not read yet.
///
/// # Errors
///
/// Those of the operating system.
pub fn standard_input() -> Result<impl Read + Send, FileError> {
    open().map(|(input, _)| take_looked_at().chain(input))
}

/// The same as the source of a capture.
pub(super) fn source() -> Result<Source, FileError> {
    let (input, total) = open()?;
    let mut source = Source::new(Box::new(take_looked_at().chain(input)), NAME.to_owned(), total);
    source.is_live = total.is_none();
    Ok(source)
}

fn take_looked_at() -> Cursor<Vec<u8>> {
    Cursor::new(std::mem::take(&mut *LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// The descriptor itself: no second buffer, and the size of a redirected file is known.
#[cfg(unix)]
fn open() -> Result<(File, Option<u64>), FileError> {
    use std::os::fd::AsFd as _;
    let name = || NAME.to_owned();
    let descriptor = io::stdin().as_fd().try_clone_to_owned();
    let file = descriptor.map_err(|source| FileError::Open { name: name(), source })?;
    let file = File::from(file);
    let meta = file.metadata().ok();
    if meta.as_ref().is_some_and(|meta| meta.is_dir()) {
        return Err(FileError::IsFolder { name: name() });
    }
    // A pipe's length says nothing.
    Ok((file, meta.filter(|meta| meta.is_file()).map(|meta| meta.len())))
}

#[cfg(not(unix))]
fn open() -> Result<(io::Stdin, Option<u64>), FileError> {
    Ok((io::stdin(), None))
}

fn is_packets(head: &[u8]) -> bool {
    matches!(magic::recognise(head), Found::Capture(Kind::Pcap(_) | Kind::PcapNg(_)))
}
