//! The journal: what the server acknowledged, on this machine's disk.
//!
//! Layout: 8 bytes of magic, the length of the plan (u32), the plan as TOML, a checksum (u64), then records of
//! 64 bytes. Each record has its number and a checksum that depends on the run, so that a journal that was cut,
//! mixed or edited is recognised. A record counts once `fdatasync` has returned; what a killed client had not
//! synced yet is missing at the end, and is treated as not acknowledged, so that no loss is reported that did
//! not happen.

mod reader;
mod record;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

pub use reader::{Journal, read, read_bytes};
pub use record::{Kind, RECORD_BYTES, Record};

use super::block::hash;
use super::plan::Plan;

/// The first bytes of a journal.
const MAGIC: [u8; 8] = *b"SMBSJRN1";
/// Longest plan.
const PLAN_BYTES_MAX: usize = 64 << 10;
/// Records that wait for the disk; then writers wait.
const QUEUE: usize = 1 << 14;

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// It exists already.
    #[error("{path}: exists already: name another file with --journal")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It is another kind of file.
    #[error("{path}: not a journal of `smbscope durability`: it does not begin with SMBSJRN1")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Its beginning is not complete.
    #[error(
        "{path}: the journal ends inside its header, at byte {bytes}: it has no acknowledged writes"
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Its header was changed.
    #[error("{path}: the header of the journal was changed or is damaged: {reason}")]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A record was changed.
    #[error(
        "{path}: record {record} (byte {offset}) {reason}: the journal was edited, or this disk lost a part of it; nothing after it can be trusted"
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// Number of the record, from 0.
        record: u64,
        /// Its place.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

