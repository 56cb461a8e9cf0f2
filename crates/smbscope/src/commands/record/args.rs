//! The options of `smbscope record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use smbscope_capture::live;

use crate::options::{Anonymize, duration, size};

/// Record a server's operations while they happen.
///
/// It listens on a network interface and writes a dataset as `smbscope import` does: one row per
/// operation, which report, query and ops read. Packets are not kept, of files nothing but names and
/// sizes. Where it runs on the server (or the client) it knows so by the machine's addresses. A part
/// of each table is complete at least every ten seconds: a recording that was killed lacks seconds,
/// and what is told at the end only (connections, sessions, trees, coverage). Ctrl-C ends it well.
///
/// What is lost is counted: packets that the kernel dropped because smbscope was late (shown as
/// dropped), and what decoding did not understand (`smbscope report`). Encrypted traffic gives rows
/// without command. On `any`, a packet that passes several interfaces (a bridge and its members) counts
/// where it was seen first. Needs CAP_NET_RAW (root) and Linux. Only their owner can read the files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope record --interface eth0 --out run/
  smbscope record --interface any --duration 60s --out run/ --anonymize
  smbscope record --interface eth0 --port 445,4450 --out run/ --pcap run.pcap
  smbscope report run/")]
pub struct Record {
    /// Listen on this network interface; `any` for all.
    #[arg(long, value_name = "IF")]
    pub interface: String,
    /// Folder to write: a new or an empty one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// TCP ports of the server.
    #[arg(
        long = "port",
        value_name = "PORT,...",
        value_delimiter = ',',
        default_value = "445,139"
    )]
    pub ports: Vec<u16>,
    /// End after this time (10m, 30s) instead of waiting for Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Replace a dataset that is in the folder, and the file of --pcap.
    #[arg(long)]
    pub force: bool,
    /// Keep the packets in this file too, zeroed but for headers and what decoding reads: names, and
    /// the exchanges of logons, but no contents of files.
    #[arg(long, value_name = "FILE", conflicts_with = "anonymize")]
    pub pcap: Option<PathBuf>,
    /// Bytes of a packet that are looked at, from the IP header on. What stands behind is not seen: long
    /// names, later members of a compound (which then have no reply). With more, packets cost more.
    #[arg(long, value_name = "BYTES", default_value_t = live::Options::default().head_bytes as u32, value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub snaplen: u32,
    /// Memory for packets that wait (64MiB), if the system allows.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub buffer: u64,
    #[command(flatten)]
    pub anonymize: Anonymize,
}
