//! What `record` and `top` share: from their options to an open source of rows.
//!
//! Owns the options ([`args`]), which source they mean, and where and how urgently this program runs
//! (`scheduling`).

pub mod args;
#[cfg(feature = "probe")]
mod processors;
mod scheduling;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use smbscope_capture::live;
use smbscope_report::{Selection, format};
use smbscope_serve::http::Listener;
use smbscope_tables::anonymize::Tokenizer;
use smbscope_tables::filter::Filter;

use crate::commands::load::target::running_lab;
use crate::options::Verbosity;
use crate::pipeline::record::amended::AmendedSource;
use crate::pipeline::record::known_names::KnownNames;
use crate::pipeline::record::memory::{self, MemoryLimit};
use crate::pipeline::record::metered::MeteredSource;
use crate::pipeline::record::name;
#[cfg(feature = "probe")]
use crate::pipeline::record::source;
use crate::pipeline::record::source::{Filtered, InterfaceSource, LiveSource, Received};
use args::Listen;

/// Least and most bytes of the ring buffer.
#[cfg(feature = "probe")]
const RING_BYTES: (u64, u64) = (1 << 20, 128 << 20);
/// Least value of --memory.
const MEMORY_MIN: u64 = 64 << 20;
/// The name of recordings from inside Samba, before the time.
pub const SAMBA: &str = "samba";

const EVENTS_DROPPED: &str = "events were dropped, so operations are missing or have no slices: use a larger --buffer, or give smbscope more CPU time (--cpus)";

const PROCESSORS_DROPPED: &str = "events of CPUs were dropped, so their times are too low: use a larger --buffer, or give smbscope more CPU time (--cpus, --priority)";

const PACKETS_DROPPED: &str = "packets were dropped, so operations are missing or have no reply: listen on one interface only, use a larger --buffer (above net.core.rmem_max only as root) or a smaller --snaplen";

/// A file that keeps packets.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is replaced.
    pub overwrite: bool,
}

/// An open source of rows.
pub struct Opened {
    /// Yields rows.
    pub source: Box<dyn LiveSource>,
    /// The names of its inputs, without the time: its own first.
    pub from: Vec<String>,
    /// A description for people.
    pub what: String,
    /// The filter of its rows.
    pub filter: Option<Filter>,
    /// The memory that this program may use meanwhile.
    pub memory: MemoryLimit,
}

impl Listen {
    /// Opens the probe, the interface, or both in one. `time` becomes part of the recording's name.
    pub fn open(
        &self,
        time: i64,
        kept: Option<Kept>,
        verbosity: Verbosity,
    ) -> anyhow::Result<Opened> {
        if self.memory < MEMORY_MIN {
            let (asked, least) = (format::bytes(self.memory), format::bytes(MEMORY_MIN));
            return Err(crate::exit::Failure::usage(format!(
                "--memory {asked}: smbscope itself needs most of that and would drop everything; the least value is {least}"
            )));
        }
        let filter = self.filter.live(time)?;
        let mut opened = self.open_all(time, kept, verbosity)?;
        // Sessions that are open already, by the names that Samba on this machine has for them.
        let names = KnownNames::of_running();
        if !names.is_empty() {
            opened.source = Box::new(AmendedSource::named(opened.source, names));
        }
        if let Some(filter) = &filter {
            opened.what = format!("{} ({})", opened.what, filter.words(false, 0));
            opened.source = Box::new(AmendedSource::filtered(opened.source, filter.clone()));
        }
        Ok(Opened { filter, ..opened })
    }

    /// Counts what an open source yields for Prometheus, if that is requested.
    pub fn metered(
        &self,
        opened: Opened,
        tokenizer: Option<&Tokenizer>,
        verbosity: Verbosity,
    ) -> anyhow::Result<Opened> {
        let Some(address) = self.prometheus else { return Ok(opened) };
        let listener =
            Listener::bind(address).with_context(|| format!("--prometheus {address}"))?;
        verbosity.say(&format!("metrics for Prometheus at http://{}/metrics", listener.address()));
        let source = MeteredSource::new(opened.source, listener, tokenizer.cloned());
        Ok(Opened { source: Box::new(source), ..opened })
    }

