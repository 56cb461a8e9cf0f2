//! Options of `smbscope load`, and their conversion to types of `smbscope_load`.

mod client;
pub mod migrate;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use smbscope_load::capacity::Limit;
use smbscope_load::fileset::Scale;
use smbscope_load::run::users::Shard;
use smbscope_load::workload::{BUILT_IN, BadChange, Overrides, Workload};

pub use client::Client;

use super::target::Where;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::options::{duration, percent, positive, size};

/// Load a server with simulated users.
///
/// Each simulated user has its own connection and session, and runs scenarios of the workload on a
/// schedule. The default workload, `homefolder`, is the home-directory workload of Microsoft's File
/// Server Capacity Tool (FSCT) with a scenario every 10.88 s per user. A scenario that cannot start
/// on time starts late; it is never skipped, and its response time counts from the scheduled time.
///
/// With --find-capacity, the number of users is doubled and then bisected to find the largest
/// number that the server handles without overload (defined in docs/method/overload.md).
///
/// The users' files must exist: create them with `smbscope load prepare`.
///
/// --workload migrate moves bulk data instead, as a live migration or a backup does: one session, few
/// streams of large blocks, over the channels that the server's interfaces offer (docs/guide/migrate.md).
/// It needs no files and ends when all data is moved.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  smbscope lab up --users 50
  smbscope load prepare --lab --users 50
  smbscope load --lab --users 50 --duration 60s --out run/
  smbscope load --lab --find-capacity --max-users 50 --duration 60s --out search/
  smbscope load --lab --find-capacity --max-response 'p95<2s' --duration 60s
  smbscope report run/ --html run.html

  smbscope load prepare --lab --workload bulk-copy --users 1
  smbscope load --lab --workload bulk-copy --matrix

  smbscope load //fs.example/vm --user 'LAB\\admin' --workload migrate --size 55GiB --verify --out move/
  smbscope load --lab --workload migrate --channels 4 --direction both
  smbscope load //10.0.0.2/vm --user admin --workload migrate --channels 10.0.0.2,10.1.0.2x4

  smbscope load //fs.example/home --user 'LAB\\user{:05}' --password-file secret --users 500
  smbscope load //fs.example/home --users-file users.txt --users 8000 --shard 3/8 \\
      --start-at 2026-11-22T20:00:00Z --out run-3/

  smbscope load //fs.example/home --auth kerberos --user 'user{:05}@EXAMPLE' \\
      --kdc kdc.example --password-file secret --users 500
  smbscope load //fs.example/home --keytab users.keytab --realm EXAMPLE --users 500")]
pub struct Load {
    #[command(subcommand)]
    pub command: Option<LoadCommand>,
    #[command(flatten)]
    pub run: Run,
}

/// Commands other than a run. The help texts are those of the structs.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    Prepare(Prepare),
    Clean(Clean),
    Workloads(Workloads),
}

/// What the users do, and with which files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload options")]
pub struct What {
    /// Built-in workload (`smbscope load workloads` lists them) or a workload file.
    #[arg(long, value_name = "NAME|FILE", default_value = "homefolder")]
    pub workload: String,
    /// Seed of all random choices and file contents.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Factor for the size of the file set, for example 0.1 for a small disk.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Run only this scenario; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub scenario: Vec<String>,
    /// Block size for reading and writing whole files, for example 64KiB [default: set by the
    /// workload].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub block: Option<u64>,
    /// Requests in flight when reading and writing whole files [default: set by the workload].
    #[arg(long, value_name = "N")]
    pub depth: Option<u16>,
    /// Size of large files (bulk-copy, migrate), for example 256MiB [default: set by the workload].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
}

/// A run.
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub place: Where,
    #[command(flatten)]
    pub what: What,
    #[command(flatten)]
    pub client: Client,
    #[command(flatten)]
    pub course: Course,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub record: Record,
    #[command(flatten)]
    pub matrix: Matrix,
    #[command(flatten)]
    pub bulk: migrate::Bulk,
}

/// Users without `--users`.
pub const USERS_DEFAULT: u64 = 10;

