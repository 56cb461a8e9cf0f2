//! Segments or frames to parts of tables, on the caller's thread: for live sources and traces.
//!
//! Owns no file, no thread and no clock. The caller supplies the segments, and whatever it knows of
//! an operation in addition to the network (the slices of a probe).

use smbscope_tables::Part;
use smbscope_tables::operation::Operation;
use smbscope_tables::tables::Coverage;

use crate::tcp::Context;

use crate::closer_look::{CloserLook, Found};
use crate::file::{FrameRef, LinkType};
use crate::frame::{TcpSegment, UdpDatagram, dissect_plain};
use crate::options::{Error, Options};
use crate::outcome::{Endpoints, Output};
use crate::resolve::Resolver;
use crate::shard::Shard;

/// Rows after which [`PushDecoder::wants_out`] is true.
const ROWS: usize = 8_192;
/// The same for bytes of names.
const TEXT_BYTES: usize = 4 << 20;
/// The same for connections that began or ended.
const CONNECTIONS: usize = 4_096;

/// Sees a row before names and numbers are added.
pub type Amend<'a> = &'a mut dyn FnMut(&mut Operation, &Endpoints);

/// Follows connections in the caller's thread; one shard.
#[derive(Clone)]
pub struct PushDecoder {
    shard: Shard,
    closer_look: CloserLook,
    /// What frames without TCP were.
    frame_counts: Box<Coverage>,
    output: Output,
    resolver: Resolver,
    frames: u64,
    first_time: Option<i64>,
    last_time: Option<i64>,
    backwards: u64,
    /// Segments before the recording started.
    frames_before: u64,
}

impl PushDecoder {
    /// A decoder without input yet; all rows carry the name `recording`.
    pub fn new(recording: &str, options: &Options) -> Result<PushDecoder, Error> {
        let mut resolver = Resolver::new(options)?;
        resolver.begin_input(recording);
        Ok(PushDecoder {
            shard: Shard::new(Context::new(options)),
            closer_look: CloserLook::default(),
            frame_counts: Box::default(),
            output: Output::default(),
            resolver,
            frames: 0,
            first_time: None,
            last_time: None,
            backwards: 0,
            frames_before: 0,
        })
    }

    /// Takes one TCP segment; frames are counted from 1.
    pub fn segment(&mut self, segment: &TcpSegment<'_>, time: i64) {
        self.next_frame(time);
        self.shard.packet(*segment, time, self.frames, &mut self.output);
    }

    /// Takes a frame of which `bytes` were captured and `original_bytes` were on the wire; frames without TCP
    /// are counted.
    pub fn frame(&mut self, link: LinkType, bytes: &[u8], original_bytes: u32, time: i64) {
        if let Some(segment) = dissect_plain(link, bytes, original_bytes) {
            self.segment(&segment, time);
            return;
        }
        self.next_frame(time);
        let frame = FrameRef {
            number: self.frames,
            time_ns: time,
            offset: 0,
            captured: bytes.len() as u32,
            original: original_bytes,
            link,
        };
        let PushDecoder { closer_look, shard, output, frame_counts, .. } = self;
        closer_look.look(&frame, bytes, frame_counts, |found| match found {
            Found::Segment(segment) => shard.packet(segment, time, frame.number, output),
            Found::Datagram(datagram) => shard.datagram(&datagram, time, frame.number, output),
            Found::Unreachable(report) => shard.unreachable(&report, time, frame.number, output),
            Found::NetBeui(llc) => shard.netbeui(&llc, time, frame.number, output),
        });
    }

    /// Takes one UDP datagram, which may carry RoCE or Kerberos; it counts as a frame.
    pub fn datagram(&mut self, datagram: &UdpDatagram<'_>, time: i64) {
        self.next_frame(time);
        self.shard.datagram(datagram, time, self.frames, &mut self.output);
    }

    #[inline]
    fn next_frame(&mut self, time: i64) {
        self.output.order = self.frames;
        self.frames += 1;
        self.backwards += u64::from(self.last_time.is_some_and(|last| time < last));
        self.first_time.get_or_insert(time);
        self.last_time = Some(time);
    }

