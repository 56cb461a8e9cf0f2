//! Where the rows of a recording come from.

use smbscope_capture::live::{Error, Options, Recorder};
use smbscope_capture::{Options as Decode, Part};

/// What was seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Operations in parts.
    pub operations: u64,
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// What was lost before it could be looked at: packets, or a probe's events.
    pub dropped: u64,
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
            packets: counters.packets,
            bytes: counters.bytes,
            dropped: counters.dropped,
        }
    }

    fn end(self: Box<Self>) -> anyhow::Result<Vec<Part>> {
        Ok(self.0.end()?)
    }
}