    /// Opens everything, without the filter.
    fn open_all(
        &self,
        time: i64,
        kept: Option<Kept>,
        verbosity: Verbosity,
    ) -> anyhow::Result<Opened> {
        let Some(interface) = &self.interface else {
            return self.inside(None, time, verbosity);
        };
        say_of_buffer("packets", self.packet_buffer(), self.buffer, verbosity);
        if !self.no_probe {
            let listening = self.listening(interface, &self.ports()?, kept.clone());
            match self.inside(Some(listening), time, verbosity) {
                Ok(opened) => return Ok(opened),
                Err(error) if self.asks_for_probe() || !is_the_probes(&error) => return Err(error),
                Err(error) => {
                    verbosity.say(&format!("recording without the server's slices: {error:#}"))
                }
            }
        }
        self.wire(interface, time, kept)
    }

    /// Whether the options require the probe, so that the interface alone is not enough.
    fn asks_for_probe(&self) -> bool {
        !self.processes.is_empty() || self.cgroup.is_some() || self.lab.is_some()
    }

    /// The processes of the server that are observed with their children; all smbd, if there are none.
    pub fn smbd(&self) -> anyhow::Result<Vec<u32>> {
        match &self.lab {
            None => Ok(self.processes.clone()),
            Some(dir) => Ok(running_lab(dir.as_deref())?.smbd.into_iter().collect()),
        }
    }

    /// The ports that are observed; those of the server, if there are none.
    fn ports(&self) -> anyhow::Result<Vec<u16>> {
        match &self.lab {
            Some(dir) if self.ports.is_empty() => {
                Ok(vec![running_lab(dir.as_deref())?.target.port])
            }
            _ => Ok(self.ports.clone()),
        }
    }

    fn listening(&self, interface: &str, ports: &[u16], kept: Option<Kept>) -> live::Options {
        live::Options {
            interface: interface.to_owned(),
            ports: ports.to_vec(),
            head_bytes: self.snaplen as usize,
            buffer_bytes: usize::try_from(self.packet_buffer()).unwrap_or(usize::MAX),
            overwrite: kept.as_ref().is_some_and(|kept| kept.overwrite),
            pcap: kept.map(|kept| kept.path),
        }
    }

    /// Memory for packets that wait: --buffer, but at most a quarter of --memory, because their rows need some too.
    fn packet_buffer(&self) -> u64 {
        self.buffer.min(self.memory / 4)
    }

    /// Memory for sessions, trees and opens: half of --memory, next to packets, events and rows.
    fn state_bytes(&self) -> u64 {
        self.memory / 2
    }

    /// A network interface alone.
    fn wire(&self, interface: &str, time: i64, kept: Option<Kept>) -> anyhow::Result<Opened> {
        let recording = name(interface, time);
        let own = self.ports()?;
        let ports = if own.is_empty() { &live::PORTS[..] } else { &own };
        let what = format!("{} on {interface}", ports_text(ports));
        let source = InterfaceSource::open(
            &recording,
            &self.listening(interface, ports, kept),
            self.state_bytes(),
        )?;
        let memory = MemoryLimit::new(self.memory, self.packet_buffer());
        let from = vec![interface.to_owned()];
        Ok(Opened { source: Box::new(source), from, what, filter: None, memory })
    }

