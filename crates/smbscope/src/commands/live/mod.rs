//! What happens on a server now: what `record` and `top` share.
//!
//! Owns what is looked at ([`args`], [`source`]), how this program steps back behind the server, and
//! the [`folder`] that rows go to. How packets are received is `capture::live`'s, how Samba is
//! looked into `samba`'s.

pub mod args;
pub mod folder;
pub mod memory;
pub mod source;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use smbscope_capture::live;
use smbscope_report::format;

use crate::options::Talk;
use args::{Cpus, Listen};
use memory::Limit;
use source::{Seen, Source, Wire};

/// Bytes of the ring buffer, least and most.
#[cfg(feature = "probe")]
const RING_BYTES: (u64, u64) = (1 << 20, 128 << 20);
/// Least memory that this program may have.
const MEMORY_MIN: u64 = 64 << 20;
/// By how much this program steps back behind the server.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// What recordings from inside are called after.
#[cfg(feature = "probe")]
const SAMBA: &str = "samba";

const EVENTS_DROPPED: &str = "events were dropped, so operations are missing or have no slices: run it with a larger --buffer, or give smbscope more processor time (--cpus)";

const PACKETS_DROPPED: &str = "packets were dropped, so operations are missing or have no reply: listen on one interface, with a larger --buffer (beyond net.core.rmem_max for root only) or a smaller --snaplen";

/// A file that keeps packets.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is replaced.
    pub overwrite: bool,
}

/// What is looked at.
pub struct Opened {
    /// Yields rows.
    pub source: Box<dyn Source>,
    /// What recordings of it are called after, and what is recorded beside it.
    pub from: Vec<String>,
    /// What it is, for people.
    pub what: String,
    /// What this program may hold of memory meanwhile.
    pub memory: Limit,
}

impl Listen {
    /// Opens the probe, the interface, or both in one. `time` becomes part of the recording's name.
    pub fn open(&self, time: i64, kept: Option<Kept>, talk: Talk) -> anyhow::Result<Opened> {
        if self.memory < MEMORY_MIN {
            let (asked, least) = (format::bytes(self.memory), format::bytes(MEMORY_MIN));
            return Err(crate::exit::Failure::usage(format!(
                "--memory {asked}: smbscope itself takes most of that, and would drop everything; {least} is the least"
            )));
        }
        let Some(interface) = &self.interface else {
            return self.inside(None, time, talk);
        };
        say_of_buffer("packets", self.packet_buffer(), self.buffer, talk);
        if !self.no_probe {
            let listening = self.listening(interface, &self.ports, kept.clone());
            match self.inside(Some(listening), time, talk) {
                Ok(opened) => return Ok(opened),
                Err(error) if self.asks_for_probe() || !is_the_probes(&error) => return Err(error),
                Err(error) => talk.say(&format!("without the server's slices: {error:#}")),
            }
        }
        self.wire(interface, time, kept)
    }

