//! The options of `smbscope record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::commands::live::args::Listen;
use crate::options::{Anonymize, duration};

/// Record a server's operations while they happen.
///
/// It looks into the running Samba (eBPF; nothing is restarted, rebuilt or configured) and writes one
/// row per request with the server's own slices: from the arrival in the kernel through Samba's work,
/// file-system calls, reads and writes on other threads, waits for locks and breaks, signing and
/// encryption to the reply's departure. Encrypted sessions are seen in clear. Needs root (or CAP_BPF
/// and CAP_PERFMON, before Linux 6.6 CAP_SYS_ADMIN for Samba's functions), Linux 6.1 and Samba 4.13 or
/// later; `smbscope doctor` says what is missing.
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
    #[command(flatten)]
    pub listen: Listen,
    /// Folder to write: a new or an empty one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
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
    #[command(flatten)]
    pub anonymize: Anonymize,
}
