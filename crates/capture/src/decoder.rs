//! Capture files to parts of tables, in threads of its own.
//!
//! One thread reads frames and, where there are several shards, deals them out by flow; shards
//! follow connections; whoever takes the parts resolves names. With one shard reading and
//! following happen in the same thread, which costs the least CPU.

mod progress;
mod pump;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use smbscope_event::part::Part;
use smbscope_event::tables::Coverage;
use smbscope_wire::crypto::KeyEntry;

use crate::file::{FileError, FileSummary};
use crate::limits::Limits;
use crate::output::Output;
use crate::resolve::Resolver;
pub use progress::Progress;

/// Which tables are wanted; what is not wanted is not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Operations.
    pub operations: bool,
    /// Connections.
    pub connections: bool,
    /// Sessions.
    pub sessions: bool,
    /// Trees.
    pub trees: bool,
    /// Handles.
    pub handles: bool,
    /// DFS referrals.
    pub referrals: bool,
}

impl Tables {
    /// All tables.
    pub const ALL: Tables = Tables {
        operations: true,
        connections: true,
        sessions: true,
        trees: true,
        handles: true,
        referrals: true,
    };
    /// None but the coverage, which always comes.
    pub const NONE: Tables = Tables {
        operations: false,
        connections: false,
        sessions: false,
        trees: false,
        handles: false,
        referrals: false,
    };
}

/// How to decode.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decryption keys.
    pub keys: Vec<KeyEntry>,
    /// Threads that follow connections; 0 for what the machine has.
    pub threads: usize,
    /// Wanted columns of the operations table, as places in its schema; none for all.
    pub projection: Option<Vec<usize>>,
    /// Wanted tables.
    pub tables: Tables,
    /// Rows of an operations batch.
    pub batch_rows: usize,
    /// Limits of the state that is kept.
    pub limits: Limits,
    /// Addresses of the machine where the packets are seen, where that is known: a connection of
    /// which one is the server was seen at the server.
    pub host: Vec<IpAddr>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            keys: Vec::new(),
            threads: 0,
            projection: None,
            tables: Tables::ALL,
            batch_rows: 8_192,
            limits: Limits::default(),
            host: Vec::new(),
        }
    }
}

/// Where a capture comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Input {
    /// The name that the `recording` column has: the file's without its folder.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "-".to_owned(),
            Input::Path(path) => match path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => path.display().to_string(),
            },
        }
    }

    fn path(&self) -> PathBuf {
        match self {
            Input::Stdin => PathBuf::from("-"),
            Input::Path(path) => path.clone(),
        }
    }
}

/// Why decoding stops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A batch could not be built.
    #[error("cannot build a batch of rows: {0}")]
    Batch(#[from] arrow::error::ArrowError),
    /// A decoding thread ended without a word.
    #[error(
        "a decoding thread stopped unexpectedly; this is a defect of smbscope, please report it"
    )]
    Thread,
}

/// What the reading thread tells.
enum Event {
    /// An input begins.
    Begin(String),
    /// What the shards made of one chunk or more; of a live input rows are wanted at once.
    Outputs { outputs: Vec<Output>, is_live: bool },
    /// An input ends; with `last` all connections do.
    End { summary: Box<FileSummary>, coverage: Box<Coverage>, last: bool },
    /// Nothing more can be read.
    Failed(FileError),
}

/// Decodes captures; an iterator of parts.
pub struct Decoder {
    events: Option<Receiver<Event>>,
    recycle: Sender<Vec<Output>>,
    thread: Option<JoinHandle<()>>,
    resolver: Resolver,
    progress: Arc<Progress>,
    finished: bool,
}

impl Decoder {
    /// Opens the first input, so that what is no capture is said at once, and begins to decode.
    pub fn open(inputs: Vec<Input>, options: Options) -> Result<Decoder, Error> {
        let resolver = Resolver::new(&options)?;
        let progress = Arc::new(Progress::default());
        let pump = pump::Pump::open(inputs, &options, progress.clone())?;
        let (send, events) = bounded(4);
        let (recycle, recycled) = unbounded();
        let thread = std::thread::Builder::new()
            .name("smbscope-read".to_owned())
            .spawn(move || pump.run(&send, &recycled))
            .map_err(|_| Error::Thread)?;
        Ok(Decoder {
            events: Some(events),
            recycle,
            thread: Some(thread),
            resolver,
            progress,
            finished: false,
        })
    }

    /// How far it is; can be read from any thread.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Begin(name) => self.resolver.begin_input(&name),
            Event::Outputs { mut outputs, is_live } => {
                self.resolver.take(&mut outputs)?;
                if is_live {
                    self.resolver.flush()?;
                }
                self.progress.set_operations(self.resolver.operations());
                // The reading thread may be gone already.
                let _ = self.recycle.send(outputs);
            }
            Event::End { summary, coverage, last } => {
                let sum = &mut *self.resolver.coverage;
                crate::resolve::add_counters(sum, &coverage);
                sum.format = summary.description();
                sum.resolution_ns = summary
                    .interfaces
                    .iter()
                    .map(|interface| interface.resolution_ns().ceil() as u64)
                    .max();
                sum.start = summary.first_time_ns;
                sum.end = summary.last_time_ns;
                sum.frames = summary.frames;
                sum.file_bytes = self.progress.bytes_done_in_file();
                sum.wire_bytes = summary.wire_bytes;
                sum.frames_dropped = summary.dropped();
                sum.frames_cut = summary.frames_cut;
                sum.cut_off.clone_from(&summary.cut_off);
                self.resolver.end_input(last)?;
            }
            Event::Failed(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Iterator for Decoder {
    type Item = Result<Part, Error>;

    fn next(&mut self) -> Option<Result<Part, Error>> {
        loop {
            if let Some(part) = self.resolver.next_part() {
                return Some(Ok(part));
            }
            if self.finished {
                return None;
            }
            match self.events.as_ref()?.recv() {
                Ok(event) => {
                    if let Err(error) = self.take(event) {
                        self.finished = true;
                        return Some(Err(error));
                    }
                }
                Err(_) => {
                    self.finished = true;
                    let failed = self.thread.take().is_some_and(|thread| thread.join().is_err());
                    if failed {
                        return Some(Err(Error::Thread));
                    }
                }
            }
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // Without a receiver the reading thread stops at its next chunk.
        self.events = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
