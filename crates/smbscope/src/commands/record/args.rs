//! The options of `smbscope record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::windows::What;
use crate::commands::live::args::Listen;
use crate::options::{Anonymize, duration};
use crate::pipeline::record::ring::Condition;

/// Record the operations of a running server.
///
/// The recorder attaches eBPF probes to the running Samba, which needs no restart, rebuild or
/// change of configuration. It writes one row per operation with the time spent in each part of the
/// server, from the arrival of the request in the kernel to the departure of the reply: Samba's own
/// processing, file-system calls, reads and writes on other threads, waits for locks and breaks,
/// signing and encryption. Encrypted sessions are recorded in plaintext. This needs Linux 6.1 or
/// later, Samba 4.13 or later, and root (or CAP_BPF and CAP_PERFMON; before Linux 6.6 also
/// CAP_SYS_ADMIN to probe Samba's functions). `smbscope doctor` shows what is missing.
///
/// With --interface it also captures on a network interface. The row of an operation then has both:
/// the times inside Samba, and the times, lengths, round trips and retransmissions on the network.
/// Without a Samba on this machine (on a client, or at a mirror port of a switch), or with
/// --no-probe, rows come from the interface only; encrypted operations then have no command.
/// Whether the recorder runs on the server or on a client is detected from the addresses of the
/// machine. With `any`, a packet that passes several interfaces (such as a bridge and its members)
/// counts on the first one only. Capturing needs Linux and CAP_NET_RAW (or root).
///
/// The result is a dataset like that of `smbscope import`, which all other commands read. Packets
/// and file contents are not stored, only names and sizes, and only the owner can read the files.
/// With --cpu it also records what the CPUs do instead of running threads: handlers of
/// interrupts, softirqs and polls of network devices, one row each, and samples of the code that
/// runs. This needs Linux 5.12 or later, and root (or CAP_BPF, CAP_PERFMON and CAP_SYSLOG). Memory
/// is fixed, smbscope runs on CPUs that interrupts leave alone, and `smbscope report` shows
/// which driver holds which CPUs.
///
/// Data is written every second: a recording that is killed loses the last second
/// and the tables that are written at the end (sessions, trees, coverage); Ctrl-C stops it cleanly.
/// Losses are counted and shown by `smbscope report`: packets and events dropped by the kernel
/// because smbscope was too slow, and data that could not be decoded.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope record --out run/
  smbscope record --duration 60s --out run/ --anonymize
  smbscope record --port 4450 --cpus 1 --out run/
  smbscope record --lab --duration 60s --out run/
  smbscope record --last 10m --when 'p95>200ms' --out slow/
  smbscope record --interface eth0 --duration 60s --out run/
  smbscope record --cpu --no-probe --duration 20s --out cpu/
  smbscope record --print-windows-script --node 1 --duration 20s --to 'S:\\temp' > cpu.cmd
  smbscope record --print-windows-script --what smb --duration 60s --to 'S:\\temp' > smb.cmd
  smbscope record --print-windows-script --what smb-client --to 'S:\\temp' > client.cmd
  smbscope record --windows --what smb --duration 60s --out S:\\temp
  smbscope record --interface eth0 --no-probe --port 445,4450 --out run/ --pcap run.pcap
  smbscope report run/")]
pub struct Record {
    #[command(flatten)]
    pub listen: Listen,
    /// Folder to write to; it must be empty or not exist.
    #[arg(long, value_name = "DIR", required_unless_present = "print_windows_script")]
    pub out: Option<PathBuf>,
    /// Stop after this time (30s, 10m) instead of at Ctrl-C.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Keep only the last part of the recording, such as 10m: it continues until Ctrl-C, --duration or --when, and
    /// overwrites what is older. The folder then contains several recordings that are read together.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "out", conflicts_with_all = ["cpu", "pcap", "print_windows_script"])]
    pub last: Option<Duration>,
    /// End with what --last keeps soon after this is true for the operations of the last ten seconds: p95>200ms
    /// (mean, p50, p95, p99 or max).
    #[arg(long, value_name = "CONDITION", requires = "last")]
    pub when: Option<Condition>,
    /// Replace an existing dataset in the folder, and an existing --pcap file.
    #[arg(long)]
    pub force: bool,
    /// Also write the packets to this file. Headers, names and logon exchanges are kept; file
    /// contents and everything else that decoding does not need are overwritten with zeros.
    #[arg(long, value_name = "FILE", conflicts_with = "anonymize", requires = "interface")]
    pub pcap: Option<PathBuf>,
    /// Also record the CPUs of this machine: each interrupt, softirq and poll of a network
    /// device with its duration, and samples of the kernel's code. Without a Samba, or with
    /// --no-probe, CPUs are recorded alone.
    #[arg(long)]
    pub cpu: bool,
    /// Samples each second on each CPU; 0 for none. The recorder takes fewer when it needs
    /// more than 3 % of one CPU itself.
    #[arg(long, value_name = "HZ", default_value_t = 99, requires = "cpu", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub samples: u32,
    /// What the kernel records CPUs with: ebpf; tracefs, where the kernel's configuration does not allow eBPF;
    /// auto tries them in this order.
    #[arg(long, value_enum, value_name = "TRACER", default_value_t, requires = "cpu")]
    pub tracer: Tracer,
    /// Also record every context switch, which shows the exact time of threads and of idling, and
    /// costs more.
    #[arg(long, requires = "cpu")]
    pub switches: bool,
    /// Print a script that records on a Windows server, and end. Its results are read by `smbscope report` on any
    /// system. The folder of the server that it writes to is that of --out, or of --to.
    #[arg(long, conflicts_with_all = ["cpu", "interface"], group = "script")]
    pub print_windows_script: bool,
    /// Run that script on this machine (Windows, as administrator), into the folder of --out.
    #[arg(long, conflicts_with_all = ["cpu", "interface", "print_windows_script"], group = "script")]
    pub windows: bool,
    /// What that script records.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, requires = "script")]
    pub what: What,
    /// NUMA node on which the script runs: one that network adapters do not interrupt.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "script", value_parser = clap::value_parser!(u32).range(0..=255))]
    pub node: u32,
    /// Let the script wait until a CPU spends this percentage of its time in DPCs (`% DPC Time`), then record.
    #[arg(long, value_name = "PERCENT", requires = "script", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub wait_dpc: Option<u32>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// See [`Record::tracer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Tracer {
    #[default]
    Auto,
    Ebpf,
    Tracefs,
}

#[cfg(feature = "probe")]
impl From<Tracer> for smbscope_trace::record::Tracer {
    fn from(tracer: Tracer) -> smbscope_trace::record::Tracer {
        match tracer {
            Tracer::Auto => smbscope_trace::record::Tracer::Auto,
            Tracer::Ebpf => smbscope_trace::record::Tracer::Ebpf,
            Tracer::Tracefs => smbscope_trace::record::Tracer::Tracefs,
        }
    }
}
