//! Writes a run folder so that it is valid at any time.
//!
//! A separate thread encodes and writes, so that decoding continues meanwhile and parts are completed
//! in time even if no rows arrive. A kill loses the rows that are neither in a complete part nor in a piece of
//! one ([`WriteOptions::visible`]).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::description::RunDescription;
use smbscope_tables::manifest::{InputFile, Kind, Manifest};

use super::folder::{Folder, create_folder};
use super::properties::ROW_GROUP_ROWS;
use super::reader::Dataset;
use crate::Part;
use crate::error::{Error, Result};

/// Initial contents of the manifest.
#[derive(Clone, Debug)]
pub struct ManifestSeed {
    /// How the folder is created.
    pub kind: Kind,
    /// When it is created: nanoseconds since 1970-01-01 00:00 UTC.
    pub created_at: i64,
    /// Imported files.
    pub inputs: Vec<InputFile>,
    /// The filter of the rows in words; without names if the writer has a tokenizer.
    pub filter: Option<String>,
    /// The load runs whose rows follow, as far as known ([`DatasetWriter::describe`]).
    pub runs: Vec<RunDescription>,
}

impl ManifestSeed {
    /// A seed with the current time.
    pub fn now(kind: Kind, inputs: Vec<InputFile>) -> ManifestSeed {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let created_at = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0));
        ManifestSeed { kind, created_at, inputs, filter: None, runs: Vec::new() }
    }
}

/// How a folder is written.
#[derive(Clone)]
pub struct WriteOptions {
    /// Whether to replace a dataset in the folder; otherwise that is an error.
    pub overwrite: bool,
    /// Parts are completed at least this often.
    pub interval: Duration,
    /// Rows are in a file at least this often (`pieces`); `None` for complete parts alone.
    pub visible: Option<Duration>,
    /// Parts are completed after this number of rows of a table.
    pub part_rows: u64,
    /// Rows of a Parquet row group: the unit that is held in memory and that readers can skip.
    pub row_group_rows: usize,
    /// Replaces names by tokens before they are written. `None` if the source does that.
    pub tokenizer: Option<Tokenizer>,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            overwrite: false,
            interval: Duration::from_secs(10),
            visible: None,
            part_rows: 4 << 20,
            row_group_rows: ROW_GROUP_ROWS,
            tokenizer: None,
        }
    }
}

enum Message {
    Part(Box<Part>),
    Describe(Box<RunDescription>),
    Complete,
    Finish { complete: bool },
}

/// Writes one run folder. If it is dropped without [`DatasetWriter::finish`], only complete parts
/// remain, as after a kill.
pub struct DatasetWriter {
    dir: PathBuf,
    sender: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<Result<Manifest>>>,
}

impl DatasetWriter {
    /// Creates the folder. It must not exist, be empty, or contain a dataset that may be overwritten.
    pub fn create(dir: &Path, seed: ManifestSeed, options: WriteOptions) -> Result<DatasetWriter> {
        may_write(dir, options.overwrite)?;
        create_folder(dir).map_err(Error::io(dir))?;
        let lock = lock(dir)?;
        prepare(dir, &seed)?;
        let mut manifest = Manifest::new(seed.kind, seed.created_at);
        manifest.inputs = seed.inputs;
        manifest.runs = seed.runs;
        if let Some(tokenizer) = &options.tokenizer {
            manifest.anonymize(tokenizer);
        }
        manifest.filter = seed.filter;
        let folder = Folder::new(dir, manifest, &options);
        folder.write_manifest()?;
        // Two parts keep both sides busy and need little memory.
        let (sender, receiver) = sync_channel(2);
        let thread = std::thread::Builder::new()
            .name("dataset".into())
            .spawn(move || {
                let written = run(folder, &receiver, &options);
                drop(lock);
                written
            })
            .map_err(Error::io(dir))?;
        Ok(DatasetWriter { dir: dir.to_owned(), sender: Some(sender), thread: Some(thread) })
    }

    /// Takes rows. An error may concern earlier rows.
    pub fn part(&mut self, part: Part) -> Result<()> {
        self.send(Message::Part(Box::new(part)))
    }

    /// Sets or replaces the description of a load run (again when its end or result is known). The
    /// manifest contains it from the next part on.
    pub fn describe(&mut self, run: RunDescription) -> Result<()> {
        self.send(Message::Describe(Box::new(run)))
    }

    /// Completes the open parts now, which frees their memory.
    pub fn complete_parts(&mut self) -> Result<()> {
        self.send(Message::Complete)
    }

