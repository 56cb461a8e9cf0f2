//! Reads a journal and checks it: a file that was cut at its end is what a killed client leaves, anything else
//! that is wrong is an error with its place.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::record::{RECORD_BYTES, Record};
use super::{JournalError, MAGIC, PLAN_BYTES_MAX};
use crate::durability::block::hash;
use crate::durability::plan::Plan;

/// What was read besides the records.
#[derive(Clone, Debug)]
pub struct Journal {
    /// The run.
    pub plan: Plan,
    /// Records.
    pub records: u64,
    /// Bytes of an incomplete record at the end, which the client was killed or out of space while writing.
    pub cut_bytes: u64,
}

/// Reads a journal; each record goes to `each`, in order.
///
/// # Errors
/// The file cannot be read, is not a journal, or was changed.
pub fn read(path: &Path, each: impl FnMut(&Plan, Record)) -> Result<Journal, JournalError> {
    let file =
        File::open(path).map_err(|error| JournalError::Io { path: path.to_owned(), error })?;
    read_from(BufReader::with_capacity(1 << 18, file), path, each)
}

/// Likewise from memory.
///
/// # Errors
/// The bytes are not a journal, or were changed.
pub fn read_bytes(bytes: &[u8], each: impl FnMut(&Plan, Record)) -> Result<Journal, JournalError> {
    read_from(bytes, Path::new("journal"), each)
}

fn read_from(
    mut file: impl Read,
    path: &Path,
    mut each: impl FnMut(&Plan, Record),
) -> Result<Journal, JournalError> {
    let io = |error| JournalError::Io { path: path.to_owned(), error };
    let mut fixed = [0; 12];
    let got = fill(&mut file, &mut fixed).map_err(io)?;
    let begin = got.min(MAGIC.len());
    if fixed[..begin] != MAGIC[..begin] || got == 0 {
        return Err(JournalError::Foreign { path: path.to_owned() });
    }
    let no_header = |bytes| JournalError::NoHeader { path: path.to_owned(), bytes };
    if got < fixed.len() {
        return Err(no_header(got as u64));
    }
    let header = |reason: String| JournalError::Header { path: path.to_owned(), reason };
    let length = u32::from_le_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]) as usize;
    if length > PLAN_BYTES_MAX {
        return Err(header(format!("it claims a plan of {length} bytes")));
    }
    let mut rest = vec![0; length + 8];
    let more = fill(&mut file, &mut rest).map_err(io)?;
    if more < rest.len() {
        return Err(no_header((got + more) as u64));
    }
    let (text, check) = rest.split_at(length);
    if hash(0, &[&fixed[..], text].concat()).to_le_bytes() != check {
        return Err(header("its checksum is wrong".into()));
    }
    let text = std::str::from_utf8(text).map_err(|error| header(error.to_string()))?;
    let plan: Plan = toml::from_str(text).map_err(|error| header(error.to_string()))?;
    plan.check().map_err(header)?;
    let run = plan.run_bytes().unwrap_or_default();
    let mut journal = Journal { plan, records: 0, cut_bytes: 0 };
    let mut offset = (fixed.len() + length + 8) as u64;
    let mut bytes = [0; RECORD_BYTES];
    // A record that is wrong at the very end was perhaps not written completely, whatever a disk makes of that.
    let mut wrong: Option<JournalError> = None;
    loop {
        let got = fill(&mut file, &mut bytes).map_err(io)?;
        if got < RECORD_BYTES {
            journal.cut_bytes = got as u64;
            break;
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        let record = Record::read(&bytes, journal.records, &run).and_then(|record| {
            match journal.plan.lanes.get(usize::from(record.lane)) {
                None => Err("names a writer that the plan does not have"),
                Some(lane) if record.is_inside(lane) => Ok(record),
                Some(_) => Err("names a file or a block that its writer does not have"),
            }
        });
        match record {
            Ok(record) => {
                each(&journal.plan, record);
                journal.records += 1;
            }
            Err(reason) => {
                let (path, record) = (path.to_owned(), journal.records);
                wrong = Some(JournalError::Record { path, record, offset, reason });
            }
        }
        offset += RECORD_BYTES as u64;
    }
    match wrong {
        Some(error) if bytes_are_written(&error) => Err(error),
        Some(_) => {
            journal.cut_bytes += RECORD_BYTES as u64;
            Ok(journal)
        }
        None => Ok(journal),
    }
}

/// Whether a wrong last record is one that was written completely, so that it was changed later.
fn bytes_are_written(error: &JournalError) -> bool {
    matches!(error, JournalError::Record { reason, .. } if *reason != "has a wrong checksum")
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = bytes.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests;
