//! Capture files to parts of tables, on background threads.
//!
//! One thread reads frames, follows connections, resolves names and builds the parts. That costs
//! the least CPU: only the parts move from one CPU's cache to another's. With more
//! CPUs, the reading thread deals frames out by flow to shards that follow connections, and
//! another thread resolves.

mod clock;
mod progress;
mod read_thread;
mod resolve_stage;

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, bounded, unbounded};
use smbscope_tables::Part;

use crate::options::{Error, Input, Options};
use crate::resolve::Resolver;
pub use progress::Progress;
use read_thread::ReadThread;
use resolve_stage::{Disconnected, EventSink, ResolveStage};

/// Decodes captures; an iterator of parts.
pub struct Decoder {
    parts: Option<Receiver<Result<Part, Error>>>,
    threads: Vec<JoinHandle<()>>,
    progress: Arc<Progress>,
    finished: bool,
}

/// Parts that wait for the caller.
const PARTS: usize = 2;

impl Decoder {
    /// Opens the first input, so that a file that is not a capture is reported at once, and starts
    /// to decode.
    pub fn open(inputs: Vec<Input>, options: Options) -> Result<Decoder, Error> {
        let resolver = Resolver::new(&options)?;
        let progress = Arc::new(Progress::default());
        let pump = ReadThread::open(inputs, &options, progress.clone())?;
        let (send, parts) = bounded(PARTS);
        let mut resolve_stage = ResolveStage::new(resolver, progress.clone(), send);
        let mut threads = Vec::new();
        let mut to = if pump.is_alone() {
            // Rows stay in one CPU's cache.
            EventSink::Inline { resolve_stage: Box::new(resolve_stage), spare: Vec::new() }
        } else {
            let (events, inbox) = bounded(4);
            let (recycle, recycled) = unbounded();
            threads.push(thread("smbscope-resolve", move || {
                for event in inbox {
                    match resolve_stage.take(event) {
                        // The reading thread may have ended already.
                        Ok(outputs) => drop(recycle.send(outputs)),
                        Err(Disconnected) => return,
                    }
                }
            })?);
            EventSink::Thread { events, recycled }
        };
        threads.push(thread("smbscope-read", move || pump.run(&mut to))?);
        Ok(Decoder { parts: Some(parts), threads, progress, finished: false })
    }

    /// Progress, which any thread can read.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Waits for the threads. True if none of them panicked.
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
