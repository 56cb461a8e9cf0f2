//! The command line: commands, options and their help.
//!
//! Flags and their meaning are a stable interface; the prose is not. Options that several commands
//! share are defined in `options.rs`, output formats in `format/`, and the options of larger
//! commands next to their code in `commands/`.

use std::path::PathBuf;

use clap::builder::Styles;
use clap::{Parser, Subcommand, ValueEnum};

use crate::answer::AnswerOptions;
use crate::exit::Code;
use crate::filter_options::FilterOptions;
use crate::format::{RowFormat, TextFormat};
use crate::options::{Anonymize, Decode, Reading, Verbosity};
use crate::trace_options::TraceOptions;

/// Measure and explain the performance of SMB file shares.
///
/// smbscope turns SMB traffic into one row per operation and answers questions about those rows.
/// INPUT is a capture (pcap, pcapng, Network Monitor and others, optionally compressed with gzip or
/// zstd), a dataset written by `smbscope import`, a folder written by `smbscope record` or
/// `smbscope load`, or `-` for a capture on standard input. The type of an input is detected from its contents; several inputs
/// are read as one. Results go to standard output, messages to standard error.
#[derive(Debug, Parser)]
#[command(name = "smbscope", version, max_term_width = 100)]
#[command(help_template = help_template(), after_long_help = footer())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Verbosity and colour.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// A command. The order is that of [`GROUPS`].
#[derive(Debug, Subcommand)]
pub enum Command {
    // A doc comment on a variant would replace the help of its struct.
    Record(crate::commands::record::args::Record),
    Import(Import),
    Load(Box<crate::commands::load::args::Load>),
    Net(crate::commands::net::args::Net),
    Durability(Box<crate::commands::durability::Durability>),
    #[cfg(target_os = "linux")]
    Lab(crate::commands::lab::args::Lab),
    Wan(crate::commands::wan::Wan),
    Report(Report),
    Explain(crate::commands::explain::Args),
    Compare(crate::commands::compare::args::Compare),
    Predict(crate::commands::predict::args::Predict),
    Plan(crate::commands::plan::Plan),
    Top(crate::commands::top::args::Top),
    Ops(Ops),
    Query(Query),
    Serve(Serve),
    Export(crate::commands::export::Export),
    Schema(Schema),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
    /// Decode into memory, count, and write nothing (measured by `make bench`).
    #[command(hide = true)]
    Decode(Decode),
}

/// The commands as `smbscope --help` groups them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Get data", &["record", "import", "load", "net", "durability", "lab", "wan"]),
    ("Ask questions", &["report", "explain", "compare", "predict", "plan", "top", "ops", "query"]),
    ("Show and export", &["serve", "export"]),
    ("Other", &["schema", "doctor", "completions", "man"]),
];

/// List operations, one per line.
///
/// Each line shows the time of the first request byte, the client, the command, its detail
/// (information class, FSCTL, disposition ...), the status unless it is success, the path, the
/// range as offset+length in bytes, the time from the first request byte to the last reply byte, in
/// brackets the part spent in the server, and the frame numbers of request and reply. Lines are in
/// the order in which the operations ended. Unknown values are shown as `-`. With --columns, or in
/// another format than text, the output is a table with one row per operation.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope ops capture.pcapng
  smbscope ops capture.pcapng --where \"command = 'Create' and status <> 0\"
  smbscope ops capture.pcapng --client 10.1.0.0/16 --command open,close --from 'last 5m'
  smbscope ops monday/ tuesday/ --columns path,offset_bytes,elapsed_ns --format csv
  tcpdump -i eth0 -s 256 -U -w - port 445 | smbscope ops -")]
pub struct Ops {
    /// Show only operations that match this SQL expression over the columns.
    #[arg(long = "where", value_name = "SQL")]
    pub condition: Option<String>,
    /// Show these columns, separated by commas (`smbscope schema operations` lists them).
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// Stop after N operations.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// How to show the time of an operation.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub time: TimeForm,
    /// Output format; json omits unknown values.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// How `ops` shows times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeForm {
    /// ISO 8601 with microseconds: local time, or UTC with --utc.
    #[default]
    Clock,
    /// Seconds since the first operation shown.
    Relative,
    /// Seconds since 1970-01-01 00:00 UTC.
    Epoch,
}

