//! The command line: commands, options, their help.
//!
//! Flags and their meaning are a stable interface; the prose is not. What the options do stands in
//! `options.rs`, `commands/` and `format/`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::exit::Code;
use crate::format::{RowFormat, TextFormat};
use crate::options::{Anonymize, Decode, Reading, Talk};

/// Where the time goes on an SMB file share.
///
/// smbscope decodes SMB captures into one row per operation and answers questions about them.
/// INPUT is recognised by what it holds: a capture (pcap, pcapng, also gzip or zstd of them), a
/// dataset that `smbscope import` wrote, or `-` for a capture on standard input. Several inputs
/// are one table. The answer goes to standard output, talk to standard error.
#[derive(Debug, Parser)]
#[command(name = "smbscope", version, max_term_width = 100, after_long_help = footer())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How much to say.
    #[command(flatten)]
    pub talk: Talk,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    // What a variant says would hide what its struct says.
    Ops(Ops),
    Query(Query),
    Import(Import),
    Report(Report),
    Export(crate::commands::export::Export),
    Explain(crate::commands::explain::Args),
    Compare(crate::commands::compare::args::Compare),
    Predict(crate::commands::predict::args::Predict),
    Record(crate::commands::record::args::Record),
    Top(crate::commands::top::args::Top),
    Load(Box<crate::commands::load::args::Load>),
    #[cfg(target_os = "linux")]
    Lab(crate::commands::lab::args::Lab),
    Wan(crate::commands::wan::Wan),
    Schema(Schema),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
    /// Decode into memory, write nothing and count: what `make bench` measures.
    #[command(hide = true)]
    Decode(Decode),
}

/// List operations, one line each.
///
/// A line reads like a log: time of the request's first byte, client, command, detail (information
/// class, FSCTL, disposition ...), status unless it is success, path, offset+length in bytes, time
/// from first request byte to last reply byte and in brackets the server's part of it, frames of
/// request and reply. Lines are in the order in which operations ended. What is not known reads
/// `-`. With --columns, or in another format, there is one row per operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope ops capture.pcapng
  smbscope ops capture.pcapng --where \"command = 'Create' and status <> 0\"
  smbscope ops monday/ tuesday/ --columns path,offset,elapsed_ns --format csv
  tcpdump -i eth0 -s 256 -w - port 445 | smbscope ops -")]
pub struct Ops {
    #[command(flatten)]
    pub decode: Decode,
    /// Show operations only for which this SQL expression over the columns is true.
    #[arg(long = "where", value_name = "SQL")]
    pub condition: Option<String>,
    /// Show these columns (names as in `smbscope schema operations`), separated by commas.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// End after so many operations.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// How lines show the time.
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub time: TimeForm,
    /// Form of the output; json is one object per line, without the columns that are not known.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// How lines show the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeForm {
    /// ISO 8601 in UTC with microseconds.
    #[default]
    Utc,
    /// Seconds since the first operation that is shown.
    Relative,
    /// Seconds since 1970-01-01 00:00 UTC.
    Epoch,
}

/// Ask in SQL.
///
/// The tables are operations, connections, sessions, trees, handles, referrals and coverage, and of
/// load runs scenarios, steps and counters, of recorded servers slices (see `smbscope schema`). All
/// times are integers in nanoseconds, sizes are in bytes. percentile(elapsed_ns, 0.95) is the
/// percentile that the report has (the nearest rank). The query runs straight on captures,
/// reading only what it needs, and in the same way on datasets. The last argument is the
/// SQL when it begins like a query (select, with, explain, describe, show ...) and no file has that
/// name. Without SQL a prompt opens; when standard input is no terminal, statements are read from
/// there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope query capture.pcapng 'select command, count(*) from operations group by command'
  smbscope query capture.pcapng --question slowest-operations
  smbscope query dataset/ --file question.sql --format parquet --out answer.parquet
  smbscope query dataset/")]
