//! Live sources of rows: a network interface, or a probe inside Samba.

use smbscope_capture::live::{Counters, Error, Options, Recorder};
use smbscope_capture::{Options as Decode, Part};
use smbscope_report::format;

/// What a source received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Operations that were returned in parts, or would have been without a filter.
    pub operations: u64,
    /// What a filter left of the operations that it tested; `None` without a filter.
    pub filtered: Option<Filtered>,
    /// Packets, if the source listens on an interface.
    pub packets: Option<Packets>,
    /// Events, if the source is a probe.
    pub events: Option<Events>,
    /// Events of CPUs, if they are recorded.
    pub processors: Option<Events>,
    /// Whether the Samba that is observed has ended.
    pub has_ended: bool,
}

/// Operations at a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    pub kept: u64,
    pub all: u64,
}

/// Packets of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    pub count: u64,
    /// Their length on the wire.
    pub bytes: u64,
    /// Lost before they could be read.
    pub dropped: u64,
    /// Operations that the probe used with it did not see; known at the end.
    pub alone: u64,
}

/// Events of a probe or of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub count: u64,
    /// Lost before they could be read.
    pub dropped: u64,
}

impl Received {
    /// What was received, for people.
    pub fn text(&self) -> String {
        let packets = self.packets.map(|packets| {
            let (count, bytes) = (format::count(packets.count), format::bytes(packets.bytes));
            format!("{count} packets ({bytes})")
        });
        let events = self.events.map(|events| format!("{} events", format::count(events.count)));
        let processors =
            self.processors.map(|events| format!("{} events of CPUs", format::count(events.count)));
        let all: Vec<String> = packets.into_iter().chain(events).chain(processors).collect();
        all.join(" and ")
    }

    /// Whether operations are received, and not only what CPUs do.
    pub fn has_operations(&self) -> bool {
        self.packets.is_some() || self.events.is_some()
    }

    /// Packets and events that were lost.
    pub fn dropped(&self) -> u64 {
        self.packets.map_or(0, |packets| packets.dropped)
            + self.events.map_or(0, |events| events.dropped)
            + self.processors.map_or(0, |events| events.dropped)
    }
}

impl From<Counters> for Packets {
    fn from(counters: Counters) -> Packets {
        let Counters { packets: count, bytes, dropped, .. } = counters;
        Packets { count, bytes, dropped, alone: 0 }
    }
}

/// Yields the rows of operations as they end.
pub trait LiveSource {
    /// Receives data, or waits for it for less than a second. Returns whether enough is held that the parts
    /// should be taken.
    fn receive(&mut self) -> anyhow::Result<bool>;
    /// Takes the rows of what ended since the last call.
    fn parts(&mut self) -> anyhow::Result<Vec<Part>>;
    /// Requests parts several times a second instead of once.
    fn deliver_often(&mut self) {}
    /// The time up to which the next parts are complete, ns since 1970.
    fn until(&self) -> i64;
    /// Starts or stops dropping (and counting) new data.
    fn set_dropping(&mut self, drops: bool);
    /// What was received so far.
    fn received(&mut self) -> Received;
    /// Starts a recording mid-stream and returns the rows of what ended before. From now on rows have that name,
    /// and coverage counts from zero; what is known about sessions, trees and opens is kept.
    fn start_recording(&mut self, recording: &str) -> anyhow::Result<Vec<Part>>;
    /// Ends a recording while the source continues, and returns its last rows: those that
    /// [`LiveSource::close`] would return now, after the parts were taken.
    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>>;
    /// Ends the source: returns the last parts, and what was received.
    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)>;
}

/// How packets and messages are decoded while they are recorded.
fn decode(state_bytes: u64) -> Decode {
    let state_bytes = usize::try_from(state_bytes).unwrap_or(usize::MAX);
    let limits = smbscope_capture::Limits { state_bytes, ..smbscope_capture::Limits::default() };
    Decode { limits, ..Decode::default() }
}

/// A network interface.
pub struct InterfaceSource {
    recorder: Recorder,
    /// Do not receive, so that the kernel drops and counts packets.
    drops: bool,
}

impl InterfaceSource {
    /// Starts to listen. The decoder's state takes at most `state_bytes`.
    pub fn open(
        recording: &str,
        options: &Options,
        state_bytes: u64,
    ) -> Result<InterfaceSource, Error> {
        let recorder = Recorder::open(recording, options, &decode(state_bytes))?;
        Ok(InterfaceSource { recorder, drops: false })
    }
}