/// The header of a journal.
///
/// # Errors
/// The plan is too long.
pub fn header(plan: &Plan) -> Result<Vec<u8>, String> {
    let text = toml::to_string(plan).map_err(|error| error.to_string())?;
    if text.len() > PLAN_BYTES_MAX {
        return Err(format!(
            "the plan has {} bytes: use fewer ways, patterns or sizes",
            text.len()
        ));
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    let check = hash(0, &bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    Ok(bytes)
}

/// What the writers and the thread of the journal share.
#[derive(Debug, Default)]
struct Shared {
    synced: AtomicU64,
    sent: AtomicU64,
    /// Records that were stored, or left out because the journal is full.
    handled: AtomicU64,
    full: AtomicBool,
    /// Why it cannot be written any more.
    failed: OnceLock<String>,
}

/// Where writers send what was acknowledged.
#[derive(Clone, Debug)]
pub struct Sender {
    records: mpsc::Sender<Record>,
    shared: Arc<Shared>,
}

impl Sender {
    /// Adds a record; false if the journal is full or cannot be written any more.
    pub async fn add(&self, record: Record) -> bool {
        if self.failed().is_some()
            || self.is_full() && !record.kind.is_event()
            || self.records.send(record).await.is_err()
        {
            return false;
        }
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Waits until everything that was added is on this machine's disk; false if it could not be written.
    pub async fn settle(&self) -> bool {
        let sent = self.shared.sent.load(Ordering::Relaxed);
        while self.shared.handled.load(Ordering::Relaxed) < sent {
            if self.failed().is_some() {
                return false;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.failed().is_none()
    }

    /// Why it cannot be written any more, if it cannot: its file and the error of the system.
    pub fn failed(&self) -> Option<&str> {
        self.shared.failed.get().map(String::as_str)
    }

    /// Whether it has reached its limit.
    pub fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// Records that are on this machine's disk.
    pub fn synced(&self) -> u64 {
        self.shared.synced.load(Ordering::Relaxed)
    }
}

/// A journal that is being written, by a thread of its own.
#[derive(Debug)]
pub struct Writer {
    sender: Sender,
    thread: JoinHandle<io::Result<()>>,
    path: PathBuf,
}

impl Writer {
    /// Creates a new file, which ends at `bytes_max`.
    ///
    /// # Errors
    /// The file exists, or cannot be written; the plan is too long.
    pub fn create(path: &Path, plan: &Plan, bytes_max: u64) -> Result<Writer, JournalError> {
        let failed = |error| JournalError::Io { path: path.to_owned(), error };
        let created = OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = created.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.to_owned() },
            _ => failed(error),
        })?;
        let bytes = header(plan).map_err(|reason| failed(io::Error::other(reason)))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        // The name is on disk only when its folder is.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let synced =
            File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        if cfg!(unix) {
            synced.map_err(failed)?;
        }
        let records_max = bytes_max.saturating_sub(bytes.len() as u64) / RECORD_BYTES as u64;
        Ok(Writer::begin(path, file, plan.run_bytes().unwrap_or_default(), records_max))
    }

    /// Starts the thread that adds records to a file.
    fn begin(path: &Path, file: File, run: [u8; 16], records_max: u64) -> Writer {
        let (records, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let sender = Sender { records, shared: shared.clone() };
        let name = path.to_owned();
        let thread = std::thread::spawn(move || {
            let done = store(file, queue, &run, records_max, &shared);
            if let Err(error) = &done {
                let _ = shared.failed.set(format!("{}: {error}", name.display()));
            }
            done
        });
        Writer { sender, thread, path: path.to_owned() }
    }

    /// Where records go.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Waits until everything sent is on disk. All other senders must be gone.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(self) -> Result<(), JournalError> {
        let Writer { sender, thread, path } = self;
        drop(sender);
        match thread.join() {
            Ok(done) => done.map_err(|error| JournalError::Io { path, error }),
            Err(_) => Err(JournalError::Io { path, error: io::Error::other("its thread ended") }),
        }
    }
}

/// Writes what arrives; many records share one sync.
fn store(
    mut file: File,
    mut queue: mpsc::Receiver<Record>,
    run: &[u8; 16],
    records_max: u64,
    shared: &Shared,
) -> io::Result<()> {
    let mut number = 0;
    let mut batch = Vec::new();
    let mut waiting = Vec::new();
    while queue.blocking_recv_many(&mut waiting, QUEUE) > 0 {
        batch.clear();
        let handled = waiting.len() as u64;
        for record in waiting.drain(..) {
            // A place is kept for the records of the end: what happened, not what was written.
            let reserve = if record.kind.is_event() { 0 } else { 1024 };
            if number + reserve >= records_max {
                shared.full.store(true, Ordering::Relaxed);
                // Without its events a round cannot be understood later.
                if record.kind.is_event() {
                    file.write_all(&batch)?;
                    file.sync_data()?;
                    return Err(io::Error::other("it is full (--journal-size)"));
                }
                continue;
            }
            batch.extend_from_slice(&record.bytes(number, run));
            number += 1;
        }
        file.write_all(&batch)?;
        file.sync_data()?;
        shared.synced.store(number, Ordering::Relaxed);
        shared.handled.fetch_add(handled, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(to: &Path, records_max: u64, records: &[Kind]) -> (Vec<bool>, bool, Option<String>) {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(to).unwrap();
        let writer = Writer::begin(to, file, [7; 16], records_max);
        let sender = writer.sender().clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut added = Vec::new();
            for kind in records {
                added.push(sender.add(Record::event(*kind, 0, 0, 0)).await);
                sender.settle().await;
            }
            let failed = sender.failed().map(str::to_owned);
            (added, sender.settle().await, failed)
        })
    }

    /// A disk without space is not a journal with its largest size.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_called_so() {
        let (added, is_settled, failed) =
            write(Path::new("/dev/full"), 1 << 20, &[Kind::Write, Kind::Write]);
        assert_eq!((added, is_settled), (vec![true, false], false));
        let failed = failed.unwrap();
        assert!(failed.starts_with("/dev/full: No space left on device"), "{failed}");
    }

    #[test]
    fn a_full_journal_still_takes_events_until_it_must_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (added, is_settled, failed) =
            write(&path, 1_024, &[Kind::Write, Kind::Write, Kind::Lost]);
        assert_eq!((added, is_settled, failed), (vec![true, false, true], true, None));
        let kinds = [Kind::Lost, Kind::Verified, Kind::Cleaning, Kind::Lost];
        let (added, is_settled, failed) = write(&folder.path().join("small"), 2, &kinds);
        assert_eq!((added, is_settled), (vec![true, true, true, false], false));
        assert!(failed.unwrap().ends_with("it is full (--journal-size)"));
    }
}
