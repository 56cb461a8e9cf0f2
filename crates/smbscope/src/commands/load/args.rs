//! Options of `smbscope load`, and what they are in `smbscope_load`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use smbscope_client::{Config, Encryption, Kerberos, Signing};
use smbscope_load::fileset::Scale;
use smbscope_load::run::users::Shard;
use smbscope_load::workload::{BUILT_IN, BadChange, ClientCache, Overrides, Workload};
use smbscope_tables::quantity::parse_distance;
use smbscope_wire::smb2::Dialect;
use smbscope_wire::smb2::negotiate_context::{CipherId, SigningId};

use super::place::Where;
use crate::exit::{Code, Failure};
use crate::format::TextFormat;
use crate::options::{duration, positive, size};

/// Put simulated users on a server.
///
/// Every user has a connection and a session of their own and runs scenarios of the workload by a
/// schedule: `homefolder`, the default, is FSCT's workload of home directories, a scenario every
/// 10.88 s. A scenario that cannot begin on time begins late, is never left out, and its time counts
/// from when it was due. With --find-capacity the number of users is doubled and bisected until it
/// is known how many the server carries without overload (docs/load.md says what that is).
///
/// The users' files must be there: `smbscope load prepare` makes them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  smbscope lab up --users 50
  smbscope load prepare --lab --users 50
  smbscope load --lab --users 50 --duration 60s --out run/
  smbscope load --lab --find-capacity --max-users 50 --duration 60s --out search/
  smbscope report run/ --html run.html

  smbscope load prepare --lab --workload bulk-copy --users 1
  smbscope load --lab --workload bulk-copy --matrix

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

/// What else there is to do.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Make the users' files on the share.
    Prepare(Prepare),
    /// Remove what prepare and runs made.
    Clean(Clean),
    /// List the built-in workloads, or show one.
    Workloads(Workloads),
}

/// What users do, and with which files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct What {
    /// A built-in workload (`smbscope load workloads` lists them) or a file of your own.
    #[arg(long, value_name = "NAME|FILE", default_value = "homefolder")]
    pub workload: String,
    /// What all random choices and file contents follow from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Shrink the file set for a small disk: 0.1 is a tenth.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,
    /// Run only this scenario; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub scenario: Vec<String>,
    /// Block of every read and write of a whole file: 64KiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub block: Option<u64>,
    /// Requests in flight of every read and write of a whole file.
    #[arg(long, value_name = "N")]
    pub depth: Option<u16>,
    /// Size of the large files (bulk-copy): 256MiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
}

/// How the client speaks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Client")]
pub struct Client {
    /// Offer only this dialect (2.0.2, 2.1, 3.0, 3.0.2, 3.1.1); may be given several times. Without
    /// it all are offered.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Vec<Dialect>,
    /// auto (as the server demands), required, off, or an algorithm that is then required:
    /// hmac-sha256, aes-cmac, aes-gmac.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = signing)]
    pub signing: SigningChoice,
    /// auto (as server or share demand), required, off, or a cipher that is then required:
    /// aes-128-ccm, aes-128-gcm, aes-256-ccm, aes-256-gcm.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = encryption)]
    pub encryption: EncryptionChoice,
    /// TCP connections of each user (multichannel, 3.x).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub channels: u16,
    /// Credits that the client tries to hold on a connection.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=8192))]
    pub credits: u16,
    /// Ask for oplocks instead of leases.
    #[arg(long)]
    pub no_leases: bool,
    /// Ask for durable handles where an oplock or lease allows it, and take them up again after a
    /// lost connection.
    #[arg(long)]
    pub durable: bool,
    /// What the client knows of directories: published (the workload as it stands), collapse (opens
    /// that only reach the client's own cache are not sent), dirlease (directory leases are held and
    /// answer what they can).
    #[arg(long, value_name = "MODE", default_value = "published", value_parser = ClientCache::from_str)]
    pub client_cache: ClientCache,
    /// Delay every reply in the client, for convenience: 20ms. Timers add 1 to 2 ms to it, and it
    /// knows nothing of windows and handshakes; `smbscope wan` is a line.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub rtt: Option<Duration>,
    /// The same as a distance: 2795km (200,000 km/s in fibre, both ways); added to --rtt.
    #[arg(long, value_name = "LENGTH", value_parser = distance)]
    pub distance: Option<u64>,
    /// An execution that takes longer has failed.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    pub timeout: Duration,
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
}

