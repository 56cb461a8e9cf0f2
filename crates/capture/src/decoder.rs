//! Capture files to parts of tables, in threads of its own.
//!
//! One thread reads frames, follows connections, resolves names and makes the parts, which costs
//! the least CPU: nothing but the parts goes from one processor's cache to another's. Where there
//! are more processors it deals frames out by flow to shards that follow connections, and another
//! thread resolves.

mod progress;
mod pump;
mod resolving;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, bounded, unbounded};
use smbscope_tables::part::Part;
use smbscope_wire::crypto::KeyEntry;

use crate::file::FileError;
use crate::limits::Limits;
use crate::resolve::Resolver;
pub use progress::Progress;
use pump::Pump;
use resolving::{Gone, Resolving, To};

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

/// Decodes captures; an iterator of parts.
pub struct Decoder {
    parts: Option<Receiver<Result<Part, Error>>>,
    threads: Vec<JoinHandle<()>>,
    progress: Arc<Progress>,
    finished: bool,
}

/// Parts that wait for whoever takes them.
const PARTS: usize = 2;

impl Decoder {
    /// Opens the first input, so that what is no capture is said at once, and begins to decode.
    pub fn open(inputs: Vec<Input>, options: Options) -> Result<Decoder, Error> {
        let resolver = Resolver::new(&options)?;
        let progress = Arc::new(Progress::default());
        let pump = Pump::open(inputs, &options, progress.clone())?;
        let (send, parts) = bounded(PARTS);
        let mut resolving = Resolving::new(resolver, progress.clone(), send);
        let mut threads = Vec::new();
        let mut to = match pump.is_alone() {
            // Rows stay in one processor's cache.
            true => To::Here { resolving: Box::new(resolving), spare: Vec::new() },
            false => {
                let (events, inbox) = bounded(4);
                let (recycle, recycled) = unbounded();
                threads.push(thread("smbscope-resolve", move || {
                    for event in inbox {
                        match resolving.take(event) {
                            // The reading thread may be gone already.
                            Ok(outputs) => drop(recycle.send(outputs)),
                            Err(Gone) => return,
                        }
                    }
                })?);
                To::There { events, recycled }
            }
        };
        threads.push(thread("smbscope-read", move || pump.run(&mut to))?);
        Ok(Decoder { parts: Some(parts), threads, progress, finished: false })
    }

    /// How far it is; can be read from any thread.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Waits for the threads; whether all ended well.
    fn join(&mut self) -> bool {
        self.threads.drain(..).fold(true, |well, thread| thread.join().is_ok() & well)
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(|_| Error::Thread)
}

impl Iterator for Decoder {
    type Item = Result<Part, Error>;

    fn next(&mut self) -> Option<Result<Part, Error>> {
        if self.finished {
            return None;
        }
        let part = match self.parts.as_ref()?.recv() {
            Ok(part) => Some(part),
            Err(_) => (!self.join()).then_some(Err(Error::Thread)),
        };
        self.finished = !matches!(part, Some(Ok(_)));
        part
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // Without a receiver the threads stop at their next part.
        self.parts = None;
        self.join();
    }
}