    /// Completes all parts and the manifest. `complete` is false after an interruption; the manifest
    /// records it.
    pub fn finish(mut self, complete: bool) -> Result<Manifest> {
        self.send(Message::Finish { complete })?;
        self.join()
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn send(&mut self, message: Message) -> Result<()> {
        let sent = self.sender.as_ref().map(|sender| sender.send(message));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => self.join().and(Err(STOPPED)),
        }
    }

    fn join(&mut self) -> Result<Manifest> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(STOPPED),
        }
    }
}

const STOPPED: Error = Error::Internal("the thread that writes the dataset stopped");

impl Drop for DatasetWriter {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.join();
        }
    }
}

fn run(
    mut folder: Folder,
    messages: &Receiver<Message>,
    options: &WriteOptions,
) -> Result<Manifest> {
    match take_parts(&mut folder, messages, options) {
        Ok(complete) => folder.finish(complete),
        Err(error) => {
            folder.abandon();
            Err(error)
        }
    }
}

/// Writes parts until the message to finish; returns whether the dataset is complete.
fn take_parts(
    folder: &mut Folder,
    messages: &Receiver<Message>,
    options: &WriteOptions,
) -> Result<bool> {
    let mut completed = Instant::now();
    let mut shown = completed;
    loop {
        let mut is_asked = false;
        let wait = options.interval.saturating_sub(completed.elapsed());
        let until_shown = options.visible.map(|visible| visible.saturating_sub(shown.elapsed()));
        let wait = until_shown.map_or(wait, |until| wait.min(until));
        match messages.recv_timeout(wait) {
            Ok(Message::Part(part)) => folder.add(*part)?,
            Ok(Message::Describe(run)) => folder.describe(*run),
            Ok(Message::Complete) => is_asked = true,
            Ok(Message::Finish { complete }) => return Ok(complete),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(STOPPED),
        }
        let is_late = completed.elapsed() >= options.interval;
        if is_asked || is_late || folder.rows_open() >= options.part_rows {
            folder.complete_parts()?;
            (completed, shown) = (Instant::now(), Instant::now());
        } else if options.visible.is_some_and(|visible| shown.elapsed() >= visible) {
            folder.write_pieces()?;
            shown = Instant::now();
        }
    }
}

/// Checks whether a dataset can be written to a folder, without changing anything. Callers use it
/// before work that takes long or has effects.
///
/// # Errors
///
/// [`Error::Exists`] if it is a file, contains something else, or contains a dataset and `overwrite` is
/// false.
pub fn may_write(dir: &Path, overwrite: bool) -> Result<()> {
    let exists = |what| Err(Error::Exists { path: dir.to_owned(), what });
    if !dir.exists() {
        return Ok(());
    }
    if !dir.is_dir() {
        return exists("is a file; specify a folder for the dataset");
    }
    if is_empty(dir)? {
        return Ok(());
    }
    if !Dataset::is_at(dir) {
        return exists("the folder is not empty and contains no dataset; specify another folder");
    }
    if !overwrite {
        return exists(
            "the folder already contains a dataset; specify another folder, or use --force to replace it",
        );
    }
    Ok(())
}

fn is_empty(dir: &Path) -> Result<bool> {
    Ok(std::fs::read_dir(dir).map_err(Error::io(dir))?.next().is_none())
}

/// Keeps other writers out of the folder until it is dropped. The system releases it if the program is killed.
#[cfg(unix)]
fn lock(dir: &Path) -> Result<std::fs::File> {
    let folder = std::fs::File::open(dir).map_err(Error::io(dir))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(std::fs::TryLockError::WouldBlock) => {
            let what = "another smbscope is writing to this folder; specify another folder";
            Err(Error::Exists { path: dir.to_owned(), what })
        }
        // A file system without locks.
        Err(std::fs::TryLockError::Error(_)) => Ok(folder),
    }
}

/// Other systems cannot lock a folder.
#[cfg(not(unix))]
fn lock(_dir: &Path) -> Result<()> {
    Ok(())
}

/// Removes the dataset in the folder.
fn prepare(dir: &Path, seed: &ManifestSeed) -> Result<()> {
    if is_empty(dir)? {
        return Ok(());
    }
    let same = |input: &InputFile| {
        let path = Path::new(&input.name).canonicalize().ok();
        path.zip(dir.canonicalize().ok()).is_some_and(|(input, dir)| input.starts_with(dir))
    };
    if seed.inputs.iter().any(same) {
        let what = "the folder is also an input; specify another folder";
        return Err(Error::Exists { path: dir.to_owned(), what });
    }
    Dataset::remove(dir)
}

#[cfg(test)]
mod tests;
