//! The options of `smbscope record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use smbscope_capture::live;

use crate::options::{Anonymize, duration, size};

/// Record a server's operations while they happen.
///
/// It looks into the running Samba (eBPF; nothing is restarted, rebuilt or configured) and writes one
/// row per request with the server's own slices: from the arrival in the kernel through Samba's work,
/// file-system calls, reads and writes on other threads, waits for locks and breaks, signing and
/// encryption to the reply's departure. Encrypted sessions are seen in clear. Needs root (or CAP_BPF
/// and CAP_PERFMON), Linux 6.3 and Samba 4.13 or later; `smbscope doctor` says what is missing.
///
/// With --interface it listens on a network interface too, and a row has both: the slices inside
/// Samba, and the times, lengths, round trips and retransmissions on the wire. Where no Samba runs (on
/// a client, beside a switch), or with --no-probe, the interface alone makes rows; then encrypted
/// traffic gives rows without command. Where it runs on the server or the client it knows so by the
/// machine's addresses. On `any`, a packet that passes several interfaces (a bridge and its members)
/// counts where it was seen first. Needs CAP_NET_RAW (root) and Linux.
///
/// Either writes a dataset as `smbscope import` does: one row per operation, which report, query and
/// ops read. Packets are not kept, of files nothing but names and sizes. A part of each table is
/// complete at least every ten seconds: a recording that was killed lacks seconds, and what is told at
/// the end only (sessions, trees, coverage). Ctrl-C ends it well. What is lost is counted: packets or
/// events that the kernel dropped because smbscope was late, and what decoding did not understand
/// (`smbscope report`). Only their owner can read the files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope record --out run/
  smbscope record --duration 60s --out run/ --anonymize
  smbscope record --port 4450 --cpus 1 --out run/
  smbscope record --interface eth0 --duration 60s --out run/
  smbscope record --interface eth0 --no-probe --port 445,4450 --out run/ --pcap run.pcap
  smbscope report run/")]
pub struct Record {
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
    /// Folder to write: a new or an empty one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// TCP ports of the server. Without it: those on which smbd listens, on an interface alone 445 and 139.
    #[arg(long = "port", value_name = "PORT,...", value_delimiter = ',')]
    pub ports: Vec<u16>,
    /// End after this time (10m, 30s) instead of waiting for Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Replace a dataset that is in the folder, and the file of --pcap.
    #[arg(long)]
    pub force: bool,
    /// Keep the packets in this file too, zeroed but for headers and what decoding reads: names, and
    /// the exchanges of logons, but no contents of files.
    #[arg(long, value_name = "FILE", conflicts_with = "anonymize", requires = "interface")]
    pub pcap: Option<PathBuf>,
    /// Bytes of a packet that are looked at, from the IP header on. What stands behind is not seen: long
    /// names, later members of a compound (which then have no reply). With more, packets cost more.
    #[arg(long, value_name = "BYTES", default_value_t = live::Options::default().head_bytes as u32, value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub snaplen: u32,
    /// Memory for packets or events that wait (64MiB), if the system allows.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub buffer: u64,
    /// Run on these processors only (0,2).
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}
