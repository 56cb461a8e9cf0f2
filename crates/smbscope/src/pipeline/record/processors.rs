//! A live source of what CPUs do, alone or together with a source of operations.

use smbscope_capture::Part;
use smbscope_trace::record::{Error, Options, Recorder};

use super::source::{Events, LiveSource, POLL_EVERY, Received};

/// The CPUs of this machine, and what else is recorded.
pub struct ProcessorsSource {
    recorder: Recorder,
    other: Option<Box<dyn LiveSource>>,
}

impl ProcessorsSource {
    /// Starts to record CPUs. `other` is recorded with them.
    pub fn open(
        recording: &str,
        options: Options,
        other: Option<Box<dyn LiveSource>>,
    ) -> Result<ProcessorsSource, Error> {
        Ok(ProcessorsSource { recorder: Recorder::start(recording, options)?, other })
    }

    /// Why it is tracefs instead of eBPF, although that was preferred.
    pub fn instead(&self) -> Option<&str> {
        self.recorder.instead()
    }

    /// What this kernel cannot record.
    pub fn missing(&self) -> &[String] {
        self.recorder.missing()
    }

    /// Bytes of the rings.
    pub fn buffer_bytes(&self) -> u64 {
        self.recorder.buffer_bytes()
    }

    fn events(&self) -> Events {
        let counted = self.recorder.counted();
        Events { count: counted.events, dropped: counted.lost }
    }
}

impl LiveSource for ProcessorsSource {
    fn receive(&mut self) -> anyhow::Result<bool> {
        let is_full = self.recorder.receive()?;
        match &mut self.other {
            Some(other) => Ok(other.receive()? || is_full),
            None => {
                if !is_full {
                    std::thread::sleep(POLL_EVERY);
                }
                Ok(is_full)
            }
        }
    }

    fn parts(&mut self) -> anyhow::Result<Vec<Part>> {
        let mut parts = self.recorder.parts()?;
        if let Some(other) = &mut self.other {
            parts.extend(other.parts()?);
        }
        Ok(parts)
    }

    fn until(&self) -> i64 {
        let own = self.recorder.until();
        self.other.as_ref().map_or(own, |other| other.until().min(own))
    }

    fn set_dropping(&mut self, drops: bool) {
        self.recorder.set_dropping(drops);
        if let Some(other) = &mut self.other {
            other.set_dropping(drops);
        }
    }

    fn received(&mut self) -> Received {
        let other = self.other.as_mut().map(|other| other.received()).unwrap_or_default();
        Received { processors: Some(self.events()), ..other }
    }

    fn start_recording(&mut self, _: &str) -> anyhow::Result<Vec<Part>> {
        anyhow::bail!("a recording of CPUs cannot begin while they are recorded already")
    }

    fn stop_recording(&mut self) -> anyhow::Result<Vec<Part>> {
        anyhow::bail!("a recording of CPUs ends with its source")
    }

    fn close(self: Box<Self>) -> anyhow::Result<(Vec<Part>, Received)> {
        let ProcessorsSource { recorder, other } = *self;
        let counted = recorder.counted();
        // CPUs first: the coverage of operations is the last part of a recording.
        let mut parts = recorder.stop()?;
        let mut received = Received::default();
        if let Some(other) = other {
            let (more, seen) = other.close()?;
            parts.extend(more);
            received = seen;
        }
        let processors = Some(Events { count: counted.events, dropped: counted.lost });
        Ok((parts, Received { processors, ..received }))
    }
}
