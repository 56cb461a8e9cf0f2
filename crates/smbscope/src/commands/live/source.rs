//! Where the rows of a recording come from.

use smbscope_capture::live::{Counters, Error, Options, Recorder};
use smbscope_capture::{Options as Decode, Part};
use smbscope_report::format;

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Operations in parts.
    pub operations: u64,
    /// Packets, where an interface is listened to.
    pub packets: Option<Packets>,
    /// What a probe told, where there is one.
    pub events: Option<Events>,
}

/// Packets of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// How many.
    pub count: u64,
    /// How long together, on the wire.
    pub bytes: u64,
    /// Lost before they could be looked at.
    pub dropped: u64,
    /// Operations that the probe beside it did not see; known at the end.
    pub alone: u64,
}

/// What a probe told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// How many.
    pub count: u64,
    /// Lost before they could be looked at.
    pub dropped: u64,
}

impl Seen {
    /// What was taken, for people.
    pub fn text(&self) -> String {
        let packets = self.packets.map(|packets| {
            let (count, bytes) = (format::count(packets.count), format::bytes(packets.bytes));
            format!("{count} packets ({bytes})")
        });
        let events = self.events.map(|events| format!("{} events", format::count(events.count)));
        let both: Vec<String> = packets.into_iter().chain(events).collect();
        both.join(" and ")
    }

    /// Everything that was lost.
    pub fn dropped(&self) -> u64 {
        self.packets.map_or(0, |packets| packets.dropped)
            + self.events.map_or(0, |events| events.dropped)
    }
}

impl From<Counters> for Packets {
    fn from(counters: Counters) -> Packets {
        let Counters { packets: count, bytes, dropped, .. } = counters;
        Packets { count, bytes, dropped, alone: 0 }
    }
}

/// Something that yields rows while they happen.
pub trait Source {
    /// Takes what there is, or waits for it a moment (less than a second). Says whether so much is
    /// held that the parts should be taken.
    fn receive(&mut self) -> anyhow::Result<bool>;
    /// Rows of what ended since.
    fn parts(&mut self) -> anyhow::Result<Vec<Part>>;
    /// Parts are wanted several times a second, not once.
    fn hurry(&mut self) {}
    /// Until when everything that ended is in the parts taken next, ns since 1970.
    fn until(&self) -> i64;
    /// Drops what comes, and counts it, or does so no more.
    fn shed(&mut self, drops: bool);
    /// What was seen so far.
    fn seen(&mut self) -> Seen;
    /// A recording begins in the midst: rows of what ended before. From now on rows carry that name
    /// and the coverage counts anew; what is known of sessions, trees and opens stays.
    fn begin(&mut self, recording: &str) -> anyhow::Result<Vec<Part>>;
    /// The tail of a recording that ends while all goes on: what [`Source::end`] would give now,
    /// after the parts were taken.
    fn ended(&mut self) -> anyhow::Result<Vec<Part>>;
    /// Everything ends: the last parts, and what was seen.
    fn end(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Seen)>;
}

/// A network interface.
pub struct Wire {
    recorder: Recorder,
    /// The kernel drops, and counts, what is not received.
    drops: bool,
}

impl Wire {
    /// Begins to listen.
    pub fn open(recording: &str, options: &Options) -> Result<Wire, Error> {
        let recorder = Recorder::open(recording, options, &Decode::default())?;
        Ok(Wire { recorder, drops: false })
    }
}

impl Source for Wire {
    fn receive(&mut self) -> anyhow::Result<bool> {
        if self.drops {
            std::thread::sleep(LOOK_EVERY);
            return Ok(self.recorder.wants_out());
        }
        Ok(self.recorder.receive()?)
    }

    fn until(&self) -> i64 {
        self.recorder.until()
    }

