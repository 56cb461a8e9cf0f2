//! What `record` and `top` look at: their options in common.

use std::ops::RangeInclusive;

use clap::Args;
use smbscope_capture::live;

use crate::options::size;

/// What to look at, and with which means.
#[derive(Debug, Args)]
pub struct Listen {
    /// Listen on this network interface too; `any` for all.
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// Do not look into Samba, only at the interface.
    #[arg(long, requires = "interface", conflicts_with_all = ["processes", "cgroup"])]
    pub no_probe: bool,
    /// Do not look at Samba's functions, only at its system calls: costs it less, and says less (no
    /// encrypted sessions, no crypto; a compound's slices stand on its lead). What is done where the
    /// functions are not found.
    #[arg(long, conflicts_with = "no_probe")]
    pub no_functions: bool,
    /// Measure the time that block devices took, too (Linux 6.5). What is written later, from the
    /// page cache, is no request's.
    #[arg(long, conflicts_with = "no_probe")]
    pub disk: bool,
    /// Measure the time that a request's threads were off the processor, too: waiting for a disk, for a
    /// page, or for their turn.
    #[arg(long, conflicts_with = "no_probe")]
    pub offcpu: bool,
    /// Only these processes of smbd and their children.
    #[arg(long = "pid", value_name = "PID,...", value_delimiter = ',')]
    pub processes: Vec<u32>,
    /// Only smbd in this control group (/system.slice/smbd.service).
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// TCP ports of the server. Without it: those on which smbd listens, on an interface alone 445 and 139.
    #[arg(long = "port", value_name = "PORT,...", value_delimiter = ',')]
    pub ports: Vec<u16>,
    /// Bytes of a packet that are looked at, from the IP header on. What stands behind is not seen: long
    /// names, what later members of a compound are. With more, packets cost more.
    #[arg(long, value_name = "BYTES", default_value_t = live::Options::default().head_bytes as u32, value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub snaplen: u32,
    /// Memory for packets that wait, if the system allows (64MiB); for events a quarter of it. At most a
    /// quarter of --memory each.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub buffer: u64,
    /// Memory that smbscope may have, beside its own code. From three quarters of it on it writes
    /// smaller parts, more often; beyond it what comes is dropped, and counted, until what is written has
    /// made room.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub memory: u64,
    /// Run on these processors only (0,2 or 0-3).
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', value_parser = cpus)]
    pub cpus: Vec<Cpus>,
}

/// Processors from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub RangeInclusive<usize>);

fn cpus(text: &str) -> Result<Cpus, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(Cpus(first..=last)),
        _ => Err(format!("`{text}` is no processor; write for example 0,2 or 0-3")),
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
}