/// Query the operations with SQL.
///
/// Captures and datasets are queried in the same way; of a capture only the needed columns are
/// decoded. The tables are operations, connections, sessions, trees, handles, referrals and
/// coverage; load runs add scenarios, steps and counters, recordings from inside a server add
/// slices. `smbscope schema` describes them. Times are integers in nanoseconds, sizes are in bytes.
/// percentile(column, 0.95) computes percentiles as the report does (nearest rank).
///
/// The last argument is the SQL if it begins like a query (select, with, explain, describe, show
/// ...) and no file has that name. Without SQL an interactive prompt opens, or, if standard input
/// is not a terminal, statements are read from there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope query capture.pcapng 'select command, count(*) from operations group by command'
  smbscope query capture.pcapng --question slowest-operations
  smbscope query dataset/ --file question.sql --format parquet --out answer.parquet
  smbscope query flood.etl --from 20s --to 30s --question interrupts-by-module
  smbscope query dataset/")]
pub struct Query {
    /// Capture files, CPU traces, datasets, or `-` for a capture on standard input, followed by the SQL.
    #[arg(value_name = "INPUT... [SQL]", required_unless_present = "questions")]
    pub arguments: Vec<String>,
    /// Read the SQL from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub file: Option<PathBuf>,
    /// Run a named query (--questions lists them).
    #[arg(long, value_name = "NAME")]
    pub question: Option<String>,
    /// List the named queries.
    #[arg(long, conflicts_with_all = ["arguments", "file", "question"])]
    pub questions: bool,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub reading: Reading,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Show recordings in a browser, with filters and pivot tables.
///
/// Prints the address of a page and opens it. The page begins with the report's verdict; every bar,
/// name and number is a filter, down to single operations with their frames. A pivot table has rows
/// and columns by share, request, client, user, file type, desired access, status, hour and others,
/// with counts, sums, means and percentiles, and shows the SQL that makes it. Charts show the course
/// over time; drag over one to zoom. The address of the page has the filters, so that it can be sent.
///
/// Only this machine is answered, and only with the token in the address. Nothing is requested from
/// other machines. Captures and traces are first written to a temporary dataset; a dataset that is
/// still being recorded is shown as it grows.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope serve capture.pcapng
  smbscope serve run/ --listen 8080 --no-browser
  smbscope serve monday/ tuesday/ --anonymize
  smbscope record --interface eth0 --out run/ & smbscope serve run/")]
pub struct Serve {
    /// Listen at this address, or at this port of 127.0.0.1; 0 chooses a port.
    #[arg(long, value_name = "ADDR", default_value = "0", value_parser = crate::commands::live::args::address)]
    pub listen: std::net::SocketAddr,
    /// Allow --listen at an address that other machines reach. Token and data are not encrypted on
    /// their way.
    #[arg(long)]
    pub plain_http: bool,
    /// Names by which browsers may call this machine, in addition to its addresses and localhost.
    #[arg(long = "host", value_name = "NAME,...", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Do not open the browser.
    #[arg(long)]
    pub no_browser: bool,
    /// From which time on users notice that they wait: what decides between healthy and slow
    /// [default: `slow` in smbscope.toml, or 1s].
    #[arg(long, value_name = "DURATION")]
    pub noticed: Option<crate::fail_on::Noticed>,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Convert captures to a Parquet dataset.
///
/// A dataset is a folder with a manifest and, for each table, Parquet files (zstd) in the order in
/// which the operations ended. DuckDB, pyarrow and Spark can read it, and smbscope reads it faster
/// than the capture. A file gets its final name when it is complete, at the latest after ten
/// seconds: if you stop the import with Ctrl-C, the dataset holds everything that was read so far;
/// if the process is killed, at most the last seconds are missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope import capture.pcapng --out dataset
  smbscope import day1.pcap.gz day2.pcap.zst --out week --anonymize
  smbscope import monday.pcap --baseline last-week
  smbscope compare last-week today.pcap")]
pub struct Import {
    /// Folder to write to; it must be empty or not exist.
    #[arg(long, value_name = "DIR", required_unless_present = "baseline")]
    pub out: Option<PathBuf>,
    /// Write to the folder of baselines ($XDG_DATA_HOME/smbscope/baselines, or `baselines` in smbscope.toml) under
    /// this name, which is then an INPUT of all commands.
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    pub baseline: Option<String>,
    /// Replace an existing dataset in the folder.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Show where the time goes.
///
/// The report begins with a verdict in one sentence and at most six numbers. Then follow where the
/// time goes, what makes it slow (as `smbscope explain` finds it), the course over time, commands
/// with latency percentiles, files, shares, clients, users, and the slowest operations with a
/// Wireshark filter for each; errors, connections, and what was lost or not understood come last.
/// Latency excludes operations that wait by design (change notifications, blocked locks). Shares of
/// time divide the busy time among the operations in flight, so that they add up to 100 %.
///
/// The text has at most 60 lines; --all writes everything. The page of --html has everything, needs
/// no network, and prints on a few pages.
///
/// For a load run (a folder of `smbscope load`) the report begins with the capacity and its curve, and
/// also shows the response times of scenarios, the parameters of the run, and the counters of
/// client and server. Folders from machines that shared a run (--shard) are read as one run; the report says
/// if folders do not belong together.
///
/// For a recording from inside a server it also shows the server's time slice by slice: by command,
/// by share, over time, and for the operations that took longest in the server.
///
/// For a CPU trace (`.etl` of Windows, ftrace, perf) it shows which drivers, interrupts and
/// softirqs hold which CPUs, since when, and through which calls.
///
/// With --change it also shows what a change would bring, like `smbscope predict`: times before and
/// after by command and scenario, and which parts of the time make up the difference.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope report capture.pcapng
  smbscope report capture.pcapng --all
  smbscope report capture.pcapng --html report.html
  smbscope report dataset/ --format json | jq .totals
  smbscope report run/ --html run.html
  smbscope report run/ --from 14:05 --to 14:10 --share projects --path '**/*.docx'
  smbscope report run-1of3/ run-2of3/ run-3of3/ --step 4
  smbscope report run/ --change rtt=20ms --html far.html
  smbscope report ring*.pcap --fail-on broken > /dev/null || alarm
  smbscope report flood.etl --html flood.html             # which driver holds which CPUs
  smbscope report flood.etl --from 20s --to 30s --limit 200us")]
pub struct Report {
    /// Where the report goes.
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Write all sections, tables and charts as text, not only the most important ones on 60 lines.
    #[arg(long)]
    pub all: bool,
    /// Exit with code 7 if a finding of at least this confidence explains 5 % of the time or more, or if the state
    /// of the share is this or worse.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<crate::fail_on::FailOn>,
    /// From which time on users notice that they wait: what decides between healthy and slow
    /// [default: `slow` in smbscope.toml, or 1s].
    #[arg(long, value_name = "DURATION")]
    pub noticed: Option<crate::fail_on::Noticed>,
    /// Operations of load runs to include.
    #[arg(long, value_enum, value_name = "PHASE", default_value_t, conflicts_with = "changes")]
    pub phase: PhaseCounted,
    /// Include only operations from the measured window of step N of a load run.
    #[arg(long, value_name = "N", conflicts_with_all = ["phase", "changes"])]
    pub step: Option<u64>,
    /// Changes to predict. Predictions from a load run use the measured windows of all steps.
    #[command(flatten)]
    pub prediction: crate::commands::predict::args::PredictionArgs,
    #[command(flatten)]
    pub filter: FilterOptions,
    #[command(flatten)]
    pub trace: TraceOptions,
    #[command(flatten)]
    pub decode: Decode,
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// Which operations of load runs a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PhaseCounted {
    /// Operations of scenarios scheduled in a measured window.
    #[default]
    Measured,
    /// Also operations of warm-up and cool-down, and logons.
    All,
}

/// Describe tables and columns.
///
/// Shows for each column its type, its unit (ns: nanoseconds; "ns since 1970": a point in time in
/// UTC; bytes; count), what its values can identify (a person, a machine or a path; --anonymize
/// replaces these values), and its meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope schema
  smbscope schema operations
  smbscope schema --format json | jq '.tables[].name'
  smbscope schema report                                 # JSON Schema of `report --format json`
  smbscope schema --dir schemas                          # all JSON Schemas as files")]
pub struct Schema {
    /// Table to describe, or the JSON output whose JSON Schema is printed: `report`, `explain` and `why` for
    /// operations, `processors` and `explain-processors` for CPU traces, `baseline`, `cores`, `namespace` and
    /// `replication` for `smbscope plan` [default: all tables].
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,
    /// Write all JSON Schemas into this folder, each as NAME.schema.json.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["table", "format"])]
    pub dir: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Check whether this machine has what smbscope needs.
///
/// Each line shows the result of one check and, if something is missing, how to fix it. The exit
/// code is 0 unless something is missing that smbscope cannot work without.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope doctor
  smbscope doctor --format json
  smbscope doctor --sample server.etl                    # what events has this log?

What Windows records, and what smbscope makes of it:
  logman, provider Microsoft-Windows-SMBServer (.etl)    operations with the server's time in slices
  netsh trace start capture=yes, pktmon (.etl)           operations, as from a packet capture
  xperf, WPR (.etl)                                      which drivers hold the CPUs
  Microsoft-Windows-SMBServer/Operational (.evtx)        slow operations, refused and lost connections
  typeperf, logman, relog -f csv (.csv)                  counters: CPUs, disks, network, RDMA
`smbscope record --print-windows-script --to 'S:\\temp'` prints what records them.")]
pub struct Doctor {
    /// Instead, show the shape of an event trace log (.etl): which events of which provider it has, how many, and how
    /// long their fields are. No contents, names or addresses: it can be sent to the authors, who have seen no real log
    /// of the SMB server.
    #[arg(long, value_name = "TRACE")]
    pub sample: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// Write a shell completion script.
///
/// The script goes to standard output. The examples show where common shells look for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope completions bash > ~/.local/share/bash-completion/completions/smbscope
  smbscope completions zsh > ~/.zfunc/_smbscope
  smbscope completions fish > ~/.config/fish/completions/smbscope.fish")]
pub struct Completions {
    /// Shell to write the script for.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Write manual pages.
///
/// Without --dir the main page goes to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope man | man -l -
  smbscope man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// Write the main page and one page per command to this folder.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// The layout of `smbscope --help`: clap cannot group subcommands, so the template holds the list.
fn help_template() -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let commands = Command::augment_subcommands(clap::Command::new("smbscope"));
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{header}{title}:{header:#}\n"));
        // A command that this platform does not have is skipped.
        for command in names.iter().filter_map(|name| commands.find_subcommand(name)) {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:<11}{literal:#}  {about}\n"));
        }
    }
    text.push_str("\n`smbscope COMMAND --help` describes a command and shows examples.\n");
    text.push_str(&format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}"));
    text
}

/// The end of `smbscope --help` and of the main manual page.
fn footer() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, meaning) in Code::ALL {
        text.push_str(&format!("  {:>3}  {meaning}\n", code as u8));
    }
    text.push_str(
        "\nEnvironment:\n  SMBSCOPE_KEYS      file with decryption keys, like --keys\n  \
         SMBSCOPE_PASSWORD  password of the users of `smbscope load`\n  \
         SMBSCOPE_CONFIG    the only file of settings; empty: none (docs/guide/settings.md)\n  \
         NO_COLOR           disable colour\n  \
         COLUMNS            width of the terminal in columns\n  \
         TMPDIR             folder for temporary copies of standard input\n",
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

    #[test]
    fn help_lists_every_command_once_in_the_order_of_the_enum() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        if cfg!(not(target_os = "linux")) {
            listed.retain(|name| *name != "lab");
        }
        assert_eq!(names, listed);
    }

    #[test]
    fn help_s_list_of_commands_fits_80_columns() {
        for line in help_template().lines() {
            let width = anstream::adapter::strip_str(line).to_string().chars().count();
            assert!(width <= 80, "{line}");
        }
    }
}
