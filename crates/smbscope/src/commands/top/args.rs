//! The options of `smbscope top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use smbscope_analysis::live::{Key, Sort, Span};

use crate::choices::one_of;
use crate::commands::live::args::Listen;
use crate::format::TextFormat;
use crate::options::{Anonymize, duration};

/// Show the current activity of a server.
///
/// Every second, `top` shows the operations of the last second: their number, the bytes read and
/// written, errors, percentiles of the turnaround (from the last byte of the request to the first
/// byte of the reply), and where the time went. Operations are grouped by command, share, client,
/// file, user or smbd process. Operations that wait by design (change notifications, blocked locks)
/// are counted, but their waiting time is not. `top` observes the running Samba, and with
/// --interface also the network, in the same way and with the same requirements as `smbscope
/// record`.
///
/// On the screen, keys select the grouping, the order and a filter, pause the display, and start a
/// recording like that of `smbscope record`; press ? for the list. Such a recording starts
/// mid-stream: it holds the operations that ended while it ran, and the sessions, trees and opens
/// known by then.
///
/// If standard output is not a terminal, or with --batch, a table is printed at each interval.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope top
  smbscope top --by user --sort p99
  smbscope top --interface eth0 --by share
  smbscope top --cpu
  smbscope top --batch --count 1 --interval 10s --by file --rows 5
  smbscope top --by file --anonymize --out shown/
  smbscope top --interface any --batch --format json | jq .total.operations")]
pub struct Top {
    #[command(flatten)]
    pub listen: Listen,
    /// How to group operations.
    #[arg(long, value_name = "KEY", default_value = Key::default().name(),
        value_parser = one_of(&Key::ALL, Key::name, key_help))]
    pub by: Key,
    /// Column to sort by, largest value first.
    #[arg(long, value_name = "COLUMN", default_value = Sort::default().name(),
        value_parser = one_of(&Sort::ALL, Sort::name, sort_help))]
    pub sort: Sort,
    /// Reverse the order.
    #[arg(long)]
    pub reverse: bool,
    /// Show only groups whose name contains this text, ignoring case.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Length of an interval, from 100ms to 1h.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Show the last ten intervals combined instead of the last one.
    #[arg(long)]
    pub window: bool,
    /// Show the CPUs of this machine instead of operations: the time of each in programs, in
    /// the kernel, in softirqs and in handlers of interrupts, what takes most of it, and the packets
    /// of network devices. Needs the same as `smbscope record --cpu`.
    #[arg(long, conflicts_with_all = ["interface", "no_probe", "by", "sort", "reverse", "filter", "window", "out", "anonymize"])]
    pub cpu: bool,
    /// Print tables instead of showing a screen.
    #[arg(long)]
    pub batch: bool,
    /// Maximum number of groups in a printed table.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Output format; json prints one object per interval and shows no screen.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    /// Stop after N intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Stop after this time (30s, 10m).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Folder for recordings started with the key R; it must be empty or not exist. More
    /// recordings go to DIR-2, DIR-3 ... [default: smbscope-top-TIME in the current folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

impl Top {
    /// The time that is shown together.
    pub fn span(&self) -> Span {
        if self.window { Span::Window } else { Span::Slot }
    }
}

/// How `--help` describes a grouping.
fn key_help(key: Key) -> &'static str {
    match key {
        Key::Command => "SMB command",
        Key::Share => "Share",
        Key::Client => "Address of the client",
        Key::File => "Share and path of the file",
        Key::User => "User of the session",
        Key::Process => "Process of smbd (not for rows from an interface)",
    }
}

/// How `--help` describes an order.
fn sort_help(sort: Sort) -> &'static str {
    match sort {
        Sort::Name => "Name of the group",
        Sort::Operations => "Number of operations",
        Sort::Bytes => "Bytes read and written",
        Sort::Errors => "Number of failed operations",
        Sort::P50 => "Median of the turnaround",
        Sort::P95 => "95th percentile of the turnaround",
        Sort::P99 => "99th percentile of the turnaround",
        Sort::Max => "Maximum of the turnaround",
        Sort::Time => "Sum of the turnaround",
    }
}

/// Parses the interval. Below a tenth of a second the screen would only flicker.
fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < Duration::from_millis(100) => Err("must be at least 100ms".to_owned()),
        long if long > Duration::from_secs(3600) => Err("must be at most 1h".to_owned()),
        interval => Ok(interval),
    }
}