/// Number of users and schedule.
#[derive(Debug, Args)]
#[command(next_help_heading = "Schedule options")]
pub struct Course {
    /// Number of users, on all machines together.
    #[arg(long, value_name = "N", default_value_t = USERS_DEFAULT, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub users: u64,
    /// Logons per second at the start.
    #[arg(long, value_name = "USERS/S", default_value_t = 20.0, value_parser = positive)]
    pub ramp: f64,
    /// Time before the measured window.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub warm_up: Duration,
    /// Length of the measured window; with --find-capacity, of the window of each step.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub duration: Duration,
    /// Time after the measured window during which users continue.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub cool_down: Duration,
    /// Start the next scenario of a user immediately instead of on schedule, to measure raw
    /// throughput.
    #[arg(long, conflicts_with = "find_capacity")]
    pub closed: bool,
    /// End the run when the server does not answer for this long. Users try again until then, so that a
    /// failover can be measured [default: not before the end of the run; with --find-capacity 5s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub outage: Option<Duration>,
    /// Run part I of N of the users on this machine, for example 3/8.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = Shard::parse)]
    pub shard: Shard,
    /// Start at this time, so that several machines start together: 2026-11-22T20:00:00Z.
    #[arg(long, value_name = "UTC", value_parser = start_at)]
    pub start_at: Option<i64>,
    /// Number of threads for the users; 0 uses one per CPU.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

/// The capacity search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Capacity search options")]
pub struct SearchArgs {
    /// Find the largest number of users that the server handles without overload.
    #[arg(long)]
    pub find_capacity: bool,
    /// Number of users in the first step.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub start_users: u64,
    /// Maximum number of users to try [default: the number of users whose files exist on the
    /// share].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub max_users: Option<u64>,
    /// Stop when the result is known to this accuracy.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = positive)]
    pub resolution: f64,
    /// Number of runs of the last step below and above the limit; the majority decides.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Carry users only within this limit on response times, from the scheduled time: p95<2s (mean,
    /// p50, p95, p99 or max of all scenarios), or of one scenario or SMB command:
    /// ExplorerNavigate:p95<1s, Read:p99<50ms. Can be repeated. Without it, overload alone decides, and
    /// the answer gives the p95 [default: no limit, as in FSCT].
    #[arg(long, value_name = "LIMIT", value_parser = Limit::from_str)]
    pub max_response: Vec<Limit>,
    /// Try these numbers of users, one step each and for its full length, instead of a search: fixed load points, as
    /// of SPECstorage. The answer is the largest number that is carried, with the overall response time.
    #[arg(long, value_name = "USERS,...", value_delimiter = ',', conflicts_with_all = ["find_capacity", "closed"], value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub steps: Vec<u64>,
    /// Run each step for its full length, even if its result is certain earlier.
    #[arg(long)]
    pub full_steps: bool,
}

/// What is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording options")]
pub struct Record {
    /// Write operations, scenarios and counters to this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace an existing dataset in the folder.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Read the server's counters from this Prometheus endpoint (node_exporter, or Samba's own);
    /// can be repeated. For a server on this machine, /proc is read as well.
    #[arg(long, value_name = "URL")]
    pub metrics: Vec<String>,
    /// End with exit code 11 if more than this percentage of the scenarios fail.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub fail_above: f64,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// The table of throughput by direction, round-trip time and block size.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matrix options")]
pub struct Matrix {
    /// Measure the throughput of uploads and downloads at several round-trip times and block sizes,
    /// with one user, and show it as a table. Throughput is the bytes of answered requests divided
    /// by the time with at least one request in flight. Needs --workload bulk-copy.
    #[arg(long, conflicts_with_all = ["find_capacity", "out", "users", "shard", "start_at", "metrics", "block"])]
    pub matrix: bool,
    /// Round-trip times of the table, emulated like --rtt.
    #[arg(long, value_name = "DURATION,...", value_delimiter = ',', default_value = "0ms,2ms,20ms", value_parser = duration)]
    pub matrix_rtt: Vec<Duration>,
    /// Block sizes of the table.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "4KiB,64KiB,1MiB", value_parser = size)]
    pub matrix_block: Vec<u64>,
    /// Time per cell of the table, in addition to 20 round trips for the logon.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub matrix_time: Duration,
}

/// Create the users' files on the share.
///
/// The files of a user need about 80 MB and depend only on the workload, the seed and the scale.
/// Existing files are kept, missing or changed files are created again, and files left by earlier
/// runs are removed. You can therefore interrupt and repeat `prepare`, and use it before each run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope load prepare --lab --users 50 --scale 0.1
  smbscope load prepare //fs.example/home --users 500 --password-file secret")]
pub struct Prepare {
    /// Number of users to create files for, starting with user 1.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub users: u64,
    /// Create the files of part I of N of the users, for example 3/8.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = Shard::parse)]
    pub shard: Shard,
    /// Number of users to process in parallel.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    #[command(flatten)]
    pub place: Where,
    #[command(flatten)]
    pub what: What,
    #[command(flatten)]
    pub client: Client,
}

/// Remove the files that `load` and `prepare` created.
///
/// Other files in the users' folders are kept, together with the folders that contain them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope load clean --lab --users 50")]
pub struct Clean {
    /// Number of users whose files to remove, starting with user 1.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub users: u64,
    /// Number of users to process in parallel.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    #[command(flatten)]
    pub place: Where,
    #[command(flatten)]
    pub what: What,
    #[command(flatten)]
    pub client: Client,
}

/// List the built-in workloads, or show a workload.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope load workloads
  smbscope load workloads show homefolder
  smbscope load workloads show homefolder --toml > mine.toml")]
pub struct Workloads {
    #[command(subcommand)]
    pub command: Option<WorkloadsCommand>,
}

/// What to do with workloads. The help texts are those of the structs.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    Show(ShowWorkload),
}

/// Show the files, scenarios, steps and counts of a workload.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope load workloads show homefolder
  smbscope load workloads show homefolder --toml > mine.toml")]
pub struct ShowWorkload {
    /// Built-in workload or workload file.
    #[arg(value_name = "NAME|FILE")]
    pub workload: String,
    /// Print the workload's TOML source, as a starting point for your own.
    #[arg(long)]
    pub toml: bool,
}

/// `2026-11-22T20:00:00Z` or seconds since 1970, as nanoseconds.
fn start_at(text: &str) -> Result<i64, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Ok((seconds * 1e9) as i64);
    }
    arrow::compute::kernels::cast_utils::string_to_timestamp_nanos(text)
        .map_err(|_| "expected a UTC time such as 2026-11-22T20:00:00Z".into())
}

