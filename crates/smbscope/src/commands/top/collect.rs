//! From the source to the moment's numbers, and to a folder while one is recorded.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use smbscope_capture::Part;
use smbscope_report::format;
use smbscope_tables::anonymize::Tokenizer;

use crate::commands::dataset::{hint, written};
use crate::commands::live::folder::Folder;
use crate::commands::live::memory::Limit;
use crate::commands::live::source::{Seen, Source};
use crate::commands::live::{self};

/// Rows are taken so often: what is shown should not be old.
const TAKE_EVERY: Duration = Duration::from_millis(200);

/// What is later than this counts as late.
const LATE_NS: i64 = 5_000_000_000;

/// Takes what comes.
pub struct Collector {
    source: Box<dyn Source>,
    memory: Limit,
    recordings: Recordings,
    recording: Option<Recording>,
    /// For what is shown and what is recorded.
    tokenizer: Option<Tokenizer>,
    taken: Instant,
    until: i64,
}

/// What recordings are called.
pub struct Recordings {
    /// What they are made from.
    pub from: Vec<String>,
    /// Folder that was asked for.
    pub out: Option<PathBuf>,
    /// How many there are.
    pub made: u32,
}

/// A recording under way.
struct Recording {
    folder: Folder,
    begun: Instant,
}

impl Collector {
    /// One that records nothing.
    pub fn new(
        mut source: Box<dyn Source>,
        memory: Limit,
        recordings: Recordings,
        tokenizer: Option<Tokenizer>,
    ) -> Collector {
        source.hurry();
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

    /// Takes operations that ended, after a moment at most. A folder that cannot be written any more
    /// is an error of its own (`Err` within), after which all else goes on.
    pub fn collect(&mut self) -> anyhow::Result<(Vec<RecordBatch>, anyhow::Result<()>)> {
        let is_full = self.source.receive()?;
        let is_much = self.memory.watch(&mut *self.source);
        if !is_full && !is_much && self.taken.elapsed() < TAKE_EVERY {
            return Ok((Vec::new(), Ok(())));
        }
        self.taken = Instant::now();
        let until = self.source.until();
        let parts = self.source.parts()?;
        self.until = until;
        let batches = self.batches(&parts)?;
        Ok((batches, self.record(parts, is_much)))
    }

    /// Until when everything has come, ns since 1970; what comes too late on a host that is drowning
    /// is not waited for.
    pub fn until(&self) -> i64 {
        self.until.max(live::now() - LATE_NS)
    }

    /// What to say of what was lost.
    pub fn lost(&mut self) -> Vec<String> {
        live::lost(&self.source.seen(), &self.memory)
    }

    /// What was seen so far.
    pub fn seen(&mut self) -> Seen {
        self.source.seen()
    }

    /// The folder that is written, and for how long.
    pub fn recording(&self) -> Option<(String, Duration)> {
        let recording = self.recording.as_ref()?;
        Some((recording.folder.path().display().to_string(), recording.begun.elapsed()))
    }

    /// Begins to record. Gives operations that ended before, and where they go that come.
    pub fn start(&mut self) -> anyhow::Result<(Vec<RecordBatch>, String)> {
        let created_at = live::now();
        let inputs = live::inputs(&self.recordings.from, created_at);
        let name = inputs.first().cloned().unwrap_or_default();
        let path = self.recordings.next_path(created_at);
        let folder = Folder::create(&path, inputs, created_at, false, self.tokenizer.clone())?;
        self.recordings.made += 1;
        let before = self.source.begin(&name)?;
        self.recording = Some(Recording { folder, begun: Instant::now() });
        Ok((self.batches(&before)?, format!("recording to {}", path.display())))
    }

    /// Ends the recording. Gives operations that ended meanwhile, and what to say: what was written,
    /// and what to do with it.
    pub fn stop(&mut self) -> anyhow::Result<(Vec<RecordBatch>, anyhow::Result<Vec<String>>)> {
        let parts = self.source.parts()?;
        let batches = self.batches(&parts)?;
        let recorded = self.record(parts, false);
        let Some(recording) = self.recording.take() else { return Ok((batches, Ok(Vec::new()))) };
        let tail = self.source.ended();
        Ok((batches, recorded.and_then(|()| recording.finish(tail))))
    }

    fn record(&mut self, parts: Vec<Part>, completes: bool) -> anyhow::Result<()> {
        let Some(recording) = &mut self.recording else { return Ok(()) };
        let folder = &mut recording.folder;
        let mut written = parts.into_iter().try_for_each(|part| folder.part(part));
        if completes {
            written = written.and_then(|()| folder.complete_parts());
        }
        if written.is_err() {
            // Complete parts stay.
            self.recording = None;
        }
        written
    }

    /// Operations as they are shown.
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
            None => format!("smbscope-top-{}", live::stamp(created_at)).into(),
        }
    }
}

impl Recording {
    fn finish(mut self, tail: anyhow::Result<Vec<Part>>) -> anyhow::Result<Vec<String>> {
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
        let took = self.begun.elapsed().as_secs_f64();
        let written = written(&path, &manifest?);
        let dropped = format::count(dropped);
        Ok(vec![format!("{written} in {took:.1} s, {dropped} dropped"), hint(&path)])
    }
}