    /// Whether the interface alone is not what was asked for.
    fn asks_for_probe(&self) -> bool {
        !self.processes.is_empty() || self.cgroup.is_some()
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

    /// Memory for packets that wait: what is asked for, as far as there is some left for their rows.
    fn packet_buffer(&self) -> u64 {
        self.buffer.min(self.memory / 4)
    }

    /// A network interface alone.
    fn wire(&self, interface: &str, time: i64, kept: Option<Kept>) -> anyhow::Result<Opened> {
        let recording = name(interface, time);
        let ports = if self.ports.is_empty() { &live::PORTS[..] } else { &self.ports };
        let what = format!("{} on {interface}", ports_text(ports));
        let source = Wire::open(&recording, &self.listening(interface, ports, kept))?;
        let memory = Limit::new(self.memory, self.packet_buffer());
        Ok(Opened { source: Box::new(source), from: vec![interface.to_owned()], what, memory })
    }

    /// The running Samba, with what an interface shows of it.
    #[cfg(feature = "probe")]
    fn inside(
        &self,
        interface: Option<live::Options>,
        time: i64,
        talk: Talk,
    ) -> anyhow::Result<Opened> {
        use smbscope_samba::find::Choice;
        use smbscope_samba::loader::LoadOptions;
        use smbscope_samba::recording::RecordError;
        let choice = Choice {
            processes: self.processes.clone(),
            ports: self.ports.clone(),
            cgroup: self.cgroup.clone(),
        };
        let (ring_bytes, wanted_bytes) = ring_bytes(self.buffer, self.memory);
        say_of_buffer("events", ring_bytes.into(), wanted_bytes.into(), talk);
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
            source::Inside::open(&recording, &choice, load, interface).map_err(|error| {
                match error {
                    // Says itself how the program ends.
                    RecordError::Wire(error) => anyhow::Error::from(error),
                    error => error.into(),
                }
            })?;
        if let Some(line) = expensive(source.expensive()) {
            talk.say(&line);
        }
        let found = source.found();
        let ports: Vec<u16> = found.ports.iter().copied().collect();
        let count = found.processes.len();
        let how = source.without_functions().map_or(String::new(), |reason| {
            format!(" by system calls alone ({reason}; encrypted sessions stay closed)")
        });
        let and = also.as_ref().map_or(String::new(), |interface| format!(", and on {interface}"));
        let what = format!("{count} processes of smbd on {}{how}{and}", ports_text(&ports));
        let packets = if also.is_some() { self.packet_buffer() } else { 0 };
        let memory = Limit::new(self.memory, packets + u64::from(ring_bytes));
        let from = std::iter::once(SAMBA.to_owned()).chain(also).collect();
        Ok(Opened { source: Box::new(source), from, what, memory })
    }

    /// This build has no probe.
    #[cfg(not(feature = "probe"))]
    fn inside(&self, _: Option<live::Options>, _: i64, _: Talk) -> anyhow::Result<Opened> {
        Err(crate::exit::Failure::usage(
            "this smbscope was built without its probe (it needs Linux, clang and libelf, and cargo's --features probe): look at the wire with --interface",
        ))
    }

    /// The server comes first: it gets the processor before this program does, and `--cpus` keeps
    /// this off the others.
    pub fn keep_back(&self) -> anyhow::Result<()> {
        #[cfg(target_os = "linux")]
        {
            // Where it may not, it works all the same.
            let _ = rustix::process::nice(NICE);
            if !self.cpus.is_empty() {
                let mut cpus = rustix::thread::CpuSet::new();
                for Cpus(asked) in &self.cpus {
                    let last = (*asked.end()).min(rustix::thread::CpuSet::MAX_CPU - 1);
                    (*asked.start()..=last).for_each(|cpu| cpus.set(cpu));
                }
                rustix::thread::sched_setaffinity(None, &cpus).map_err(|error| {
                    crate::exit::Failure::usage(format!(
                        "--cpus: {error}: are there such processors?"
                    ))
                })?;
            }
        }
        Ok(())
    }
}

/// Says that something has less memory to wait in than was asked for.
fn say_of_buffer(what: &str, has: u64, wanted: u64, talk: Talk) {
    if has < wanted {
        let [has, wanted] = [has, wanted].map(format::bytes);
        talk.say(&format!(
            "{what} have {has} of memory to wait in, not {wanted} (--buffer): --memory allows no more"
        ));
    }
}

/// Bytes of the ring buffer that fit, and those that `buffer` asks for: events are shorter than packets.
#[cfg(feature = "probe")]
fn ring_bytes(buffer: u64, memory: u64) -> (u32, u32) {
    let wanted = (buffer / 4).clamp(RING_BYTES.0, RING_BYTES.1).next_power_of_two();
    let room = (memory / 4).max(RING_BYTES.0);
    // The greatest power of two that is no more.
    let fits = wanted.min((room / 2 + 1).next_power_of_two());
    let bytes = |count: u64| u32::try_from(count).unwrap_or(u32::MAX / 2 + 1);
    (bytes(fits), bytes(wanted))
}

/// What looking costs more than it should, if anything: whoever runs it decides.
#[cfg(feature = "probe")]
fn expensive<'a>(functions: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = functions.into_iter().collect();
    let list = names.join(", ");
    let one =
        "this Samba is compiled so that a probe costs some 10 us instead of 1 at each call of";
    (!names.is_empty()).then(|| {
        format!("{one} {list} (docs/method/server-slices.md; --no-functions does without)")
    })
}