    /// The running Samba, together with an interface if there is one.
    #[cfg(feature = "probe")]
    fn inside(
        &self,
        interface: Option<live::Options>,
        time: i64,
        verbosity: Verbosity,
    ) -> anyhow::Result<Opened> {
        use smbscope_samba::find::Choice;
        use smbscope_samba::loader::LoadOptions;
        use smbscope_samba::recording::RecordError;
        let choice = Choice {
            processes: self.smbd()?,
            ports: self.ports.clone(),
            cgroup: self.cgroup.clone(),
        };
        let (ring_bytes, wanted_bytes) = ring_bytes(self.buffer, self.memory);
        say_of_buffer("events", ring_bytes.into(), wanted_bytes.into(), verbosity);
        let load = LoadOptions {
            ring_bytes,
            functions: !self.no_functions,
            off_cpu: self.offcpu,
            disk: self.disk,
            ..LoadOptions::default()
        };
        let recording = name(SAMBA, time);
        let also = interface.as_ref().map(|interface| interface.interface.clone());
        let source =
            source::ProbeSource::open(&recording, &choice, load, interface, self.state_bytes())
                .map_err(|error| {
                    match error {
                        // It determines the exit code itself.
                        RecordError::Wire(error) => anyhow::Error::from(error),
                        error => error.into(),
                    }
                })?;
        if let Some(line) = expensive(source.expensive()) {
            verbosity.say(&line);
        }
        let found = source.found();
        let ports: Vec<u16> = found.ports.iter().copied().collect();
        let count = found.processes.len();
        let how = source.without_functions().map_or(String::new(), |reason| {
            format!(" by system calls only ({reason}; encrypted sessions are not decoded)")
        });
        let and = also.as_ref().map_or(String::new(), |interface| format!(", and on {interface}"));
        let what = format!("{count} processes of smbd on {}{how}{and}", ports_text(&ports));
        let packets = if also.is_some() { self.packet_buffer() } else { 0 };
        let memory = MemoryLimit::new(self.memory, packets + u64::from(ring_bytes));
        let from = std::iter::once(SAMBA.to_owned()).chain(also).collect();
        Ok(Opened { source: Box::new(source), from, what, filter: None, memory })
    }

    /// This build has no probe.
    #[cfg(not(feature = "probe"))]
    fn inside(&self, _: Option<live::Options>, _: i64, _: Verbosity) -> anyhow::Result<Opened> {
        Err(crate::exit::Failure::usage(
            "this smbscope was built without the probe (it needs Linux, clang, libelf and cargo's --features probe): record from a network interface with --interface",
        ))
    }
}

/// Says that a buffer is smaller than requested.
fn say_of_buffer(what: &str, has: u64, wanted: u64, verbosity: Verbosity) {
    if has < wanted {
        let [has, wanted] = [has, wanted].map(format::bytes);
        verbosity.say(&format!(
            "the buffer for {what} is {has} instead of {wanted} (--buffer), because --memory allows no more"
        ));
    }
}

/// Bytes of the ring buffer that fit, and those that `buffer` requests: events are shorter than packets.
#[cfg(feature = "probe")]
fn ring_bytes(buffer: u64, memory: u64) -> (u32, u32) {
    let wanted = (buffer / 4).clamp(RING_BYTES.0, RING_BYTES.1).next_power_of_two();
    let room = (memory / 4).max(RING_BYTES.0);
    // The largest power of two that is not larger.
    let fits = wanted.min((room / 2 + 1).next_power_of_two());
    let bytes = |count: u64| u32::try_from(count).unwrap_or(u32::MAX / 2 + 1);
    (bytes(fits), bytes(wanted))
}

/// A warning if probes of these functions are expensive, so that the user can decide.
#[cfg(feature = "probe")]
fn expensive<'a>(functions: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = functions.into_iter().collect();
    let list = names.join(", ");
    let one =
        "the way this Samba is compiled, a probe costs about 10 us per call instead of 1 us in";
    (!names.is_empty()).then(|| {
        format!("{one} {list}; use --no-functions to avoid this (docs/method/server-slices.md)")
    })
}

