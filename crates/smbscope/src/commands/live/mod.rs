//! What happens on a server now: what `record` and `top` share.
//!
//! Owns what is looked at ([`args`], [`source`]), how this program steps back behind the server, and
//! the [`folder`] that rows go to. How packets are received is `capture::live`'s, how Samba is
//! looked into `probe`'s.

pub mod args;
pub mod folder;
pub mod source;

use std::path::PathBuf;
use std::time::SystemTime;

use smbscope_capture::live;
use smbscope_report::format;

use args::Listen;
use source::{Source, Wire};

/// Ports of SMB.
const WIRE_PORTS: [u16; 2] = [445, 139];
/// Bytes of the ring buffer, least and most.
#[cfg(feature = "probe")]
const RING_BYTES: (u64, u64) = (1 << 20, 128 << 20);
/// By how much this program steps back behind the server.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

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

impl Listen {
    /// Opens what is looked at, and says what that is. Rows carry the name `recording`.
    pub fn open(
        &self,
        recording: &str,
        kept: Option<Kept>,
    ) -> anyhow::Result<(Box<dyn Source>, String)> {
        match &self.interface {
            Some(interface) => self.wire(interface, recording, kept),
            None => self.inside(recording),
        }
    }

    /// What recordings are called after.
    pub fn from(&self) -> &str {
        self.interface.as_deref().unwrap_or("samba")
    }

    /// What to say when something was lost.
    pub fn dropped(&self) -> &'static str {
        if self.interface.is_some() { PACKETS_DROPPED } else { EVENTS_DROPPED }
    }

    /// A network interface.
    fn wire(
        &self,
        interface: &str,
        recording: &str,
        kept: Option<Kept>,
    ) -> anyhow::Result<(Box<dyn Source>, String)> {
        let ports = if self.ports.is_empty() { WIRE_PORTS.to_vec() } else { self.ports.clone() };
        let what = format!("{} on {interface}", ports_text(&ports));
        let options = live::Options {
            interface: interface.to_owned(),
            ports,
            head_bytes: self.snaplen as usize,
            buffer_bytes: usize::try_from(self.buffer).unwrap_or(usize::MAX),
            overwrite: kept.as_ref().is_some_and(|kept| kept.overwrite),
            pcap: kept.map(|kept| kept.path),
        };
        Ok((Box::new(Wire::open(recording, &options)?), what))
    }

    /// The running Samba.
    #[cfg(feature = "probe")]
    fn inside(&self, recording: &str) -> anyhow::Result<(Box<dyn Source>, String)> {
        use smbscope_probe::find::Choice;
        use smbscope_probe::loader::LoadOptions;
        let choice = Choice {
            processes: self.processes.clone(),
            ports: self.ports.clone(),
            cgroup: self.cgroup.clone(),
        };
        let ring = self.buffer.clamp(RING_BYTES.0, RING_BYTES.1).next_power_of_two();
        let ring_bytes = u32::try_from(ring).unwrap_or(u32::MAX / 2 + 1);
        let load = LoadOptions { ring_bytes, ..LoadOptions::default() };
        let source = source::Inside::open(recording, &choice, load)?;
        let found = source.found();
        let ports: Vec<u16> = found.ports.iter().copied().collect();
        let count = found.processes.len();
        let what = format!("{count} processes of smbd on {}", ports_text(&ports));
        Ok((Box::new(source), what))
    }

    /// This build has no probe.
    #[cfg(not(feature = "probe"))]
    fn inside(&self, _: &str) -> anyhow::Result<(Box<dyn Source>, String)> {
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
                for &cpu in self.cpus.iter().filter(|&&cpu| cpu < rustix::thread::CpuSet::MAX_CPU) {
                    cpus.set(cpu);
                }
                rustix::thread::sched_setaffinity(None, &cpus).map_err(|error| {
                    let asked: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
                    let message =
                        format!("--cpus {}: {error}: is there such a processor?", asked.join(","));
                    crate::exit::Failure::usage(message)
                })?;
            }
        }
        Ok(())
    }
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
}
