//! Options that `record` and `top` share: what to observe and with which resources.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use smbscope_capture::live;

use crate::filter_options::FilterOptions;
use crate::options::size;

/// What to observe, and with which resources.
#[derive(Debug, Args)]
pub struct Listen {
    /// Which operations are shown or recorded.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// Also capture on this network interface; `any` captures on all interfaces.
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// Capture on the interface only, or record CPUs only (--cpu), without the probe inside
    /// Samba.
    #[arg(long, conflicts_with_all = ["processes", "cgroup"])]
    pub no_probe: bool,
    /// Probe Samba's system calls only, not its functions. This slows Samba down less, but
    /// encrypted sessions cannot be decoded, there are no signing and encryption times, and the
    /// slices of a compound are those of its first operation. Used automatically if the functions
    /// are not found.
    #[arg(long, conflicts_with = "no_probe")]
    pub no_functions: bool,
    /// Also measure the time in block devices (Linux 6.5 or later). Later write-back from the page
    /// cache is not attributed to a request.
    #[arg(long, conflicts_with = "no_probe")]
    pub disk: bool,
    /// Also measure the time that the threads of a request were off the CPU: waiting for a
    /// disk, for a memory page, or to be scheduled.
    #[arg(long, conflicts_with = "no_probe")]
    pub offcpu: bool,
    /// Observe only these smbd processes and their children.
    #[arg(long = "pid", value_name = "PID,...", value_delimiter = ',')]
    pub processes: Vec<u32>,
    /// Observe only smbd processes in this control group, for example /system.slice/smbd.service.
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Observe only the Samba of a lab (`smbscope lab up`): of the lab in DIR, or of the default lab.
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with_all = ["processes", "cgroup", "no_probe"])]
    #[allow(clippy::option_option)]
    pub lab: Option<Option<PathBuf>>,
    /// TCP ports of the server [default: the ports on which smbd listens; without the probe 445 and
    /// 139].
    #[arg(long = "port", value_name = "PORT,...", value_delimiter = ',')]
    pub ports: Vec<u16>,
    /// Bytes to capture of each packet, starting with the IP header. Content behind that is lost,
    /// for example the end of long names and later operations of a compound. Larger values cost
    /// more CPU time.
    #[arg(long, value_name = "BYTES", default_value_t = live::Options::default().head_bytes as u32, value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub snaplen: u32,
    /// Answer Prometheus at this address (or this port of 127.0.0.1), path /metrics: counters and
    /// histograms by operation, share and slice. Users, clients and paths are never labels.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub prometheus: Option<SocketAddr>,
    /// Kernel buffer for packets, if the system allows that size. The buffer for events of the
    /// probe is a quarter of it. Both are limited to a quarter of --memory.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub buffer: u64,
    /// Memory limit, in addition to the program's code. Above three quarters of it, smaller files
    /// are written more often; above the limit, new data is dropped and counted until memory is
    /// free again.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub memory: u64,
    /// Run smbscope on these CPUs only, for example 0,2 or 0-3. With --cpu it chooses those
    /// that interrupts of devices leave alone, and says so, if others are loaded by them.
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', value_parser = cpus)]
    pub cpus: Vec<Cpus>,
    /// How urgently smbscope runs: a nice value from 19 to -20 (the server comes first at 5), or
    /// fifo:1 to fifo:99, which runs before everything that is not real-time. Interrupts run before
    /// both: choose other CPUs with --cpus [default: 5; with --cpu -10].
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true, value_parser = priority)]
    pub priority: Option<Priority>,
}

/// An address with its port, or a port of this machine.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(([127, 0, 0, 1], port).into());
    }
    text.parse().map_err(|_| {
        format!("`{text}` is not an address with a port; write for example 9950 or 192.0.2.1:9950")
    })
}

/// How urgently this program runs: sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Nice(i32),
    /// `SCHED_FIFO`.
    Fifo(u8),
}

fn priority(text: &str) -> Result<Priority, String> {
    let parsed = match text.strip_prefix("fifo:") {
        Some(fifo) => fifo.parse().ok().filter(|fifo| (1..=99).contains(fifo)).map(Priority::Fifo),
        None => text.parse().ok().filter(|nice| (-20..=19).contains(nice)).map(Priority::Nice),
    };
    parsed.ok_or_else(|| {
        format!("`{text}` is neither a nice value (-20 to 19) nor fifo:1 to fifo:99")
    })
}

/// A range of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub RangeInclusive<usize>);

fn cpus(text: &str) -> Result<Cpus, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(Cpus(first..=last)),
        _ => Err(format!("`{text}` is not a CPU or a range; write for example 0,2 or 0-3")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpus("2").unwrap(), Cpus(2..=2));
        assert_eq!(cpus("0-3").unwrap(), Cpus(0..=3));
        for text in ["", "-", "3-0", "a", "0-", "-1", "0-1-2"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_have_a_port() {
        assert_eq!(address("9950").unwrap().to_string(), "127.0.0.1:9950");
        assert_eq!(address(":9950").unwrap().to_string(), "127.0.0.1:9950");
        assert_eq!(address("[::1]:9950").unwrap().to_string(), "[::1]:9950");
        for text in ["", "localhost", "192.0.2.1", "70000", "192.0.2.1:x"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn priorities_are_nice_values_or_real_time() {
        assert_eq!(priority("-10"), Ok(Priority::Nice(-10)));
        assert_eq!(priority("fifo:1"), Ok(Priority::Fifo(1)));
        for text in ["", "20", "-21", "fifo:0", "fifo:100", "fifo", "high"] {
            assert!(priority(text).is_err(), "{text}");
        }
    }
}