    fn shed(&mut self, drops: bool) {
        self.drops = drops;
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.recorder.parts(&mut |_, _| {})?)
    }

    fn seen(&mut self) -> Seen {
        let packets = Some(self.recorder.counters().into());
        Seen { operations: self.recorder.operations(), packets, events: None }
    }

    fn begin(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        Ok(self.recorder.begin(recording, &mut |_, _| {})?)
    }

    fn ended(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.recorder.ended(&mut |_, _| {})?)
    }

    fn end(mut self: Box<Self>) -> anyhow::Result<(Vec<Part>, Seen)> {
        let mut seen = self.seen();
        let parts = self.recorder.end(&mut |_, _| {})?;
        if let Some(Part::Coverage(coverage)) = parts.last() {
            seen.operations = coverage.operations;
            seen.packets = Some(Packets {
                count: coverage.frames,
                bytes: coverage.wire_bytes,
                dropped: coverage.frames_dropped.unwrap_or(0),
                alone: 0,
            });
        }
        Ok((parts, seen))
    }
}

/// Inside the running Samba, perhaps with an interface beside it.
#[cfg(feature = "probe")]
pub struct Inside {
    recording: smbscope_samba::recording::Recording,
    parts: Vec<Part>,
    /// Until when the parts that were given have everything.
    until: i64,
}

/// Waiting for events: they are not told one by one, which would cost smbd.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// How often parts come when they are wanted soon.
#[cfg(feature = "probe")]
const HURRY: std::time::Duration = std::time::Duration::from_millis(200);

#[cfg(feature = "probe")]
impl Inside {
    /// Attaches to it.
    pub fn open(
        recording: &str,
        choice: &smbscope_samba::find::Choice,
        load: smbscope_samba::loader::LoadOptions,
        interface: Option<Options>,
    ) -> Result<Inside, smbscope_samba::recording::RecordError> {
        use smbscope_samba::recording::Recording;
        let recording = Recording::begin(recording, choice, load, &Decode::default(), interface)?;
        Ok(Inside { recording, parts: Vec::new(), until: 0 })
    }

    /// Functions at which a probe is expensive.
    pub fn expensive(&self) -> std::collections::BTreeSet<&str> {
        self.recording.expensive()
    }

    /// Why only system calls are looked at; none when Samba's functions are too.
    pub fn without_functions(&self) -> Option<&str> {
        self.recording.without_functions()
    }

    /// What is recorded.
    pub fn found(&self) -> &smbscope_samba::find::Found {
        self.recording.found()
    }
}

#[cfg(feature = "probe")]
impl Source for Inside {
    fn receive(&mut self) -> anyhow::Result<bool> {
        let (parts, is_idle) = self.recording.poll()?;
        if let Some(parts) = parts {
            self.until = self.recording.until();
            self.parts.extend(parts);
        }
        if is_idle {
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(!self.parts.is_empty())
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(std::mem::take(&mut self.parts))
    }

    fn seen(&mut self) -> Seen {
        seen(&self.recording.progress())
    }

    fn hurry(&mut self) {
        self.recording.parts_every(HURRY);
    }

    fn until(&self) -> i64 {
        self.until
    }

    fn shed(&mut self, drops: bool) {
        self.recording.shed(drops);
    }

    fn begin(&mut self, recording: &str) -> anyhow::Result<Vec<Part>> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.extend(self.recording.rename(recording)?);
        Ok(parts)
    }

    fn ended(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.recording.ended()?)
    }

    fn end(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Seen)> {
        let mut parts = self.parts;
        let (last, progress) = self.recording.end()?;
        parts.extend(last);
        Ok((parts, seen(&progress)))
    }
}

#[cfg(feature = "probe")]
fn seen(progress: &smbscope_samba::recording::Progress) -> Seen {
    let alone = progress.wire_only;
    Seen {
        operations: progress.operations,
        packets: progress.wire.map(|counters| Packets { alone, ..counters.into() }),
        events: Some(Events { count: progress.events, dropped: progress.counted.dropped }),
    }
}
