//! Where the rows of a recording come from.

use smbscope_capture::live::{Error, Options, Recorder};
use smbscope_capture::{Options as Decode, Part};
use smbscope_report::format;

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Operations in parts.
    pub operations: u64,
    /// What they were made of.
    pub taken: Taken,
    /// What was lost before it could be looked at: packets, or a probe's events.
    pub dropped: u64,
}

/// What rows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Packets, and their bytes on the wire.
    Packets {
        /// How many.
        count: u64,
        /// How long together.
        bytes: u64,
    },
    /// What a probe told.
    #[cfg(feature = "probe")]
    Events(u64),
}

impl Default for Taken {
    fn default() -> Taken {
        Taken::Packets { count: 0, bytes: 0 }
    }
}

impl Seen {
    /// What was taken, for people.
    pub fn text(&self) -> String {
        match self.taken {
            Taken::Packets { count, bytes } => {
                format!("{} packets ({})", format::count(count), format::bytes(bytes))
            }
            #[cfg(feature = "probe")]
            Taken::Events(count) => format!("{} events", format::count(count)),
        }
    }
}

/// Something that yields rows while they happen.
pub trait Source {
    /// Takes what there is, or waits for it a moment (less than a second). Says whether so much is
    /// held that the parts should be taken.
    fn receive(&mut self) -> anyhow::Result<bool>;
    /// Rows of what ended since.
    fn parts(&mut self) -> anyhow::Result<Vec<Part>>;
    /// What was seen so far.
    fn seen(&mut self) -> Seen;
    /// Everything ends; the last part is the coverage.
    fn end(self: Box<Self>) -> anyhow::Result<Vec<Part>>;
}

/// A network interface.
pub struct Wire(Recorder);

impl Wire {
    /// Begins to listen.
    pub fn open(recording: &str, options: &Options) -> Result<Wire, Error> {
        Ok(Wire(Recorder::open(recording, options, &Decode::default())?))
    }
}

impl Source for Wire {
    fn receive(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.receive()?)
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(self.0.parts()?)
    }

    fn seen(&mut self) -> Seen {
        let counters = self.0.counters();
        Seen {
            operations: self.0.operations(),
            taken: Taken::Packets { count: counters.packets, bytes: counters.bytes },
            dropped: counters.dropped,
        }
    }

    fn end(self: Box<Self>) -> anyhow::Result<Vec<Part>> {
        Ok(self.0.end()?)
    }
}

/// Inside the running Samba.
#[cfg(feature = "probe")]
pub struct Inside {
    recording: smbscope_probe::recording::Recording,
    parts: Vec<Part>,
}

/// Waiting for events: they are not told one by one, which would cost smbd.
#[cfg(feature = "probe")]
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

#[cfg(feature = "probe")]
impl Inside {
    /// Attaches to it.
    pub fn open(
        recording: &str,
        choice: &smbscope_probe::find::Choice,
        load: smbscope_probe::loader::LoadOptions,
    ) -> Result<Inside, smbscope_probe::recording::RecordError> {
        use smbscope_probe::recording::Recording;
        let recording = Recording::begin(recording, choice, load, &Decode::default())?;
        Ok(Inside { recording, parts: Vec::new() })
    }

    /// What is recorded.
    pub fn found(&self) -> &smbscope_probe::find::Found {
        self.recording.found()
    }

    /// Functions at which a probe is expensive.
    pub fn expensive(&self) -> std::collections::BTreeSet<&str> {
        self.recording.expensive()
    }
}

#[cfg(feature = "probe")]
impl Source for Inside {
    fn receive(&mut self) -> anyhow::Result<bool> {
        let (parts, is_idle) = self.recording.poll()?;
        self.parts.extend(parts);
        if is_idle {
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(!self.parts.is_empty())
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        Ok(std::mem::take(&mut self.parts))
    }

    fn seen(&mut self) -> Seen {
        let progress = self.recording.progress();
        Seen {
            operations: progress.operations,
            taken: Taken::Events(progress.events),
            dropped: progress.counted.dropped,
        }
    }

    fn end(self: Box<Self>) -> anyhow::Result<Vec<Part>> {
        let mut parts = self.parts;
        parts.extend(self.recording.end()?.0);
        Ok(parts)
    }
}
