//! Opens the CPUs of this machine, with whatever else is recorded.

use smbscope_report::format;
use smbscope_trace::record::{Options, Tracer};

use super::args::Listen;
use super::{Kept, Opened, is_the_probes};
use crate::options::Verbosity;
use crate::pipeline::record::memory::MemoryLimit;
use crate::pipeline::record::name;
use crate::pipeline::record::processors::ProcessorsSource;

/// The name of recordings of CPUs alone, before the time.
const CPU: &str = "cpu";

impl Listen {
    /// Opens the CPUs and, unless --no-probe is given, Samba and the interface. Without a Samba
    /// that can be observed, CPUs are recorded alone.
    pub fn open_processors(
        &self,
        (hz, switches, tracer): (u32, bool, Tracer),
        time: i64,
        kept: Option<Kept>,
        verbosity: Verbosity,
    ) -> anyhow::Result<Opened> {
        let is_alone = self.no_probe && self.interface.is_none();
        let other = if is_alone {
            None
        } else {
            match self.open(time, kept, verbosity) {
                Ok(opened) => Some(opened),
                Err(error) if self.needs_more_than_processors() || !is_the_probes(&error) => {
                    return Err(error);
                }
                Err(error) => {
                    verbosity.say(&format!("recording the CPUs only: {error:#}"));
                    None
                }
            }
        };
        // Like the buffer for events of the probe.
        let buffer_bytes = (self.buffer / 4).min(self.memory / 4);
        let options = Options { buffer_bytes, hz, switches, tracer };
        let opened = match other {
            None => Opened {
                source: Box::new(self.processors(&name(CPU, time), options, None, verbosity)?),
                from: vec![CPU.to_owned()],
                what: "CPUs".to_owned(),
                filter: None,
                memory: MemoryLimit::new(self.memory, 0),
            },
            Some(opened) => {
                let recording = opened.from.first().map(|from| name(from, time));
                let recording = recording.unwrap_or_default();
                let source =
                    self.processors(&recording, options, Some(opened.source), verbosity)?;
                let mut from = opened.from;
                from.push(CPU.to_owned());
                let what = format!("{}, and processors", opened.what);
                Opened { source: Box::new(source), from, what, ..opened }
            }
        };
        Ok(Opened { memory: opened.memory.with(buffer_bytes), ..opened })
    }

    fn processors(
        &self,
        recording: &str,
        options: Options,
        other: Option<Box<dyn crate::pipeline::record::source::LiveSource>>,
        verbosity: Verbosity,
    ) -> anyhow::Result<ProcessorsSource> {
        let source = ProcessorsSource::open(recording, options, other)?;
        if let Some(why) = source.instead() {
            verbosity.say(&format!("CPUs are recorded by tracefs: {why}"));
        }
        if !source.missing().is_empty() {
            verbosity.say(&format!("this kernel has no {}", source.missing().join(", ")));
        }
        verbosity.say(&format!(
            "the buffer for events of CPUs is {}",
            format::bytes(source.buffer_bytes())
        ));
        Ok(source)
    }

    fn needs_more_than_processors(&self) -> bool {
        self.interface.is_some() || self.asks_for_probe() || !self.ports.is_empty()
    }
}