    /// Segments and datagrams so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Operations in the parts so far.
    pub fn operations(&self) -> u64 {
        self.resolver.operations()
    }

    /// Whether enough is held that the caller should take [`PushDecoder::parts`] now. There is no
    /// other limit on what is held.
    #[inline]
    pub fn wants_out(&self) -> bool {
        let output = &self.output;
        output.rows.len() >= ROWS
            || output.details.text.len() >= TEXT_BYTES
            || output.started.len() + output.ended.len() >= CONNECTIONS
    }

    /// Returns parts of what ended, after `amend` saw each row (in the order in which they ended)
    /// before names and numbers are added.
    pub fn parts(&mut self, amend: Amend<'_>) -> Result<Vec<Part>, Error> {
        self.resolve(amend)?;
        self.resolver.flush()?;
        self.resolver.emit_tables(1);
        Ok(self.take_parts())
    }

    /// Starts a recording mid-stream: returns parts of what ended until now. Later rows carry
    /// another name and the coverage counts from now on, but what is known of connections,
    /// sessions, trees and opens is kept.
    pub fn begin(&mut self, recording: &str, amend: Amend<'_>) -> Result<Vec<Part>, Error> {
        let parts = self.parts(amend)?;
        self.resolver.begin_recording(recording);
        (self.first_time, self.backwards, self.frames_before) = (None, 0, self.frames);
        Ok(parts)
    }

    /// What [`PushDecoder::end`] would return now, while decoding continues: the tail of a
    /// recording that ends before its source. It copies the whole state for a moment.
    pub fn ended(
        &self,
        amend: Amend<'_>,
        fill: impl FnOnce(&mut Coverage),
    ) -> Result<Vec<Part>, Error> {
        self.clone().end(amend, fill)
    }

    /// Endpoints everything. The last part is the coverage; `fill` completes it (format, counters of the
    /// source).
    pub fn end(
        mut self,
        amend: Amend<'_>,
        fill: impl FnOnce(&mut Coverage),
    ) -> Result<Vec<Part>, Error> {
        self.resolve(amend)?;
        self.output.order = self.frames;
        self.shard.end(&mut self.output);
        self.resolve(amend)?;
        let coverage = &mut *self.resolver.coverage;
        coverage.start = self.first_time;
        coverage.end = self.last_time;
        coverage.frames = self.frames - self.frames_before;
        coverage.frames_time_backwards = self.backwards;
        self.closer_look.end_file(true, &mut self.frame_counts);
        let counts = &mut *self.frame_counts;
        coverage.frames_tunnelled += counts.frames_tunnelled;
        coverage.frames_not_tcp += counts.frames_not_tcp;
        coverage.frames_link_unknown += counts.frames_link_unknown;
        coverage.frames_fragment += counts.frames_fragment;
        coverage.frames_malformed += counts.frames_malformed;
        coverage.frames_repeated += counts.frames_repeated;
        coverage.fragments_reassembled += counts.fragments_reassembled;
        coverage.datagrams_not_sessions += counts.datagrams_not_sessions;
        coverage.frames_ipx += counts.frames_ipx;
        coverage.unwrapped = counts.unwrapped.take();
        fill(coverage);
        self.resolver.end_input(true)?;
        Ok(self.take_parts())
    }

    fn resolve(&mut self, amend: Amend<'_>) -> Result<(), Error> {
        let PushDecoder { output, resolver, .. } = self;
        resolver.connections_started(std::slice::from_ref(output));
        output.started.clear();
        for (done, row) in output.done.iter().zip(&mut output.rows) {
            if let Some(ends) = resolver.ends(done.connection) {
                amend(row, &ends);
            }
        }
        resolver.take(std::slice::from_mut(output))?;
        output.reset();
        Ok(())
    }

    fn take_parts(&mut self) -> Vec<Part> {
        std::iter::from_fn(|| self.resolver.next_part()).collect()
    }
}

#[cfg(test)]
mod tests;