impl What {
    /// The workload, parsed and as text.
    pub fn load(&self) -> anyhow::Result<(Workload, String)> {
        self.with_block(self.block)
    }

    /// The workload with another block size, parsed and as text.
    pub fn with_block(&self, block: Option<u64>) -> anyhow::Result<(Workload, String)> {
        let usage = |error: BadChange| Failure::usage(error.to_string());
        let (mut workload, text) = workload(&self.workload)?;
        let overrides = Overrides {
            block_bytes: block.map(|block| u32::try_from(block).unwrap_or(u32::MAX)),
            depth: self.depth,
            size_bytes: self.size,
        };
        workload = workload.with_overrides(&overrides).map_err(usage)?;
        if !self.scenario.is_empty() {
            let names: Vec<&str> = self.scenario.iter().map(String::as_str).collect();
            workload = workload.only(&names).map_err(usage)?;
        }
        Ok((workload, text))
    }

    /// The scale.
    pub fn scale(&self) -> anyhow::Result<Scale> {
        Scale::new(self.scale).map_err(|error| Failure::usage(format!("--scale: {error}")))
    }
}

/// A built-in workload or one from a file, parsed and as text.
pub fn workload(name: &str) -> anyhow::Result<(Workload, String)> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok((Workload::built_in(name)?, (*text).to_owned()));
    }
    let path = Path::new(name);
    if !path.exists() && !name.contains(['/', '.']) {
        // The error lists the built-in workloads.
        Workload::built_in(name).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let read = Workload::load(path);
    Ok(read.map_err(|error| Failure::new(Code::Input, error.to_string()))?)
}
