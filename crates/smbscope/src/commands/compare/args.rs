//! What `smbscope compare` is told.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::PhaseCounted;
use crate::format::RowFormat;
use crate::options::{Anonymize, Reading};

/// Put two recordings side by side.
///
/// For each command (or share, client, user, scenario) and in total: the elapsed time in A and in B,
/// the change of its mean in per cent with a 95 % interval, how large that is (Cliff's delta: the
/// probability that an operation of B takes longer than one of A, less the reverse; negligible,
/// small, medium, large), and how certain (p, corrected for the number of groups). A star marks what
/// is significant.
///
/// Operations of one connection are not independent of each other: certainty comes from connections,
/// from the users of load runs, or from blocks of time, and each row says from which. Load runs of
/// the same workload, seed and scale are compared user by user. What makes the recordings unlike is
/// said first: another mix of commands, another vantage, other users. docs/compare.md has the
/// statistics and their limits.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  smbscope compare before.pcapng after.pcapng
  smbscope compare run-signed/ run-unsigned/
  smbscope compare monday/ tuesday/ --by share
  smbscope compare before/ after/ --format json | jq 'select(.significant)'")]
pub struct Compare {
    /// The recording before: a capture, a dataset or run folder, or `-`.
    #[arg(value_name = "A")]
    pub a: String,
    /// The recording after.
    #[arg(value_name = "B")]
    pub b: String,
    /// What groups are made of.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: By,
    /// Which operations of load runs to count.
    #[arg(long, value_enum, value_name = "PHASE", default_value_t)]
    pub phase: PhaseCounted,
    /// Form of the output; json is one object per line, times in seconds.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: RowFormat,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How they are read.
    #[command(flatten)]
    pub reading: Reading,
    /// Tokens instead of names.
    #[command(flatten)]
    pub anonymize: Anonymize,
}

/// What groups are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Commands; of load runs also scenarios.
    #[default]
    Command,
    /// Scenarios of load runs: what users waited.
    Scenario,
    /// Shares.
    Share,
    /// Addresses of clients.
    Client,
    /// Users.
    User,
}