/// Whether the error is the probe's, so that the interface alone may work.
fn is_the_probes(error: &anyhow::Error) -> bool {
    #[cfg(feature = "probe")]
    {
        use smbscope_samba::recording::RecordError;
        let error = error.downcast_ref::<RecordError>();
        use RecordError::{Find, Load, Machine};
        matches!(error, Some(Machine(_) | Find(_) | Load(_)))
    }
    #[cfg(not(feature = "probe"))]
    {
        let _ = error;
        true
    }
}

/// Drops this program's capabilities: everything that needs them is open, and from here on it parses untrusted
/// input. It may still write below `out`, and below the folder `also`.
pub fn drop_capabilities(out: &Path, also: Option<&Path>, verbosity: Verbosity) {
    #[cfg(target_os = "linux")]
    {
        use crate::capabilities::{drop_all, restrict_files};
        if let Err(error) = drop_all(out) {
            verbosity.say(&format!("cannot drop capabilities: {error}"));
        }
        let writable: Vec<&Path> = std::iter::once(out).chain(also).collect();
        if let Err(error) = restrict_files(&writable) {
            verbosity.say(&format!("cannot give up access to other files: {error:#}"));
        }
    }
    // The thread that it starts inherits the current capabilities.
    memory::return_free_memory();
    #[cfg(not(target_os = "linux"))]
    let _ = (out, also, verbosity);
}

/// What the filter kept; `None` without a filter. `words` describe it.
pub fn kept(received: &Received, words: Option<&str>) -> Option<String> {
    let (Filtered { kept, all }, filter) = (received.filtered?, words?.to_owned());
    Some(Selection { filter, operations: kept, operations_all: Some(all) }.text())
}

/// Warnings about lost data.
pub fn losses(seen: &Received, memory: &MemoryLimit) -> Vec<String> {
    let mut said = Vec::new();
    if seen.has_ended {
        said.push(
            "the observed smbd has ended and was not started again: nothing was recorded after its end"
                .to_owned(),
        );
    }
    if memory.was_reached {
        said.push(
            "smbscope reached its memory limit and dropped data for a while: use a larger --memory"
                .to_owned(),
        );
    }
    if seen.packets.is_some_and(|packets| packets.dropped > 0) {
        said.push(PACKETS_DROPPED.to_owned());
    }
    if seen.events.is_some_and(|events| events.dropped > 0) {
        said.push(EVENTS_DROPPED.to_owned());
    }
    if seen.processors.is_some_and(|events| events.dropped > 0) {
        said.push(PROCESSORS_DROPPED.to_owned());
    }
    if let Some(alone) = seen.packets.map(|packets| packets.alone).filter(|alone| *alone > 0) {
        let alone = format::count(alone);
        said.push(format!("{alone} operations were seen on the wire only and left out: SMB1, or in flight when the recording began or ended"));
    }
    said
}

fn ports_text(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("TCP port {}", ports.join(", "))
}

#[cfg(all(test, feature = "probe"))]
mod tests {
    use super::*;

    #[test]
    fn the_ring_leaves_room_in_the_memory() {
        const M: u64 = 1 << 20;
        assert_eq!(ring_bytes(64 * M, 256 * M), (16 << 20, 16 << 20));
        // Otherwise the program would exceed its limit from the start and drop everything.
        assert_eq!(ring_bytes(1024 * M, 256 * M), (64 << 20, 128 << 20));
        assert_eq!(ring_bytes(1024 * M, 255 * M), (32 << 20, 128 << 20));
        assert_eq!(ring_bytes(1024 * M, 512 * M), (128 << 20, 128 << 20));
        assert_eq!(ring_bytes(0, 64 * M), (1 << 20, 1 << 20));
    }

    #[test]
    fn expensive_probes_are_one_line() {
        assert_eq!(expensive([]), None);
        let line = expensive(["one", "two"]).unwrap();
        assert!(line.contains("one, two") && !line.contains('\n'), "{line}");
    }
}