/// Whether the interface alone may do better.
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

/// What this program needed rights for is open; from here on it reads what strangers send. Below
/// `out` it goes on to write.
pub fn give_up_rights(out: &Path, talk: Talk) {
    #[cfg(target_os = "linux")]
    if let Err(error) = crate::rights::give_up(out) {
        talk.say(&format!("the program's capabilities could not be given up: {error}"));
    }
    // Its thread has the rights that there are now.
    memory::give_back();
    #[cfg(not(target_os = "linux"))]
    let _ = (out, talk);
}

/// What to say of what was lost.
pub fn lost(seen: &Seen, memory: &Limit) -> Vec<String> {
    let mut said = Vec::new();
    if memory.was_reached {
        said.push("smbscope had the memory that it may have (--memory), so what came was dropped for a while: give it more".to_owned());
    }
    if seen.packets.is_some_and(|packets| packets.dropped > 0) {
        said.push(PACKETS_DROPPED.to_owned());
    }
    if seen.events.is_some_and(|events| events.dropped > 0) {
        said.push(EVENTS_DROPPED.to_owned());
    }
    if let Some(alone) = seen.packets.map(|packets| packets.alone).filter(|alone| *alone > 0) {
        let alone = format::count(alone);
        said.push(format!("{alone} operations were seen on the wire only and left out: SMB1, or under way when the recording began or ended"));
    }
    said
}

/// Names of the inputs of a recording that begins at `time`: its own, and what is beside it.
pub fn inputs(from: &[String], time: i64) -> Vec<String> {
    let own = from.first().map(|from| name(from, time));
    own.into_iter().chain(from.iter().skip(1).cloned()).collect()
}

/// The name of a recording: two that are read together need two.
pub fn name(from: &str, time: i64) -> String {
    format!("{from}-{}", stamp(time))
}

/// A time as digits: year, month, day, hour, minute, second.
pub fn stamp(time: i64) -> String {
    format::time(time).chars().filter(char::is_ascii_digit).take(14).collect()
}

/// Nanoseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0))
}

fn ports_text(ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("TCP port {}", ports.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_called_by_interface_and_time() {
        assert_eq!(name("eth0", 1_767_603_600 * 1_000_000_000), "eth0-20260105090000");
    }

    #[cfg(feature = "probe")]
    #[test]
    fn the_ring_leaves_room_in_the_memory() {
        const M: u64 = 1 << 20;
        assert_eq!(ring_bytes(64 * M, 256 * M), (16 << 20, 16 << 20));
        // The program would have had more than it may from the beginning on, and dropped everything.
        assert_eq!(ring_bytes(1024 * M, 256 * M), (64 << 20, 128 << 20));
        assert_eq!(ring_bytes(1024 * M, 255 * M), (32 << 20, 128 << 20));
        assert_eq!(ring_bytes(1024 * M, 512 * M), (128 << 20, 128 << 20));
        assert_eq!(ring_bytes(0, 64 * M), (1 << 20, 1 << 20));
    }

    #[cfg(feature = "probe")]
    #[test]
    fn what_is_expensive_is_said_in_a_line() {
        assert_eq!(expensive([]), None);
        let line = expensive(["one", "two"]).unwrap();
        assert!(line.contains("one, two") && !line.contains('\n'), "{line}");
    }
}
