//! The options of `smbscope top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use smbscope_analysis::live::{Key, Sort, Span};

use crate::commands::live::args::Listen;
use crate::format::TextFormat;
use crate::options::{Anonymize, duration};

/// Show what happens on a server now.
///
/// Looks into the running Samba, with --interface at the wire too, as `smbscope record` does (its help
/// says what that needs), and shows each second the operations of the second before: how many, bytes
/// of files read and written, errors, percentiles of the turnaround (last byte of the request to first
/// byte of the reply), and where the time went, by command, share, client, file, user, or process of
/// smbd. What waits by design (notifications, blocked locks) counts as operation, not as time.
///
/// Keys choose the group, the order and a filter, pause, and start a recording in a folder as `smbscope
/// record` writes it (? tells them). Such a recording begins in the midst: it has operations that
/// ended while it ran, with sessions, trees and opens as they were known before.
///
/// Where standard output is no terminal, or with --batch, a table is printed each interval.
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
    /// Group operations by this.
    #[arg(long, value_enum, value_name = "KEY", default_value_t)]
    pub by: KeyName,
    /// Order groups by this column, the greatest first.
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
    pub sort: SortName,
    /// The other way round.
    #[arg(long)]
    pub reverse: bool,
    /// Show groups only whose name contains this, in capitals or not.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub filter: String,
    /// How long what is shown together lasts (1s, 10s).
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Show the last ten intervals together instead of the last one.
    #[arg(long)]
    pub window: bool,
    /// Print tables instead of a screen.
    #[arg(long)]
    pub batch: bool,
    /// Groups in a printed table.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Form of what is printed; json is one object for each interval, and no screen.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
    /// End after so many intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time (10m, 30s).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Folder for a recording (R on the screen): a new or an empty one, the next is called DIR-2.
    /// Without it smbscope-top-TIME in the current folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// What operations are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeyName {
    /// The command.
    #[default]
    Command,
    /// The share.
    Share,
    /// The client's address.
    Client,
    /// Share and path.
    File,
    /// The session's user.
    User,
    /// The process of smbd (not on an interface).
    Process,
}

/// What groups are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortName {
    /// The name.
    Name,
    /// Operations.
    #[default]
    Ops,
    /// Bytes read and written.
    Bytes,
    /// Operations that failed.
    Errors,
    /// Median of the turnaround.
    P50,
    /// Its 95th percentile.
    P95,
    /// Its 99th percentile.
    P99,
    /// Its maximum.
    Max,
    /// Its sum.
    Time,
}

impl Top {
    /// The key as the model knows it.
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

    /// The order as the model knows it.
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

    /// Of which time.
    pub fn span(&self) -> Span {
        if self.window { Span::Window } else { Span::Slot }
    }
}

/// Less than a tenth of a second is no more than flicker.
fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < Duration::from_millis(100) => Err("at least 100ms".to_owned()),
        long if long > Duration::from_secs(3600) => Err("at most 1h".to_owned()),
        interval => Ok(interval),
    }
}