/// How many users, and how long.
#[derive(Debug, Args)]
#[command(next_help_heading = "Course")]
pub struct Course {
    /// Users of the whole run, all machines together.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub users: u64,
    /// Users that log on in a second.
    #[arg(long, value_name = "N", default_value_t = 20.0, value_parser = positive)]
    pub ramp: f64,
    /// Time before the measured window.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub warm_up: Duration,
    /// Length of the measured window (of each step of a search).
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub duration: Duration,
    /// Time after it during which users go on.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub cool_down: Duration,
    /// Users begin their next scenario at once, for raw capacity, instead of by schedule.
    #[arg(long, conflicts_with = "find_capacity")]
    pub closed: bool,
    /// Run one machine's share of the users: I/N.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = Shard::parse)]
    pub shard: Shard,
    /// Begin at this time (UTC, 2026-11-22T20:00:00Z), so that several machines begin together.
    #[arg(long, value_name = "TIME", value_parser = start_at)]
    pub start_at: Option<i64>,
    /// Threads that carry users; 0 takes as many as the machine has.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

/// The search for the capacity.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Find how many users the server carries without overload.
    #[arg(long)]
    pub find_capacity: bool,
    /// Users of the first step.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub start_users: u64,
    /// Most users to try. Without it as many as have their files on the share.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub max_users: Option<u64>,
    /// End when the answer is known to so many percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = positive)]
    pub resolution: f64,
    /// Runs of each side of the edge, of which the majority decides.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Let every step last its whole time, also when its answer is certain.
    #[arg(long)]
    pub full_steps: bool,
}

/// What is kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub struct Record {
    /// Write operations, scenarios and counters into this run folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace a dataset that is there already.
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Read the server's counters from this Prometheus endpoint (node_exporter, Samba's own); may be
    /// given several times. A server on this machine is read from /proc as well.
    #[arg(long, value_name = "URL")]
    pub metrics: Vec<String>,
    /// Form of the answer.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: TextFormat,
}

/// The table of direction, distance and block size.
#[derive(Debug, Args)]
#[command(next_help_heading = "Matrix")]
pub struct Matrix {
    /// Copy up and down over several distances and with several block sizes, one user at a time,
    /// and show the table that tells which way is slow: bytes of the blocks that were answered, by
    /// the time with at least one under way. Takes --workload bulk-copy.
    #[arg(long, conflicts_with_all = ["find_capacity", "out", "users", "shard", "start_at", "metrics", "block"])]
    pub matrix: bool,
    /// Round trips of the table, delayed in the client.
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', default_value = "0ms,2ms,20ms", value_parser = duration)]
    pub matrix_rtt: Vec<Duration>,
    /// Block sizes of the table.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "4KiB,64KiB,1MiB", value_parser = size)]
    pub matrix_block: Vec<u64>,
    /// Time for each cell of the table, beside 20 of its round trips to log on.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub matrix_time: Duration,
}

/// Make the users' files on the share.
///
/// About 80 MB for each user, the same for the same seed wherever it is made. What is there already
/// is kept, what is missing or changed is made anew, and what runs left is removed, so that it can be
/// interrupted, repeated, and run before every run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope load prepare --lab --users 50 --scale 0.1
  smbscope load prepare //fs.example/home --users 500 --password-file secret")]
pub struct Prepare {
    #[command(flatten)]
    pub place: Where,
    #[command(flatten)]
    pub what: What,
    /// Users whose files are made, from number 1.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub users: u64,
    /// Make one machine's share of them: I/N.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = Shard::parse)]
    pub shard: Shard,
    /// Users at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    #[command(flatten)]
    pub client: Client,
}

/// Remove what prepare and runs made.
///
/// Exactly that: files of the file set and those that runs leave. What somebody else put into a
/// user's folder stays, with the folders that it lies in.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  smbscope load clean --lab --users 50")]
pub struct Clean {
    #[command(flatten)]
    pub place: Where,
    #[command(flatten)]
    pub what: What,
    /// Users whose files are removed, from number 1.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub users: u64,
    /// Users at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
    #[command(flatten)]
    pub client: Client,
}

/// List the built-in workloads, or show one.
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

/// What to do with workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// Print one: its files, scenarios, steps and counts.
    Show(ShowWorkload),
}

/// Print a workload.
#[derive(Debug, Args)]
pub struct ShowWorkload {
    /// A built-in workload, or a file.
    #[arg(value_name = "NAME|FILE")]
    pub workload: String,
    /// Print the TOML that it is written in, to begin one's own with.
    #[arg(long)]
    pub toml: bool,
}

/// See [`Client::signing`].
#[derive(Clone, Debug)]
pub struct SigningChoice(Signing, Option<SigningId>);

/// See [`Client::encryption`].
#[derive(Clone, Debug)]
pub struct EncryptionChoice(Encryption, Option<CipherId>);

fn distance(text: &str) -> Result<u64, String> {
    parse_distance(text).map_err(|error| error.to_string())
}

fn dialect(text: &str) -> Result<Dialect, String> {
    let known = [
        Dialect::SMB_2_0_2,
        Dialect::SMB_2_1,
        Dialect::SMB_3_0,
        Dialect::SMB_3_0_2,
        Dialect::SMB_3_1_1,
    ];
    let found = known.into_iter().find(|dialect| dialect.name() == Some(text));
    found.ok_or_else(|| "there is 2.0.2, 2.1, 3.0, 3.0.2 and 3.1.1".into())
}

