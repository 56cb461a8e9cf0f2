//! Takes rows from a live source for display, and writes them to a folder while the user records.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use smbscope_capture::Part;
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::manifest::Manifest;

use super::folder::{About, RecordingFolder};
use super::memory::MemoryLimit;
use super::source::{LiveSource, Received};
use super::{inputs, now, stamp};

/// How often rows are taken.
const TAKE_EVERY: Duration = Duration::from_millis(200);

/// Rows that arrive later than this are not waited for.
const LATE_NS: i64 = 5_000_000_000;

/// Takes rows from a source.
pub struct Collector {
    source: Box<dyn LiveSource>,
    memory: MemoryLimit,
    recordings: Recordings,
    recording: Option<Recording>,
    /// Applies to what is shown and to what is recorded.
    tokenizer: Option<Tokenizer>,
    taken: Instant,
    until: i64,
}

/// Where recordings go, and their names.
pub struct Recordings {
    /// The names of the inputs, without the time.
    pub from: Vec<String>,
    /// The filter of their rows in words.
    pub filter: Option<String>,
    /// The requested recording folder.
    pub out: Option<PathBuf>,
    /// How many were made.
    pub made: u32,
}

/// A recording in progress.
struct Recording {
    folder: RecordingFolder,
    begun: Instant,
}

/// A recording that was completed.
pub struct Finished {
    pub path: PathBuf,
    pub manifest: Manifest,
    pub took: Duration,
    /// Packets and events that were lost.
    pub dropped: u64,
}

impl Collector {
    /// A collector that does not record yet.
    pub fn new(
        mut source: Box<dyn LiveSource>,
        memory: MemoryLimit,
        recordings: Recordings,
        tokenizer: Option<Tokenizer>,
    ) -> Collector {
        source.deliver_often();
        Collector {
            source,
            memory,
            recordings,
            recording: None,
            tokenizer,
            taken: Instant::now(),
            until: 0,
        }
    }

    /// Takes operations that ended, within less than a second. If writing the folder fails, the inner result is an
    /// error, and collecting continues.
    pub fn collect(&mut self) -> anyhow::Result<(Vec<RecordBatch>, anyhow::Result<()>)> {
        let is_full = self.source.receive()?;
        let is_scarce = self.memory.watch(&mut *self.source);
        if !is_full && !is_scarce && self.taken.elapsed() < TAKE_EVERY {
            return Ok((Vec::new(), Ok(())));
        }
        self.taken = Instant::now();
        let until = self.source.until();
        let parts = self.source.parts()?;
        self.until = until;
        let batches = self.batches(&parts)?;
        Ok((batches, self.record(parts, is_scarce)))
    }

    /// The time up to which all rows have arrived, ns since 1970. Rows that are delayed on an overloaded host are not
    /// waited for.
    pub fn until(&self) -> i64 {
        self.until.max(now() - LATE_NS)
    }

    /// What was received so far.
    pub fn received(&mut self) -> Received {
        self.source.received()
    }

    /// The memory limit, which knows whether data was dropped because of it.
    pub fn memory(&self) -> &MemoryLimit {
        &self.memory
    }

    /// The folder that is being written, and for how long.
    pub fn recording(&self) -> Option<(String, Duration)> {
        let recording = self.recording.as_ref()?;
        Some((recording.folder.path().display().to_string(), recording.begun.elapsed()))
    }

    /// Starts a recording. Returns operations that ended before it, and its folder.
    pub fn start(&mut self) -> anyhow::Result<(Vec<RecordBatch>, PathBuf)> {
        let created_at = now();
        let inputs = inputs(&self.recordings.from, created_at);
        let name = inputs.first().cloned().unwrap_or_default();
        let path = self.recordings.next_path(created_at);
        let about = About { inputs, created_at, filter: self.recordings.filter.clone() };
        let folder = RecordingFolder::create(&path, about, false, self.tokenizer.clone())?;
        self.recordings.made += 1;
        let before = self.source.start_recording(&name)?;
        self.recording = Some(Recording { folder, begun: Instant::now() });
        Ok((self.batches(&before)?, path))
    }

    /// Ends the recording, if there is one. Returns operations that ended meanwhile, and what was written.
    pub fn stop(&mut self) -> anyhow::Result<(Vec<RecordBatch>, anyhow::Result<Option<Finished>>)> {
        let parts = self.source.parts()?;
        let batches = self.batches(&parts)?;
        let recorded = self.record(parts, false);
        let Some(recording) = self.recording.take() else { return Ok((batches, Ok(None))) };
        let tail = self.source.stop_recording();
        Ok((batches, recorded.and_then(|()| recording.finish(tail).map(Some))))
    }

    fn record(&mut self, parts: Vec<Part>, completes: bool) -> anyhow::Result<()> {
        let Some(recording) = &mut self.recording else { return Ok(()) };
        let folder = &mut recording.folder;
        let mut written = parts.into_iter().try_for_each(|part| folder.part(part));
        if completes {
            written = written.and_then(|()| folder.complete_parts());
        }
        if written.is_err() {
            // Its complete parts are kept.
            self.recording = None;
        }
        written
    }

    /// Operations as they are shown, with tokens instead of names if requested.
    fn batches(&self, parts: &[Part]) -> anyhow::Result<Vec<RecordBatch>> {
        let operations = parts.iter().filter_map(|part| match part {
            Part::Operations(batch) => Some(batch),
            _ => None,
        });
        let shown = operations.map(|batch| match &self.tokenizer {
            Some(tokenizer) => tokenizer.batch(batch),
            None => Ok(batch.clone()),
        });
        Ok(shown.collect::<Result<_, _>>()?)
    }
}

impl Recordings {
    fn next_path(&self, created_at: i64) -> PathBuf {
        let number = self.made + 1;
        match &self.out {
            Some(out) if number == 1 => out.clone(),
            Some(out) => {
                let mut name = out.clone().into_os_string();
                name.push(format!("-{number}"));
                name.into()
            }
            None => format!("smbscope-top-{}", stamp(created_at)).into(),
        }
    }
}

impl Recording {
    fn finish(mut self, tail: anyhow::Result<Vec<Part>>) -> anyhow::Result<Finished> {
        let path = self.folder.path().to_owned();
        let mut dropped = 0;
        let ended = tail.and_then(|parts| {
            for part in parts {
                if let Part::Coverage(coverage) = &part {
                    dropped += coverage.frames_dropped.unwrap_or(0);
                }
                self.folder.part(part)?;
            }
            Ok(())
        });
        let manifest = self.folder.finish(ended.is_ok());
        ended?;
        Ok(Finished { path, manifest: manifest?, took: self.begun.elapsed(), dropped })
    }
}
