//! The options of `smbscope top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use smbscope_analysis::live::{Key, Sort, Span};

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
  smbscope top --batch --count 1 --interval 10s --by file --rows 5
  smbscope top --by file --anonymize --out shown/
  smbscope top --interface any --batch --format json | jq .total.operations")]
pub struct Top {
    #[command(flatten)]
    pub listen: Listen,
    /// How to group operations.
    #[arg(long, value_enum, value_name = "KEY", default_value_t)]
    pub by: KeyName,
    /// Column to sort by, largest value first.
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
    pub sort: SortName,
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
    /// Folder for recordings started with the key R; it must be empty or not exist. Further
    /// recordings go to DIR-2, DIR-3 ... [default: smbscope-top-TIME in the current folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// How operations are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeyName {
    /// SMB command.
    #[default]
    Command,
    /// Share.
    Share,
    /// Address of the client.
    Client,
    /// Share and path of the file.
    File,
    /// User of the session.
    User,
    /// Process of smbd (not for rows from an interface).
    Process,
}

/// How groups are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortName {
    /// Name of the group.
    Name,
    /// Number of operations.
    #[default]
    Ops,
    /// Bytes read and written.
    Bytes,
    /// Number of failed operations.
    Errors,
    /// Median of the turnaround.
    P50,
    /// 95th percentile of the turnaround.
    P95,
    /// 99th percentile of the turnaround.
    P99,
    /// Maximum of the turnaround.
    Max,
    /// Sum of the turnaround.
    Time,
}

impl Top {
    /// The grouping as a type of the analysis.
    pub fn key(&self) -> Key {
        match self.by {
            KeyName::Command => Key::Command,
            KeyName::Share => Key::Share,
            KeyName::Client => Key::Client,
            KeyName::File => Key::File,
            KeyName::User => Key::User,
            KeyName::Process => Key::Process,
        }
    }

    /// The order as a type of the analysis.
    pub fn order(&self) -> Sort {
        match self.sort {
            SortName::Name => Sort::Name,
            SortName::Ops => Sort::Operations,
            SortName::Bytes => Sort::Bytes,
            SortName::Errors => Sort::Errors,
            SortName::P50 => Sort::P50,
            SortName::P95 => Sort::P95,
            SortName::P99 => Sort::P99,
            SortName::Max => Sort::Max,
            SortName::Time => Sort::Time,
        }
    }

    /// The time that is shown together.
    pub fn span(&self) -> Span {
        if self.window { Span::Window } else { Span::Slot }
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
