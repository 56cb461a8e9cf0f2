//! What the reading thread tells to parts, in that thread or another.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use smbscope_tables::part::Part;
use smbscope_tables::tables::Coverage;

use super::Progress;
use crate::file::{FileError, FileSummary};
use crate::options::Error;
use crate::outcome::Output;
use crate::resolve::{Resolver, add_counters};

/// What the reading thread tells.
pub enum Event {
    /// An input begins.
    Begin(String),
    /// What the shards made of one chunk; of a live input rows are wanted at once.
    Outputs { outputs: Vec<Output>, is_live: bool },
    /// An input ends; with `last` all connections do.
    End { summary: Box<FileSummary>, coverage: Box<Coverage>, last: bool },
    /// Nothing more can be read.
    Failed(FileError),
}

/// Nobody wants the rest.
pub struct Gone;

/// Where the reading thread's events go.
pub enum To {
    /// They are resolved in the reading thread.
    Here { resolving: Box<Resolving>, spare: Vec<Output> },
    /// They are in another.
    There { events: Sender<Event>, recycled: Receiver<Vec<Output>> },
}

impl To {
    /// Takes an event.
    pub fn send(&mut self, event: Event) -> Result<(), Gone> {
        match self {
            To::Here { resolving, spare } => {
                *spare = resolving.take(event)?;
                Ok(())
            }
            To::There { events, .. } => events.send(event).map_err(|_| Gone),
        }
    }

    /// Outputs that nobody needs any more, if there are.
    pub fn spare(&mut self) -> Vec<Output> {
        match self {
            To::Here { spare, .. } => std::mem::take(spare),
            To::There { recycled, .. } => recycled.try_recv().unwrap_or_default(),
        }
    }
}

/// Makes the parts and sends them to whoever takes them.
pub struct Resolving {
    resolver: Resolver,
    progress: Arc<Progress>,
    parts: Sender<Result<Part, Error>>,
}

impl Resolving {
    /// One that took nothing yet.
    pub fn new(
        resolver: Resolver,
        progress: Arc<Progress>,
        parts: Sender<Result<Part, Error>>,
    ) -> Resolving {
        Resolving { resolver, progress, parts }
    }

    /// Takes an event; its outputs come back.
    pub fn take(&mut self, event: Event) -> Result<Vec<Output>, Gone> {
        let result = self.resolve(event);
        while let Some(part) = self.resolver.next_part() {
            self.parts.send(Ok(part)).map_err(|_| Gone)?;
        }
        result.map_err(|error| {
            let _ = self.parts.send(Err(error));
            Gone
        })
    }

    fn resolve(&mut self, event: Event) -> Result<Vec<Output>, Error> {
        match event {
            Event::Begin(name) => self.resolver.begin_input(&name),
            Event::Outputs { mut outputs, is_live } => {
                self.resolver.take(&mut outputs)?;
                if is_live {
                    self.resolver.flush()?;
                }
                self.progress.set_operations(self.resolver.operations());
                return Ok(outputs);
            }
            Event::End { summary, coverage, last } => {
                let sum = &mut *self.resolver.coverage;
                add_counters(sum, &coverage);
                sum.format = summary.description();
                sum.resolution_ns = summary
                    .interfaces
                    .iter()
                    .map(|interface| interface.resolution_ns().ceil() as u64)
                    .max();
                sum.start = summary.first_time_ns;
                sum.end = summary.last_time_ns;
                sum.frames = summary.frames;
                sum.file_bytes = coverage.file_bytes;
                sum.wire_bytes = summary.wire_bytes;
                sum.frames_dropped = summary.dropped();
                sum.frames_cut = summary.frames_cut;
                sum.cut_off.clone_from(&summary.cut_off);
                self.resolver.end_input(last)?;
            }
            Event::Failed(error) => return Err(error.into()),
        }
        Ok(Vec::new())
    }
}