fn signing(text: &str) -> Result<SigningChoice, String> {
    Ok(match text {
        "auto" => SigningChoice(Signing::Auto, None),
        "required" | "on" => SigningChoice(Signing::Required, None),
        "off" => SigningChoice(Signing::Off, None),
        "hmac-sha256" => SigningChoice(Signing::Required, Some(SigningId::HMAC_SHA256)),
        "aes-cmac" => SigningChoice(Signing::Required, Some(SigningId::AES_CMAC)),
        "aes-gmac" => SigningChoice(Signing::Required, Some(SigningId::AES_GMAC)),
        _ => {
            return Err("there is auto, required, off, hmac-sha256, aes-cmac and aes-gmac".into());
        }
    })
}

fn encryption(text: &str) -> Result<EncryptionChoice, String> {
    let of = |cipher| EncryptionChoice(Encryption::Required, Some(cipher));
    Ok(match text {
        "auto" => EncryptionChoice(Encryption::Auto, None),
        "required" | "on" => EncryptionChoice(Encryption::Required, None),
        "off" => EncryptionChoice(Encryption::Off, None),
        "aes-128-ccm" => of(CipherId::AES_128_CCM),
        "aes-128-gcm" => of(CipherId::AES_128_GCM),
        "aes-256-ccm" => of(CipherId::AES_256_CCM),
        "aes-256-gcm" => of(CipherId::AES_256_GCM),
        _ => {
            return Err("there is auto, required, off, aes-128-ccm, aes-128-gcm, aes-256-ccm and aes-256-gcm".into());
        }
    })
}

/// `2026-11-22T20:00:00Z` or seconds since 1970, as nanoseconds.
fn start_at(text: &str) -> Result<i64, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Ok((seconds * 1e9) as i64);
    }
    arrow::compute::kernels::cast_utils::string_to_timestamp_nanos(text)
        .map_err(|_| "write the time as 2026-11-22T20:00:00Z".into())
}

impl Client {
    /// The session's shape, with logons by tickets where `kerberos` says how to get them.
    pub fn config(&self, kerberos: Option<Arc<Kerberos>>) -> anyhow::Result<Config> {
        let mut config = Config { kerberos, ..Config::default() };
        if !self.dialect.is_empty() {
            config.dialects.clone_from(&self.dialect);
            config.dialects.sort();
            config.dialects.dedup();
        }
        let SigningChoice(how, algorithm) = &self.signing;
        config.signing = *how;
        if let Some(algorithm) = algorithm {
            config.signing_algorithms = vec![*algorithm];
            let fits = |dialect: &Dialect| match *algorithm {
                SigningId::HMAC_SHA256 => {
                    *dialect < Dialect::SMB_3_0 || *dialect == Dialect::SMB_3_1_1
                }
                SigningId::AES_CMAC => *dialect >= Dialect::SMB_3_0,
                _ => *dialect == Dialect::SMB_3_1_1,
            };
            config.dialects.retain(fits);
            if config.dialects.is_empty() {
                return Err(Failure::usage("the signing algorithm is not one of the dialect's"));
            }
        }
        let EncryptionChoice(how, cipher) = &self.encryption;
        config.encryption = *how;
        if let Some(cipher) = cipher {
            config.ciphers = vec![*cipher];
        }
        if *how == Encryption::Required {
            let least = match cipher {
                None | Some(CipherId::AES_128_CCM) => Dialect::SMB_3_0,
                Some(_) => Dialect::SMB_3_1_1,
            };
            config.dialects.retain(|dialect| *dialect >= least);
            if config.dialects.is_empty() {
                return Err(Failure::usage("the cipher is not one of the dialect's"));
            }
        }
        config.leases = !self.no_leases;
        config.durable = self.durable;
        config.channels = self.channels;
        config.credits = self.credits;
        // 200,000 km/s there and back are 10 ns for each metre.
        let distance = Duration::from_nanos(self.distance.unwrap_or(0).saturating_mul(10));
        config.delay = self.rtt.unwrap_or_default() + distance;
        Ok(config)
    }
}

impl What {
    /// The workload, as data and as text.
    pub fn load(&self) -> anyhow::Result<(Workload, String)> {
        self.with_block(self.block)
    }

    /// The same with another block.
    pub fn with_block(&self, block: Option<u64>) -> anyhow::Result<(Workload, String)> {
        let usage = |error: BadChange| Failure::usage(error.to_string());
        let (mut workload, text) = workload(&self.workload)?;
        let overrides = Overrides {
            block_bytes: block.map(|block| u32::try_from(block).unwrap_or(u32::MAX)),
            depth: self.depth,
            size_bytes: self.size,
        };
        workload = workload.with(&overrides).map_err(usage)?;
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

/// A built-in workload or one from a file, with its text.
pub fn workload(name: &str) -> anyhow::Result<(Workload, String)> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok((Workload::built_in(name)?, (*text).to_owned()));
    }
    let path = Path::new(name);
    if !path.exists() && !name.contains(['/', '.']) {
        // Says which built-in ones there are.
        Workload::built_in(name).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let read = Workload::load(path);
    Ok(read.map_err(|error| Failure::new(Code::Input, error.to_string()))?)
}