impl LiveSource for InterfaceSource {
    fn receive(&mut self) -> anyhow::Result<bool> {
        if self.drops {
            std::thread::sleep(POLL_EVERY);
            return Ok(self.recorder.wants_out());
        }
        Ok(self.recorder.receive()?)
    }

    fn until(&self) -> i64 {
        self.recorder.until()
    }

    fn set_dropping(&mut self, drops: bool) {
        self.drops = drops;
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.recorder.parts(&mut |_, _| {})?)
    }

    fn received(&mut self) -> Received {
        let packets = Some(self.recorder.counters().into());
        Received { operations: self.recorder.operations(), packets, ..Received::default() }
    }

    fn start_recording(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        Ok(self.recorder.begin(recording, &mut |_, _| {})?)
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.recorder.ended(&mut |_, _| {})?)
    }

    fn close(mut self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        let mut received = self.received();
        let parts = self.recorder.end(&mut |_, _| {})?;
        if let Some(Part::Coverage(coverage)) = parts.last() {
            received.operations = coverage.operations;
            received.packets = Some(Packets {
                count: coverage.frames,
                bytes: coverage.wire_bytes,
                dropped: coverage.frames_dropped.unwrap_or(0),
                alone: 0,
            });
        }
        Ok((parts, received))
    }
}

/// The running Samba, optionally with an interface.
#[cfg(feature = "probe")]
pub struct ProbeSource {
    recording: smbscope_samba::recording::Recording,
    parts: Vec<Part>,
    /// The time up to which the parts are complete.
    until: i64,
}

/// How often events are polled: waking up for each one would slow down smbd.
pub(super) const POLL_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// How often parts are made for [`LiveSource::deliver_often`].
#[cfg(feature = "probe")]
const OFTEN: std::time::Duration = std::time::Duration::from_millis(200);

#[cfg(feature = "probe")]
impl ProbeSource {
    /// Attaches to Samba. The decoder's state takes at most `state_bytes`.
    pub fn open(
        recording: &str,
        choice: &smbscope_samba::find::Choice,
        load: smbscope_samba::loader::LoadOptions,
        interface: Option<Options>,
        state_bytes: u64,
    ) -> Result<ProbeSource, smbscope_samba::recording::RecordError> {
        use smbscope_samba::recording::Recording;
        let recording = Recording::begin(recording, choice, load, &decode(state_bytes), interface)?;
        Ok(ProbeSource { recording, parts: Vec::new(), until: 0 })
    }

    /// Functions whose probes are expensive.
    pub fn expensive(&self) -> std::collections::BTreeSet<&str> {
        self.recording.expensive()
    }

    /// Why only system calls are observed; `None` if Samba's functions are observed, too.
    pub fn without_functions(&self) -> Option<&str> {
        self.recording.without_functions()
    }

    /// The processes and ports that are recorded.
    pub fn found(&self) -> &smbscope_samba::find::Found {
        self.recording.found()
    }
}

#[cfg(feature = "probe")]
impl LiveSource for ProbeSource {
    fn receive(&mut self) -> anyhow::Result<bool> {
        let (parts, is_idle) = self.recording.poll()?;
        if let Some(parts) = parts {
            self.until = self.recording.until();
            self.parts.extend(parts);
        }
        if is_idle {
            std::thread::sleep(POLL_EVERY);
        }
        Ok(!self.parts.is_empty())
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(std::mem::take(&mut self.parts))
    }

    fn received(&mut self) -> Received {
        received(&self.recording.progress())
    }

    fn deliver_often(&mut self) {
        self.recording.parts_every(OFTEN);
    }

    fn until(&self) -> i64 {
        self.until
    }

    fn set_dropping(&mut self, drops: bool) {
        self.recording.shed(drops);
    }

    fn start_recording(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.extend(self.recording.rename(recording)?);
        Ok(parts)
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.recording.ended()?)
    }

    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        let mut parts = self.parts;
        let (last, progress) = self.recording.end()?;
        parts.extend(last);
        Ok((parts, received(&progress)))
    }
}

#[cfg(feature = "probe")]
fn received(progress: &smbscope_samba::recording::Progress) -> Received {
    let alone = progress.wire_only;
    Received {
        operations: progress.operations,
        packets: progress.wire.map(|counters| Packets { alone, ..counters.into() }),
        events: Some(Events { count: progress.events, dropped: progress.counted.dropped }),
        has_ended: progress.is_alone,
        ..Received::default()
    }
}
