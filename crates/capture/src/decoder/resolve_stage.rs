//! Events of the reading thread to parts, on that thread or another.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use smbscope_tables::Part;
use smbscope_tables::tables::Coverage;

use super::Progress;
use crate::file::{FileError, FileSummary};
use crate::options::Error;
use crate::outcome::Output;
use crate::resolve::{Resolver, add_counters};

/// What the reading thread sends.
pub enum Event {
    /// An input begins.
    Begin(String),
    /// The results of one chunk. Rows of a live input are wanted at once.
    Outputs { outputs: Vec<Output>, is_live: bool },
    /// An input ends; with `last` all connections do.
    End { summary: Box<FileSummary>, coverage: Box<Coverage>, last: bool },
    /// Nothing more can be read.
    Failed(FileError),
}

/// The receiver is gone, so that reading can stop.
pub struct Disconnected;

/// Where the reading thread's events go.
pub enum EventSink {
    /// They are resolved in the reading thread.
    Inline { resolve_stage: Box<ResolveStage>, spare: Vec<Output> },
    /// They are in another.
    Thread { events: Sender<Event>, recycled: Receiver<Vec<Output>> },
}

impl EventSink {
    /// Takes an event.
    pub fn send(&mut self, event: Event) -> Result<(), Disconnected> {
        match self {
            EventSink::Inline { resolve_stage, spare } => {
                *spare = resolve_stage.take(event)?;
                Ok(())
            }
            EventSink::Thread { events, .. } => events.send(event).map_err(|_| Disconnected),
        }
    }

    /// Used outputs, if there are any.
    pub fn spare(&mut self) -> Vec<Output> {
        match self {
            EventSink::Inline { spare, .. } => std::mem::take(spare),
            EventSink::Thread { recycled, .. } => recycled.try_recv().unwrap_or_default(),
        }
    }
}

/// Builds the parts and sends them to the caller of the decoder.
pub struct ResolveStage {
    resolver: Resolver,
    progress: Arc<Progress>,
    parts: Sender<Result<Part, Error>>,
}

impl ResolveStage {
    /// A stage without any input yet.
    pub fn new(
        resolver: Resolver,
        progress: Arc<Progress>,
        parts: Sender<Result<Part, Error>>,
    ) -> ResolveStage {
        ResolveStage { resolver, progress, parts }
    }

    /// Takes an event; its outputs come back.
    pub fn take(&mut self, event: Event) -> Result<Vec<Output>, Disconnected> {
        let result = self.resolve(event);
        while let Some(part) = self.resolver.next_part() {
            self.parts.send(Ok(part)).map_err(|_| Disconnected)?;
        }
        result.map_err(|error| {
            let _ = self.parts.send(Err(error));
            Disconnected
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
                sum.start = coverage.start;
                sum.end = coverage.end;
                sum.clock_step_ns = coverage.clock_step_ns;
                sum.clock_step_frame = coverage.clock_step_frame;
                sum.frames = summary.frames;
                sum.file_bytes = coverage.file_bytes;
                sum.wire_bytes = summary.wire_bytes;
                sum.frames_dropped = summary.dropped();
                sum.frames_cut = summary.frames_cut;
                sum.cut_off.clone_from(&summary.cut_off);
                sum.unwrapped.clone_from(&coverage.unwrapped);
                if coverage.frames_link_unknown > 0 {
                    sum.notes = unknown_links(&summary);
                }
                self.resolver.end_input(last)?;
            }
            Event::Failed(error) => return Err(error.into()),
        }
        Ok(Vec::new())
    }
}

/// The numbers of the link types that are not read.
fn unknown_links(summary: &FileSummary) -> Option<String> {
    let links = summary.interfaces.iter().filter(|interface| interface.frames > 0);
    let mut links: Vec<_> =
        links.map(|interface| interface.link).filter(|link| link.name().is_none()).collect();
    links.sort_unstable();
    links.dedup();
    let numbers: Vec<_> = links.iter().take(5).map(|link| link.0.to_string()).collect();
    let what = match numbers.len() {
        0 => return None,
        1 => "Link type",
        _ => "Link types",
    };
    let numbers = numbers.join(", ");
    Some(format!("{what} {numbers} (tcpdump.org/linktypes.html) not read."))
}