pub struct Query {
    /// Capture files, datasets, or `-` for a capture on standard input; then the SQL.
    #[arg(value_name = "INPUT... [SQL]", required_unless_present = "questions")]
    pub arguments: Vec<String>,
    /// Read the SQL from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub file: Option<PathBuf>,
    /// Ask a question that has a name (see --questions).
    #[arg(long, value_name = "NAME")]
    pub question: Option<String>,
    /// List the questions that have a name.
    #[arg(long, conflicts_with_all = ["arguments", "file", "question"])]
    pub questions: bool,
    #[command(flatten)]
    pub reading: Reading,
    /// Form of the output; json is one object per line.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Write a Parquet dataset.
///
/// The dataset is a folder with a manifest and Parquet parts for each table (zstd, in the order in
/// which operations ended), which DuckDB, pyarrow and Spark read as they are and smbscope reads
/// faster than the capture. Parts are complete when they have their name, and at least every ten
/// seconds one is: after Ctrl-C the dataset holds everything that was read, after a kill it lacks
/// seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope import capture.pcapng --out dataset
  smbscope import day1.pcap.gz day2.pcap.zst --out week --anonymize")]
pub struct Import {
    #[command(flatten)]
    pub decode: Decode,
    /// Folder to write: a new or an empty one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace a dataset that is in the folder.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Show where the time goes.
///
/// The report tells first what was seen, lost and not understood and where the capture was taken;
/// then commands with latency percentiles split into server and transfer, errors, shares, clients,
/// users, files, the course over time, connections, and the slowest operations with a Wireshark
/// filter for each. Latency leaves out what waits by design (notifications, blocked locks), and a
/// share of time is busy time divided among the operations in flight, so that shares add up.
///
/// Of a load run (`smbscope load --out`) it also shows what was run, the capacity table and curve,
/// response times of scenarios, and counters of client and server. The folders of machines that
/// shared a run (--shard) are read as one run; what does not belong together is said.
///
/// Of a recording from inside a server it also shows the server's time slice by slice: by command,
/// by share, over time, and of the operations that were longest there.
///
/// With --change it also shows what a change would bring, as `smbscope predict` does: before and after
/// by command and scenario, and from today's time to the predicted one part by part.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope report capture.pcapng
  smbscope report capture.pcapng --html report.html
  smbscope report dataset/ --format json | jq .totals
  smbscope report run/ --html run.html
  smbscope report run-1of3/ run-2of3/ run-3of3/ --step 4
  smbscope report run/ --change rtt=20ms --html far.html")]
pub struct Report {
    #[command(flatten)]
    pub decode: Decode,
    /// Write one self-contained HTML page to this file, instead of text.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Form of what goes to standard output; with --html nothing goes there unless this is given.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<TextFormat>,
    /// Which operations of load runs to count.
    #[arg(long, value_enum, value_name = "PHASE", default_value_t, conflicts_with = "changes")]
    pub phase: PhaseCounted,
    /// Of load runs, count operations of the measured window of this step only.
    #[arg(long, value_name = "N", conflicts_with_all = ["phase", "changes"])]
    pub step: Option<u64>,
    /// What changes would bring. Of load runs, what was measured counts, all steps together.
    #[command(flatten)]
    pub prediction: crate::commands::predict::args::PredictionArgs,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Which operations of load runs a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PhaseCounted {
    /// Those of scenarios that were scheduled in a measured window.
    #[default]
    Measured,
    /// Also those of warm-up and cool-down, and logons.
    All,
}

/// Explain tables and columns.
///
/// For each column: its type, its unit (ns: nanoseconds; "ns since 1970": a point in time, UTC;
/// bytes; count), whom its values could identify (person, machine, path; that is what --anonymize
/// replaces), and its meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope schema
  smbscope schema operations
  smbscope schema --format json | jq '.tables[].name'")]
pub struct Schema {
    /// One table; all without. `report` gives the JSON Schema of `smbscope report --format json`.
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,
    /// Form of the output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Check what this machine has for smbscope.
///
/// Each line says whether something is as it should be, and if not, what to do about it. The exit
/// code is 0 unless something is missing without which smbscope does not work.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  smbscope doctor")]
pub struct Doctor {
    /// Form of the output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Write completions for a shell.
///
/// The script goes to standard output; where it belongs depends on the shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope completions bash > ~/.local/share/bash-completion/completions/smbscope
  smbscope completions zsh > ~/.zfunc/_smbscope
  smbscope completions fish > ~/.config/fish/completions/smbscope.fish")]
pub struct Completions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Write the manual pages.
///
/// Without --dir the main page goes to standard output; with it there is one page for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope man | man -l -
  smbscope man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// Write all pages into this folder.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// What help and the main manual page end with.
fn footer() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, meaning) in Code::ALL {
        text.push_str(&format!("  {:>3}  {meaning}\n", code as u8));
    }
    text.push_str(
        "\nEnvironment:\n  SMBSCOPE_KEYS  file with decryption keys, as --keys\n  \
         NO_COLOR       no colour\n  COLUMNS        width of the terminal\n  \
         TMPDIR         where a stream is kept that is read more than once\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
